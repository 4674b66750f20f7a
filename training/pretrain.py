"""Pre-train an Audio ALBERT to fill in masked frames of unlabelled speech.

    python training/pretrain.py --config training/configs/librispeech_ssl.py \\
        --data-dir LibriSpeech --attention full --out runs/full
    python training/pretrain.py --out runs/full --resume

The folder --out gets config.json, history.csv, last.keras, TensorBoard logs
with pictures of what is filled in, and preset/, the encoder from waveform to
frames, which training/probe.py, AudioClassifier and `audio-tf inspect` take;
it is written anew with the pictures.
"""

import dataclasses
import json
import os
import pathlib
import shutil
import sys

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")

import keras  # noqa: E402

from audio_tf import (  # noqa: E402
    callbacks,
    data,
    distribution,
    layers,
    models,
    optimizers,
    provenance,
)
from audio_tf.reconstruction import ReconstructionPictures  # noqa: E402
from audio_tf.settings import SpeechSettings, parse, setting  # noqa: E402

PICTURED = 4
# What may differ when a run goes on.
FREE_SETTINGS = ("data_dir", "cache_dir", "picture_every")


@dataclasses.dataclass
class PretrainSettings(SpeechSettings):
    """What a run is made of; the defaults are the paper's setting."""

    target: str = setting(
        "spectrogram",
        "what is rebuilt: the linear spectrogram or the input",
        ["spectrogram", "input"],
    )
    model: str = setting(
        "audio_albert_6", "size", list(models.AudioAlbertBackbone.sizes)
    )
    model_kwargs: dict = setting({}, "further arguments of the backbone")
    attention: str = setting("full", "name of the attention")
    attention_kwargs: dict = setting({}, "further arguments of the attention")
    max_length: int = setting(
        1000, "steps that tables are for and that strides are the root of"
    )
    masking: str = setting(
        "paper", "policy of masking", list(layers.MASKING_POLICIES)
    )
    masking_kwargs: dict = setting({}, "further arguments of the masking")
    optimizer: str = setting(
        "lamb", "reading of the paper's LAMB", list(optimizers.PRETRAINING)
    )
    learning_rate: float = setting(5e-5, "peak learning rate")
    warmup: float = setting(0.1, "share of the steps before the peak")
    clip_norm: float = setting(10.0, "norm that gradients are clipped to")
    steps: int = setting(500_000, "updates of the weights")
    batch_size: int = setting(50, "utterances per update, over all devices")
    accumulate: int = setting(1, "parts that a batch is computed in")
    buckets: int = setting(5, "lengths that utterances are padded to")
    save_every: int = setting(1000, "steps between checkpoints")
    picture_every: int = setting(10, "checkpoints between pictures, presets")
    feature_cache: bool = setting(
        False, "compute features once; else with each batch, from the waveform"
    )
    distribution: str = setting(
        "none", "over what batches are spread", list(distribution.STRATEGIES)
    )
    precision: str = setting("float32", "dtype policy, e.g. mixed_bfloat16")
    jit_compile: bool = setting(False, "compile by XLA")
    out: str = setting("runs/pretrain", "folder of the run")

    def __post_init__(self):
        for divisor, whole in (
            ("save_every", "steps"),
            ("accumulate", "batch_size"),
        ):
            sizes = getattr(self, divisor), getattr(self, whole)
            if min(sizes) < 1 or sizes[1] % sizes[0]:
                divisor, whole = (
                    f"--{name.replace('_', '-')}" for name in (divisor, whole)
                )
                raise ValueError(
                    f"{divisor} must divide {whole}. "
                    f"Received: {sizes[0]} and {sizes[1]}"
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

    def target_layer(self):
        """The `SpeechFeatures` of what is rebuilt, `None` for the input."""
        if self.target == "input":
            return None
        options = self.feature_layer().options
        timing = ("window_s", "hop_s", "fft_size", "stack")
        return layers.SpeechFeatures(
            "paper_target",
            self.sample_rate_hz,
            {name: options[name] for name in timing},
            dtype="float32",
            name="target_features",
        )


def build(settings):
    """A new model, compiled."""
    features, target = settings.feature_layer(), settings.target_layer()
    backbone = models.AudioAlbertBackbone.from_preset(
        settings.model,
        feature_dim=features.dim,
        attention=settings.attention,
        attention_kwargs=settings.attention_kwargs,
        made_for_frames=settings.max_length,
        **settings.model_kwargs,
    )
    model = models.MaskedAcousticModel(
        backbone,
        target_dim=target and target.dim,
        masking=settings.masking,
        masking_kwargs=settings.masking_kwargs,
        compile=False,
    )
    model.compile(
        optimizers.create(
            settings.optimizer,
            optimizers.WarmupLinearDecay(
                settings.learning_rate,
                # Keras' schedules count parts of batches.
                warmup_steps=round(settings.warmup * settings.steps)
                * settings.accumulate,
                total_steps=settings.steps * settings.accumulate,
            ),
            global_clipnorm=settings.clip_norm,
            gradient_accumulation_steps=settings.accumulate
            if settings.accumulate > 1
            else None,
        ),
        jit_compile=settings.jit_compile,
    )
    return model


class Batches:
    """Features, and targets where they are not the features, in batches."""

    def __init__(self, clips, settings):
        self.settings = settings
        self.layers = [settings.feature_layer()]
        if settings.target != "input":
            self.layers.append(settings.target_layer())
        steps = int(self.layers[0].step_lengths(clips.lengths.max()))
        if steps > settings.max_length:
            raise ValueError(
                f"The longest utterance has {steps} steps; see --max-s and "
                f"--max-length. Received: --max-length {settings.max_length}"
            )
        sources = [clips]
        if settings.feature_cache:
            cache_dir = settings.prepare_arguments()["cache_dir"]
            sources = [
                data.cache_features(clips, layer, cache_dir)
                for layer in self.layers
            ]
        self.clips = clips
        self.utterances = [
            data.Utterances(source, buckets=settings.buckets)
            for source in sources
        ]
        self.size = settings.batch_size // settings.accumulate
        # Devices share a batch evenly.
        self.full_batches = settings.distribution != "none"
        devices = distribution.num_devices()
        if self.size % devices:
            raise ValueError(
                f"{devices} devices must share a batch evenly. "
                f"Received: {self.size} utterances"
            )

    def __len__(self):
        """Batches of one pass."""
        return self.utterances[0].num_batches(self.size, self.full_batches)

    def dataset(self, **options):
        import tensorflow as tf

        parts = [
            each.dataset(self.size, full_batches=self.full_batches, **options)
            for each in self.utterances
        ]
        if not self.settings.feature_cache:
            # Spectra of a batch are gigabytes: few at a time.
            return parts[0].map(self.compute, num_parallel_calls=2).prefetch(2)
        if len(parts) == 1:
            return parts[0]
        return tf.data.Dataset.zip(*parts).map(
            lambda inputs, target: (inputs, target["features"])
        )

    def some(self, count):
        """Features of some utterances of middling length."""
        batch = next(iter(self.dataset(first_batch=len(self) // 2)))
        features = batch[0] if isinstance(batch, tuple) else batch
        return {name: value[:count] for name, value in features.items()}

    def training(self, first):
        """Endless batches in the order of the seed, from number `first`."""
        return self.dataset(
            shuffle=True,
            seed=self.settings.seed,
            first_epoch=first // len(self),
            first_batch=first % len(self),
        )

    def compute(self, inputs):
        """Features and targets of a batch of waveforms."""
        lengths = inputs["lengths"]
        parts = [layer(inputs["waveform"], lengths) for layer in self.layers]
        lengths = self.layers[0].step_lengths(lengths)
        inputs = {"features": parts[0], "lengths": lengths}
        return inputs if len(parts) == 1 else (inputs, parts[1])


class Presets(keras.callbacks.Callback):
    """Writes the encoder as a preset, whole or not at all.

    Args:
        settings: the settings.
        out: folder of the run.
        facts: dict for the preset's `provenance.json`.
    """

    def __init__(self, settings, out, facts):
        super().__init__()
        self.settings = settings
        self.out = out
        self.facts = facts

    def on_epoch_end(self, epoch, logs=None):
        settings = self.settings
        done = (epoch + 1) * settings.save_every
        last = done == settings.steps
        if not last and (epoch + 1) % settings.picture_every:
            return
        write_preset(self.model, settings, self.out, self.facts, done)


def write_preset(model, settings, out, facts, done):
    """`preset/` of the run after `done` steps."""
    preset, new, old = (out / name for name in ("preset", ".new", ".old"))
    shutil.rmtree(new, ignore_errors=True)
    shutil.rmtree(old, ignore_errors=True)
    encoder = models.SpeechEncoder(model.backbone, settings.feature_layer())
    encoder.save_to_preset(str(new))
    facts = {**facts, "steps_done": done, "steps": settings.steps}
    provenance.write_json(new / "provenance.json", facts)
    if preset.exists():
        preset.rename(old)
    new.rename(preset)
    shutil.rmtree(old, ignore_errors=True)


def train(settings, model, batches, out, facts):
    """Fits a new or a resumed model to the last step."""
    micro_batches = settings.save_every * settings.accumulate
    done = callbacks.epochs_done(out / "last.keras")
    callbacks.rewind_history(out / "history.csv", done)
    hooks = [
        # Or the last good checkpoint would be overwritten.
        keras.callbacks.TerminateOnNaN(raise_error=True),
        callbacks.EpochSeeds(settings.seed),
        keras.callbacks.TensorBoard(out / "logs", write_graph=False),
        keras.callbacks.CSVLogger(out / "history.csv", append=done > 0),
        ReconstructionPictures(
            batches.get("val", batches["train"]).some(PICTURED),
            out / "logs" / "pictures",
            settings.picture_every,
            settings.feature_layer().stacking.size,
        ),
        callbacks.LastCheckpoint(out / "last.keras"),
        Presets(settings, out, facts),
    ]
    model.fit(
        batches["train"].training(done * micro_batches),
        validation_data=batches["val"].dataset() if "val" in batches else None,
        steps_per_epoch=micro_batches,
        initial_epoch=done,
        epochs=settings.steps // settings.save_every,
        callbacks=hooks,
        shuffle=False,  # The dataset has its own order for each pass.
        verbose=1 if sys.stdout.isatty() else 2,
    )


def load_batches(settings):
    """Dict of `Batches` by split, `train` and perhaps `val`."""
    corpora = settings.load()
    batches, failures = {}, {}
    for split in ("train", "val"):
        if not len(corpora.get(split, ())):
            continue
        clips = settings.prepare(corpora[split], split)
        failures |= clips.failures
        each = Batches(clips, settings)
        print(
            f"{split}: {len(clips)} utterances, {len(each)} batches, "
            f"{clips.lengths.sum() / clips.sample_rate_hz / 3600:.2f} h"
        )
        if len(each):
            batches[split] = each
    if failures:
        print(data.describe(failures))
    if "train" not in batches:
        raise ValueError(
            f"No batch of {each.size} is full, as devices need. "
            f"Received: {settings.buckets} buckets"
        )
    return batches


def check_corpus(found, out):
    """Raises a `ValueError` if a run would go on with other data.

    Args:
        found: dict of `provenance.corpus_facts`.
        out: folder of the run.
    """
    file = out / "corpus.json"
    if file.is_file() and json.loads(file.read_text()) != found:
        raise ValueError(
            f"The corpus is not what {file} says, so that its batches would "
            f"be others. Received: {found}"
        )


def run(settings, out):
    """A whole run, within the scope of its devices."""
    keras.utils.set_random_seed(settings.seed)
    last = out / "last.keras"
    try:
        # What is wrong with it is known before hours of decoding.
        model = keras.saving.load_model(last) if last.is_file() else None
        if model is None:
            model = build(settings)
            model.summary()
        batches = load_batches(settings)
        corpus = provenance.corpus_facts(
            {split: each.clips.corpus for split, each in batches.items()}
        )
        check_corpus(corpus, out)
    except (ValueError, OSError) as error:
        sys.exit(str(error))
    facts = {
        **provenance.run_facts(settings),
        "corpus": corpus,
        "resampler": data.RESAMPLER,
    }
    out.mkdir(parents=True, exist_ok=True)
    provenance.write_json(out / "config.json", dataclasses.asdict(settings))
    provenance.write_json(out / "corpus.json", corpus)
    done = callbacks.epochs_done(last) * settings.save_every
    if done < settings.steps:
        train(settings, model, batches, out, facts)
    elif not (out / "preset").exists():
        write_preset(model, settings, out, facts, done)
    print(f"\npreset: {out / 'preset'}")


def main(argv=None):
    settings, _ = parse(
        PretrainSettings, __doc__, argv, resumable=True, free=FREE_SETTINGS
    )
    # Devices are found before anything is computed.
    with distribution.scope(settings.distribution):
        keras.mixed_precision.set_global_policy(settings.precision)
        run(settings, pathlib.Path(settings.out))


if __name__ == "__main__":
    main()
