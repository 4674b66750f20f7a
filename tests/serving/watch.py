"""Memory and file handles of processes, over their lives."""

import pathlib
import threading
import time

import numpy as np

EVERY_S = 1.0
# Of each life: what a server allocates at first, and what is compared. A leak
# goes on to the end, and a pool that is full does not: what is judged begins
# here, and may have as much of the growth as it has of the life.
WARM_UP_S = 300.0
WINDOW_S = 60.0
MAX_GROWTH = 0.05
JUDGED_FROM = 0.5
# Or this much, whatever the process takes: a proxy holds each request that is
# under way as a whole, a quarter of a megabyte for a second of sound. A pool of
# 256 bytes that is lost with each request of half an hour is more than that.
MAX_GROWTH_MB = 4.0
# So many more handles than ever before are a peak of requests, for which a
# process takes memory that it keeps: it is judged from there on.
PEAK_HANDLES = 8
# As many connections as nginx keeps to a copy that has nothing to do; one lost
# for each bad request would be thousands.
MAX_HANDLES = 64


def sample(pid):
    """Resident megabytes and open file handles, or `None` if it has ended."""
    folder = pathlib.Path(f"/proc/{pid}")
    try:
        handles = len(list((folder / "fd").iterdir()))
        for line in (folder / "status").read_text().splitlines():
            if line.startswith("VmRSS:"):
                return int(line.split()[1]) * 1024 / 1e6, handles
    except OSError:
        pass
    return None


def last_peak(seconds, handles):
    """The time of the last peak of requests, or the first time without one.

    Args:
        seconds: array of the times of samples, in order.
        handles: array of open file handles.
    """
    most = np.maximum.accumulate(handles)
    # A handle that is lost now and then makes no peak.
    before = np.searchsorted(seconds, seconds - WINDOW_S)
    found = np.flatnonzero(handles > most[before] + PEAK_HANDLES)
    return seconds[found[-1]] if len(found) else seconds[0]


class Watcher:
    """Samples of processes as long as a block runs.

    Args:
        pids: function that returns a dict of process numbers by name.

    Attributes:
        lives: dict by pair of name and process number of rows of seconds,
            megabytes and handles.
        violations: list of str, after `report`.
    """

    def __init__(self, pids):
        self.pids = pids
        self.lives = {}
        self.violations = []
        self.stop = threading.Event()
        self.thread = threading.Thread(target=self.watch, daemon=True)

    def __enter__(self):
        self.thread.start()
        return self

    def __exit__(self, *error):
        self.stop.set()
        self.thread.join()

    def watch(self):
        begin = time.monotonic()
        while not self.stop.is_set():
            try:
                pids = self.pids()
            except OSError:
                pids = {}  # The proxy has just ended a worker.
            for name, pid in pids.items():
                found = sample(pid)
                if found:
                    rows = self.lives.setdefault((name, pid), [])
                    rows.append((time.monotonic() - begin, *found))
            self.stop.wait(EVERY_S)

    def report(self):
        """A line for each life; fills `violations`."""
        lines, judged = [], 0
        for (name, _), rows in self.lives.items():
            seconds, megabytes, handles = np.array(rows).T
            lines.append(
                f"\n  {name:14s} {seconds[-1] - seconds[0]:6.0f} s  "
                f"{megabytes[0]:5.0f} to {megabytes[-1]:5.0f} MB, at most "
                f"{megabytes.max():5.0f}; handles {handles[0]:.0f} to "
                f"{handles[-1]:.0f}, at most {handles.max():.0f}"
            )
            lived, end = seconds[-1] - seconds[0], seconds[-1]
            if lived < WARM_UP_S + 2 * WINDOW_S:
                continue
            judged += 1
            parts = np.array_split(megabytes, 8)
            course = ", ".join(f"{np.median(part):.1f}" for part in parts)
            lines.append(f"\n    MB in eighths of this life: {course}")
            half = seconds[0] + max(WARM_UP_S, JUDGED_FROM * lived)
            half = min(half, end - 2 * WINDOW_S)
            peak = max(half, last_peak(seconds, handles))
            share = MAX_GROWTH * np.median(megabytes)
            for unit, values, more, begin in (
                ("MB", megabytes, max(share, MAX_GROWTH_MB), peak),
                ("handles", handles, MAX_HANDLES, half),
            ):
                if begin > end - 2 * WINDOW_S:
                    lines.append(f"\n    {unit} not judged: a peak at the end")
                    continue
                first = (seconds >= begin) & (seconds < begin + WINDOW_S)
                last = seconds > end - WINDOW_S
                before, after = (
                    np.median(values[first]),
                    np.median(values[last]),
                )
                if after > before + more * (end - begin) / lived:
                    self.violations.append(
                        f"{name}: from {before:.0f} to {after:.0f} {unit}"
                    )
        lines.append(f"\n  lives long enough to be judged: {judged}")
        return "memory and file handles:" + "".join(lines)
