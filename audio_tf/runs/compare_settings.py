"""The settings of `audio-tf compare`."""

import dataclasses

from audio_tf.runs.flags import read_config
from audio_tf.runs.model_settings import attention_names, check_attention
from audio_tf.runs.settings import (
    POSITIVE,
    SEED,
    THE_CONFIGS,
    Settings,
    flag,
    setting,
    shared,
)

# The attention whose time is 1.
BASELINE = "full"
CAUSALITIES = {"no": False, "yes": True}
# Settings of a training that a row of the table has of its own.
OWN = ("attention", "attention_kwargs", "causal", "seed", "out")


@dataclasses.dataclass
class CompareSettings(Settings):
    """Attentions, seeds and the training that they have in common."""

    train_config: str | None = setting(
        None, "settings of audio-tf train", unless_given="needed"
    )
    data_dir: str | None = shared("data_dir", None, unless_given=THE_CONFIGS)
    cache_dir: str | None = shared("cache_dir", None, unless_given=THE_CONFIGS)
    attentions: list[str] | None = setting(
        None,
        "attentions of the rows, `full` among them; `hybrid_local` has local "
        "and full attention block by block in turn",
        unless_given="all",
    )
    kwargs_by_attention: dict = setting(
        {}, "further arguments by attention, a JSON object of objects"
    )
    causality: list[str] = setting(
        ["no"], "whether attentions are causal: no, yes, or both", CAUSALITIES
    )
    seeds: list[int] = setting([0, 1, 2], "seeds whose mean counts", check=SEED)
    score_split: str = setting(
        "val", "split whose figures count", ["val", "test"]
    )
    turns: int = setting(
        21, "timed turns, of which the median counts", check=POSITIVE
    )
    baseline_rows: bool = setting(
        True, "also run audio-tf baseline, on the same clips"
    )
    out: str = shared("out", "runs/compare")

    def check(self):
        super().check()
        if "train_config" not in self.given:
            raise ValueError("--train-config is needed. Received: none")
        for name in ("causality", "seeds", "attentions"):
            if getattr(self, name) == []:
                raise ValueError(f"{flag(name)} must not be empty")
        # A config may add attentions.
        self.training()
        names = self.names()
        for name in names:
            check_attention(name, "attentions")
        if BASELINE not in names:
            raise ValueError(
                f"--attentions must name {BASELINE}, whose time is 1. "
                f"Received: {names}"
            )
        for name, options in self.kwargs_by_attention.items():
            if name not in names or not isinstance(options, dict):
                raise ValueError(
                    "--kwargs-by-attention must be objects by names of "
                    f"--attentions. Received: {name!r}: {options!r}"
                )
            check_options(name, options)

    def names(self):
        """Returns a list of the attentions, the baseline's first."""
        names = self.attentions
        if names is None:
            names = attention_names()
        return sorted(names, key=lambda name: name != BASELINE)

    def training(self):
        """Reads the settings of the training, and checks them as it does.

        Returns:
            `TrainSettings`.

        Raises:
            ValueError: if they say what the rows say, or the model has no
                attention.
        """
        from audio_tf.runs.train_settings import TrainSettings

        config = read_config(
            self.train_config, TrainSettings, "train_config", OWN
        )
        if "causal" in config.get("model_kwargs", {}):
            raise ValueError(
                f"{self.train_config}: 'causal' of 'model_kwargs' is that of "
                f"the rows. Received: {config['model_kwargs']}"
            )
        places = self.those_given(("data_dir", "cache_dir"))
        settings = TrainSettings(**{**config, **places})
        if self.score_split == "test" and not settings.test:
            raise ValueError(
                f"{self.train_config}: --score-split test needs the test, "
                f"which it leaves out. Received: test={settings.test}"
            )
        takes = model_takes(settings)
        needed = ["attention", *["causal"] * ("yes" in self.causality)]
        for name in [each for each in needed if each not in takes]:
            raise ValueError(
                f"{self.train_config}: the rows differ in `{name}`, and the "
                f"model has none. Received: model={settings.model!r}"
            )
        return settings


def check_options(name, options):
    """Raises a `ValueError` if an attention has no argument of such a name.

    A row that could not be built would be found when it begins, hours later.

    Args:
        name: str, as `attention.parts_of` takes it.
        options: dict of its further arguments.
    """
    from audio_tf import attention

    try:
        parts = attention.by_block(name, options, len(attention.parts_of(name)))
        for part, own in zip(*parts, strict=True):
            attention.check_arguments(part, own)
    except TypeError as error:
        raise ValueError(f"--kwargs-by-attention: {error}") from error


def model_takes(training):
    """Lists the arguments that the backbone of `TrainSettings` takes."""
    from audio_tf.models import preset_backbones

    return preset_backbones.accepted(*preset_backbones.describe(training.model))
