"""Spoken digits in the synthetic voices of eSpeak NG, in the layout of FSDD.

    apt-get install espeak-ng
    mkdir -p VOICES && cp -r DATA/fsdd/recordings VOICES
    python benchmarks/synthetic_voices.py VOICES/recordings

Adds `{digit}_{voice}_{index}.wav`, 8 kHz, 16 bits: each voice says all digits
several times, in an accent, at a pitch and at a rate of its own each time, from
index 10 on, where the official splits train. Voices that are meant to sound
like no person are left out. A model that is to understand people whom it has
not heard learns from them beside real recordings.
"""

import argparse
import io
import pathlib
import re
import shutil
import subprocess

import numpy as np
import soundfile
import tqdm

from audio_tf.audio import resample

PROGRAM = "espeak-ng"
DIGITS = "zero one two three four five six seven eight nine".split()
ACCENTS = (
    "en-gb en-us en-gb-scotland en-gb-x-rp en-gb-x-gbclan en-gb-x-gbcwmd "
    "en-029 en-us-nyc"
).split()
NO_PERSON = re.compile(
    "whisper|croak|robo|UniRobot|anikaRobot|Demonic|Tweaky|fast|Storm|"
    "AnxiousAndy|Nguyen|kaukovalta"
)
SAMPLE_RATE_HZ = 8_000
FIRST_INDEX = 10
# What drawing is even between: eSpeak's units of pitch, words a minute, peak.
PITCHES, RATES, PEAKS = (20, 80), (110, 210), (0.1, 0.9)
# A clip begins and ends where the level has this share of its peak.
SILENCE = 0.02
AROUND = (80, 160)  # Samples that stay before and behind.


def list_voices():
    """Lists the names of the voices that are meant to sound like people."""
    if shutil.which(PROGRAM) is None:
        raise SystemExit(f"no {PROGRAM}: apt-get install espeak-ng")
    table = subprocess.run(
        [PROGRAM, "--voices=variant"],
        capture_output=True,
        text=True,
        check=True,
    ).stdout
    names = re.findall(r"!v/(\S+) *$", table, re.MULTILINE)
    return sorted(name for name in names if not NO_PERSON.match(name))


def say(word, voice, pitch, rate):
    """Returns a word as mono samples at `SAMPLE_RATE_HZ`, without silence."""
    flags = ["-v", voice, "-p", str(pitch), "-s", str(rate), "--stdout", word]
    spoken = subprocess.run([PROGRAM, *flags], capture_output=True, check=True)
    samples, rate_hz = soundfile.read(
        io.BytesIO(spoken.stdout), dtype="float32"
    )
    samples = resample(samples, rate_hz, SAMPLE_RATE_HZ)
    peak = np.abs(samples).max(initial=0.0)
    if not peak:
        raise SystemExit(f"{PROGRAM} is silent: {' '.join(flags)}")
    samples = samples / peak
    loud = np.flatnonzero(np.abs(samples) > SILENCE)
    return samples[max(0, loud[0] - AROUND[0]) : loud[-1] + AROUND[1]]


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("out", type=pathlib.Path, help="folder of the clips")
    parser.add_argument("--versions", type=int, default=3, help="of each voice")
    parser.add_argument("--seed", type=int, default=0)
    arguments = parser.parse_args()
    rng = np.random.default_rng(arguments.seed)
    voices = list_voices()
    arguments.out.mkdir(parents=True, exist_ok=True)
    for number, name in enumerate(tqdm.tqdm(voices, unit="voice")):
        for version in range(arguments.versions):
            accent = ACCENTS[rng.integers(len(ACCENTS))]
            pitch, rate = rng.integers(*PITCHES), rng.integers(*RATES)
            for digit, word in enumerate(DIGITS):
                samples = say(word, f"{accent}+{name}", pitch, rate)
                file = f"{digit}_synth{number:02d}_{FIRST_INDEX + version}.wav"
                soundfile.write(
                    arguments.out / file,
                    samples * rng.uniform(*PEAKS),
                    SAMPLE_RATE_HZ,
                    "PCM_16",
                )
    print(f"{len(voices)} voices, {arguments.versions} versions of each digit")


if __name__ == "__main__":
    main()
