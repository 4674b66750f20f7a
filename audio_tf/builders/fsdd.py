"""The Free Spoken Digit Dataset for TFDS."""

import numpy as np
import tensorflow_datasets as tfds

from audio_tf.builders.base import AudioBuilder
from audio_tf.builders.release import Release, make_clips
from audio_tf.corpora.spoken_digits import find_recordings, read_fsdd_clips

SPEAKERS = ("george", "jackson", "lucas", "nicolas", "theo", "yweweler")
DIGITS = [str(digit) for digit in range(10)]
OFFICIAL_TEST = range(5)


class Fsdd(AudioBuilder):
    """Spoken digits, in the official splits or with a split a speaker.

    `official` has the splits `train` and `test`, recordings 5 to 49 and 0 to
    4 of each digit and speaker. `speakers` has a split of each speaker, so
    that one is left out by naming the others.
    """

    VERSION = tfds.core.Version("1.0.0")
    RELEASE_NOTES = {"1.0.0": "Six speakers, 50 recordings of each digit."}
    BUILDER_CONFIGS = [
        tfds.core.BuilderConfig(
            name="official",
            description="Split by index: 0 to 4 are the test.",
        ),
        tfds.core.BuilderConfig(
            name="speakers", description="A split of each speaker."
        ),
    ]
    SUMMARY = "3,000 spoken English digits of six speakers, at 8 kHz."
    HOMEPAGE = "https://github.com/Jakobovski/free-spoken-digit-dataset"
    LICENCE = "CC BY-SA 4.0"
    CITATION = """\
@misc{jackson2018fsdd,
  title = {{Free Spoken Digit Dataset}: v1.0.8},
  author = {Jackson, Zohar and Souza, C{\\'e}sar and Flaks, Jason and
    Pan, Yuxin and Nicolas, Hereman and Thite, Adhish},
  year = {2018},
  doi = {10.5281/zenodo.1342401}
}
"""
    LAYOUTS = {"official": ("fsdd",), "speakers": ("fsdd",)}
    COUNTS = {
        "official": {"train": 2_700, "test": 300},
        "speakers": dict.fromkeys(SPEAKERS, 500),
    }

    def read_release(self):
        # It refuses names and indices that do not fit, and recordings that
        # are there twice.
        read_fsdd_clips(self.source)
        recordings, _ = find_recordings(self.source)
        speakers = sorted({each.speaker for each in recordings})
        by_split = dict.fromkeys(self.COUNTS[self.config_name])
        if self.config_name == "speakers":
            by_split |= dict.fromkeys(speakers)
        splits = {
            split: [each for each in recordings if split == self.split_of(each)]
            for split in by_split
        }
        lists = ["converted_aligned_phones.txt", "phones.txt"]
        return Release(
            self.source,
            {
                split: make_clips(
                    self.source,
                    [each.file for each in chosen],
                    [
                        {
                            "digit": each.digit,
                            "speaker": each.speaker,
                            "index": each.index,
                        }
                        for each in chosen
                    ],
                )
                for split, chosen in splits.items()
            },
            {
                "digit": tfds.features.ClassLabel(names=DIGITS),
                "speaker": tfds.features.ClassLabel(names=speakers),
                "index": tfds.features.Scalar(np.int64),
            },
            [name for name in lists if (self.source / name).is_file()],
        )

    def split_of(self, recording):
        """Returns the split of a `Recording` in this configuration."""
        if self.config_name == "speakers":
            return recording.speaker
        return "test" if recording.index in OFFICIAL_TEST else "train"
