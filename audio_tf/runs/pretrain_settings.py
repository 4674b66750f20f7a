"""Settings of a pre-training: corpus, features, model, masking and steps."""

import dataclasses
import typing

import keras

from audio_tf import layers, optimizers
from audio_tf.runs.corpus_settings import SpeechSettings
from audio_tf.runs.host_settings import HostSettings
from audio_tf.runs.model_settings import ModelSettings
from audio_tf.runs.settings import POSITIVE, RATE, flag, setting, shared

# The default steps between checkpoints.
SAVE_EVERY = 1000


@dataclasses.dataclass
class PretrainSettings(ModelSettings, HostSettings, SpeechSettings):
    """Corpus, features, model, masking and steps of a run.

    The defaults are the paper's setting.
    """

    made_into_arguments = ("features_options", "masking_kwargs")
    gone = ("test_subsets", "test_list", "alignment")

    # There is no test, and no phone is looked at.
    test_subsets: typing.ClassVar[tuple] = ()
    test_list: typing.ClassVar[None] = None
    alignment: typing.ClassVar[None] = None

    target: str = setting(
        "spectrogram",
        "what is reconstructed, the linear spectrogram or the input",
        ["spectrogram", "input"],
    )
    model: str = shared("model", "audio_albert_6")
    masking: str = setting(
        "paper", "policy of masking", layers.MASKING_POLICIES
    )
    masking_kwargs: dict = setting({}, "further arguments of the masking")
    optimizer: str = setting(
        "lamb", "reading of the paper's LAMB", optimizers.PRETRAINING
    )
    learning_rate: float = shared("learning_rate", 5e-5)
    warmup: float = setting(
        0.1, "share of the steps before the peak", check=RATE
    )
    clip_norm: float = shared("clip_norm", 10.0)
    steps: int = setting(500_000, "updates of the weights", check=POSITIVE)
    batch_size: int = shared("batch_size", 50)
    accumulate: int = setting(
        1, "parts that the batch of a step is computed in", check=POSITIVE
    )
    buckets: int = shared("buckets", 5)
    save_every: int | None = setting(
        None,
        "steps between checkpoints",
        check=POSITIVE,
        unless_given=f"{SAVE_EVERY}, or all steps where they are fewer",
    )
    picture_every: int = setting(
        10, "checkpoints between pictures, presets", check=POSITIVE
    )
    feature_cache: bool = setting(
        False, "compute features once; else with each batch, from the waveform"
    )
    out: str = shared("out", "runs/pretrain")

    def check(self):
        super().check()
        for divisor, size, whole, of in (
            ("save_every", self.epoch_steps, "steps", self.steps),
            ("accumulate", self.accumulate, "batch_size", self.batch_size),
        ):
            if of % size:
                fits = max(n for n in range(1, min(size, of) + 1) if not of % n)
                raise ValueError(
                    f"{flag(divisor)} must divide {flag(whole)}, as "
                    f"{flag(divisor)} {fits} does. Received: {size} and {of}"
                )
        if self.warmup_steps == self.steps:
            raise ValueError(
                "--warmup must leave a step in which the rate falls. "
                f"Received: {self.warmup} of --steps {self.steps}"
            )
        backend = keras.backend.backend()
        if not self.feature_cache and backend != "tensorflow":
            raise ValueError(
                "Features in the input pipeline need TensorFlow; others take "
                f"--feature-cache. Received: backend {backend}"
            )
        spread = self.distribution != "none"
        if spread and self.accumulate > 1 and backend == "tensorflow":
            # Keras updates within a condition, where replicas cannot meet.
            raise ValueError(
                "On TensorFlow --accumulate goes with one device only. "
                f"Received: --accumulate {self.accumulate}, "
                f"--distribution {self.distribution}"
            )

    @property
    def epoch_steps(self):
        """The steps between checkpoints, which are an epoch of Keras."""
        return self.save_every or min(SAVE_EVERY, self.steps)

    @property
    def warmup_steps(self):
        """The steps in which the rate rises."""
        return round(self.warmup * self.steps)

    def target_layer(self):
        """Makes the layer `SpeechFeatures` of the target.

        Returns:
            The layer, `None` where the input is reconstructed.
        """
        if self.target == "input":
            return None
        options = self.feature_layer().options
        timing = ("window_s", "hop_s", "fft_length", "stack_size")
        return layers.SpeechFeatures(
            "paper_target",
            self.sample_rate_hz,
            {name: options[name] for name in timing},
            dtype="float32",
            name="target_features",
        )
