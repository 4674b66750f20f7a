"""Groups of settings: how audio is read, labelled and turned into features.

A script's settings are a class that inherits the groups it needs.
"""

import dataclasses
import os
import pathlib
import typing

from audio_tf import files
from audio_tf.corpora import (
    CORPORA,
    FSDD_CLASSES,
    SPEECH,
    SPLITS,
    load_corpus,
    load_speech,
    tfds_librispeech,
)
from audio_tf.runs.settings import (
    FOLD,
    NOT_NEGATIVE,
    POSITIVE,
    setting,
    shared,
)
from audio_tf.runs.split_settings import SplitSettings

# The presets of features that a model may take as its input; `paper_target`
# is only ever reconstructed.
FEATURES = ("paper", "s3prl")


@dataclasses.dataclass
class DataSettings(SplitSettings):
    """The corpus of labelled clips, and its splits."""

    layouts = CORPORA

    dataset: str = setting("synthetic", "layout of the corpus", CORPORA)
    vocabulary: str | None = setting(
        None,
        "file of the labels in their order",
        unless_given="the labels that occur, sorted",
        option="vocabulary",
    )
    train_folds: list[int] = setting(
        [1, 2, 3], "folds for training", check=FOLD, option="folds"
    )
    val_folds: list[int] = setting(
        [4], "folds for validation", check=FOLD, option="folds"
    )
    test_folds: list[int] = setting(
        [5], "folds for the test", check=FOLD, option="folds"
    )
    val_speakers: list[str] = setting(
        [], "speakers for validation", option="val_speakers"
    )
    test_speakers: list[str] = setting(
        [], "speakers for the test", option="test_speakers"
    )
    classes: str = setting(
        "digits", "what is told apart", FSDD_CLASSES, option="classes"
    )

    def check(self):
        # Of a corpus without folds it is said that there are none.
        taken = self.taken({"folds": self.folds()}).get("folds", {})
        used = [fold for folds in taken.values() for fold in folds]
        if len(set(used)) < len(used):
            raise ValueError(
                "A fold must be in one of --train-folds, --val-folds and "
                f"--test-folds only. Received: {taken}"
            )
        super().check()

    def folds(self):
        """Returns a dict by split of the list of its folds."""
        return {
            "train": self.train_folds,
            "val": self.val_folds,
            "test": self.test_folds,
        }

    def load(self):
        """Reads the corpus.

        Returns:
            Dict of `Corpus` by split.

        Raises:
            ValueError: if no folder is given, or a speaker, uploader or
                recording is on both sides, see `leakage.Leakage`.
        """
        corpora = load_corpus(self.dataset, self.corpus_dir(), **self.options())
        self.warn_of_part()
        self.check_sources(corpora)
        return corpora

    def check_sources(self, corpora):
        """Checks that no source is on two sides of a figure.

        Args:
            corpora: dict of `Corpus` by split.

        Raises:
            ValueError: as `leakage.Leakage` raises it.
        """
        self.leakage().of_sources(corpora)

    def options(self):
        return self.taken(
            {
                "folds": self.folds(),
                "vocabulary": self.vocabulary,
                "val_speakers": self.val_speakers,
                "test_speakers": self.test_speakers,
                "classes": self.classes,
                **self.seed_of_draw(),
            }
        )


@dataclasses.dataclass
class ReportSettings(DataSettings):
    """The split that is scored, and the file that the figures go to."""

    # Nothing is drawn by one: a flag would count for nothing.
    seed: typing.ClassVar[None] = None

    split: str = setting("test", "split that is scored", SPLITS)
    report: str | None = setting(
        None, "JSON file for all figures", unless_given="none"
    )

    def check(self):
        super().check()
        if self.report is None:
            return
        path = pathlib.Path(self.report)
        # A file is written beside the place that it takes in the end.
        written = path if files.is_stream(path) else path.parent
        # Of an empty name the path is the working folder.
        if (
            path.is_dir()
            or not path.parent.is_dir()
            or not os.access(written, os.W_OK)
        ):
            raise ValueError(
                "--report must be a file in a folder that is there and can be "
                f"written to. Received: {self.report or 'an empty name'}"
            )

    def load(self):
        """Reads the corpus, which must have clips in the split to score."""
        corpora = super().load()
        filled = [split for split in corpora if len(corpora[split])]
        if self.split not in filled:
            raise ValueError(
                f"--split must be a split with clips, one of {filled}. "
                f"Received: {self.split!r}"
            )
        return corpora


@dataclasses.dataclass
class SpeechSettings(SplitSettings):
    """The corpus of speech, and the features that are computed from it."""

    layouts = SPEECH

    data_dir: str | None = shared("data_dir", None, unless_given="it is needed")
    dataset: str = setting("librispeech", "layout of the corpus", SPEECH)
    train_subsets: list[str] = setting(
        ["train-clean-360"], "subsets for training", option="subsets"
    )
    val_subsets: list[str] = setting(
        [], "subsets for validation", option="subsets"
    )
    test_subsets: list[str] = setting(
        [], "subsets for the test", option="subsets"
    )
    train_list: str | None = shared("train_list", None)
    val_list: str | None = shared("val_list", None)
    test_list: str | None = shared("test_list", None)
    alignment: str | None = shared("alignment", None)
    features: str = setting("paper", "preset of features", FEATURES)
    features_options: dict = setting({}, "values that replace the preset's")
    sample_rate_hz: int = setting(
        16_000, "rate of the waveform", check=POSITIVE
    )
    min_s: float = setting(
        0.0,
        "seconds below which utterances are left out",
        check=NOT_NEGATIVE,
    )
    max_s: float = setting(
        37.5, "seconds above which utterances are left out", check=POSITIVE
    )

    def check(self):
        super().check()
        if self.min_s > self.max_s:
            raise ValueError(
                "--min-s must be at most --max-s, or no utterance is left. "
                f"Received: min_s={self.min_s}, max_s={self.max_s}"
            )

    def load(self):
        """Reads the corpus, and prints what it says of itself.

        Returns:
            Dict of `SpeechCorpus` by split, which has `train`.

        Raises:
            ValueError: if no folder is given, or there is no split `train`.
        """
        corpora = self.read()
        if "train" not in corpora:
            raise ValueError(
                "There is no split `train`; see --train-list and "
                f"--train-subsets. Received: splits {list(corpora)}"
            )
        report = corpora["train"].describe()
        if report:
            print(report)
        return corpora

    def read(self):
        """Reads the splits as the corpus defines them.

        Returns:
            Dict of `SpeechCorpus` by split, before any limit on length.
        """
        options, export_dir = self.options(), self.export_dir()
        if export_dir is not None:
            options["out_dir"] = export_dir
        corpora = load_speech(self.dataset, self.corpus_dir(), **options)
        self.warn_of_part()
        return corpora

    def options(self):
        lists = {
            "train": self.train_list,
            "val": self.val_list,
            "test": self.test_list,
        }
        lists = {split: path for split, path in lists.items() if path}
        options = {
            "subsets": {
                "train": self.train_subsets,
                "val": self.val_subsets,
                "test": self.test_subsets,
            },
            "lists": lists or None,
            "alignment": self.alignment,
            **self.seed_of_draw(),
            "strict": self.strict,
        }
        return self.taken(options)

    def export_dir(self):
        """Returns where a corpus of TFDS is written as files.

        Returns:
            `pathlib.Path` of the folder, `None` where it lies in files.
        """
        if "out_dir" not in self.layouts[self.dataset].takes:
            return None
        cache_dir = self.prepare_arguments()["cache_dir"]
        return tfds_librispeech.export_dir(self.corpus_dir(), cache_dir)

    def file_root(self):
        return self.export_dir() or super().file_root()

    def prepare(self, corpus, name):
        """Decodes a split, and leaves out what is too short or too long.

        Args:
            corpus: `SpeechCorpus` of the split.
            name: str, name of the split for the progress bar.

        Returns:
            `Clips` at `sample_rate_hz`.
        """
        from audio_tf import data

        clips = data.prepare(
            corpus, self.sample_rate_hz, name=name, **self.prepare_arguments()
        )
        return data.limit_lengths(clips, self.min_s, self.max_s)

    def feature_layer(self):
        """Makes the layer `SpeechFeatures` of what goes into the model."""
        from audio_tf.layers import SpeechFeatures

        return SpeechFeatures(
            self.features,
            self.sample_rate_hz,
            self.features_options,
            # Half precision would round inputs and targets alike.
            dtype="float32",
            name="features",
        )
