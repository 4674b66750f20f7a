"""Files of corpora, written as their authors release them, small."""

import pathlib
import shutil

import numpy as np
import soundfile


def names(corpus):
    return [pathlib.Path(file).name for file in corpus.files]


def write_csv(folder, text, name="clips.csv"):
    path = folder / name
    path.write_text(text, encoding="utf-8")
    return path


WITH_SPLITS = """\
filename,labels,split
a/1.wav,"rain, wind",train
a/2.wav,dog,test
b/3.flac,"dog,rain",train
b/4.wav,,val
"""


def touch(*paths):
    for path in paths:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.touch()


# 37 samples a frame make 100 frames a second.
RATE_HZ, FRAME_SIZE = 3_700, 37


SPEAKERS = """\
; comments | look | like | fields | too
;ID  |SEX| SUBSET           |MINUTES| NAME
5    | F | train-clean-100  | 25.03 | Zoë | with | bars
13   | M | train-clean-100  | 20.18 | |CBW|Simon
7    | M | dev-clean        | 8.10  | X
"""


def write_audio(path, samples=149, rate_hz=RATE_HZ, seed=0):
    path.parent.mkdir(parents=True, exist_ok=True)
    rng = np.random.default_rng(seed)
    audio = 0.1 * rng.standard_normal(samples)
    soundfile.write(path, audio, rate_hz, format=path.suffix[1:].upper())
    return path


def write_librispeech(folder, speakers=SPEAKERS, suffix=".flac"):
    """Three speakers, five utterances."""
    root = folder / "LibriSpeech"
    for subset, speaker, chapter, count in (
        ("train-clean-100", 5, 11, 2),
        ("train-clean-100", 13, 17, 1),
        ("dev-clean", 7, 19, 2),
    ):
        for number in range(count):
            name = f"{speaker}-{chapter}-{number:04d}{suffix}"
            write_audio(root / subset / str(speaker) / str(chapter) / name)
    if speakers:
        (root / "SPEAKERS.TXT").write_text(speakers, encoding="utf-8")
    return root


def packed(folder):
    """Puts a folder into a ZIP archive in its place."""
    path = shutil.make_archive(folder, "zip", folder.parent, folder.name)
    shutil.rmtree(folder)
    return path


def write_text(path, text):
    path.write_bytes(text.encode())
    return path


def write_fsdd(folder, indices=(0, 5, 11, 15, 49), phones=True):
    names = [f"3_{who}_{i}" for who in ("jo", "ann_b") for i in indices]
    for name in names:
        write_audio(folder / "recordings" / f"{name}.wav")
    if phones:
        lines = "".join(f"{name} 0 1 0 1\n" for name in names[:-1])
        write_text(folder / "converted_aligned_phones.txt", lines)
        write_text(folder / "phones.txt", "SIL 0\nTH 1\n")
    return folder
