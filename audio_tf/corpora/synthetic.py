"""A corpus of sound events, to try everything without a download."""

import csv
import io
import json
import pathlib
import re

import numpy as np

from audio_tf import files
from audio_tf.corpora.csv_file import read_csv
from audio_tf.corpora.sound_events import (
    EVENTS,
    check_ranges,
    draw_events,
    synthesize_clip,
)

# Part of the record: another recipe under the same arguments is another
# corpus. Raise it when a sound changes.
RECIPE = 1

# What a corpus whose writing was stopped has in its folder.
OWN = re.compile(r"audio|synthetic\.csv|(train|val|test)_\d{5}\.wav|\..*")


def read_synthetic(data_dir, seed=0):
    """Reads the synthetic corpus, after writing it where it is not there.

    Args:
        data_dir: the folder, which has nothing else in it.
        seed: int, seed of the corpus.

    Returns:
        Dict of `Corpus` by split: train, val, test.

    Raises:
        ValueError: if the folder holds a corpus of another seed, or files of
            others, or is itself a file.
    """
    _check_own(pathlib.Path(data_dir))
    return read_csv(write_synthetic_corpus(data_dir, seed=seed))


def _check_own(directory):
    """Raises a `ValueError` if what is there is no synthetic corpus.

    Whoever forgets to name the layout of their own corpus would get made
    sounds among their own, and a model of these.
    """
    if not directory.exists() or (directory / "synthetic.json").exists():
        return
    within = [*directory.glob("*"), *directory.glob("audio/*")]
    others = [path for path in within if not OWN.fullmatch(path.name)]
    if others or not directory.is_dir():
        raise ValueError(
            f"{directory} is no synthetic corpus, and none is written into it: "
            "name the layout of a corpus of your own as `dataset`, such as "
            "'folders' or 'csv', or give an empty folder. Received: "
            f"dataset='synthetic', data_dir={str(directory)!r}"
            + (f", which holds {others[0].name!r}" if others else "")
        )


def write_synthetic_corpus(
    directory,
    num_clips=600,
    seed=0,
    sample_rate_hz=16_000,
    min_duration_s=0.5,
    max_duration_s=3.0,
    splits={"train": 0.7, "val": 0.1, "test": 0.2},
    max_events=3,
    progress=True,
):
    """Writes a corpus of synthetic clips, or completes one.

    It writes `audio/<split>_<number>.wav` (mono, 16-bit PCM), then
    `synthetic.csv` (`filename,labels,split`, where `filename` is relative to
    the CSV's folder and `labels` is comma separated), then `synthetic.json`,
    the record of the arguments. A clip depends on the seed, its number and
    the arguments alone. The events take turns as a clip's first, so that
    every split of at least `len(EVENTS)` clips holds them all. Files that are
    there are kept; one with another content is an error that names it, until
    the record is there, which is written when all else is.

    Args:
        directory: path, made where missing.
        num_clips: int, over all splits.
        seed: int, not negative.
        sample_rate_hz: int, at least 8000.
        min_duration_s: float, at least 0.1, the shortest duration.
        max_duration_s: float, the longest duration.
        splits: dict from a split's name to its share; the shares sum to 1.
        max_events: int, the most events of a clip.
        progress: bool, whether to show a progress bar.

    Returns:
        `pathlib.Path` of the CSV.

    Raises:
        ValueError: if an argument is out of range, or `directory` holds a
            corpus of other arguments.

    Examples:
        >>> from audio_tf import corpora
        >>> path = corpora.write_synthetic_corpus(
        ...     "made", num_clips=20, max_duration_s=0.6, progress=False
        ... )
        >>> len(corpora.read_csv(path)["test"].files)
        4
    """
    check_ranges(sample_rate_hz, min_duration_s, max_duration_s, max_events)
    _check_plan(splits, num_clips, seed)
    directory = pathlib.Path(directory)
    csv_path = directory / "synthetic.csv"
    record_path = directory / "synthetic.json"
    record = {
        "num_clips": int(num_clips),
        "seed": int(seed),
        "sample_rate_hz": int(sample_rate_hz),
        "min_duration_s": float(min_duration_s),
        "max_duration_s": float(max_duration_s),
        # Pairs, because the order of the splits decides which clip is whose.
        "splits": [[name, float(share)] for name, share in splits.items()],
        "max_events": int(max_events),
        "recipe": RECIPE,
        "num_files": int(num_clips),
    }
    is_recorded = record_path.exists()
    if is_recorded:
        found = json.loads(record_path.read_text(encoding="utf-8"))
        _check_same_arguments(found, record, directory)
    (directory / "audio").mkdir(parents=True, exist_ok=True)
    rows = []
    from tqdm.auto import tqdm

    for number, split, first_event in tqdm(
        _clip_plan(splits, num_clips),
        desc="Synthetic corpus",
        unit="clip",
        disable=None if progress else True,
    ):
        filename = f"audio/{split}_{number:05d}.wav"
        path = directory / filename
        rng = np.random.default_rng([seed, number])
        duration_s = rng.uniform(min_duration_s, max_duration_s)
        if is_recorded and path.exists():
            names = sorted(draw_events(rng, max_events, first_event))
        else:
            audio, names = synthesize_clip(
                rng, sample_rate_hz, duration_s, max_events, first_event
            )
            _write_once(path, _wav_bytes(audio, sample_rate_hz))
        rows.append((filename, ",".join(names), split))
    _write_once(csv_path, _csv_bytes(rows))
    if not is_recorded:
        text = json.dumps(record, indent=2) + "\n"
        _write_once(record_path, text.encode("utf-8"))
    return csv_path


def _clip_plan(splits, num_clips):
    """Lists `(number, split, first_event)`, numbered across the splits."""
    bounds = np.rint(num_clips * np.cumsum([0.0, *splits.values()]))
    events = list(EVENTS)
    return [
        (number, split, events[(number - int(start)) % len(events)])
        for split, start, stop in zip(splits, bounds, bounds[1:])
        for number in range(int(start), int(stop))
    ]


def _wav_bytes(audio, sample_rate_hz):
    import soundfile

    buffer = io.BytesIO()
    soundfile.write(
        buffer, audio, sample_rate_hz, format="WAV", subtype="PCM_16"
    )
    return buffer.getvalue()


def _csv_bytes(rows):
    buffer = io.StringIO()
    writer = csv.writer(buffer, lineterminator="\n")
    writer.writerow(("filename", "labels", "split"))
    writer.writerows(rows)
    return buffer.getvalue().encode("utf-8")


def _write_once(path, content):
    """Writes a new file whole or not at all, and leaves an equal one alone."""
    if path.exists():
        if path.read_bytes() != content:
            raise ValueError(
                "The file is there and holds something else; choose an empty "
                f"directory. Received: path={str(path)!r}"
            )
        return
    # Another process may make the same corpus at the same time.
    with files.whole_file(path, shared=True) as new:
        new.write_bytes(content)


def _check_plan(splits, num_clips, seed):
    if num_clips < 1:
        raise ValueError(
            f"`num_clips` must be positive. Received: num_clips={num_clips}"
        )
    if seed < 0:
        raise ValueError(f"`seed` must not be negative. Received: seed={seed}")
    names_are_safe = all(str(name).isidentifier() for name in splits)
    shares = list(splits.values())
    is_partition = abs(sum(shares) - 1.0) < 1e-6 and min(shares) >= 0.0
    if not names_are_safe or not is_partition:
        raise ValueError(
            "`splits` must map identifiers to shares that sum to 1. "
            f"Received: splits={splits}"
        )


def _check_same_arguments(found, record, directory):
    differing = [
        name
        for name in {**record, **found}
        if found.get(name) != record.get(name)
    ]
    if differing:
        there = ", ".join(f"{name}={found.get(name)}" for name in differing)
        asked = ", ".join(f"{name}={record.get(name)}" for name in differing)
        raise ValueError(
            f"{str(directory)!r} holds a corpus of {there}; choose another "
            f"directory. Received: {asked}"
        )
