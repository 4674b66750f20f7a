"""ESC-50 and ESC-10 for TFDS."""

import numpy as np
import tensorflow_datasets as tfds

from audio_tf.builders.base import AudioBuilder
from audio_tf.builders.release import Release, make_clips
from audio_tf.corpora.esc import find_esc, read_esc
from audio_tf.corpora.lists import read_fields

FOLDS = range(1, 6)


class Esc(AudioBuilder):
    """ESC-50 and ESC-10; each fold is a split, `fold1` to `fold5`.

    All clips of one recording are in one fold (but of two, which folds 2 and
    3 share), so folds, and never clips of one fold, are what training and test
    are made of.
    """

    VERSION = tfds.core.Version("1.0.0")
    RELEASE_NOTES = {"1.0.0": "ESC-50 as released, with its subset ESC-10."}
    BUILDER_CONFIGS = [
        tfds.core.BuilderConfig(
            name="esc50", description="2,000 clips of 5 s, 50 classes."
        ),
        tfds.core.BuilderConfig(
            name="esc10", description="400 clips of 5 s, 10 classes."
        ),
    ]
    SUMMARY = (
        "ESC-50: 2,000 environmental sounds of 5 s in 50 classes, in five "
        "folds; ESC-10 is a subset with ten classes."
    )
    HOMEPAGE = "https://github.com/karolpiczak/ESC-50"
    LICENCE = "CC BY-NC 3.0 (ESC-50); CC BY 3.0 (ESC-10)"
    CITATION = """\
@inproceedings{piczak2015esc,
  title = {{ESC}: {Dataset} for {Environmental Sound Classification}},
  author = {Piczak, Karol J.},
  booktitle = {Proceedings of the 23rd ACM International Conference on
    Multimedia},
  year = {2015},
  pages = {1015--1018},
  doi = {10.1145/2733373.2806390}
}
"""
    LAYOUTS = {"esc50": ("esc50", "esc10"), "esc10": ("esc10",)}
    COUNTS = {
        "esc50": {f"fold{fold}": 400 for fold in FOLDS},
        "esc10": {f"fold{fold}": 80 for fold in FOLDS},
    }

    def read_release(self):
        only_esc10 = self.builder_config.name == "esc10"
        path, rows = find_esc(self.source, only_esc10)
        # The reader says which row has a fold that is no number.
        there = {row["fold"] for _, row in rows if row["fold"].isdecimal()}
        corpora = read_esc(
            self.source,
            {f"fold{fold}": [fold] for fold in sorted(map(int, there))},
            only_esc10,
        )
        splits = {
            split: make_clips(
                self.source,
                corpus.files,
                [
                    {"label": label, "fold": int(split.removeprefix("fold"))}
                    for [label] in corpus.labels
                ],
            )
            for split, corpus in corpora.items()
        }
        vocabulary = next(iter(corpora.values())).vocabulary
        # Of ESC-50 as a source of ESC-10, 1,600 clips are none of ours.
        folders = ["audio"] if len(rows) == len(read_fields(path)) - 1 else []
        return Release(
            self.source,
            splits,
            {
                "label": tfds.features.ClassLabel(names=vocabulary),
                "fold": tfds.features.Scalar(np.int64),
            },
            [path.relative_to(self.source).as_posix()],
            folders,
        )
