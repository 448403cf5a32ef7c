#!/usr/bin/env python3
"""Measures the gateway beside nginx, beside no proxy at all and beside its peers, in one run, in alternating rounds.

Prints a Markdown table; README.md in this folder says how to read it. Everything that it starts it also ends.
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile
from contextlib import ExitStack
from pathlib import Path

import affinity
import peers
import systems
import table
from processes import exit_on_sigterm, wait_until_quiet

REPOSITORY = Path(__file__).resolve().parents[2]
SYSTEMS = ["direct", "nginx", "gateway"]
KNOWN_SYSTEMS = [*SYSTEMS, *peers.PEERS]
# Mode -> (what the mock replicas are set to, share of --secs that it is measured for)
MODES = {
    "small": ("delay_us=0", 1.0),
    "small-c1": ("delay_us=0", 0.5),
    "large": ("delay_us=0", 1.0),
    "stream": ("delay_us=0", 1.0),
    "paced": ("delay_us=10000", 1.0),
}


def parse_args():
    """The command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    names = lambda known: lambda text: chosen(text, known)
    parser.add_argument("--rounds", type=int, default=3, help="times that each cell is measured (default: 3)")
    parser.add_argument("--secs", type=float, default=6, help="seconds of one measurement (default: 6)")
    parser.add_argument("--warmup", type=float, default=1.5, help="seconds of load before each (default: 1.5)")
    parser.add_argument("--modes", type=names(MODES), default=list(MODES), help=f"of {','.join(MODES)} (default: all)")
    parser.add_argument("--systems", type=names(KNOWN_SYSTEMS), default=SYSTEMS,
                        help=f"of {','.join(KNOWN_SYSTEMS)} (default: {','.join(SYSTEMS)}); peers.sh installs the others")
    parser.add_argument("--affinity", action="store_true",
                        help="measure where turns go instead of what they cost; affinity.py says how")
    parser.add_argument("--no-session-header", action="store_true",
                        help="send no x-session-id, so that the gateway has only the conversations to go by")
    parser.add_argument("--bin-dir", type=Path, help="where the programs are (default: build them, cargo --release)")
    parser.add_argument("--quiet-wait", type=float, default=20,
                        help="longest wait for a quiet machine before a measurement, in seconds (default: 20)")
    parser.add_argument("--out", type=Path, help="also append every measurement to this file, one JSON object a line")
    parser.add_argument("--table", type=Path, nargs="+", metavar="FILE", help="measure nothing: the table of such files")
    return parser.parse_args()


def chosen(text, known):
    """The names of a comma-separated list, all of which are known."""
    names = text.split(",")
    unknown = [name for name in names if name not in known]
    if unknown:
        raise argparse.ArgumentTypeError(f"`{unknown[0]}` is none of {', '.join(known)}")
    return names


def build():
    """Builds the programs as they are shipped and returns their folder."""
    argv = ["cargo", "build", "--release", "-p", "gateway", "-p", "system-tests", "--bins"]
    subprocess.run(argv, cwd=REPOSITORY, check=True)
    return Path(os.environ.get("CARGO_TARGET_DIR", REPOSITORY / "target")) / "release"


def measure(args, bin_dir, mode, system, mock, proxy, seed):
    """One cell of one round."""
    knobs, share = MODES[mode]
    systems.replica(f"/admin?reset=1&first_byte_us=0&chunks=100&{knobs}")
    wait_until_quiet(args.quiet_wait)
    watch = {"proxy": proxy.pids() if proxy else [], "mock": mock.pids()}
    argv = [bin_dir / "loadgen", "--targets", systems.targets(system), "--mode", mode, "--seed", seed,
            "--secs", args.secs * share, "--warmup", args.warmup]
    if args.no_session_header:
        argv.append("--no-session-header")
    for name, pids in watch.items():
        argv += ["--watch", f"{name}={'+'.join(map(str, pids))}"]
    done = subprocess.run([str(word) for word in argv], stdout=subprocess.PIPE, check=True)
    row = json.loads(done.stdout)
    used = {name: max(cpu["user_s"] + cpu["system_s"], cpu["on_cpu_s"]) for name, cpu in row["cpu"].items()}
    return {
        **row, "system": system,
        "proxy_cpu_s": used["proxy"],
        "rss_mb": proxy.rss_mb() if proxy else 0,
        "others": max(0, row["machine_busy_s"] - sum(used.values())) / row["secs"] / os.cpu_count(),
    }


def run(args, bin_dir, scratch):
    """All rounds; the measurements."""
    rows = []
    systems.ports_must_be_free()
    with ExitStack() as running:
        mock = running.enter_context(systems.start_replicas(bin_dir, scratch))
        proxies = {"direct": None}
        for system in args.systems:
            if system != "direct":
                proxies[system] = running.enter_context(systems.start(system, bin_dir, scratch))
        for number in range(args.rounds):
            # Each round begins with another system, so that none is always the one that runs on a warm machine.
            turn = number % len(args.systems)
            order = args.systems[turn:] + args.systems[:turn]
            for mode in args.modes:
                for system in order:
                    row = measure(args, bin_dir, mode, system, mock, proxies[system], len(rows) + 1)
                    rows.append({"round": number, **row})
                    report(rows[-1], args.out)
    return rows


def run_affinity(args, bin_dir, scratch):
    """All cells of all rounds, each with a fresh proxy, so that none remembers the cell before it."""
    rows = []
    systems.ports_must_be_free()
    with systems.start_replicas(bin_dir, scratch):
        for number in range(args.rounds):
            for system in (system for system in args.systems if system != "direct"):
                for shared, key in affinity.CELLS:
                    with systems.start(system, bin_dir, scratch):
                        systems.replica(f"/admin?reset=1&first_byte_us={affinity.FIRST_BYTE_US}&delay_us=0")
                        first = 1_000 + len(rows) * affinity.SESSIONS
                        errors = affinity.cell(systems.ports(system)[0], first, shared, key)
                        visits = systems.replica("/stats")["sessions"]
                    mine = [visit for session, visit in visits.items() if int(session) >= first]
                    share, hottest = affinity.judge(mine, len(systems.REPLICA_PORTS))
                    rows.append({"round": number, "system": system, "shared": shared, "key": key, "affinity": share,
                                 "hottest": hottest, "errors": errors})
                    print(f"round {number} {system:11} shared {shared:5} {key:6} affinity {share:.2f} "
                          f"hottest {hottest:.2f}x errors {len(errors)} {''.join(errors[:1])}", file=sys.stderr, flush=True)
                    keep(rows[-1], args.out)
    return rows


def keep(row, out):
    """Appends a measurement where that is asked for."""
    if out:
        with open(out, "a") as file:
            file.write(json.dumps(row) + "\n")


def report(row, out):
    """Tells how one measurement went, and keeps it where that is asked for."""
    print(f"round {row['round']} {row['mode']:9} {row['system']:11} {table.cost(row):7.1f} CPU-µs/unit  "
          f"p50 {row['latency_us']['p50']:9.1f} µs  errors {row['errors']}+{row['errors_outside']}  "
          f"others {row['others']:.0%}  {row['first_error'] or ''}", file=sys.stderr, flush=True)
    keep(row, out)


def main():
    """Measures, or reads what was measured, and prints the table."""
    args = parse_args()
    if args.table:
        rows = [json.loads(line) for path in args.table for line in path.read_text().splitlines()]
    else:
        exit_on_sigterm()
        bin_dir = args.bin_dir.resolve() if args.bin_dir else build()
        with tempfile.TemporaryDirectory(prefix="gateway-bench-") as scratch:
            rows = (run_affinity if args.affinity else run)(args, bin_dir, Path(scratch))
    print(affinity.render(rows) if "affinity" in rows[0] else table.render(rows))


if __name__ == "__main__":
    main()
