"""IEMOCAP for TFDS."""

import numpy as np
import tensorflow_datasets as tfds

from audio_tf.builders.base import AudioBuilder
from audio_tf.builders.release import Release, make_clips
from audio_tf.corpora.iemocap import (
    IEMOCAP_CLASSES,
    iemocap_speaker,
    read_iemocap,
    session_lists,
)

SESSIONS = range(1, 6)


class Iemocap(AudioBuilder):
    """Four emotions of IEMOCAP; each session is a split, to leave one out."""

    VERSION = tfds.core.Version("1.0.0")
    RELEASE_NOTES = {"1.0.0": "Four emotions, excitement as happiness."}
    SUMMARY = (
        "5,531 acted turns of English dialogs with one of four emotions, ten "
        "speakers in five sessions, at 16 kHz."
    )
    HOMEPAGE = "https://sail.usc.edu/iemocap/"
    LICENCE = "By agreement with USC alone; not to be passed on"
    CITATION = """\
@article{busso2008iemocap,
  title = {{IEMOCAP}: Interactive emotional dyadic motion capture database},
  author = {Busso, Carlos and Bulut, Murtaza and Lee, Chi-Chun and
    Kazemzadeh, Abe and Mower, Emily and Kim, Samuel and
    Chang, Jeannette N. and Lee, Sungbok and Narayanan, Shrikanth S.},
  journal = {Language Resources and Evaluation},
  volume = {42},
  number = {4},
  pages = {335--359},
  year = {2008},
  doi = {10.1007/s10579-008-9076-6}
}
"""
    LAYOUTS = {None: ("iemocap",)}
    COUNTS = {
        None: {
            "session1": 1_085,
            "session2": 1_023,
            "session3": 1_151,
            "session4": 1_031,
            "session5": 1_241,
        }
    }

    def read_release(self):
        there = [
            session
            for session in SESSIONS
            if (self.source / f"Session{session}").is_dir()
        ]
        corpora = read_iemocap(
            self.source, {f"session{session}": [session] for session in there}
        )
        splits = {
            split: make_clips(
                self.source,
                corpus.files,
                [
                    {
                        "label": label,
                        "session": int(split.removeprefix("session")),
                        "speaker": iemocap_speaker(file.stem),
                    }
                    for file, [label] in zip(
                        corpus.files, corpus.labels, strict=True
                    )
                ],
            )
            for split, corpus in corpora.items()
        }
        return Release(
            self.source,
            splits,
            {
                "label": tfds.features.ClassLabel(names=list(IEMOCAP_CLASSES)),
                "session": tfds.features.Scalar(np.int64),
                "speaker": tfds.features.Text(),
            },
            [
                path.relative_to(self.source).as_posix()
                for session in there
                for path in session_lists(self.source, session)
            ],
        )
