"""Small corpora in the layouts of their releases, for the builders."""

import csv

import numpy as np
import soundfile


def write_clip(path, seed, rate_hz=8_000, samples=211, **kwargs):
    """Writes a clip of 16 bits, whose length depends on the seed."""
    path.parent.mkdir(parents=True, exist_ok=True)
    rng = np.random.default_rng(seed)
    audio = rng.integers(-(2**15), 2**15, samples + seed, np.int16)
    soundfile.write(path, audio, rate_hz, **kwargs)
    return path


def write_rows(path, *rows):
    path.parent.mkdir(parents=True, exist_ok=True)
    with open(path, "w", newline="", encoding="utf-8") as file:
        csv.writer(file, lineterminator="\n").writerows(rows)


def write_esc(folder, suffix=".wav"):
    """Folds 1, 2 and 4 with 3, 2 and 2 clips; one of each is in ESC-10."""
    header = ["filename", "fold", "target", "category", "esc10"]
    rows = []
    for number, fold in enumerate((1, 1, 1, 2, 2, 4, 4)):
        word = ("rain", "dog")[number % 2]
        name = f"{fold}-{number}-A{suffix}"
        write_clip(folder / "audio" / name, number)
        rows.append([name, fold, number % 2, word, number in (0, 3, 5)])
    write_rows(folder / "meta" / "esc50.csv", header, *rows)
    return folder


def write_fsdd(folder):
    for number, (who, index) in enumerate(
        [
            ("jackson", 0),
            ("jackson", 12),
            ("theo", 4),
            ("theo", 5),
            ("theo", 19),
        ]
    ):
        name = f"{number % 3}_{who}_{index}.wav"
        write_clip(folder / "recordings" / name, number)
    return folder


def write_arabic(folder):
    number = 0
    for split, speaker in (("train", "01"), ("val", "02"), ("test", "03")):
        rows = [["file", "class"]]
        for word in ("go", "stop"):
            name = f"dataset/{word}/{speaker}_NO_01.wav"
            write_clip(folder / name, number)
            rows.append([name, word])
            number += 1
        write_rows(folder / f"{split}.csv", *rows)
    return folder


# By the name of a builder and its configuration.
RELEASES = {
    "esc/esc50": write_esc,
    "esc/esc10": write_esc,
    "fsdd/official": write_fsdd,
    "fsdd/speakers": write_fsdd,
    "arabic_speech_commands": write_arabic,
}
