"""Pre-train an Audio ALBERT to fill in masked frames of unlabelled speech.

    python training/pretrain.py --config training/configs/librispeech_ssl.py \\
        --data-dir LibriSpeech --attention full --out runs/full
    python training/pretrain.py --out runs/full --resume

The folder --out gets config.json, history.csv, last.keras, TensorBoard logs
with pictures of what is filled in, and preset/, the encoder from waveform to
frames, which training/probe.py, AudioClassifier and `audio-tf inspect` take.
"""

import dataclasses
import json
import os
import pathlib
import sys

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")

import keras  # noqa: E402

from audio_tf import (  # noqa: E402
    attention,
    callbacks,
    data,
    distribution,
    layers,
    models,
    optimizers,
    provenance,
)
from audio_tf.reconstruction import ReconstructionPictures  # noqa: E402
from audio_tf.settings import (  # noqa: E402
    SpeechSettings,
    parse,
    saved_run,
    setting,
)

PICTURED = 4


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
    picture_every: int = setting(10, "checkpoints between pictures")
    feature_cache: bool = setting(
        True, "compute features once; else with each batch, from the waveform"
    )
    distribution: str = setting(
        "none", "over what batches are spread", list(distribution.STRATEGIES)
    )
    precision: str = setting("float32", "dtype policy, e.g. mixed_bfloat16")
    jit_compile: bool = setting(False, "compile by XLA")
    out: str = setting("runs/pretrain", "folder of the run")

    def __post_init__(self):
        if self.steps % self.save_every:
            raise ValueError(
                "--save-every must divide --steps. "
                f"Received: {self.save_every} and {self.steps}"
            )
        if self.batch_size % self.accumulate:
            raise ValueError(
                "--accumulate must divide --batch-size. "
                f"Received: {self.accumulate} and {self.batch_size}"
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
            name="target_features",
        )


def build(settings):
    """A new model, compiled."""
    features, target = settings.feature_layer(), settings.target_layer()
    backbone = models.AudioAlbertBackbone.from_preset(
        settings.model,
        feature_dim=features.dim,
        attention=settings.attention,
        attention_kwargs={
            **attention.arguments_for(settings.attention, settings.max_length),
            **settings.attention_kwargs,
        },
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
        sources = [clips]
        if settings.feature_cache:
            cache_dir = settings.prepare_arguments()["cache_dir"]
            sources = [
                data.cache_features(clips, layer, cache_dir)
                for layer in self.layers
            ]
        self.utterances = [
            data.Utterances(source, buckets=settings.buckets)
            for source in sources
        ]
        self.size = settings.batch_size // settings.accumulate
        # Devices share a batch evenly.
        self.full_batches = settings.distribution != "none"

        if not len(self):
            raise ValueError(
                f"No batch of {self.size} is full, as devices need. "
                f"Received: {len(clips)} utterances in {settings.buckets} "
                "buckets"
            )

    def __len__(self):
        """Batches of one pass."""
        return self.utterances[0].num_batches(self.size, self.full_batches)

    def dataset(self, **options):
        import tensorflow as tf

        parts = [each.dataset(self.size, **options) for each in self.utterances]
        if not self.settings.feature_cache:
            return parts[0].map(self.compute, tf.data.AUTOTUNE).prefetch(2)
        if len(parts) == 1:
            return parts[0]
        return tf.data.Dataset.zip(*parts).map(
            lambda inputs, target: (inputs, target["features"])
        )

    def first(self, count):
        """Features of some utterances of like length."""
        batch = next(iter(self.dataset()))
        features = batch[0] if isinstance(batch, tuple) else batch
        return {name: value[:count] for name, value in features.items()}

    def training(self, first):
        """Endless batches in the order of the seed, from number `first`."""
        return self.dataset(
            shuffle=True,
            seed=self.settings.seed,
            first_epoch=first // len(self),
            first_batch=first % len(self),
            full_batches=self.full_batches,
        )

    def compute(self, inputs):
        """Features and targets of a batch of waveforms."""
        lengths = inputs["lengths"]
        parts = [layer(inputs["waveform"], lengths) for layer in self.layers]
        lengths = self.layers[0].step_lengths(lengths)
        inputs = {"features": parts[0], "lengths": lengths}
        return inputs if len(parts) == 1 else (inputs, parts[1])


def train(settings, model, batches, out):
    """Fits a new or a resumed model to the last step."""
    micro_batches = settings.save_every * settings.accumulate
    done = callbacks.epochs_done(out / "last.keras")
    callbacks.rewind_history(out / "history.csv", done)
    hooks = [
        keras.callbacks.TerminateOnNaN(),
        callbacks.EpochSeeds(settings.seed),
        keras.callbacks.TensorBoard(out / "logs", write_graph=False),
        keras.callbacks.CSVLogger(out / "history.csv", append=done > 0),
    ]
    shown = batches.get("val", batches["train"])
    hooks.append(
        ReconstructionPictures(
            shown.first(PICTURED),
            out / "logs" / "pictures",
            settings.picture_every,
            settings.feature_layer().stacking.size,
        )
    )
    hooks.append(callbacks.LastCheckpoint(out / "last.keras"))
    total = settings.steps // settings.save_every
    if done == total:
        return
    model.fit(
        batches["train"].training(done * micro_batches),
        validation_data=batches["val"].dataset() if "val" in batches else None,
        steps_per_epoch=micro_batches,
        initial_epoch=done,
        epochs=total,
        callbacks=hooks,
        shuffle=False,  # The dataset has its own order for each pass.
        verbose=1 if sys.stdout.isatty() else 2,
    )


def main(argv=None):
    settings, resume = parse(PretrainSettings, __doc__, argv, saved=saved_run)
    out = pathlib.Path(settings.out)
    if not resume and (out / "config.json").exists():
        sys.exit(f"{out} holds a run. Add --resume, or choose another --out.")
    keras.utils.set_random_seed(settings.seed)
    keras.mixed_precision.set_global_policy(settings.precision)
    corpora = settings.load()
    failures = {}
    batches = {}
    for split in ("train", "val"):
        if split not in corpora:
            continue
        clips = settings.prepare(corpora[split], split)
        failures |= clips.failures
        batches[split] = Batches(clips, settings)
        print(
            f"{split}: {len(clips)} utterances, {len(batches[split])} batches, "
            f"{clips.lengths.sum() / clips.sample_rate_hz / 3600:.2f} h"
        )
    if failures:
        print(data.describe(failures))
    out.mkdir(parents=True, exist_ok=True)
    (out / "config.json").write_text(
        json.dumps(dataclasses.asdict(settings), indent=2)
    )
    with distribution.scope(settings.distribution):
        if (out / "last.keras").is_file():
            model = keras.saving.load_model(out / "last.keras")
        else:
            model = build(settings)
            model.summary()
    train(settings, model, batches, out)

    encoder = models.SpeechEncoder(model.backbone, settings.feature_layer())
    preset = out / "preset"
    encoder.save_to_preset(str(preset))
    origin = {
        **provenance.run_facts(settings),
        **provenance.corpus_facts(corpora["train"]),
        "resampler": data.RESAMPLER,
    }
    (preset / "provenance.json").write_text(json.dumps(origin, indent=2))
    print(f"\npreset: {preset}")


if __name__ == "__main__":
    main()
