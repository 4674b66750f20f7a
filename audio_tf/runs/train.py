"""Train an audio classifier from files to a preset and a SavedModel.

    audio-tf train --config training/configs/demo.py
    audio-tf train --dataset fsd50k --data-dir FSD50K --out runs/fsd
    audio-tf train --out runs/fsd --resume

The folder --out gets config.json, history.csv, last.keras and best.keras,
TensorBoard logs, the best model as a KerasHub preset, its figures (val.json,
test.json), learning curves, confusion matrices, figures of each class and
lists of errors, and with --export a SavedModel for TensorFlow Serving.
"""

import dataclasses
import functools
import pathlib
import sys
import types

import keras
import numpy as np

from audio_tf import data, files, metrics, optimizers
from audio_tf.audio import RESAMPLER
from audio_tf.export import export
from audio_tf.models import AudioClassifier, presets
from audio_tf.models.audio_transformer import FILTERBANKS
from audio_tf.models.classifier import POOLINGS
from audio_tf.runs import callbacks, provenance, showing
from audio_tf.runs.corpus_settings import DataSettings
from audio_tf.runs.flags import run_by_flags
from audio_tf.runs.model_settings import MODELS_OWN, ModelSettings
from audio_tf.runs.recipes import AUGMENTATIONS, RECIPES
from audio_tf.runs.settings import (
    NOT_NEGATIVE,
    NOT_POSITIVE,
    POSITIVE,
    RATE,
    flag,
    setting,
    shared,
)
from audio_tf.terminal import describe_failures

LOSSES = [
    name
    for name, loss in vars(keras.losses).items()
    if isinstance(loss, types.FunctionType)
    and name not in ("deserialize", "get", "serialize")
]
RECIPES_OWN = "the recipe's"
# Losses that share a label among classes.
SMOOTHING = {
    "binary_crossentropy": keras.losses.BinaryCrossentropy,
    "categorical_crossentropy": keras.losses.CategoricalCrossentropy,
}
# Decay is for products: the scale of a norm has no reason to go to zero.
NO_DECAY = ("bias", "gamma", "beta", "log_", "slope", "logit_")
# Settings that may differ when a run goes on.
FREE_SETTINGS = ("data_dir", "cache_dir", "export")


@dataclasses.dataclass
class TrainSettings(ModelSettings, DataSettings):
    """Corpus, model, loss and schedule of a run.

    The defaults of many settings are those of the recipe, `RECIPES`.
    """

    model_arguments = (*ModelSettings.model_arguments, "filterbank")

    recipe: str = setting(
        "strong",
        "defaults of model, loss, optimizer, schedule and augmentation: what "
        "works, or what the paper says",
        RECIPES,
    )
    model: str | None = shared("model", None, unless_given=RECIPES_OWN)
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
        unless_given=RECIPES_OWN,
    )
    augmentation: str | None = setting(
        None,
        "what training changes in clips",
        AUGMENTATIONS,
        unless_given="that of a preset; of a new model the recipe's",
    )
    loss: str | None = setting(
        None,
        "any loss of Keras by name",
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
    schedule: str | None = setting(
        None,
        "course of the learning rate",
        ["constant", "cosine"],
        unless_given=RECIPES_OWN,
    )
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
    hop_s: float | None = setting(
        None,
        "seconds from chunk to chunk",
        check=POSITIVE,
        unless_given="as long as a chunk",
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
    export: bool = setting(False, "also write a SavedModel")
    out: str = shared("out", "runs/train")

    def __post_init__(self):
        # An unknown recipe is an error of the check that follows.
        for name, value in RECIPES.get(self.recipe, {}).items():
            if name not in self.given:
                setattr(self, name, value)
        # What a recipe says goes together with what it is about.
        if "warmup_share" not in self.given and self.schedule == "constant":
            self.warmup_share = None
        if "label_smoothing" not in self.given:
            if self.loss not in (None, *SMOOTHING):
                self.label_smoothing = None
        super().__post_init__()

    def check(self):
        super().check()
        if not self.train_folds:
            raise ValueError("--train-folds must name a fold. Received: none")
        if "label_smoothing" in self.given and self.loss not in (
            None,
            *SMOOTHING,
        ):
            raise ValueError(
                f"--label-smoothing applies to --loss {' or '.join(SMOOTHING)} "
                f"alone. Received: label_smoothing={self.label_smoothing}, "
                f"loss={self.loss!r}"
            )
        if "augmentation" in self.given and "augmentation" in self.model_kwargs:
            raise ValueError(
                "--augmentation and --model-kwargs must not say the same. "
                f"Received: augmentation={self.augmentation!r}, "
                f"model_kwargs={self.model_kwargs}"
            )

    def head_options(self, one_label):
        """Returns a dict of the head's arguments.

        Nought stands for whole clips, and for all chunks: `None` there.

        Args:
            one_label: bool, whether each clip of the corpus has one label.
        """
        given = self.those_given(("chunk_s", "silence_db"))
        softmax = self.loss_name(one_label) == "categorical_crossentropy"
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
        several = "binary_crossentropy"
        return "categorical_crossentropy" if one_label else several

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
        for name in ("hop_s", "jitter"):
            if name in self.given:
                raise ValueError(
                    f"{flag(name)} applies to chunks, and the model takes "
                    f"whole clips. Received: {name}={getattr(self, name)!r}"
                )


def augmentation(settings):
    """Returns the backbone's argument `augmentation`, in a dict.

    Args:
        settings: `TrainSettings`.

    Returns:
        Dict; empty where only the recipe asks for it, and the model is a
        preset with its own or has no such argument.
    """
    family, config = presets.describe(settings.model)
    if "augmentation" not in settings.given:
        # A preset that was saved keeps its own.
        new = settings.model in presets.list_sizes()
        if not new or "augmentation" not in presets.accepted(family, config):
            return {}
    rate_hz = {**config, **settings.model_options()}["sample_rate_hz"]
    return {"augmentation": AUGMENTATIONS[settings.augmentation](rate_hz)}


def build(settings, corpus):
    """Builds a new classifier; from a preset it takes all but the head.

    Args:
        settings: `TrainSettings`.
        corpus: `Corpus` of the training split.

    Returns:
        `AudioClassifier`, not compiled.
    """
    labels = corpus.vocabulary
    with settings.naming_flags():
        classifier = AudioClassifier.from_preset(
            settings.model,
            labels=labels,
            # Head and backbone both have a dropout; a flag is the backbone's.
            backbone_kwargs={
                **augmentation(settings),
                **settings.model_options(),
            },
            **settings.head_options(corpus.has_one_label()),
        )
    classifier.summary()
    print(f"a new head for {len(labels)} labels: {provenance.shown(labels)}")
    return classifier


def make_optimizer(settings, steps_per_epoch):
    """Makes the optimizer of a new model, with its schedule.

    Args:
        settings: `TrainSettings`.
        steps_per_epoch: int, batches of an epoch.

    Returns:
        `keras.optimizers.Optimizer`.
    """
    learning_rate = settings.learning_rate
    if settings.schedule == "cosine":
        steps = settings.epochs * steps_per_epoch
        warmup_steps = round(settings.warmup_share * steps)
        learning_rate = keras.optimizers.schedules.CosineDecay(
            initial_learning_rate=learning_rate / max(1, warmup_steps),
            decay_steps=steps - warmup_steps,
            alpha=0.001,
            warmup_target=learning_rate,
            warmup_steps=warmup_steps,
        )
    options = {"global_clipnorm": settings.clip_norm}
    if settings.average_share:
        reach = settings.average_share * settings.epochs * steps_per_epoch
        options["use_ema"] = True
        options["ema_momentum"] = 1.0 - 1.0 / max(1.0, reach)
    if not settings.weight_decay:
        return keras.optimizers.Adam(learning_rate, **options)
    return optimizers.create(
        "adamw",
        learning_rate,
        weight_decay=settings.weight_decay,
        exclude_from_weight_decay=NO_DECAY,
        **options,
    )


def compile(classifier, settings, steps_per_epoch, one_label):
    """Gives a new classifier its loss and its optimizer.

    Args:
        classifier: `AudioClassifier`.
        settings: `TrainSettings`.
        steps_per_epoch: int, batches of an epoch.
        one_label: bool, whether each clip of the corpus has one label.
    """
    classifier.compile(
        make_optimizer(settings, steps_per_epoch),
        settings.loss_function(one_label),
        metrics=callbacks.training_metrics(one_label, classifier.num_classes),
        jit_compile=settings.jit_compile,
    )


def fit(settings, classifier, chunks, out):
    """Trains a new or a resumed model to the last epoch.

    Args:
        settings: `TrainSettings`.
        classifier: `AudioClassifier`; compiled here if it is new.
        chunks: dict of `Chunks` by split, as `load_chunks` returns it.
        out: `pathlib.Path`, the folder of the run.

    Returns:
        The `AudioClassifier` to keep: the best by `settings.monitor` where
        there is a validation split, else the last.
    """
    steps = chunks["train"].num_batches(settings.batch_size)
    last, best = out / "last.keras", out / "best.keras"
    terminal = sys.stdout.isatty()
    figure = metrics.headline(chunks["train"].targets)
    if not last.is_file():
        one_label = chunks["train"].clips.corpus.has_one_label()
        compile(classifier, settings, steps, one_label)
    first_epoch = callbacks.epochs_done(last)
    best_so_far = callbacks.rewind_history(
        out / "history.csv", first_epoch, settings.monitor
    )
    hooks = [
        # Or the last good checkpoint would be overwritten.
        keras.callbacks.TerminateOnNaN(raise_error=True),
        callbacks.EpochSeeds(settings.seed),
    ]
    if "val" in chunks:
        validation = callbacks.ClipValidation(chunks["val"])
        kept = [
            validation,
            callbacks.BestCheckpoint(
                best, settings.monitor, best_so_far, validation
            ),
        ]
        if settings.average_share:
            kept = [callbacks.WithAverageWeights(kept)]
        hooks += kept
    hooks += [
        keras.callbacks.TensorBoard(out / "logs", write_graph=False),
        callbacks.History(out / "history.csv"),
        callbacks.LastCheckpoint(last),
        showing.LearningCurves(out, figure, settings.monitor),
        *callbacks.progress(figure, settings.monitor, terminal),
    ]
    is_over = first_epoch >= settings.epochs
    if settings.patience is not None:
        patience = callbacks.Patience(
            out / "history.csv", settings.monitor, settings.patience
        )
        hooks.append(patience)
        # A run that has ended, or was killed as it did, is not trained on.
        is_over = is_over or patience.is_over()
    if not is_over:
        classifier.fit(
            chunks["train"].dataset(
                settings.batch_size,
                shuffle=True,
                seed=settings.seed,
                jitter=settings.jitter,
                first_epoch=first_epoch,
            ),
            steps_per_epoch=steps,
            initial_epoch=first_epoch,
            epochs=settings.epochs,
            callbacks=hooks,
            shuffle=False,  # The dataset has its own order for each epoch.
            verbose=1 if terminal else 0,
        )
    if best.is_file():
        return keras.saving.load_model(best)
    classifier = keras.saving.load_model(last)
    if settings.average_share:
        classifier.optimizer.finalize_variable_values(
            classifier.trainable_variables
        )
    return classifier


def load_chunks(settings, corpora, classifier):
    """Decodes the clips of all splits and cuts them into chunks.

    Args:
        settings: `TrainSettings`.
        corpora: dict of `Corpus` by split.
        classifier: `AudioClassifier`, whose rate and chunks they are made for.

    Returns:
        Pair of a dict of `Chunks` by split, without empty splits, and a dict
        of the reason by path of each file that was left out.

    Raises:
        ValueError: if a figure is monitored and there is no validation split.
    """
    chunks, failures = {}, {}
    for split, corpus in corpora.items():
        if not len(corpus):
            print(f"{split}: no clips")
            continue
        clips = data.prepare(
            corpus,
            classifier.sample_rate_hz,
            name=split,
            **settings.prepare_arguments(),
        )
        failures |= clips.failures
        chunks[split] = data.Chunks(
            clips,
            classifier.chunk_s,
            settings.hop_s if split == "train" else None,
            classifier.silence_db,
        )
        print(
            f"{split}: {len(clips)} clips, {len(chunks[split])} chunks, "
            f"{chunks[split].silent} silent ones left out"
        )
    for name in ("monitor", "patience"):
        if "val" not in chunks and name in settings.given:
            raise ValueError(
                f"{flag(name)} needs a validation split. Received: "
                f"{getattr(settings, name)}, splits {list(chunks)}"
            )
    return chunks, failures


def report(classifier, chunks, out, facts):
    """Scores the test split, writes its figures, and shows both splits.

    Args:
        classifier: `AudioClassifier`.
        chunks: dict of `Chunks` by split, as `load_chunks` returns it.
        out: `pathlib.Path`, the folder of the run.
        facts: dict of what `val.json` and `test.json` have beside the
            figures.

    Returns:
        Dict of the figures of the test split, `None` without one.
    """
    figures = {}
    for split, words in (
        ("val", "validation split, the best epoch's clip scores"),
        ("test", "test split, clip scores are means over chunks"),
    ):
        if split not in chunks:
            continue
        kept = out / callbacks.SCORES
        # The best epoch's, which need no second pass over the clips.
        scores = (
            np.load(kept)
            if split == "val" and kept.is_file()
            else data.score_clips(classifier, chunks[split], verbose=0)
        )
        figures[split] = showing.report_split(
            out, split, chunks[split], scores, classifier.labels, facts
        )
        print(f"\n{words}")
        print(metrics.format_report(figures[split]))
    return figures.get("test")


def save(classifier, out, origin, exported=False):
    """Writes the preset of a run, whole or not at all, and a SavedModel.

    Args:
        classifier: `AudioClassifier`.
        out: `pathlib.Path`, the folder of the run.
        origin: dict for `provenance.json`, how the model came to be.
        exported: bool, whether to write a SavedModel too.
    """
    with files.whole_folder(out / "preset") as new:
        classifier.save_to_preset(str(new))
        files.write_json(new / "provenance.json", origin)
    print(f"\npreset: {out / 'preset'}")
    if exported:
        path = export(classifier, out / "saved_model", provenance=origin)
        print(f"SavedModel: {path}")


def run(settings, out):
    """Trains a classifier, from the corpus to the preset.

    A run that has begun in the folder goes on.

    Args:
        settings: `TrainSettings`.
        out: path of the run's folder.
    """
    out = pathlib.Path(out)
    keras.utils.set_random_seed(settings.seed)
    keras.mixed_precision.set_global_policy(settings.precision)
    corpora = settings.load()
    record = provenance.corpus_record(corpora, settings.file_root())
    # Before all is decoded.
    provenance.check_corpus(out, record)
    if (out / "last.keras").is_file():
        classifier = keras.saving.load_model(out / "last.keras")
    else:
        classifier = build(settings, corpora["train"])
    settings.check_chunks(classifier)
    chunks, failures = load_chunks(settings, corpora, classifier)
    record = provenance.leave_out(record, settings.file_root(), failures)
    provenance.check_corpus(out, record)
    model = provenance.model_facts(classifier.backbone)
    provenance.begin_run(out, settings, record, model=model)

    classifier = fit(settings, classifier, chunks, out)

    figures = report(classifier, chunks, out, {"causal": model["causal"]})
    origin = {
        **provenance.run_facts(settings, out),
        "model": model,
        "corpus": provenance.corpus_facts(record),
        "resampler": RESAMPLER,
        "labels": classifier.labels,
        "test": figures,
    }
    save(classifier, out, origin, settings.export)
    if failures:
        print(describe_failures(failures))


main = functools.partial(
    run_by_flags,
    run,
    TrainSettings,
    __doc__,
    free=FREE_SETTINGS,
    kept=callbacks.kept,
)
