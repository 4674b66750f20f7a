"""Small corpora in the layouts of their releases, for the builders."""

import csv
import json
import pathlib

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
        name = f"{number % 4}_{who}_{index}.wav"
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


VOCABULARY = ["Bark", "Dog", "Rain", "Water"]


def write_fsd50k(folder, uploader="ann"):
    """Two clips to train, one to validate and two to test; five labels."""
    truth = folder / "FSD50K.ground_truth"
    write_rows(
        truth / "vocabulary.csv",
        *[[row, name, f"/m/{row}"] for row, name in enumerate(VOCABULARY)],
    )
    dev = [["fname", "labels", "mids", "split"]]
    test = [["fname", "labels", "mids"]]
    for number, split in enumerate(["train", "val", "train", None, None]):
        labels = "Bark,Dog" if number % 2 else "Rain"
        row = [str(64760 + number), labels, ",".join("/m/0" for _ in labels)]
        part = "dev" if split else "eval"
        write_clip(folder / f"FSD50K.{part}_audio" / f"{row[0]}.wav", number)
        dev += [[*row, split]] if split else []
        test += [] if split else [row]
    write_rows(truth / "dev.csv", *dev)
    write_rows(truth / "eval.csv", *test)
    info = folder / "FSD50K.metadata" / "dev_clips_info_FSD50K.json"
    info.parent.mkdir()
    clip = {"title": "x", "uploader": uploader, "license": "CC0"}
    info.write_text(json.dumps({"64760": clip}))
    return folder


def write_librispeech(folder):
    """Three utterances of train-clean-100 and one of dev-clean."""
    names = []
    for number, (subset, name) in enumerate(
        [
            ("train-clean-100", "5-11-0000"),
            ("train-clean-100", "5-11-0001"),
            ("train-clean-100", "13-17-0000"),
            ("dev-clean", "7-19-0000"),
        ]
    ):
        path = pathlib.Path("LibriSpeech", subset, *name.split("-")[:2])
        write_clip(folder / path / f"{name}.flac", number, 16_000)
        names.append(name)
    lines = [f"{name} {row} 0 40\n" for row, name in enumerate(names[:3])]
    (folder / "converted_aligned_phones.txt").write_text("".join(lines))
    (folder / "train_split.txt").write_text(f"{names[0]}\n{names[2]}\n")
    (folder / "test_split.txt").write_text(f"{names[1]}\n")
    return folder


TURNS = """\
% [START_TIME - END_TIME] TURN_NAME EMOTION [V, A, D]

[6.2901 - 8.2357]\t{name}_F000\tneu\t[2.5000, 2.5000, 2.5000]
C-E2:\tNeutral;\t()

[10.0100 - 11.3925]\t{name}_M000\texc\t[2.5000, 2.5000, 2.5000]
[11.3925 - 14.1000]\t{name}_F001\txxx\t[2.5000, 2.5000, 2.5000]
[14.1000 - 15.0000]\t{name}_MXX1\tang\t[2.5000, 2.5000, 2.5000]
"""


def write_iemocap(folder, sessions=(1, 5)):
    """A dialog in each session: neutral, excited, undecided, angry."""
    for session in sessions:
        name = f"Ses0{session}F_impro01"
        root = folder / f"Session{session}"
        turns = root / "dialog" / "EmoEvaluation" / f"{name}.txt"
        turns.parent.mkdir(parents=True)
        turns.write_text(TURNS.format(name=name))
        for number, who in enumerate(["F000", "M000", "F001", "MXX1"]):
            clip = root / "sentences" / "wav" / name / f"{name}_{who}.wav"
            write_clip(clip, 4 * session + number, 16_000)
    return folder


# By the name of a builder and its configuration.
RELEASES = {
    "esc/esc50": write_esc,
    "esc/esc10": write_esc,
    "fsdd/official": write_fsdd,
    "fsdd/speakers": write_fsdd,
    "arabic_speech_commands": write_arabic,
    "fsd50k": write_fsd50k,
    "librispeech_phones/cpc": write_librispeech,
    "librispeech_phones/subsets": write_librispeech,
    "iemocap": write_iemocap,
}
