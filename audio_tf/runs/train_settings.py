"""The settings of training: corpus, model, loss, schedule, augmentation."""

import dataclasses
import types

import keras

from audio_tf import metrics
from audio_tf.models.classifier import POOLINGS
from audio_tf.models.frontends import FILTERBANKS
from audio_tf.models.targets import takes_shares
from audio_tf.runs.corpus_settings import DataSettings
from audio_tf.runs.host_settings import HostSettings, places
from audio_tf.runs.model_settings import MODELS_OWN, ModelSettings
from audio_tf.runs.recipes import AUGMENTATIONS, FRONT_ENDS, MIXINGS, RECIPES
from audio_tf.runs.settings import (
    NAME,
    NOT_NEGATIVE,
    NOT_POSITIVE,
    POSITIVE,
    RATE,
    SHARE,
    flag,
    setting,
    shared,
)

# Functions of `keras.losses` that are no losses of scores and of a number for
# each class: their targets are integers, sequences or embeddings.
OTHER_FUNCTIONS = (
    "categorical_generalized_cross_entropy",
    "circle",
    "ctc",
    "deserialize",
    "get",
    "serialize",
    "sparse_categorical_crossentropy",
)
LOSSES = [
    name
    for name, loss in vars(keras.losses).items()
    if isinstance(loss, types.FunctionType) and name not in OTHER_FUNCTIONS
]
TRAINABLE = ("all", "head")
MOST_SCORED = 64  # Chunks at once.
RECIPES_OWN = "the recipe's"
# Settings of no matter to what is trained.
ASIDE = {
    *("data_dir", "cache_dir", "out", "other_splits", "test"),
    *("export", "strict"),
}
# Settings that say how another one is meant, which must be given, too.
GO_WITH = {
    "teacher_share": "teachers",
    "teacher_temperature": "teachers",
    "unlabelled": "teachers",
    "noise_snr_db": "noise",
    "noise_share": "noise",
}
# That of clips of one label each.
SOFTMAX_LOSS = "categorical_crossentropy"
# Losses that share a label among classes.
SMOOTHING = {
    "binary_crossentropy": keras.losses.BinaryCrossentropy,
    SOFTMAX_LOSS: keras.losses.CategoricalCrossentropy,
}


@dataclasses.dataclass
class TrainSettings(ModelSettings, HostSettings, DataSettings):
    """Corpus, model, loss and schedule of a run.

    The defaults of many settings are those of the recipe, `RECIPES`.
    """

    model_arguments = (*ModelSettings.model_arguments, "filterbank")
    chunking = ("chunk_s", "chunk_hop_s", "silence_db")
    made_into_arguments = ("augmentation", *chunking)

    recipe: str = setting(
        "strong",
        "defaults of model, loss, optimizer, schedule and augmentation: what "
        "works, or what the paper says",
        RECIPES,
    )
    model: str | None = shared("model", None, unless_given=RECIPES_OWN)
    trainable: str = setting(
        "all",
        "what training changes: the whole model, or its head alone, on a "
        "preset whose weights then stay as they are and do not drop out",
        TRAINABLE,
    )
    filterbank: str | None = setting(
        None,
        "front end at first",
        FILTERBANKS,
        unless_given=MODELS_OWN,
    )
    pooling: str | None = setting(
        None,
        "how frames become one vector",
        POOLINGS,
        unless_given="the recipe's, or the own one of a model that was "
        "published with another head",
    )
    augmentation: str | None = setting(
        None,
        "what training changes in clips",
        AUGMENTATIONS,
        unless_given="that of a preset; of a new model the recipe's",
    )
    mixing: str | None = setting(
        None,
        "how training mixes the clips of a batch in pairs, and their labels; "
        "its loss and figures are then those of mixes",
        MIXINGS,
        unless_given=RECIPES_OWN,
    )
    teachers: list[str] = setting(
        [],
        "presets of trained models of the same labels, whose scores the model "
        "learns beside the labels; loss is then of both",
        check=NAME,
    )
    teacher_share: float = setting(
        0.7, "weight of the teachers' scores in the loss", check=SHARE
    )
    teacher_temperature: float = setting(
        2.0,
        "temperature at which scores are compared, more for more alike ones",
        check=POSITIVE,
    )
    unlabelled: list[str] = setting(
        [],
        "audio without labels, files, folders or patterns, which is trained "
        "on as the teachers alone judge it, where each clip has one label",
        later=True,
    )
    noise: list[str] = setting(
        [],
        "recordings of noise, files, folders or patterns, an hour at most, "
        "pieces of which training lays under clips",
        later=True,
    )
    noise_snr_db: list[float] = setting(
        [5.0, 40.0],
        "least and most dB of a clip above the noise under it",
        later=True,
    )
    noise_share: float = setting(
        0.5, "share of the clips that have noise", check=SHARE, later=True
    )
    loss: str | None = setting(
        None,
        "loss of Keras by name",
        LOSSES,
        unless_given="the recipe's; of strong, categorical_crossentropy where "
        "each clip has one label, else binary_crossentropy",
    )
    label_smoothing: float | None = setting(
        None,
        "share of a label that goes to all classes",
        check=RATE,
        unless_given=f"{RECIPES_OWN}, if the loss can",
    )
    weight_decay: float | None = setting(
        None,
        "of kernels, as AdamW has it",
        check=NOT_NEGATIVE,
        unless_given=RECIPES_OWN,
    )
    clip_norm: float | None = shared(
        "clip_norm", None, unless_given=RECIPES_OWN
    )
    average_share: float | None = setting(
        None,
        "share of the run that a running average of the weights reaches back, "
        "which is validated and kept; 0: the weights themselves",
        check=RATE,
        unless_given=RECIPES_OWN,
    )
    learning_rate: float | None = shared(
        "learning_rate", None, unless_given=RECIPES_OWN
    )
    head_rate: float = setting(
        1.0,
        "how many times as fast the head learns as the backbone, such as 10 "
        "for a new head on a preset",
        check=POSITIVE,
        only=("trainable", ["all"]),
    )
    schedule: str | None = setting(
        None,
        "course of the learning rate; plateau: constant until --monitor gets "
        "no better, then lower",
        ["constant", "cosine", "plateau"],
        unless_given=RECIPES_OWN,
    )
    plateau_factor: float = shared("plateau_factor", 0.5, later=True)
    plateau_patience: int = shared("plateau_patience", 5, later=True)
    warmup_share: float | None = setting(
        None,
        "share of the run in which the rate rises",
        check=RATE,
        unless_given=RECIPES_OWN,
        only=("schedule", ["cosine"]),
    )
    batch_size: int | None = shared(
        "batch_size", None, unless_given=RECIPES_OWN
    )
    epochs: int | None = shared("epochs", None, unless_given=RECIPES_OWN)
    patience: int | None = setting(
        None,
        "epochs without a better one after which training stops",
        check=POSITIVE,
        unless_given="all epochs",
    )
    chunk_s: float | None = setting(
        None,
        "seconds per chunk, 0 for whole clips",
        check=NOT_NEGATIVE,
        unless_given=MODELS_OWN,
    )
    chunk_hop_s: float | None = setting(
        None,
        "seconds from chunk to chunk, in training and scoring; 0 for chunks "
        "side by side",
        check=NOT_NEGATIVE,
        unless_given=MODELS_OWN,
        formerly="hop_s",
    )
    silence_db: float | None = setting(
        None,
        "peak in dB below which chunks are left out, for example -60; 0 to "
        "keep all",
        check=NOT_POSITIVE,
        unless_given=MODELS_OWN,
    )
    jitter: bool = setting(False, "draw the place of chunks anew each epoch")
    monitor: str = setting(
        "val_mAP",
        "figure of the best epoch, if there is a validation split",
        metrics.monitors,
    )
    test: bool = setting(
        True,
        "score the test split at the end; --no-test leaves it out while "
        "settings are chosen",
    )
    export: bool = setting(False, "also write a SavedModel")
    out: str = shared("out", "runs/train")

    def __post_init__(self):
        # An unknown recipe is an error of the check that follows.
        for name, value in RECIPES.get(self.recipe, {}).items():
            if name not in self.given:
                setattr(self, name, value)
        # What a recipe says goes together with what it is about, and nought
        # undoes what a config says.
        for name, applies in (
            ("warmup_share", self.schedule == "cosine"),
            ("label_smoothing", self.loss in (None, *SMOOTHING)),
        ):
            if not applies and not self.those_given([name]).get(name):
                setattr(self, name, None)
        super().__post_init__()

    def check(self):
        if not self.train_folds:
            raise ValueError("--train-folds must name a fold. Received: none")
        super().check()
        for name in ("plateau_factor", "plateau_patience"):
            if name in self.given:
                self.check_applies(name, "schedule", ["plateau"])
        self.check_devices()
        if self.label_smoothing and self.loss not in (None, *SMOOTHING):
            raise ValueError(
                f"--label-smoothing applies to --loss {' or '.join(SMOOTHING)} "
                f"alone. Received: label_smoothing={self.label_smoothing}, "
                f"loss={self.loss!r}"
            )
        for name, other in GO_WITH.items():
            if name in self.given and not getattr(self, other):
                raise ValueError(
                    f"{flag(name)} applies to {flag(other)}. "
                    f"Received: {name}={getattr(self, name)!r}, no {other}"
                )
        if self.unlabelled and self.teacher_share == 0.0:
            raise ValueError(
                "--unlabelled is judged by the teachers, who have no share. "
                f"Received: teacher_share={self.teacher_share}"
            )
        low_high = self.noise_snr_db
        if len(low_high) != 2 or low_high[0] > low_high[1]:
            raise ValueError(
                "--noise-snr-db must be two numbers in order. "
                f"Received: {low_high}"
            )
        if "dropout" in self.given and self.trainable == "head":
            raise ValueError(
                "--dropout is the backbone's, which rests with --trainable "
                f"head. Received: dropout={self.dropout}"
            )
        if "augmentation" in self.given and "augmentation" in self.model_kwargs:
            raise ValueError(
                "--augmentation and --model-kwargs must not say the same. "
                f"Received: augmentation={self.augmentation!r}, "
                f"model_kwargs={self.model_kwargs}"
            )

    def check_devices(self):
        """Checks that backend, devices and hosts can do what is asked for.

        Raises:
            ValueError: if they cannot.
        """
        backend = keras.backend.backend()
        if self.distribution != "none" and backend != "jax":
            raise ValueError(
                "--distribution needs KERAS_BACKEND=jax here. Received: "
                f"distribution={self.distribution!r}, backend {backend!r}"
            )
        if self.export and backend != "tensorflow":
            raise ValueError(
                "--export needs KERAS_BACKEND=tensorflow. Train without it, "
                "and without the variable run `audio-tf export` on the "
                f"preset. Received: export=True, backend {backend!r}"
            )
        if self.schedule == "plateau" and places(self)[1] > 1:
            raise ValueError(
                "--schedule plateau reads what host 0 writes, and is of one "
                f"host. Received: {places(self)[1]} hosts"
            )

    @property
    def scored_at_once(self):
        """The chunks of a batch that is scored.

        There are no more than training takes: clips that fill the memory by
        eight would not be validated by 64.
        """
        return min(MOST_SCORED, self.batch_size)

    def load(self):
        """Reads the corpus, without its test where that is left out."""
        corpora = super().load()
        if not self.test:
            corpora.pop("test", None)
        return corpora

    def model_options(self):
        options = super().model_options()
        if "model" in self.given or "filterbank" in options:
            return options
        return {**FRONT_ENDS.get(self.recipe, {}), **options}

    def head_options(self, one_label):
        """Returns a dict of the head's arguments.

        Nought stands for whole clips, for chunks side by side, and for all
        chunks: `None` there.

        Args:
            one_label: bool, whether each clip of the corpus has one label.
        """
        given = self.those_given(self.chunking)
        softmax = takes_shares(self.loss_name(one_label))
        return {
            **{name: value or None for name, value in given.items()},
            "pooling": self.pooling,
            "activation": "softmax" if softmax else "sigmoid",
        }

    def loss_name(self, one_label):
        """Returns the name of the loss for a corpus.

        Args:
            one_label: bool, whether each clip of the corpus has one label.
        """
        if self.loss is not None:
            return self.loss
        return SOFTMAX_LOSS if one_label else "binary_crossentropy"

    def loss_function(self, one_label):
        """Returns the loss for a corpus, as `compile` takes it.

        Args:
            one_label: bool, whether each clip of the corpus has one label.
        """
        name = self.loss_name(one_label)
        if name in SMOOTHING and self.label_smoothing:
            return SMOOTHING[name](label_smoothing=self.label_smoothing)
        return name

    def check_chunks(self, classifier):
        """Checks that clips are cut into chunks where settings ask for it.

        Args:
            classifier: `AudioClassifier`.

        Raises:
            ValueError: if a setting is about chunks and the model takes whole
                clips.
        """
        if classifier.chunk_s is not None:
            return
        # `--no-jitter` undoes what a config says.
        if self.jitter:
            raise ValueError(
                "--jitter applies to chunks, and the model takes whole clips. "
                f"Received: jitter={self.jitter!r}"
            )
