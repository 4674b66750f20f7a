"""Pre-train an Audio ALBERT to fill in masked frames of unlabelled speech.

    audio-tf pretrain --config training/configs/librispeech_ssl.py \\
        --data-dir LibriSpeech --attention full --out runs/full
    audio-tf pretrain --out runs/full --resume
    audio-tf pretrain --model runs/full/preset --features paper \\
        --data-dir MORE --out runs/more

The folder --out gets config.json, history.csv, last.keras, TensorBoard logs
with pictures of what is filled in, and preset/, the encoder from waveform to
frames, which training/probe.py, AudioClassifier and `audio-tf inspect` take;
both are written anew every --picture-every checkpoints, and at the end.
"""

import dataclasses
import functools
import json
import pathlib
import sys
import typing

import keras

from audio_tf import console, files, layers, models, optimizers
from audio_tf.audio import RESAMPLER
from audio_tf.data.shares import WHOLE
from audio_tf.models import freezing, preset_backbones, presets
from audio_tf.runs import (
    callbacks,
    checkpoints,
    corpus_records,
    heard,
    history,
    host_callbacks,
    hosts,
    provenance,
)
from audio_tf.runs.corpus_settings import SpeechSettings
from audio_tf.runs.flags import run_by_flags
from audio_tf.runs.host_settings import HostSettings
from audio_tf.runs.model_settings import ModelSettings
from audio_tf.runs.pretrain_batches import load_batches
from audio_tf.runs.reconstruction import ReconstructionPictures
from audio_tf.runs.settings import POSITIVE, RATE, flag, setting, shared

PICTURED = 4
# The default steps between checkpoints.
SAVE_EVERY = 1000
# Settings that may differ when a run goes on.
FREE_SETTINGS = ("data_dir", "cache_dir", "picture_every")


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


def load_backbone(settings, features):
    """Loads the backbone of features that is trained.

    Args:
        settings: `PretrainSettings`.
        features: `SpeechFeatures`, which it will hear.

    Returns:
        `AudioBackbone`, new, or the one within the preset of an encoder of
        waveforms, which an earlier run has left behind.

    Raises:
        ValueError: if there is none in the model, or it has learned from other
            features.
    """
    options = settings.model_options()
    family, _ = preset_backbones.describe(settings.model)
    if family.takes == "features":
        return models.AudioBackbone.from_preset(
            settings.model, feature_dim=features.dim, **options
        )
    found = models.AudioBackbone.from_preset(settings.model, **options)
    if found.encoder is None:
        raise ValueError(
            "--model must be a backbone of features, or have one within. "
            f"Received: {settings.model}, of {family.__name__}"
        )
    if type(found.features) is not type(features):
        raise ValueError(
            f"--model must hear {type(features).__name__}, which the preset "
            "of the run will have. "
            f"Received: {settings.model}, of {type(found.features).__name__}"
        )
    known, asked = map(facts_of, (found.features, features))
    if known != asked:
        raise ValueError(
            "--features, --sample-rate-hz and --features-options must be "
            f"those that {settings.model} has learned from, "
            f"{without(known, asked)}. Received: {without(asked, known)}"
        )
    return found.encoder


def facts_of(features):
    """Returns a dict of what a `SpeechFeatures` computes."""
    return {
        "preset": features.preset,
        "sample_rate_hz": features.sample_rate_hz,
        **features.options,
    }


def without(facts, others):
    """Returns those of some facts that others do not say, too."""
    return dict(each for each in facts.items() if each not in others.items())


def build(settings):
    """Builds a new model, or one from a preset, and compiles it.

    Args:
        settings: `PretrainSettings`.

    Returns:
        `MaskedAcousticModel`.

    Raises:
        ValueError: if the settings do not fit, or a class could not be loaded
            again.
    """
    with settings.naming_flags():
        features, target = settings.feature_layer(), settings.target_layer()
        backbone = load_backbone(settings, features)
        # A preset may have been saved at rest.
        freezing.thaw(backbone)
        presets.check_found_again(backbone)
        model = models.MaskedAcousticModel(
            backbone,
            target_dim=target and target.dim,
            masking=settings.masking,
            masking_kwargs=settings.masking_kwargs,
            compile=False,
        )
    parts = settings.accumulate if settings.accumulate > 1 else None
    model.compile(
        optimizers.create(
            settings.optimizer,
            optimizers.WarmupLinearDecay(
                settings.learning_rate,
                warmup_steps=settings.warmup_steps,
                total_steps=settings.steps,
                gradient_accumulation_steps=parts,
            ),
            global_clipnorm=settings.clip_norm,
            gradient_accumulation_steps=parts,
        ),
        jit_compile=settings.compiles(),
    )
    return model


class Presets(keras.callbacks.Callback):
    """Writes the encoder as a preset after some epochs and after the last.

    Args:
        settings: `PretrainSettings`.
        out: `pathlib.Path`, the folder of the run.
        facts: dict for the preset's `provenance.json`.
        hears: list of `heard.Heard`, as `write_preset` takes it.
    """

    def __init__(self, settings, out, facts, hears):
        super().__init__()
        self.settings = settings
        self.out = out
        self.facts = facts
        self.hears = hears

    def on_epoch_end(self, epoch, logs=None):
        settings = self.settings
        done = (epoch + 1) * settings.epoch_steps
        last = done == settings.steps
        if not last and (epoch + 1) % settings.picture_every:
            return
        write_preset(
            self.model, settings, self.out, self.facts, done, self.hears
        )


def write_preset(model, settings, out, facts, done, hears):
    """Writes the preset of a run, whole or not at all.

    Args:
        model: `MaskedAcousticModel`.
        settings: `PretrainSettings`.
        out: `pathlib.Path`, the folder of the run.
        facts: dict for the preset's `provenance.json`.
        done: int, steps that the model was trained for.
        hears: list of `heard.Heard`, what it was trained on, before, too.
    """
    encoder = models.SpeechEncoder(model.backbone, settings.feature_layer())
    facts = {**facts, "steps_done": done, "steps": settings.steps}
    with files.whole_folder(out / "preset") as new:
        encoder.save_to_preset(str(new))
        files.write_json(new / "provenance.json", facts)
        heard.write(new, hears)


def is_trained(preset):
    """Returns whether a preset was written after its training's last step.

    Args:
        preset: `pathlib.Path` of the preset of a run, which may be missing.
    """
    file = preset / "provenance.json"
    if not file.is_file():
        return False
    facts = json.loads(file.read_text())
    return facts["steps_done"] == facts["steps"]


def fit(settings, model, batches, out, facts, hears, share=WHOLE):
    """Trains a new or a resumed model to the last step.

    Args:
        settings: `PretrainSettings`.
        model: compiled `MaskedAcousticModel`.
        batches: dict of `Batches` by split, as `load_batches` returns it.
        out: `pathlib.Path`, the folder of the run.
        facts: dict for the preset's `provenance.json`.
        hears: list of `heard.Heard`, as `write_preset` takes it.
        share: `Share` of this host.
    """
    micro_batches = settings.epoch_steps * settings.accumulate
    done = checkpoints.epochs_done(out / "last.keras")
    if share.is_first:
        history.rewind(out / "history.csv", done)
    # What is drawn is computed by all hosts.
    shown_in = hosts.folder(out, share)
    made = settings.feature_layer()
    shown, targets = batches.get("val", batches["train"]).some(PICTURED)
    hooks = [
        # Or the last good checkpoint would be overwritten.
        keras.callbacks.TerminateOnNaN(raise_error=True),
        callbacks.EpochSeeds(settings.seed),
        keras.callbacks.TensorBoard(shown_in / "logs", write_graph=False),
        host_callbacks.OfFirst([history.History(out / "history.csv")], share),
        ReconstructionPictures(
            shown,
            shown_in / "logs" / "pictures",
            shown_in / "reconstruction.png",
            made.options["hop_s"],
            settings.picture_every,
            made.stacking.size,
            targets,
        ),
        host_callbacks.OfFirst(
            [
                checkpoints.LastCheckpoint(out / "last.keras"),
                Presets(settings, out, facts, hears),
            ],
            share,
        ),
    ]
    verbose = 1 if sys.stdout.isatty() else 2
    model.fit(
        batches["train"].training(done * micro_batches),
        validation_data=batches["val"].validation()
        if "val" in batches
        else None,
        steps_per_epoch=micro_batches,
        initial_epoch=done,
        epochs=settings.steps // settings.epoch_steps,
        callbacks=hooks,
        shuffle=False,  # The dataset has its own order for each pass.
        verbose=verbose,
    )


def run(settings, out):
    """Pre-trains a model, from the corpus to the preset.

    A run that has begun in the folder goes on.

    Args:
        settings: `PretrainSettings`.
        out: path of the run's folder.
    """
    out = pathlib.Path(out)
    # Devices are found before anything is computed.
    with hosts.scope(settings, out) as share:
        keras.mixed_precision.set_global_policy(settings.precision)
        run_on_devices(settings, out, share)


def listed(settings):
    """Lists the utterances that a model learns from and is validated on.

    Args:
        settings: `PretrainSettings`.

    Returns:
        Pair of a dict of `SpeechCorpus` by split, of those that have any, and
        their `corpus_record`.
    """
    corpora = {
        split: corpus
        for split, corpus in settings.load().items()
        if split in ("train", "val") and len(corpus)
    }
    return corpora, corpus_records.make(corpora, settings.file_root())


def run_on_devices(settings, out, share):
    """Pre-trains a model as `run` does, within the scope of its devices."""
    last = out / "last.keras"
    # A model that cannot be built is told before hours of decoding.
    model = keras.saving.load_model(last) if last.is_file() else None
    if model is None:
        model = build(settings)
        console.print_summary(model)
    (corpora, record), root = listed(settings), settings.file_root()
    corpus_records.check(out, record)
    before = heard.began_with(settings, out)
    # Before all is decoded, for which they wait for each other.
    hosts.check_alike(hosts.facts(settings, record, out, FREE_SETTINGS), share)
    batches, failures = load_batches(
        settings, corpora, model.backbone.max_frames, share
    )
    record = corpus_records.leave_out(record, root, failures)
    corpus_records.check(out, record)
    built = provenance.model_facts(model.backbone)
    begun = {"model": built, "built_on": provenance.built_on(settings, out)}
    facts = {
        **provenance.run_facts(settings, out),
        **begun,
        "corpus": corpus_records.summary(record),
        "build": settings.build_facts(),
        "resampler": RESAMPLER,
    }
    hosts.check_alike(hosts.facts(settings, record, out, FREE_SETTINGS), share)
    if share.is_first:
        heard.keep(out, before)
        provenance.begin_run(out, settings, record, **begun)
    # What validation hears has changed no weight.
    own = heard.Heard(pretrained=batches["train"].clips.marks)
    done = checkpoints.epochs_done(last) * settings.epoch_steps
    if done < settings.steps:
        fit(settings, model, batches, out, facts, [own, before], share)
    elif share.is_first and not is_trained(out / "preset"):
        # A run that was killed behind its last checkpoint leaves none, or one
        # of an earlier step.
        with hosts.alone():
            write_preset(model, settings, out, facts, done, [own, before])
    print(f"\npreset: {out / 'preset'}")


main = functools.partial(
    run_by_flags,
    run,
    PretrainSettings,
    __doc__,
    free=FREE_SETTINGS,
    kept=checkpoints.kept,
)
