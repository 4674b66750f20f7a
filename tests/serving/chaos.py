"""Good requests while copies are killed, clients are bad and the disk full.

No answer may be wrong, none that was due may be lost after its retries, and
neither memory nor file handles may grow. The first half has the kills, then
the disk is full, and all the time bad and slow clients come.
"""

import base64
import contextlib
import json
import subprocess
import threading
import time

from audio_tf.client import load, load_figures
from serving import bad_clients, ground, watch

# Of the duration: when copies are killed, and when the disk is full.
KILLS_UNTIL, FULL_FROM, FULL_UNTIL = 0.5, 0.6, 0.8
# A good client waits for a server that starts anew.
PATIENCE = {"retries": 30, "deadline_s": 180.0, "timeout_s": 30.0}
DISK_MB = 256


def add(parser):
    ground.add_flags(parser, seconds=3600.0, rate_per_s=10.0)
    parser.set_defaults(copies=2)
    parser.add_argument("--kills", type=int, default=5)
    parser.add_argument("--bad", type=int, default=2, help="bad clients")
    parser.add_argument("--slow", type=int, default=20, help="slow clients")


def run(arguments):
    with ground.made(arguments) as made, small_disk(made.top / "disk") as full:
        chaos = Chaos(made, full, arguments)
        return chaos.run()


@contextlib.contextmanager
def small_disk(folder):
    """A file system of its own, which may be filled.

    Yields:
        A context that fills it, or `None` where nothing can be mounted.
    """
    folder.mkdir()
    mounted = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", f"size={DISK_MB}m", "tmpfs", folder],
        capture_output=True,
    )
    if mounted.returncode:
        print("THE DISK IS NOT FILLED: nothing can be mounted here")
        yield None
        return
    try:
        yield lambda: filled(folder)
    finally:
        # Processes that ended a moment ago may still hold a log.
        subprocess.run(["umount", "--lazy", folder], check=True)


@contextlib.contextmanager
def filled(folder):
    """Leaves no byte free as long as the block runs."""
    path = folder / "filling"
    with open(path, "wb", buffering=0) as file:
        for size in (2**20, 1):
            with contextlib.suppress(OSError):
                while True:
                    file.write(bytes(size))
    try:
        yield
    finally:
        path.unlink()


class Chaos:
    """One run.

    Args:
        made: `ground.Ground`.
        full: function that returns a context with a full disk, or `None`.
        arguments: of the command line.
    """

    def __init__(self, made, full, arguments):
        self.made = made
        self.full = full
        self.arguments = arguments
        self.stop = threading.Event()
        self.violations = []
        self.counts = {"bad": 0, "slow bytes": 0, "kills": 0}
        self.folder = made.model("disk", 1)

    def run(self):
        arguments, seconds = self.arguments, self.arguments.seconds
        with self.made.fleet(self.folder, "disk/fleet") as fleet:
            senders = {
                kind: self.made.sender(url, **PATIENCE)
                for kind, url in fleet.urls.items()
            }
            outcomes = {}

            def good(kind):
                due = load.poisson(
                    arguments.rate / len(senders), seconds, self.made.rng
                )
                outcomes[kind] = load.send_at(
                    due, senders[kind], 512, stop=self.stop
                )

            watcher = watch.Watcher(fleet.pids)
            clients = [
                threading.Thread(target=self.guarded, args=(good, kind))
                for kind in senders
            ]
            others = [
                threading.Thread(target=self.guarded, args=task)
                for task in (
                    (self.kill, fleet),
                    (self.fill,),
                    *((self.be_bad, fleet, n) for n in range(arguments.bad)),
                    *((self.be_slow, fleet, n) for n in range(arguments.slow)),
                )
            ]
            with watcher:
                self.begin = time.monotonic()
                for thread in (*clients, *others):
                    thread.start()
                try:
                    while any(thread.is_alive() for thread in clients):
                        clients[0].join(10.0)
                        clients[-1].join(10.0)
                        self.tell(senders, watcher)
                finally:
                    # A run that is broken off leaves no thread behind.
                    self.stop.set()
                for thread in others:
                    thread.join()
            ended = [c.process.poll() for c in fleet.copies]
        return self.report(outcomes, senders, watcher, ended)

    def guarded(self, task, *arguments):
        """Runs a task; what it raises is a violation and not a lost thread."""
        try:
            task(*arguments)
        except Exception as error:
            self.violations.append(f"{task.__name__}: {error!r}")

    def wait_until(self, share):
        """Waits for a share of the duration; tells if the run has ended."""
        left = self.begin + share * self.arguments.seconds - time.monotonic()
        return self.stop.wait(max(0.0, left))

    def kill(self, fleet):
        """Kills one copy after the other, at last all at once."""
        kills = self.arguments.kills
        for number in range(kills):
            if self.wait_until(KILLS_UNTIL * (number + 0.5) / kills):
                self.violations.append(f"only {number} kills of {kills}")
                return
            copies = [fleet.copies[number % len(fleet.copies)]]
            if number == kills - 1:
                copies = fleet.copies
            for copy in copies:
                fleet.kill(copy)
            for copy in copies:
                fleet.start(copy)
            for copy in copies:
                fleet.await_ready(copy)
            self.counts["kills"] += 1

    def fill(self):
        """Fills the disk of logs and models, and copies a version onto it."""
        if self.full is None or self.wait_until(FULL_FROM):
            return
        with self.full():
            try:
                self.publish()
                self.violations.append("a version went onto a full disk")
            except OSError as error:
                print(f"onto a full disk: {str(error)[:200]}")
            versions = sorted(path.name for path in self.folder.glob("[0-9]*"))
            if versions != ["1"]:
                self.violations.append(f"half a version: {versions}")
            self.wait_until(FULL_UNTIL)

    def publish(self):
        """Copies a version into the folder that is served."""
        self.made.publish(self.folder, 2)

    def be_bad(self, fleet, number):
        bad_clients.be_bad(
            fleet.urls, number, self.stop, self.counts, self.violations
        )

    def be_slow(self, fleet, number):
        """A half to the proxy, a quarter to a copy, a quarter reads slowly."""
        clip = base64.b64encode(self.made.clips[0]).decode()
        body = {
            "signature_name": "serving_audio_bytes",
            "inputs": {"audio_bytes": [{"b64": clip}]},
        }
        url = fleet.urls["rest"]
        if number % 4 == 2:
            url = fleet.copies[number % len(fleet.copies)].url
        bad_clients.be_slow(
            url,
            json.dumps(body).encode(),
            self.stop,
            self.counts,
            reads=number % 4 == 3,
        )

    def tell(self, senders, watcher):
        passed = time.monotonic() - self.begin
        good = sum(len(send.matched) for send in senders.values())
        lost = sum(sum(send.errors.values()) for send in senders.values())
        latest = {
            name: f"{rows[-1][1]:.0f} MB {rows[-1][2]:.0f} handles"
            for (name, _), rows in watcher.lives.items()
        }
        print(
            f"{passed / 60:5.1f} min  good {good}  lost {lost}  {self.counts}  "
            f"{latest}",
            flush=True,
        )

    def report(self, outcomes, senders, watcher, ended):
        errors = []
        for kind, send in senders.items():
            found = load_figures.figures(outcomes[kind], self.arguments.seconds)
            print(ground.told(kind, found))
            for name in ("refused", "failed", "wrong"):
                if count := getattr(found, name):
                    self.violations.append(f"{kind}: {count} {name}")
            errors += send.errors.items()
            send.close()
        print(self.counts)
        print(watcher.report())
        self.violations += watcher.violations
        if any(code is not None for code in ended):
            self.violations.append(f"copies have ended by themselves: {ended}")
        return ground.verdict(self.violations, errors)
