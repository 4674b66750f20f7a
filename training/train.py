"""Train an audio classifier from files to a preset and a SavedModel.

    python training/train.py --config training/configs/demo.py
    python training/train.py --dataset fsd50k --data-dir FSD50K --out runs/fsd
    python training/train.py --out runs/fsd --resume

The folder --out gets config.json, history.csv, last.keras and best.keras,
TensorBoard logs, the best model as a KerasHub preset, its figures on the test
split (test.json), and with --export a SavedModel for TensorFlow Serving.
"""

import dataclasses
import os
import pathlib
import sys

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")

import keras  # noqa: E402

from audio_tf import callbacks, data, metrics, provenance  # noqa: E402
from audio_tf.models import AudioBackbone, AudioClassifier  # noqa: E402
from audio_tf.settings import DataSettings, parse, setting  # noqa: E402

# What may differ when a run goes on.
FREE_SETTINGS = ("data_dir", "cache_dir", "export")


@dataclasses.dataclass
class TrainSettings(DataSettings):
    """What a run is made of; the defaults are the paper's recipe."""

    model: str = setting("audio_transformer_small", "size, or a preset")
    attention: str = setting("full", "name of the attention")
    attention_kwargs: dict = setting({}, "further arguments of the attention")
    filterbank: str = setting("random", "front end at first", ["random", "mel"])
    dropout: float = setting(0.0, "dropout rate of the backbone")
    model_kwargs: dict = setting({}, "further arguments of the backbone")
    loss: str = setting("huber", "any loss of Keras by name")
    learning_rate: float = setting(1e-3, "peak learning rate of Adam")
    schedule: str = setting("constant", "its course", ["constant", "cosine"])
    warmup_epochs: int = setting(0, "epochs of linear warm-up, for cosine")
    batch_size: int = setting(32, "chunks per step")
    epochs: int = setting(90, "passes over the corpus")
    chunk_s: float | None = setting(1.0, "seconds per chunk; 0 for whole clips")
    hop_s: float | None = setting(None, "seconds from chunk to chunk")
    silence_db: float | None = setting(
        None, "peak in dB below which chunks are left out, for example -60"
    )
    jitter: bool = setting(False, "draw the place of chunks anew each epoch")
    precision: str = setting("float32", "dtype policy, e.g. mixed_bfloat16")
    jit_compile: bool = setting(False, "compile by XLA")
    monitor: str = setting("val_mAP", "what the best epoch is the largest of")
    export: bool = setting(False, "also write a SavedModel")
    out: str = setting("runs/train", "folder of the run")


def build(settings, labels):
    """A new classifier."""
    backbone = AudioBackbone.from_preset(
        settings.model,
        attention=settings.attention,
        attention_kwargs=settings.attention_kwargs,
        filterbank=settings.filterbank,
        dropout=settings.dropout,
        **settings.model_kwargs,
    )
    return AudioClassifier(
        backbone,
        labels=labels,
        chunk_s=settings.chunk_s or None,
        silence_db=settings.silence_db,
    )


def compile(classifier, settings, steps_per_epoch):
    """Gives a new classifier its loss and its optimizer."""
    learning_rate = settings.learning_rate
    if settings.schedule == "cosine":
        warmup_steps = settings.warmup_epochs * steps_per_epoch
        learning_rate = keras.optimizers.schedules.CosineDecay(
            initial_learning_rate=learning_rate / max(1, warmup_steps),
            decay_steps=settings.epochs * steps_per_epoch - warmup_steps,
            alpha=0.01,
            warmup_target=learning_rate,
            warmup_steps=warmup_steps,
        )
    classifier.compile(
        keras.optimizers.Adam(learning_rate),
        settings.loss,
        jit_compile=settings.jit_compile,
    )


def train(settings, classifier, chunks, out):
    """Fits a new or a resumed model and returns the one to keep."""
    steps = chunks["train"].num_batches(settings.batch_size)
    last, best = out / "last.keras", out / "best.keras"
    if not last.is_file():
        compile(classifier, settings, steps)
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
        hooks.append(callbacks.ClipValidation(chunks["val"]))
        hooks.append(
            keras.callbacks.ModelCheckpoint(
                best,
                monitor=settings.monitor,
                mode="max",
                save_best_only=True,
                initial_value_threshold=best_so_far,
            )
        )
    hooks += [
        keras.callbacks.TensorBoard(out / "logs", write_graph=False),
        keras.callbacks.CSVLogger(out / "history.csv", append=first_epoch > 0),
        callbacks.LastCheckpoint(last),
    ]
    if first_epoch < settings.epochs:
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
            verbose=1 if sys.stdout.isatty() else 2,
        )
    return keras.saving.load_model(best if best.is_file() else last)


def main(argv=None):
    settings, _ = parse(
        TrainSettings, __doc__, argv, resumable=True, free=FREE_SETTINGS
    )
    out = pathlib.Path(settings.out)
    keras.utils.set_random_seed(settings.seed)
    keras.mixed_precision.set_global_policy(settings.precision)
    corpora = settings.load()
    out.mkdir(parents=True, exist_ok=True)
    provenance.write_json(out / "config.json", dataclasses.asdict(settings))
    if (out / "last.keras").is_file():
        classifier = keras.saving.load_model(out / "last.keras")
    else:
        classifier = build(settings, corpora["train"].vocabulary)
        classifier.summary()
    chunks, failures = {}, {}
    for split, corpus in corpora.items():
        if not len(corpus):
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

    classifier = train(settings, classifier, chunks, out)

    report = None
    if "test" in chunks:
        test = chunks["test"]
        report = metrics.evaluate(
            test.targets, data.score_clips(classifier, test), classifier.labels
        )
        provenance.write_json(out / "test.json", report)
        print("\ntest split, clip scores are means over chunks")
        print(metrics.format_report(report))
    preset = out / "preset"
    classifier.save_to_preset(str(preset))
    corpus = chunks["train"].clips.corpus
    origin = {
        **provenance.run_facts(settings),
        "corpus": provenance.corpus_facts({"train": corpus}),
        "resampler": data.RESAMPLER,
        "labels": corpus.vocabulary,
        "test": report,
    }
    provenance.write_json(preset / "provenance.json", origin)
    print(f"\npreset: {preset}")
    if settings.export:
        from audio_tf.export import export

        folder = out / "saved_model"
        print(f"SavedModel: {export(classifier, folder, provenance=origin)}")
    if failures:
        print(data.describe(failures))


if __name__ == "__main__":
    main()
