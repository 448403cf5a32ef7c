#!/usr/bin/env python3
"""Measures engine-replica beside llama.cpp on the same file, one after the other, and the machine's limits beside them.

Prints a Markdown table; ../README.md says how to read it.
"""

import argparse
import json
import os
import resource
import subprocess
import sys
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

import figures
import peer
import replica
from processes import exit_on_sigterm, machine_busy_seconds, wait_until_quiet

REPOSITORY = Path(__file__).resolve().parents[3]
FETCH = REPOSITORY / "deploy" / "scripts" / "fetch-smollm2.sh"
TARGET = Path(os.environ.get("CARGO_TARGET_DIR", REPOSITORY / "target"))


def parse_args():
    """The command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--model", type=Path, help="a GGUF file (default: SmolLM2-135M-Instruct, fetched into the cache)")
    parser.add_argument("--rounds", type=int, default=3, help="runs of each, alternating (default: 3)")
    parser.add_argument("--prompt-tokens", default="512,2048", help="prompt lengths (default: 512,2048)")
    parser.add_argument("--streams", default="1,4", help="answers generated at the same time (default: 1,4)")
    parser.add_argument("--decode-tokens", type=int, default=64, help="tokens of each answer (default: 64)")
    parser.add_argument("--threads", type=int, default=os.cpu_count(), help="threads of each (default: all CPUs)")
    parser.add_argument("--no-peer", action="store_true", help="measure the replica alone")
    parser.add_argument("--no-replica", action="store_true", help="measure the peer alone")
    parser.add_argument("--peer-dir", type=Path, default=peer.default_folder(), help="where the peer is installed")
    parser.add_argument("--bin-dir", type=Path, help="where the programs are (default: build them, cargo --release)")
    parser.add_argument("--quiet-wait", type=float, default=20,
                        help="longest wait for a quiet machine before a run, in seconds (default: 20)")
    return parser.parse_args()


def build(with_replica):
    """Builds the programs as they are shipped and returns their folder."""
    # Only this one is for the CPU that it runs on: it asks what the machine can do, not what a portable program can.
    limits = ["cargo", "rustc", "--release", "-p", "system-tests", "--bin", "machine-limits", "--",
              "-C", "target-cpu=native"]
    subprocess.run(limits, cwd=REPOSITORY, check=True)
    if with_replica:
        subprocess.run(["cargo", "build", "--release", "-p", "engine-replica", "--bins"], cwd=REPOSITORY, check=True)
    return TARGET / "release"


def find_model(path):
    """The model's file: the one that was named, or the small one that anybody can have."""
    if path is None:
        done = subprocess.run([FETCH], stdout=subprocess.PIPE, text=True)
        if done.returncode != 0:
            sys.exit(f"{FETCH} could not get the model; name one with --model")
        path = Path(done.stdout.strip())
    if not path.is_file():
        sys.exit(f"--model: {path} is not a file; llama.cpp reads GGUF files only")
    return path.resolve()


def child_cpu_seconds():
    """CPU time of all programs that were run to their end."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def run(name, argv, read, args):
    """Runs one program to its end; its figures."""
    wait_until_quiet(args.quiet_wait)
    start, busy, own = time.monotonic(), machine_busy_seconds(), child_cpu_seconds()
    done = subprocess.run([str(word) for word in argv], stdout=subprocess.PIPE, text=True)
    if done.returncode != 0:
        sys.exit(f"{name} ended with {done.returncode}; it was run as: {' '.join(map(str, argv))}")
    found = {}
    for line in filter(None, map(str.strip, done.stdout.splitlines())):
        found.update(read(line))
    took = time.monotonic() - start
    others = max(0, machine_busy_seconds() - busy - (child_cpu_seconds() - own)) / took / os.cpu_count()
    print(f"{name}: {took:.0f} s, others used {others:.0%} of the machine", file=sys.stderr, flush=True)
    return figures.Run(found, others)


def machine_limits(args, bin_dir):
    """What the machine can do with as many threads."""
    wait_until_quiet(args.quiet_wait)
    program = bin_dir / "machine-limits"
    done = subprocess.run([program, "--threads", str(args.threads)], stdout=subprocess.PIPE)
    if done.returncode != 0:
        sys.exit(f"{program} did not measure this machine; leave --bin-dir out to have it built as it must be")
    return json.loads(done.stdout)


def main():
    """Runs both alternately and prints the table."""
    args = parse_args()
    if args.no_peer and args.no_replica:
        sys.exit("--no-peer and --no-replica leave nothing to measure")
    exit_on_sigterm()
    model = find_model(args.model)
    if not args.no_peer:
        peer.install(args.peer_dir)
    bin_dir = args.bin_dir.resolve() if args.bin_dir else build(not args.no_replica)
    limits = machine_limits(args, bin_dir)
    rounds = []
    for _ in range(args.rounds):
        rounds.append(figures.Round(
            None if args.no_peer else run(peer.NAME, peer.command(args.peer_dir, args, model), peer.read, args),
            None if args.no_replica else run("engine-replica", replica.command(bin_dir, args, model), replica.read, args)))
    rounds = figures.calm(rounds)
    print(figures.render(peer.NAME, rounds))
    print(closing(args, model, limits, rounds))


def closing(args, model, limits, rounds):
    """What the reader needs beside the table."""
    size = model.stat().st_size
    others = max(run.others for pair in rounds for run in pair if run)
    warning = ""
    if others > figures.OTHERS_SHARE_MAX:
        warning = ("\n\n**No round was undisturbed: these figures compare nothing.** Threads that spin lose many times "
                   "what is taken from them. Measure again on a quiet machine.")
    return (
        f"\n`{model.name}`, {size / 1e6:,.0f} MB, {args.threads} threads, {len(rounds)} of {args.rounds} alternating rounds: "
        f"medians (ranges). Other work used up to {others:.0%} of the machine in these.\n\n"
        f"This machine's limits with {limits['threads']} threads: it reads memory at {limits['memory_read_gb_s']:.1f} "
        f"GB/s and multiply-adds f32 at {limits['f32_fma_gflop_s']:.0f} GFLOP/s. One stream reads the whole file for "
        f"each token, so that it cannot decode faster than {limits['memory_read_gb_s'] * 1e9 / size:,.0f} tok/s."
        + warning)


if __name__ == "__main__":
    main()
