"""Settings of `audio-tf prepare`: those of the command that is to follow."""

import dataclasses
import functools
import os

from audio_tf import files, pipelines
from audio_tf.models import preset_backbones
from audio_tf.runs import train_data
from audio_tf.runs.pretrain_settings import PretrainSettings
from audio_tf.runs.probe import ProbeSettings, load_features
from audio_tf.runs.probe_splits import load_splits
from audio_tf.runs.settings import POSITIVE, Settings, flag, setting
from audio_tf.runs.train_settings import TrainSettings


@dataclasses.dataclass
class PrepareSettings(Settings):
    """Settings of who fills the cache, and how far.

    A subclass is of the settings of the command that is to follow, too.
    """

    limit: str | None = setting(
        None,
        "bytes that the cache may have, such as 200GB; what does not fit is "
        "left to the training",
        unless_given="what the disk has",
    )
    shard_size: str | None = setting(
        None,
        "bytes of a shard, such as 256MiB",
        unless_given="a sixteenth of the whole, at most 256MiB",
    )
    workers: int | None = setting(
        None,
        "processes on this machine",
        check=POSITIVE,
        unless_given="one a core",
    )
    runner: str | None = setting(
        None,
        "a runner of Beam, such as FlinkRunner; all its machines must see the "
        "corpus and the cache under one path",
        unless_given="this machine",
    )
    beam: str = setting(
        "", "further flags of Beam in one word, as in --beam='--parallelism=64'"
    )

    def check(self):
        super().check()
        for name in ("limit", "shard_size"):
            if getattr(self, name) is not None:
                try:
                    size = files.parse_size(getattr(self, name))
                except ValueError as error:
                    raise ValueError(f"{flag(name)}: {error}") from None
                if name == "shard_size" and not size:
                    raise ValueError(
                        "--shard-size must be above 0. "
                        f"Received: {self.shard_size}"
                    )
        if self.workers is not None and self.runner is not None:
            raise ValueError(
                "--workers is of this machine, not of a --runner. Received: "
                f"--workers {self.workers}, --runner {self.runner}"
            )

    def beam_options(self):
        """Returns Beam's flags, a list of str, once they are checked."""
        options = pipelines.split_options(self.beam)
        if self.runner is None:
            workers = self.workers or os.cpu_count() or 1
            options = pipelines.local_options(workers) + options
        else:
            options = pipelines.remote_options(self.runner, options)
        pipelines.check_options(options, self.runner is None)
        return options

    def bytes_of(self, name):
        """Returns the bytes of a setting that is a size, or `None`."""
        text = getattr(self, name)
        return text if text is None else files.parse_size(text)

    def corpora(self):
        """Returns the corpora that the command reads, a list."""
        return list(self.load().values())

    def keeps(self, seconds):
        """Returns whether the command takes clips of so many seconds."""
        return True

    def feature_layers(self):
        """Returns what computes the features that the command reads."""
        return []


@dataclasses.dataclass
class PrepareTrain(PrepareSettings, TrainSettings):
    """Settings of `audio-tf train`, which reads decoded audio."""

    def rate_hz(self):
        """Returns the rate of the audio that the command reads."""
        return preset_backbones.rate_hz(self.model, self.model_options())

    def corpora(self):
        return list(train_data.with_beside(self, self.load()).values())


@dataclasses.dataclass
class PreparePretrain(PrepareSettings, PretrainSettings):
    """Settings of `audio-tf pretrain`, which may cache features, too."""

    def rate_hz(self):
        return self.sample_rate_hz

    def corpora(self):
        found = self.load()
        return [found[split] for split in ("train", "val") if split in found]

    def keeps(self, seconds):
        return self.min_s <= seconds <= self.max_s

    def feature_layers(self):
        if not self.feature_cache:
            return []
        layers = [self.feature_layer(), self.target_layer()]
        return [layer for layer in layers if layer is not None]


@dataclasses.dataclass
class PrepareProbe(PrepareSettings, ProbeSettings):
    """Settings of `audio-tf probe`, which reads features of a frozen model."""

    @functools.cached_property
    def loaded(self):
        """The triple that `load_features` returns, loaded once."""
        return load_features(self)

    def rate_hz(self):
        return self.loaded[1].sample_rate_hz

    def corpora(self):
        return list(load_splits(self.loaded[1]).values())

    def keeps(self, seconds):
        return self.min_s <= seconds <= self.max_s

    def feature_layers(self):
        return [self.loaded[0]]


COMMANDS = {
    "train": PrepareTrain,
    "pretrain": PreparePretrain,
    "probe": PrepareProbe,
}
