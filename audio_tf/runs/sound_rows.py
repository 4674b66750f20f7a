"""The rows of Table 1 of "Audio Transformers", and what their runs are set to.

arXiv 2105.00335: four convolutional rivals, four sizes.
"""

import dataclasses
import pathlib
import typing

from audio_tf.corpora import CORPORA
from audio_tf.ops.checks import closest
from audio_tf.runs.corpus_settings import DataSettings
from audio_tf.runs.rows import scored
from audio_tf.runs.settings import SEED, flag, setting, shared


class PaperRow(typing.NamedTuple):
    """A row of the paper's Table 1.

    Attributes:
        label: str, the paper's name of the model.
        mAP: float, the paper's on the evaluation split of FSD50K, or `None`
            where it prints a question mark.
        parameters: float, the paper's.
        settings: dict, the settings of `audio-tf train` that the row has
            unless others are asked for.
    """

    label: str
    mAP: float | None
    parameters: float
    settings: dict


# What the paper says: Adam, the Huber loss, Glorot's scale. It leaves out the
# rate, the epochs and the batch size; the recipe `paper` has ours.
TRANSFORMER = {"recipe": "paper", "model_kwargs": {"frontend_gain": 1.0}}
# Of FSD50K's paper (arXiv 2010.00475): patches that overlap by half, training
# until precision is no better for ten epochs; the authors halve the rate after
# five.
RIVAL = {
    "recipe": "paper",
    "loss": "binary_crossentropy",
    "learning_rate": 5e-4,
    "batch_size": 64,
    "chunk_hop_s": 0.5,
    "monitor": "val_pr_auc_macro",
    "patience": 10,
    "schedule": "plateau",
}
TABLE_1 = {
    "crnn": PaperRow("CRNN", 0.417, 0.96e6, {"model": "crnn", **RIVAL}),
    "vgg_like": PaperRow(
        "VGG-like", 0.434, 0.27e6, {"model": "vgg_like", **RIVAL}
    ),
    "resnet18": PaperRow(
        "ResNet-18", 0.373, 11.3e6, {"model": "resnet18", **RIVAL}
    ),
    "densenet121": PaperRow(
        "DenseNet-121", 0.425, 12.5e6, {"model": "densenet121", **RIVAL}
    ),
    "small": PaperRow(
        "Small Transformer",
        0.469,
        0.9e6,
        {"model": "audio_transformer_small", **TRANSFORMER},
    ),
    "large": PaperRow(
        "Large 6-Layer Transformer",
        0.525,
        2.3e6,
        {"model": "audio_transformer_large", **TRANSFORMER},
    ),
    "large_multiscale": PaperRow(
        "Large Transformer with multi-scale filters",
        None,
        2.3e6,
        {"model": "audio_transformer_large_multiscale", **TRANSFORMER},
    ),
    "large_pooled": PaperRow(
        "Large 6-Layer Transformer with Pooling",
        0.537,
        2.3e6,
        {"model": "audio_transformer_large_pooled", **TRANSFORMER},
    ),
}
# What the paper says helps: the row without it, and the row with it.
QUESTIONS = {
    "more depth": ("small", "large"),
    "pooling": ("large", "large_pooled"),
    "multi-scale averages": ("large", "large_multiscale"),
}
# Settings of a training that a row has of its own.
OWN = ("model", "seed", "out")
# Settings of rows that a corpus without a validation split has no use for.
OF_VALIDATION = ("monitor", "patience", "schedule")


@dataclasses.dataclass
class SoundTableSettings(DataSettings):
    """The corpus, the rows, and what their trainings have in common."""

    # Each row has one of `seeds`.
    seed: typing.ClassVar[int] = 0

    dataset: str = setting("fsd50k", "layout of the corpus", CORPORA)
    rows: list[str] = setting(list(TABLE_1), "rows of the table", TABLE_1)
    seeds: list[int] = setting([0, 1, 2], "seeds whose mean counts", check=SEED)
    epochs: int | None = shared(
        "epochs", None, unless_given="the recipe's of each row"
    )
    batch_size: int | None = shared(
        "batch_size", None, unless_given="that of each row's paper or recipe"
    )
    train_settings: dict = setting(
        {}, "further settings of audio-tf train for all rows, a JSON object"
    )
    row_settings: dict = setting(
        {}, "the same by row, a JSON object of objects"
    )
    score_split: str = setting(
        "test", "split whose figures count", ["val", "test"]
    )
    out: str = shared("out", "runs/table1")

    def check(self):
        super().check()
        for name in ("rows", "seeds"):
            if not getattr(self, name):
                raise ValueError(f"{flag(name)} must not be empty")
        flags = [field.name for field in dataclasses.fields(self)]
        check_settings("train_settings", self.train_settings, flags)
        for name, options in self.row_settings.items():
            if name not in TABLE_1 or not isinstance(options, dict):
                raise ValueError(
                    "--row-settings must be objects by names of rows, "
                    f"{list(TABLE_1)}{closest(name, TABLE_1)}. "
                    f"Received: {name!r}: {options!r}"
                )
            check_settings("row_settings", options, self.of_corpus())
        for name in self.rows:
            training = self.training(name)
            if self.score_split == "test" and not training.test:
                raise ValueError(
                    f"row {name}: --score-split test needs the test, which "
                    f"the settings leave out. Received: test={training.test}"
                )

    @staticmethod
    def of_corpus():
        """Returns a list of the settings that say what the corpus is."""
        names = [field.name for field in dataclasses.fields(DataSettings)]
        return [name for name in names if name not in OWN]

    def values(self, row, validated=True):
        """Returns a dict of the settings of a row's training.

        What is asked of one row comes before what is asked of all, and that
        before the row's own; `model_kwargs` and the like are put together,
        and `None` takes back what the row has of its own.

        Args:
            row: str, a key of `TABLE_1`.
            validated: bool, whether the corpus has a validation split.
        """
        own = dict(TABLE_1[row].settings)
        if not validated:
            own = {k: own[k] for k in own if k not in OF_VALIDATION}
        asked = self.those_given([*self.of_corpus(), "epochs", "batch_size"])
        found = {**own, "dataset": self.dataset, **asked}
        for more in (self.train_settings, self.row_settings.get(row, {})):
            for name, value in more.items():
                if isinstance(value, dict):
                    value = {**(found.get(name) or {}), **value}
                found[name] = value
        return {k: value for k, value in found.items() if value is not None}

    def training(self, row):
        """Makes the settings of a row's training, checked as it does.

        Args:
            row: str, a key of `TABLE_1`.

        Returns:
            `TrainSettings`.

        Raises:
            ValueError: if they do not fit; it names the row.
        """
        from audio_tf.runs.train_settings import TrainSettings

        try:
            return TrainSettings(**self.values(row))
        except ValueError as error:
            raise ValueError(f"row {row}: {error}") from None

    def folder(self, row, seed):
        """Returns the path of the run of a row with a seed."""
        return pathlib.Path(self.out, row, f"seed_{seed}")

    def finished(self, row, seed):
        """Returns whether the run of a row with a seed has scored the split."""
        return scored(self.folder(row, seed), self.score_split)

    def counted(self, row):
        """Returns the path of the file of a row's parameters."""
        return pathlib.Path(self.out, row, "parameters.json")


def check_settings(name, given, taken):
    """Checks the names of settings that are handed on to `audio-tf train`.

    Args:
        name: str, the setting that holds them.
        given: dict of them.
        taken: list of the names that have flags of their own here.

    Raises:
        ValueError: if one is unknown, is that of the rows, or has a flag.
    """
    from audio_tf.runs.train_settings import TrainSettings

    known = [field.name for field in dataclasses.fields(TrainSettings)]
    for each in given:
        if each in OWN:
            raise ValueError(
                f"{flag(name)}: {each!r} is that of the rows. "
                f"Received: {given[each]!r}"
            )
        if each in taken:
            raise ValueError(
                f"{flag(name)}: {each!r} has a flag of its own, {flag(each)}. "
                f"Received: {given[each]!r}"
            )
        if each not in known:
            raise ValueError(
                f"{flag(name)}: audio-tf train has no setting {each!r}"
                f"{closest(each, known)}. Received: {given}"
            )
