#!/usr/bin/env python3
"""Counts instructions of the gateway's own work under callgrind and prints a Markdown table.

Unlike times, these figures hold on a busy machine, and two builds can be compared by them to the percent. Needs valgrind
(`apt-get install valgrind`).
"""

import argparse
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

REPOSITORY = Path(__file__).resolve().parents[3]
# (what it is, case, size, repetitions of the second run beyond those of the first)
CASES = [
    ("order 8 replicas, 32 blocks", "rank", 8, 200),
    ("order 256 replicas, 32 blocks", "rank", 256, 50),
    ("place a turn of 256 KB and learn of it", "turn", 256 << 10, 100),
    ("scan and prefix keys, 1 KB", "scan", 1 << 10, 200),
    ("scan and prefix keys, 256 KB", "scan", 256 << 10, 20),
    ("scan and prefix keys, 4 MB", "scan", 4 << 20, 4),
    ("stream of 100 events, passed on", "pass", 100, 50),
    ("stream of 100 events, an answer that is split and has no reasoning", "answer", 100, 50),
    ("stream of 100 events, half of them reasoning, split", "split", 100, 50),
]


def build(profile):
    """Builds the program; its path."""
    argv = ["cargo", "build", "--profile", profile, "-p", "system-tests", "--example", "instructions", "--message-format", "json"]
    done = subprocess.run(argv, cwd=REPOSITORY, check=True, stdout=subprocess.PIPE, text=True)
    return re.findall(r'"executable":"([^"]+/instructions)"', done.stdout)[-1]


def instructions(program, case, size, times):
    """Instructions of a whole run."""
    with tempfile.TemporaryDirectory(prefix="instructions-") as folder:
        argv = ["valgrind", "--tool=callgrind", f"--callgrind-out-file={folder}/out", program, case, str(size), str(times)]
        done = subprocess.run(argv, stderr=subprocess.PIPE, text=True, check=False)
    found = re.search(r"Collected : (\d+)", done.stderr)
    if done.returncode != 0 or not found:
        sys.exit(f"{' '.join(argv)} failed:\n{done.stderr[-1500:]}")
    return int(found.group(1))


def main():
    """Counts every case and prints the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--profile", default="release", help="Cargo profile of the program (default: release)")
    args = parser.parse_args()
    if shutil.which("valgrind") is None:
        sys.exit("valgrind is not installed: `apt-get install valgrind`")
    program = build(args.profile)
    print("| work | instructions | per byte or replica |\n|---|---:|---:|")
    for what, case, size, times in CASES:
        one = (instructions(program, case, size, times + 1) - instructions(program, case, size, 1)) / times
        print(f"| {what} | {one:,.0f} | {one / size:,.1f} |", flush=True)


if __name__ == "__main__":
    main()
