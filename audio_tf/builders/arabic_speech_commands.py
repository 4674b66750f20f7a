"""Arabic Speech Commands for TFDS."""

import pathlib

import tensorflow_datasets as tfds

from audio_tf.builders.base import AudioBuilder
from audio_tf.builders.release import Release, make_clips
from audio_tf.corpora.arabic_speech_commands import read_arabic_speech_commands


class ArabicSpeechCommands(AudioBuilder):
    """Forty spoken words in the official splits, no speaker in two of them."""

    VERSION = tfds.core.Version("1.0.0")
    RELEASE_NOTES = {"1.0.0": "Version 1 of the release."}
    SUMMARY = (
        "12,000 Arabic command words of 1 s, 40 words, 30 speakers, at 16 kHz."
    )
    HOMEPAGE = (
        "https://github.com/abdulkaderghandoura/arabic-speech-commands-dataset"
    )
    LICENCE = "CC BY 4.0"
    CITATION = """\
@article{ghandoura2021building,
  title = {Building and benchmarking an {Arabic Speech Commands} dataset for
    small-footprint keyword spotting},
  author = {Ghandoura, Abdulkader and Hjabo, Farouk and Al Dakkak, Oumayma},
  journal = {Engineering Applications of Artificial Intelligence},
  volume = {102},
  pages = {104267},
  year = {2021},
  doi = {10.1016/j.engappai.2021.104267}
}
"""
    LAYOUTS = {None: ("arabic_speech_commands",)}
    COUNTS = {None: {"train": 7_200, "val": 2_400, "test": 2_400}}

    def read_release(self):
        corpora = read_arabic_speech_commands(self.source)
        lists = [f"{split}.csv" for split in corpora]
        there = [name for name in lists if (self.source / name).is_file()]
        return Release(
            self.source,
            {
                split: make_clips(
                    self.source,
                    corpus.files,
                    [
                        {"label": label, "speaker": speaker_of(file)}
                        for file, [label] in zip(
                            corpus.files, corpus.labels, strict=True
                        )
                    ],
                )
                for split, corpus in corpora.items()
            },
            {
                "label": tfds.features.ClassLabel(
                    names=corpora["train"].vocabulary
                ),
                "speaker": tfds.features.Text(),
            },
            there,
            # Without its list, the audio of the test is in none.
            ["dataset"] if len(there) == len(lists) else [],
        )


def speaker_of(file):
    """Returns the speaker of a clip named `SPEAKER_NO_ROUND`."""
    return pathlib.Path(file).stem.split("_NO_")[0]
