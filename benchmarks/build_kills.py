"""Builds of a corpus for TFDS that are killed, against one that is not.

    python benchmarks/build_kills.py esc/esc10 --source DATA/esc10 \\
        --work runs/kills --kills 20

`audio-tf build` with all that it has started gets SIGKILL at random moments of
its time, and is started again in the same folder until it ends; then another
folder follows, until there were so many kills of builds that had not ended.
All files must be those of the build that was left alone, byte for byte, and
nothing else may lie there.
"""

import argparse
import hashlib
import os
import pathlib
import random
import shutil
import signal
import subprocess
import sys
import time


def start(arguments, folder):
    """Starts a build in a group of its own."""
    command = [sys.executable, "-m", "audio_tf.cli", "build", arguments.name]
    command += ["--partial", "--source", arguments.source]
    return subprocess.Popen(
        [*command, "--data-dir", str(folder)],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        start_new_session=True,
    )


def finish(process):
    """Waits for a build, which must end well."""
    errors = process.communicate()[1]
    if process.returncode:
        raise SystemExit(errors.decode(errors="replace"))


def digests(folder):
    """Returns a dict of the checksum of each file by its path."""
    return {
        str(path.relative_to(folder)): hashlib.sha256(
            path.read_bytes()
        ).hexdigest()
        for path in sorted(folder.rglob("*"))
        if path.is_file()
    }


def main():
    """Builds, kills and compares."""
    parser = argparse.ArgumentParser(
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("name", help="builder, as audio-tf build takes it")
    parser.add_argument("--source", required=True)
    parser.add_argument("--work", required=True, help="folder to work in")
    parser.add_argument("--kills", type=int, default=20)
    parser.add_argument("--seed", type=int, default=0)
    arguments = parser.parse_args()
    work = pathlib.Path(arguments.work)
    shutil.rmtree(work, ignore_errors=True)
    begin = time.monotonic()
    finish(start(arguments, work / "whole"))
    seconds = time.monotonic() - begin
    expected = digests(work / "whole")
    print(f"left alone: {len(expected)} files in {seconds:.0f} s", flush=True)
    draw, kills, builds = random.Random(arguments.seed), 0, 0
    while kills < arguments.kills:
        builds += 1
        folder, found = work / f"killed_{builds}", []
        while True:
            process = start(arguments, folder)
            if kills < arguments.kills:
                try:
                    process.wait(draw.uniform(0.0, seconds))
                except subprocess.TimeoutExpired:
                    os.killpg(process.pid, signal.SIGKILL)
                    process.communicate()
                    kills += 1
                    found.append(sum(1 for _ in folder.rglob("*.*")))
                    continue
            finish(process)
            break
        if digests(folder) != expected:
            raise SystemExit(f"{folder} differs from {work / 'whole'}")
        print(
            f"build {builds}: the same after {len(found)} kills, which found "
            f"{found} files",
            flush=True,
        )
        shutil.rmtree(folder)
    print(f"{kills} kills, {builds} builds, all the same", flush=True)


if __name__ == "__main__":
    main()
