"""Processes that a benchmark starts, watches and ends, and how busy the machine is beside them."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

TICKS_PER_SECOND = os.sysconf("SC_CLK_TCK")
# A process gets so long to end by itself; then it is killed.
TERM_SECONDS = 8
KILL_SECONDS = 4
# The machine counts as quiet while others use less than this share of it.
QUIET_SHARE = 0.04


class Process:
    """A program in a session of its own, so that it and all that it starts can be found and ended."""

    def __init__(self, argv, log):
        self.log = Path(log)
        with open(self.log, "wb") as out:
            self.child = subprocess.Popen(
                [str(word) for word in argv], stdout=out, stderr=subprocess.STDOUT, stdin=subprocess.DEVNULL,
                cwd=self.log.parent, start_new_session=True)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.stop()

    def pids(self):
        """The living processes of its session."""
        found = []
        for entry in filter(str.isdigit, os.listdir("/proc")):
            try:
                fields = Path(f"/proc/{entry}/stat").read_text().rsplit(")", 1)[1].split()
            except OSError:
                continue
            if int(fields[3]) == self.child.pid and fields[0] != "Z":
                found.append(int(entry))
        return sorted(found)

    def rss_mb(self):
        """Resident memory of all of them in MB; shared pages count for each."""
        kib = 0
        for pid in self.pids():
            try:
                lines = Path(f"/proc/{pid}/status").read_text().splitlines()
            except OSError:
                continue
            kib += sum(int(line.split()[1]) for line in lines if line.startswith("VmRSS:"))
        return kib / 1024

    def last_words(self):
        """The end of what it printed."""
        return self.log.read_text(errors="replace")[-1500:].strip() or "(it printed nothing)"

    def wait_until(self, ready, what, seconds=30):
        """Returns this process when `ready()` is true; ends it and says what went wrong when that does not come."""
        end = time.monotonic() + seconds
        try:
            while time.monotonic() < end and self.child.poll() is None:
                if ready():
                    return self
                time.sleep(0.1)
        except BaseException:
            self.stop()
            raise
        state = "ended" if self.child.poll() is not None else f"was not ready after {seconds} s"
        self.stop()
        sys.exit(f"{what} {state}; its last words:\n{self.last_words()}")

    def stop(self):
        """Ends it and the others of its session, each by its pid."""
        for kind, seconds in ((signal.SIGTERM, TERM_SECONDS), (signal.SIGKILL, KILL_SECONDS)):
            for pid in self.pids():
                try:
                    os.kill(pid, kind)
                except ProcessLookupError:
                    pass
            end = time.monotonic() + seconds
            while time.monotonic() < end:
                if self.child.poll() is not None and not self.pids():
                    return
                time.sleep(0.05)


def machine_busy_seconds():
    """CPU seconds that the whole machine has used since boot: without idling, waiting and stolen time."""
    user, nice, system, _idle, _wait, irq, softirq = map(int, Path("/proc/stat").read_text().split()[1:8])
    return (user + nice + system + irq + softirq) / TICKS_PER_SECOND


def wait_until_quiet(seconds_max):
    """Waits until others leave the machine alone for one second, for `seconds_max` at most."""
    end = time.monotonic() + seconds_max
    while True:
        busy, start = machine_busy_seconds(), time.monotonic()
        time.sleep(1)
        share = (machine_busy_seconds() - busy) / (time.monotonic() - start) / os.cpu_count()
        if share < QUIET_SHARE or time.monotonic() > end:
            return


def exit_on_sigterm():
    """Makes SIGTERM an exception, as Ctrl-C is, so that what was started is ended on the way out."""
    signal.signal(signal.SIGTERM, lambda *_: sys.exit("ended by SIGTERM"))
