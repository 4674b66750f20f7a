"""Clips, archives and recordings for `score_archive.py`, some broken."""

import os
import tarfile
import zipfile

import numpy as np
import soundfile

from audio_tf.audio import read_audio
from audio_tf.audio.audio_files import audio_below

RATES_HZ = (8_000, 16_000, 22_050, 44_100)
KINDS = (("wav", "PCM_16"), ("flac", "PCM_16"), ("wav", "FLOAT"))
# A member of an archive that would be written beside its folder.
OUTSIDE = "../outside.wav"


def make_corpus(arguments, folder):
    """Writes clips, archives and recordings.

    Args:
        arguments: the flags of `score_archive.py`.
        folder: `pathlib.Path`, which is made.

    Returns:
        Pair of the sources for `audio-tf score`, and a set of the names, in
        them, of all that must fail.
    """
    rng = np.random.default_rng(arguments.seed)
    sounds = [
        read_audio(file)[0] for file in audio_below(arguments.source)[:400]
    ]
    clips = folder / "clips"
    clips.mkdir(parents=True)
    names = write_clips(clips, sounds, arguments.clips, rng)
    broken = rng.choice(arguments.clips, arguments.broken, replace=False)
    broken = sorted(names[number] for number in broken)
    for number, name in enumerate(broken):
        break_clip(clips / name, number)
    sources, where = pack(clips, folder)
    must_fail = {where[name] for name in broken}
    must_fail.add(f"{folder}/sounds.zip/{OUTSIDE}")
    if arguments.recordings:
        long = folder / "long"
        long.mkdir()
        for number in range(arguments.recordings):
            rate_hz = RATES_HZ[1 + number % 3]
            size = int(rate_hz * arguments.recording_s)
            file = long / f"{number:02d}.flac"
            write_recording(file, sounds, rate_hz, size, rng)
        sources.append(str(long))
    return sources, must_fail


def write_clips(folder, sounds, count, rng):
    """Writes clips of 1 to 3 s, of several rates and formats.

    Args:
        folder: `pathlib.Path`.
        sounds: list of float32 arrays, of which they are pieces.
        count: int, how many.
        rng: `numpy.random.Generator`.

    Returns:
        List of their names.
    """
    names = []
    for number in range(count):
        suffix, subtype = KINDS[number % len(KINDS)]
        rate_hz = RATES_HZ[number % len(RATES_HZ)]
        length = int(rate_hz * rng.uniform(1.0, 3.0))
        sound = sounds[rng.integers(len(sounds))]
        sound = np.resize(np.roll(sound, -rng.integers(len(sound))), length)
        gain = rng.uniform(0.2, 1.0)
        names.append(f"{number:06d}.{suffix}")
        soundfile.write(folder / names[-1], gain * sound, rate_hz, subtype)
    return names


def break_clip(path, number):
    """Breaks a clip in one of some ways."""
    content = path.read_bytes()
    ways = (
        lambda: b"",
        lambda: b"no audio at all",
        lambda: content[: len(content) // 2],
        lambda: content[:30],
        lambda: bytes(len(content)),
    )
    path.write_bytes(ways[number % len(ways)]())


def pack(clips, folder):
    """Puts a quarter of the clips each into a folder and three archives.

    Args:
        clips: `pathlib.Path` of the folder of all clips.
        folder: `pathlib.Path`, where the four are made.

    Returns:
        Pair of a list of the paths of the four, and a dict by the name of a
        clip of the name that answers have for it.
    """
    names = sorted(path.name for path in clips.iterdir())
    plain, in_tar, in_packed, in_zip = (names[start::4] for start in range(4))
    files = folder / "files"
    files.mkdir()
    for name in plain:
        os.link(clips / name, files / name)
    where = {name: f"{files}/{name}" for name in plain}
    tar, packed, zipped = (
        str(folder / f"sounds{suffix}")
        for suffix in (".tar", ".tar.gz", ".zip")
    )
    for path, mode, group in ((tar, "w", in_tar), (packed, "w:gz", in_packed)):
        with tarfile.open(path, mode) as archive:
            for name in group:
                archive.add(clips / name, f"in/{name}")
                where[name] = f"{path}/in/{name}"
    with zipfile.ZipFile(zipped, "w", zipfile.ZIP_DEFLATED) as archive:
        for name in in_zip:
            archive.write(clips / name, f"in/{name}")
            where[name] = f"{zipped}/in/{name}"
        archive.writestr(OUTSIDE, b"no")
    return [str(files), tar, packed, zipped], where


def write_recording(file, sounds, rate_hz, size, rng):
    """Writes a recording of so many samples, one sound after the other."""
    with soundfile.SoundFile(file, "w", rate_hz, 1, "PCM_16") as stream:
        while size > 0:
            sound = sounds[rng.integers(len(sounds))][:size]
            stream.write(sound)
            size -= len(sound)
