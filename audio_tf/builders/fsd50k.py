"""FSD50K for TFDS, from its folders or its archives as downloaded."""

import tensorflow_datasets as tfds

from audio_tf.builders.base import AudioBuilder
from audio_tf.builders.release import Release, make_clips
from audio_tf.corpora.fsd50k import (
    CLIPS_INFO,
    read_clips_info,
    read_fsd50k,
)
from audio_tf.corpora.lists import is_there

TRUTH = [
    f"FSD50K.ground_truth/{name}.csv" for name in ("vocabulary", "dev", "eval")
]


class Fsd50k(AudioBuilder):
    """FSD50K in its own splits: train and val of dev, and eval as test.

    The source has the folders of the release, or the archives that make them,
    in parts as they are downloaded, or some of both.
    """

    VERSION = tfds.core.Version("1.0.0")
    RELEASE_NOTES = {"1.0.0": "Version 1.0 of the release, Zenodo 4060432."}
    SUMMARY = (
        "51,197 clips of everyday sound, 108 hours, 0.3 to 30 s, each with "
        "one or more of 200 labels of the AudioSet ontology."
    )
    HOMEPAGE = "https://zenodo.org/records/4060432"
    LICENCE = "CC BY 4.0; each clip has the licence that its feature names"
    CITATION = """\
@article{fonseca2022fsd50k,
  title = {{FSD50K}: An Open Dataset of Human-Labeled Sound Events},
  author = {Fonseca, Eduardo and Favory, Xavier and Pons, Jordi and
    Font, Frederic and Serra, Xavier},
  journal = {IEEE/ACM Transactions on Audio, Speech, and Language Processing},
  volume = {30},
  pages = {829--852},
  year = {2022},
  doi = {10.1109/TASLP.2021.3133208}
}
"""
    LAYOUTS = {None: ("fsd50k",)}
    COUNTS = {None: {"train": 36_796, "val": 4_170, "test": 10_231}}
    # As Zenodo has them, by way of soundata's loader of FSD50K.
    CHECKSUMS = {
        "FSD50K.dev_audio.z01": "faa7cf4cc076fc34a44a479a5ed862a3",
        "FSD50K.dev_audio.z02": "8f9b66153e68571164fb1315d00bc7bc",
        "FSD50K.dev_audio.z03": "1196ef47d267a993d30fa98af54b7159",
        "FSD50K.dev_audio.z04": "d088ac4e11ba53daf9f7574c11cccac9",
        "FSD50K.dev_audio.z05": "81356521aa159accd3c35de22da28c7f",
        "FSD50K.dev_audio.zip": "c480d119b8f7a7e32fdb58f3ea4d6c5a",
        "FSD50K.eval_audio.z01": "3090670eaeecc013ca1ff84fe4442aeb",
        "FSD50K.eval_audio.zip": "6fa47636c3a3ad5c7dfeba99f2637982",
        "FSD50K.ground_truth.zip": "ca27382c195e37d2269c4c866dd73485",
        "FSD50K.metadata.zip": "b9ea0c829a411c1d42adb9da539ed237",
    }

    def read_release(self):
        corpora = read_fsd50k(self.source)
        info = {}
        for path in map(self.source.joinpath, CLIPS_INFO.values()):
            info |= read_clips_info(path)
        vocabulary = corpora["train"].vocabulary
        there = [
            name for name in CLIPS_INFO.values() if is_there(self.source / name)
        ]
        return Release(
            self.source,
            {
                split: make_clips(
                    self.source,
                    corpus.files,
                    [
                        {
                            "labels": labels,
                            "clip": file.stem,
                            **info.get(file.stem, UNKNOWN),
                        }
                        for file, labels in zip(
                            corpus.files, corpus.labels, strict=True
                        )
                    ],
                )
                for split, corpus in corpora.items()
            },
            {
                "labels": tfds.features.Sequence(
                    tfds.features.ClassLabel(names=vocabulary)
                ),
                "clip": tfds.features.Text(),
                "uploader": tfds.features.Text(),
                "licence": tfds.features.Text(),
            },
            [*TRUTH, *there],
            ["FSD50K.dev_audio", "FSD50K.eval_audio"],
        )


UNKNOWN = {"uploader": "", "licence": ""}
