"""Archives scored on Beam: same scores, throughput, memory, and kills.

    pip install -e ".[beam]"
    python benchmarks/score_archive.py --source sounds/ --work runs/score \\
        --clips 20000 --broken 200 --recordings 10 --kills 20

It makes clips of 1 to 3 s from the audio of a folder, a quarter each as files,
in a tar, in a packed tar and in a zip, with broken ones among them, and long
recordings. It scores them by `audio-tf score` on this machine and on Beam's
portable job service with two workers on loopback, compares all with what
`audio-tf classify` says, and starts and kills runs at random moments, after
which the Parquet content must be the same. The step `halves` is what two cores
can give at best: two processes of one thread, each with half of the clips.
Nothing is printed of a step that has differed: it is an error.
"""

import argparse
import csv
import json
import os
import pathlib
import random
import shutil
import signal
import subprocess
import sys
import threading
import time
import typing
from concurrent import futures

import numpy as np
from score_archive_corpus import make_corpus

from audio_tf.audio import load_audio

WINDOW_S = 60.0
TOLERANCE = 1e-5
# Until the first shards of a run are scored, about.
STARTS_WITHIN_S = 15.0
COMMAND = [sys.executable, "-m", "audio_tf.cli"]


def parse():
    """Parses the flags."""
    parser = argparse.ArgumentParser(
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--source", required=True, help="folder of audio")
    parser.add_argument("--work", required=True, help="empty folder to work in")
    parser.add_argument("--model", default="audio_transformer_esc10")
    parser.add_argument("--clips", type=int, default=2_000)
    parser.add_argument("--broken", type=int, default=20)
    parser.add_argument("--recordings", type=int, default=2)
    parser.add_argument("--recording-s", type=float, default=3_600.0)
    parser.add_argument("--kills", type=int, default=5)
    parser.add_argument(
        "--steps",
        nargs="+",
        choices=[*STEPS],
        default=[*STEPS],
        help="the timed ones want a quiet machine; kills need a whole run",
    )
    parser.add_argument("--seed", type=int, default=0)
    return parser.parse_args()


def classify(arguments, *folders, core=0):
    """Scores folders by one process of one thread of `audio-tf classify`.

    Args:
        arguments: the flags.
        *folders: paths.
        core: int, the only core that it may use.

    Returns:
        Pair of a dict by name of dicts by label, and the seconds it took.
    """
    environment = {
        **os.environ,
        "TF_NUM_INTRAOP_THREADS": "1",
        "TF_NUM_INTEROP_THREADS": "1",
        "OMP_NUM_THREADS": "1",
    }
    command = [*COMMAND, "classify", *map(str, folders), "--json"]
    command += ["--top", "1000000", "--model", arguments.model]
    # One core for its decoding threads, too.
    command = ["taskset", "-c", str(core), *command]
    start = time.monotonic()
    done = subprocess.run(
        command, env=environment, capture_output=True, text=True
    )
    seconds = time.monotonic() - start
    if done.returncode not in (0, 1):
        raise SystemExit(done.stderr)
    answers = map(json.loads, done.stdout.splitlines())
    return {
        pathlib.Path(each["file"]).name: each["scores"] for each in answers
    }, seconds


def classify_halves(arguments, folder):
    """Scores half of the clips on each of two cores, side by side.

    Args:
        arguments: the flags.
        folder: `pathlib.Path` of the corpus.

    Returns:
        The seconds until both have ended.
    """
    halves = [folder / "half_0", folder / "half_1"]
    clips = sorted((folder / "clips").iterdir())
    for number, half in enumerate(halves):
        half.mkdir(exist_ok=True)
        for clip in clips[number::2]:
            if not (half / clip.name).exists():
                os.link(clip, half / clip.name)
    begin = time.monotonic()
    with futures.ThreadPoolExecutor(2) as pool:
        runs = [
            pool.submit(classify, arguments, half, core=core)
            for core, half in enumerate(halves)
        ]
    for each in runs:
        each.result()
    return time.monotonic() - begin


def windows_of(arguments, folder):
    """Scores the windows of recordings that are read whole.

    Returns:
        Dict by name and start of dicts by label.
    """
    import audio_tf.models  # noqa: F401
    from audio_tf.export import load_classifier

    classifier = load_classifier(arguments.model)
    rate_hz = classifier.sample_rate_hz
    found, size = {}, round(WINDOW_S * rate_hz)
    for file in sorted((folder / "long").glob("*")):
        audio = load_audio(file, rate_hz)
        starts = list(range(0, max(1, len(audio) - size + 1), size))
        if starts[-1] + size < len(audio):
            starts.append(len(audio) - size)
        for start in starts:
            clip = (audio[start : start + size], rate_hz)
            scores = classifier.classify(clip, top=None)["scores"]
            found[file.name, round(start / rate_hz, 6)] = scores
    return found


class Memory(threading.Thread):
    """Looks at the resident memory of a process and of all below it.

    Args:
        process: `subprocess.Popen`.

    Attributes:
        series: list of pairs of seconds and MiB.
    """

    def __init__(self, process):
        super().__init__(daemon=True)
        self.process, self.series = process, []

    def run(self):
        """Looks every second, until the process has ended."""
        start = time.monotonic()
        while self.process.poll() is None:
            there = sum(map(resident, family(self.process.pid)))
            self.series.append((time.monotonic() - start, there / 2**20))
            time.sleep(1)


def family(pid):
    """Returns the numbers of a process and of all below it."""
    found = [pid]
    for each in found:
        try:
            tasks = pathlib.Path(f"/proc/{each}/task").iterdir()
            for task in tasks:
                found += map(int, (task / "children").read_text().split())
        except OSError:
            pass
    return found


def resident(pid):
    """Returns the resident bytes of a process, 0 if it has ended."""
    try:
        pages = int(pathlib.Path(f"/proc/{pid}/statm").read_text().split()[1])
    except OSError:
        return 0
    return pages * os.sysconf("SC_PAGE_SIZE")


def start(arguments, sources, out, *flags):
    """Starts `audio-tf score` in a group of its own."""
    command = [*COMMAND, "score", *sources, "--model", arguments.model]
    command += ["--out", str(out), "--all-scores", *flags]
    # Beam's workers on loopback are whatever `python` is.
    path = f"{pathlib.Path(sys.executable).parent}:{os.environ['PATH']}"
    return subprocess.Popen(
        command,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, "PATH": path},
        start_new_session=True,
    )


def finish(process):
    """Waits for a run; what it did not do is an error."""
    output, errors = process.communicate()
    if process.returncode not in (0, 1):
        raise SystemExit(f"it has ended with {process.returncode}: {errors}")
    return output.strip()


def read(out):
    """Returns the rows of a folder of scores, and the names that failed."""
    import pyarrow.parquet

    rows = {}
    for file in sorted(pathlib.Path(out, "scores").glob("*.parquet")):
        for row in pyarrow.parquet.read_table(file).to_pylist():
            key = row["file"], round(row["start_s"], 6)
            if key in rows:
                raise SystemExit(f"{key} is there twice")
            rows[key] = row["scores"]
    with open(pathlib.Path(out, "failed.csv"), newline="") as file:
        failed = {row["file"]: row["reason"] for row in csv.DictReader(file)}
    return rows, failed


def compare(out, clips, windows, must_fail):
    """Compares a folder of scores with what `audio-tf classify` said.

    Returns:
        The largest difference.
    """
    rows, failed = read(out)
    if set(failed) != must_fail:
        raise SystemExit(f"failed differ: {set(failed) ^ must_fail}")
    labels = json.loads(pathlib.Path(out, "run.json").read_text())["labels"]
    expected = {}
    for (file, begin), scores in rows.items():
        name = pathlib.Path(file).name
        if (name, begin) in windows:
            expected[file, begin] = windows[name, begin]
        else:
            expected[file, begin] = clips[name]
    if len(rows) != len(clips) + len(windows):
        raise SystemExit(
            f"{len(rows)} rows for {len(clips)} clips and {len(windows)} "
            "windows"
        )
    worst = max(
        abs(score - expected[key][label])
        for key, scores in rows.items()
        for label, score in zip(labels, scores, strict=True)
    )
    if worst > TOLERANCE:
        raise SystemExit(f"scores differ by {worst}")
    return worst


def timed(arguments, sources, out, *flags):
    """Runs `audio-tf score` to its end, and prints time and memory.

    Returns:
        Seconds.
    """
    begin = time.monotonic()
    process = start(arguments, sources, out, *flags)
    memory = Memory(process)
    memory.start()
    line = finish(process)
    seconds = time.monotonic() - begin
    memory.join()
    series = np.array(memory.series)[:, 1]
    quarters = [part.max() for part in np.array_split(series, 4) if len(part)]
    print(f"{line}\n  {seconds:.0f} s; MiB, the most in each quarter:", end="")
    print("".join(f" {each:.0f}" for each in quarters), flush=True)
    return seconds


def kill_and_resume(arguments, sources, out, shards):
    """Kills runs at random moments, then lets one end.

    Each is killed after a random number of new shards, or as it starts, so
    that every kill meets work that is left.

    Args:
        shards: int, how many there are in all.

    Returns:
        The shards that were there after each kill.
    """
    draw = random.Random(arguments.seed)
    there = [0]
    for number in range(arguments.kills):
        process = start(arguments, sources, out)
        kills_left = arguments.kills - number
        goal = draw.randint(0, (shards - there[-1]) // (kills_left + 1))
        wait = draw.uniform(0.0, 0.5 if goal else STARTS_WITHIN_S)
        while process.poll() is None and written(out) < there[-1] + goal:
            time.sleep(0.05)
        time.sleep(wait)
        if process.poll() is not None:
            raise SystemExit(f"it has ended before kill {number + 1}")
        # Every other time its workers stay, as when a machine is short of
        # memory.
        if number % 2:
            os.kill(process.pid, signal.SIGKILL)
        else:
            os.killpg(process.pid, signal.SIGKILL)
        process.communicate()
        there.append(written(out))
    print(finish(start(arguments, sources, out)), flush=True)
    return there[1:]


def written(out):
    """Returns how many shards there are in a folder of scores."""
    return len(list(pathlib.Path(out).glob("scores/*.parquet")))


def job_service(arguments, sources, out):
    """Runs on Beam's portable job service, with two workers on loopback."""
    with subprocess.Popen(
        [
            sys.executable,
            "-m",
            "apache_beam.runners.portability.local_job_service_main",
            "--port_file",
            str(out) + ".port",
        ],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    ) as service:
        try:
            while not pathlib.Path(f"{out}.port").exists():
                time.sleep(0.2)
            port = pathlib.Path(f"{out}.port").read_text()
            flags = f"--job_endpoint=localhost:{port} "
            flags += "--environment_type=LOOPBACK --direct_num_workers=2 "
            flags += "--experiments=use_loopback_process_worker"
            return timed(
                arguments,
                sources,
                out,
                "--runner=PortableRunner",
                f"--beam={flags}",
            )
        finally:
            service.terminate()


class Prepared(typing.NamedTuple):
    """What all steps begin with.

    Attributes:
        arguments: the flags.
        folder: `pathlib.Path`, which has a folder for each step.
        sources: list of str, the corpus for `audio-tf score`.
        must_fail: set of the names of all that must fail.
        clips: dict by name of dicts by label, as `classify` scores them.
        alone_s: float, the seconds that this took.
        windows: dict of the same of the windows of recordings.
    """

    arguments: argparse.Namespace
    folder: pathlib.Path
    sources: list
    must_fail: set
    clips: dict
    alone_s: float
    windows: dict


def prepare(arguments):
    """Makes the corpus, or takes that of an earlier call, and classifies it.

    Returns:
        `Prepared`.
    """
    folder = pathlib.Path(arguments.work)
    corpus, made = folder / "corpus", folder / "made.json"
    if not made.is_file():
        shutil.rmtree(corpus, ignore_errors=True)
        sources, must_fail = make_corpus(arguments, corpus)
        made.write_text(json.dumps([sources, sorted(must_fail)]))
    sources, must_fail = json.loads(made.read_text())
    clips, alone_s = classify(arguments, corpus / "clips")
    print(
        f"audio-tf classify, one thread on one core: {len(clips)} clips in "
        f"{alone_s:.0f} s",
        flush=True,
    )
    windows = windows_of(arguments, corpus) if arguments.recordings else {}
    return Prepared(
        arguments, folder, sources, set(must_fail), clips, alone_s, windows
    )


def check_scores(made, out):
    """Compares a folder of scores with what there must be, and says so."""
    worst = compare(out, made.clips, made.windows, made.must_fail)
    print(f"  differs by {worst:.1e}")


def run_halves(made, out):
    """Scores half of the clips on each of two cores, without Beam."""
    seconds = classify_halves(made.arguments, made.folder / "corpus")
    print(
        f"  two such side by side, half each: {made.alone_s / seconds:.2f} "
        "times one thread",
        flush=True,
    )


def run_clips(made, out):
    """Scores all but the recordings on Beam."""
    short = [each for each in made.sources if not each.endswith("long")]
    seconds = timed(made.arguments, short, out)
    print(f"  clips alone: {made.alone_s / seconds:.2f} times one thread")


def run_whole(made, out):
    """Scores all on Beam, and compares."""
    corpus, alone_s = made.folder / "corpus", made.alone_s
    if made.arguments.recordings:
        _, alone_s = classify(made.arguments, corpus / "clips", corpus / "long")
        print(f"one thread, with the recordings: {alone_s:.0f} s", flush=True)
    seconds = timed(made.arguments, made.sources, out)
    print(f"  {alone_s / seconds:.2f} times one thread")
    check_scores(made, out)


def run_service(made, out):
    """Scores all on Beam's job service, and compares."""
    job_service(made.arguments, made.sources, out)
    check_scores(made, out)


def run_kills(made, out):
    """Kills runs, lets the last one end, and compares it with a whole run."""
    whole = made.folder / "whole"
    there = kill_and_resume(made.arguments, made.sources, out, written(whole))
    print(f"  shards after each kill: {there}")
    check_scores(made, out)
    if read(out)[1] != read(whole)[1]:
        raise SystemExit("what failed differs after the kills")


# By the names of their folders, in the order in which they run.
STEPS = {
    "halves": run_halves,
    "clips": run_clips,
    "whole": run_whole,
    "service": run_service,
    "kills": run_kills,
}


def main():
    """Makes the corpus and runs all steps."""
    made = prepare(parse())
    asked = made.arguments.steps
    for step in asked:
        shutil.rmtree(made.folder / step, ignore_errors=True)
    for step, run in STEPS.items():
        if step in asked:
            run(made, made.folder / step)


if __name__ == "__main__":
    main()
