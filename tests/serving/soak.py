"""Mixed good and bad requests of several clients for half an hour.

    python tests/serving/soak.py --minutes 30 --clients 4

Starts the KServe server on an export (an untrained model without --model) and
holds it to: no error and known scores for good clips, a code for bad ones,
400 for bad requests, memory flat from minute 5 on. Exit status 1 otherwise.
The server's Python is that of KSERVE_PYTHON or --python, or this one.
"""

import argparse
import base64
import json
import pathlib
import socket
import sys
import tempfile
import threading
import time
import urllib.error
import urllib.parse
import urllib.request

import bad_clients
import numpy as np
import process
import served
import sounds

from audio_tf import client

SIGNATURE = "serving_audio_bytes"
WARM_UP_S = 300.0
MAX_GROWTH = 0.05
MAX_DIFFERENCE = 1e-5
SAMPLES_AT_A_TIME = 6  # Memory is the median of a minute's samples.


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--minutes", type=float, default=30.0)
    parser.add_argument("--clients", type=int, default=4)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--model", help="folder of an export")
    parser.add_argument("--preset", default="audio_transformer_small")
    parser.add_argument("--python", default=process.PYTHON)
    parser.add_argument("--clips", type=int, default=80, help="good ones")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as top:
        folder = arguments.model or untrained(arguments.preset, top)
        log = pathlib.Path(top, "server.log")
        with process.serve(folder, log, arguments.python) as (server, url):
            soak = Soak(folder, url, arguments)
            rss = soak.run(server.pid)
            if server.poll() is not None:
                soak.violations.append(f"the server ended: {server.returncode}")
    return soak.report(rss)


def untrained(preset, top):
    """Exports a model of random weights; returns its folder."""
    from audio_tf import export, models

    classifier = models.AudioClassifier.from_preset(
        preset, labels=[f"class {n}" for n in range(50)], chunk_s=1.0
    )
    export.export(classifier, pathlib.Path(top, "audio_tf"))
    return pathlib.Path(top, "audio_tf")


def newest(folder):
    from audio_tf.export import saved_model_folder

    return saved_model_folder(folder)


def rss_mb(pid):
    """Resident memory of a process, in MB."""
    for line in pathlib.Path(f"/proc/{pid}/status").read_text().splitlines():
        if line.startswith("VmRSS:"):
            return int(line.split()[1]) * 1024 / 1e6
    raise ProcessLookupError(pid)


class Soak:
    """Clips with their known scores, and what the clients saw.

    Args:
        folder: of the export.
        url: of the server.
        arguments: of the command line.
    """

    def __init__(self, folder, url, arguments):
        self.url = url
        self.arguments = arguments
        self.violations = []
        self.latencies_ms = []
        self.counts = dict.fromkeys(
            ("requests", "good clips", "bad clips", "bad requests"), 0
        )
        self.lock = threading.Lock()
        self.stop = threading.Event()
        rng = np.random.default_rng(arguments.seed)
        self.model = served.Served(newest(folder))
        self.good = [sounds.good(rng) for _ in range(arguments.clips)]
        self.bad = [kind(rng) for kind in sounds.BAD for _ in range(3)]
        # One at a time: what a clip scores alone.
        self.known = [self.score(clip) for clip in self.good]
        self.waveforms = [
            rng.uniform(-0.5, 0.5, n).astype("float32")
            for n in (400, 1_000, 2_000)
        ]
        self.known_waveforms = [
            self.model.run("serving_default", {"waveform": x[None]})["scores"]
            for x in self.waveforms
        ]

    def score(self, clip):
        """Scores `(classes,)` of a good clip, by the model in this process."""
        outputs = self.model.run(SIGNATURE, {"audio_bytes": [clip]})
        if not outputs["valid"][0]:
            raise SystemExit(f"a good clip is refused: {outputs['error'][0]}")
        return outputs["scores"][0]

    def run(self, pid):
        """Runs the clients; returns pairs of seconds and MB of the server."""
        start = time.monotonic()
        end = start + 60 * self.arguments.minutes
        clients = [
            threading.Thread(target=self.client, args=(number,))
            for number in range(self.arguments.clients)
        ]
        for thread in clients:
            thread.start()
        rss, told = [], start
        try:
            while (now := time.monotonic()) < end:
                rss.append((now - start, rss_mb(pid)))
                if now - told >= 60:
                    told = now
                    print(self.line(rss), flush=True)
                self.stop.wait(min(10.0, max(0.0, end - now)))
            rss.append((time.monotonic() - start, rss_mb(pid)))
        except (OSError, ProcessLookupError):
            self.violations.append("the server is gone")
        finally:
            self.stop.set()
            for thread in clients:
                thread.join()
        return rss

    def client(self, number):
        """One client's requests until the end."""
        rng = np.random.default_rng([self.arguments.seed, number])
        kinds = [self.columns, self.rows, self.waveform, self.bad_request]
        # No retries: they would hide errors.
        with client.Client(self.url, retries=0) as asked:
            while not self.stop.is_set():
                kind = rng.choice(len(kinds), p=[0.7, 0.1, 0.1, 0.1])
                begin = time.perf_counter()
                try:
                    kinds[kind](rng, asked)
                except Exception as error:
                    self.violate(f"{kinds[kind].__name__}: {error!r}")
                milliseconds = 1e3 * (time.perf_counter() - begin)
                with self.lock:
                    self.counts["requests"] += 1
                    if kinds[kind] != self.bad_request:
                        self.latencies_ms.append(milliseconds)

    def batch(self, rng):
        """Pairs of content and known scores, `None` of a bad clip."""
        picked = []
        for _ in range(rng.integers(1, 9)):
            if rng.uniform() < 0.75:
                place = rng.integers(len(self.good))
                picked.append((self.good[place], self.known[place]))
            else:
                picked.append((self.bad[rng.integers(len(self.bad))], None))
        return picked

    def check(self, batch, rows):
        """Compares the server's `(scores, valid, error)` of each clip."""
        for (content, known), (scores, valid, code) in zip(
            batch, rows, strict=True
        ):
            if known is None:
                if valid or not code or np.any(scores):
                    self.violate(f"a bad clip is valid: {content[:64]!r}")
            elif not valid or code:
                self.violate(f"a good clip is refused: {code}")
            elif (
                difference := np.abs(np.subtract(scores, known)).max()
            ) > MAX_DIFFERENCE:
                self.violate(f"scores are off by {difference:.1e}")
        good = sum(known is not None for _, known in batch)
        with self.lock:
            self.counts["good clips"] += good
            self.counts["bad clips"] += len(batch) - good

    def columns(self, rng, asked):
        """By columns, through the client."""
        batch = self.batch(rng)
        outputs = asked.predict([content for content, _ in batch], SIGNATURE)
        names = ("scores", "valid", "error")
        self.check(batch, zip(*map(outputs.get, names), strict=True))

    def rows(self, rng, asked):
        """By rows, as others may send them."""
        batch = self.batch(rng)
        instances = [
            {"audio_bytes": {"b64": base64.b64encode(content).decode()}}
            for content, _ in batch
        ]
        answer = self.post(
            {"signature_name": SIGNATURE, "instances": instances}
        )
        rows = answer["predictions"]
        self.check(
            batch, [(row["scores"], row["valid"], row["error"]) for row in rows]
        )

    def waveform(self, rng, asked):
        """Samples as JSON, padded behind their length."""
        place = rng.integers(len(self.waveforms))
        clip = self.waveforms[place]
        padded = np.pad(clip, (0, int(rng.integers(300))))
        answer = self.post(
            {"instances": [{"waveform": padded.tolist(), "lengths": len(clip)}]}
        )
        known = [(None, self.known_waveforms[place][0])]
        self.check(known, [(answer["predictions"][0], True, 0)])

    def bad_request(self, rng, asked):
        """One that gets 400, or a client that is gone before the answer."""
        place = rng.integers(len(bad_clients.BAD_REQUESTS) + 1)
        if place == len(bad_clients.BAD_REQUESTS):
            parts = urllib.parse.urlsplit(self.url)
            with socket.create_connection((parts.hostname, parts.port)) as gone:
                gone.sendall(
                    b"POST /v1/models/audio_tf:predict HTTP/1.1\r\n"
                    b"Host: 127.0.0.1\r\nContent-Length: 100000\r\n\r\n{"
                )
        else:
            try:
                self.post(bad_clients.BAD_REQUESTS[place])
                self.violate(f"200 for {bad_clients.BAD_REQUESTS[place]}")
            except urllib.error.HTTPError as error:
                error.read()
                if error.code != 400:
                    self.violate(
                        f"{error.code} for {bad_clients.BAD_REQUESTS[place]}"
                    )
        with self.lock:
            self.counts["bad requests"] += 1

    def post(self, body):
        """The answer, decoded, to bytes or to what JSON can hold."""
        if not isinstance(body, bytes):
            body = json.dumps(body).encode()
        url = f"{self.url}/v1/models/audio_tf:predict"
        request = urllib.request.Request(url, body)
        with urllib.request.urlopen(request, timeout=60) as response:
            return json.load(response)

    def violate(self, text):
        with self.lock:
            self.violations.append(text)

    def line(self, rss):
        """One line on where it stands."""
        return (
            f"{rss[-1][0] / 60:5.1f} min  {self.counts['requests']:8d} requests"
            f"  {len(self.violations)} violations  RSS {rss[-1][1]:.0f} MB"
        )

    def report(self, rss):
        """Prints the figures; returns the exit status."""
        print(f"\n{self.arguments.minutes:g} min", end=", ")
        print(f"{self.arguments.clients} clients, seed {self.arguments.seed}")
        for name, count in self.counts.items():
            print(f"{name:20s} {count:10d}")
        for share in (50, 99):
            value = np.percentile(self.latencies_ms or [np.nan], share)
            print(f"{f'p{share} of good, ms':20s} {value:10.1f}")
        seconds, megabytes = np.array(rss or [(0.0, np.nan)]).T
        later = seconds >= WARM_UP_S
        print(f"{'RSS at start, MB':20s} {megabytes[0]:10.0f}")
        if later.sum() > SAMPLES_AT_A_TIME:
            before = np.median(megabytes[later][:SAMPLES_AT_A_TIME])
            after = np.median(megabytes[later][-SAMPLES_AT_A_TIME:])
            slope = np.polyfit(seconds[later] / 60, megabytes[later], 1)[0]
            print(f"{'RSS at minute 5, MB':20s} {before:10.0f}")
            print(f"{'growth, MB/min':20s} {slope:10.2f}")
            if after > before * (1 + MAX_GROWTH):
                self.violations.append(
                    f"memory grew from {before:.0f} to {after:.0f} MB"
                )
        else:
            print("too short to judge the memory, which is from minute 5 on")
        print(f"{'RSS at end, MB':20s} {megabytes[-1]:10.0f}")
        print(f"{'violations':20s} {len(self.violations):10d}")
        for text in self.violations[:20]:
            print(f"  {text}")
        return 1 if self.violations else 0


if __name__ == "__main__":
    sys.exit(main())
