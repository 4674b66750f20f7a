"""LibriSpeech with speakers and CPC's phones for TFDS."""

import numpy as np
import tensorflow_datasets as tfds

from audio_tf.builders.base import AudioBuilder
from audio_tf.builders.release import Release, make_clips
from audio_tf.corpora.librispeech import LIBRISPEECH_SUBSETS, read_librispeech
from audio_tf.corpora.phones import read_phones
from audio_tf.corpora.speech_corpus import WITHOUT_LABELS

# Beside the folder `LibriSpeech`, as CPC released them.
ALIGNMENT = "converted_aligned_phones.txt"
LISTS = {"train": "train_split.txt", "test": "test_split.txt"}
NO_PHONES = np.zeros(0, np.int16)


class LibrispeechPhones(AudioBuilder):
    """LibriSpeech's utterances with their speakers and CPC's phones.

    `cpc` has the utterances of train-clean-100 in the splits `train` and
    `test` of CPC, of which all speakers are in both, with a phone each 10 ms.
    `subsets` has each subset that is there as a split, `train_clean_100` and
    so on, with phones where the file of CPC is there and has them.

    An utterance without phones is built, with none: its audio and its speaker
    are as good as the others', and `data.load` leaves it out where phones are
    asked for. The build counts such utterances of each split, and whatever
    else did not fit, such as utterances that are in none of CPC's lists.
    """

    VERSION = tfds.core.Version("1.0.0")
    RELEASE_NOTES = {"1.0.0": "LibriSpeech, with CPC's phones and splits."}
    BUILDER_CONFIGS = [
        tfds.core.BuilderConfig(
            name="cpc", description="CPC's splits of train-clean-100."
        ),
        tfds.core.BuilderConfig(
            name="subsets", description="A split of each subset."
        ),
    ]
    SUMMARY = (
        "LibriSpeech, read English speech at 16 kHz, with speakers and, for "
        "train-clean-100, the phone of each 10 ms as CPC released them."
    )
    HOMEPAGE = "https://www.openslr.org/12"
    LICENCE = "CC BY 4.0"
    CITATION = """\
@inproceedings{panayotov2015librispeech,
  title = {{LibriSpeech}: An {ASR} corpus based on public domain audio books},
  author = {Panayotov, Vassil and Chen, Guoguo and Povey, Daniel and
    Khudanpur, Sanjeev},
  booktitle = {IEEE International Conference on Acoustics, Speech and Signal
    Processing (ICASSP)},
  year = {2015},
  pages = {5206--5210},
  doi = {10.1109/ICASSP.2015.7178964}
}
@misc{oord2018cpc,
  title = {Representation Learning with Contrastive Predictive Coding},
  author = {van den Oord, Aaron and Li, Yazhe and Vinyals, Oriol},
  year = {2018},
  eprint = {1807.03748},
  archivePrefix = {arXiv}
}
"""
    LAYOUTS = {"cpc": ("librispeech",), "subsets": ("librispeech",)}
    COUNTS = {
        "cpc": {"train": 22_830, "test": 5_708},
        "subsets": {
            "train_clean_100": 28_539,
            "train_clean_360": 104_014,
            "train_other_500": 148_688,
            "dev_clean": 2_703,
            "dev_other": 2_864,
            "test_clean": 2_620,
            "test_other": 2_939,
        },
    }
    # CPC's lists; the archives as www.openslr.org/resources/12/md5sum.txt has
    # them.
    CHECKSUMS = {
        "train_split.txt": "6cdbf00c1efdcc1190d18643bd971f62",
        "test_split.txt": "5e26b06a32c883fc35b5f2bcb7c14cd9",
        "train-clean-100.tar.gz": "2a93770f6d5c6c964bc36631d331a522",
        "train-clean-360.tar.gz": "c0e676e450a7ff2f54aeade5171606fa",
        "train-other-500.tar.gz": "d1a0fd59409feb2c614ce4d30c387708",
        "dev-clean.tar.gz": "42e2234ba48799c1f50f24a7926300a1",
        "dev-other.tar.gz": "c8d0bcc9cca99d4f8b62fcc847357931",
        "test-clean.tar.gz": "32fa31d27d2e1cad72775fee3f4849a9",
        "test-other.tar.gz": "fb5a50374b501bb3bac4815ee91d3135",
    }

    def read_release(self):
        names = [ALIGNMENT, *LISTS.values()]
        lists = [name for name in names if (self.source / name).is_file()]
        speakers = ["LibriSpeech/SPEAKERS.TXT", "SPEAKERS.TXT"]
        lists += [name for name in speakers if (self.source / name).is_file()]
        if self.config_name == "cpc":
            corpora = read_librispeech(
                self.source,
                ["train-clean-100"],
                self.source / ALIGNMENT,
                {split: self.source / name for split, name in LISTS.items()},
            )
        else:
            # The file has train-clean-100, which need not be there.
            corpora = read_librispeech(self.source)
        corpora = {
            split.replace("-", "_"): corpus for split, corpus in corpora.items()
        }
        phones = {}
        if ALIGNMENT in lists:
            phones = read_phones(self.source / ALIGNMENT)
        vocabulary = next(iter(corpora.values())).vocabulary
        return Release(
            self.source,
            {
                split: make_clips(
                    self.source,
                    corpus.files,
                    [
                        {
                            "utterance": name,
                            "speaker": speaker,
                            "phones": phones.get(name, NO_PHONES),
                        }
                        for name, [speaker] in zip(
                            corpus.utterances, corpus.labels, strict=True
                        )
                    ],
                )
                for split, corpus in corpora.items()
            },
            {
                "utterance": tfds.features.Text(),
                "speaker": tfds.features.ClassLabel(names=vocabulary),
                "phones": tfds.features.Tensor(
                    shape=(None,),
                    dtype=np.int16,
                    encoding=tfds.features.Encoding.BYTES,
                ),
            },
            lists,
            report=report_of(corpora, phones),
        )

    def counts(self):
        published = super().counts()
        if self.config_name == "cpc":
            return published
        # Nobody has to have all seven.
        splits = {each.replace("-", "_") for each in LIBRISPEECH_SUBSETS}
        there = splits & {*self.release.splits}
        return {
            split: published[split] for split in published if split in there
        }


def report_of(corpora, phones):
    """Returns what did not fit, and which utterances are without phones.

    Args:
        corpora: dict of `SpeechCorpus` by split, which share a report.
        phones: dict by utterance of its phones.

    Returns:
        Dict of lists of names by a text, as `Release` has it.
    """
    report = dict(next(iter(corpora.values())).report)
    # They are told by split, and without those that are in no split.
    report.pop(WITHOUT_LABELS, None)
    for split, corpus in corpora.items():
        without = [name for name in corpus.utterances if name not in phones]
        if without:
            report[f"utterances of {split} without phones"] = without
    return report
