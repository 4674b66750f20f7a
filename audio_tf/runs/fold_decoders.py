"""A decoder of embeddings trained on each fold, kept and explained.

In the folder of a run every fold has one of its own.
"""

import hashlib
import time
import zlib

import keras
import numpy as np

from audio_tf import analysis, compiling, files, intervals, metrics
from audio_tf.analysis import figures
from audio_tf.models import (
    GaussianAdaptiveDecoder,
    GaussianAdaptiveTransformer,
)
from audio_tf.models.gaussian_adaptive_decoder import make_loss, make_optimizer
from audio_tf.ops.clip_scores import clip_scores
from audio_tf.runs import heard, showing
from audio_tf.runs.fold_arrays import stored_arrays


def balanced_accuracy(targets, scores):
    """Averages the accuracy of each class that has a clip."""
    truth, found = targets.argmax(axis=1), scores.argmax(axis=1)
    right = [
        np.mean(found[truth == label] == label) for label in np.unique(truth)
    ]
    return float(np.mean(right))


def fold_folder(out, name):
    """Returns the folder of a fold, whose name may hold any character."""
    plain = "".join(each if each.isalnum() else "_" for each in name)
    if plain != name:
        plain += "_" + hashlib.sha1(name.encode()).hexdigest()[:6]
    return out / f"fold_{plain}"


def make_decoder(embedded, settings):
    """Makes the decoder of embeddings, not compiled.

    Args:
        embedded: `fold_arrays.Embedded`, which may be without a chunk.
        settings: `EmotionSettings`.

    Returns:
        `GaussianAdaptiveDecoder`.

    Raises:
        TypeError: if the attention takes no such argument.
        ValueError: if there can be no such decoder.
    """
    return GaussianAdaptiveDecoder(
        *embedded.x.shape[1:],
        num_classes=len(embedded.vocabulary),
        module=settings.module,
        num_heads=settings.num_heads,
        attention_kwargs=settings.attention_kwargs,
        filters=settings.filters,
        compile=False,
    )


def train_fold(name, fold, embedded, settings, folder):
    """Trains a decoder on a fold and tests its best epoch, once.

    Args:
        name: str, the fold.
        fold: `folds.Fold`.
        embedded: `fold_arrays.Embedded`.
        settings: `EmotionSettings`.
        folder: `pathlib.Path`, where the decoder and its map are kept.

    Returns:
        Dict for the report.
    """
    began = time.monotonic()
    keras.utils.set_random_seed(zlib.crc32(f"{settings.seed} {name}".encode()))
    train, val, (x_test, _, clips) = (
        embedded.part(fold.rows[split]) for split in ("train", "val", "test")
    )
    decoder = make_decoder(embedded, settings)
    history, best_epoch = fit_to_best(decoder, train, val, settings)
    if not np.isfinite(history["loss"]).all():
        raise ValueError(
            f"The loss of the fold {name} must be finite. "
            f"Received: {history['loss']}"
        )
    targets = embedded.targets[fold.rows["test"]]
    scores = clip_scores(
        decoder.predict(x_test, verbose=0), clips, len(targets)
    )
    folder.mkdir(parents=True, exist_ok=True)
    decoder.save(folder / "decoder.keras")
    if decoder.weights_features:
        np.save(folder / "map.npy", analysis.mean_map(decoder, val[0]))
    figures_of = metrics.evaluate(targets, scores, embedded.vocabulary)
    kind, unit = embedded.units(fold.rows["test"])
    return {
        "accuracy": figures_of["accuracy"],
        "interval": intervals.bootstrap(
            metrics.METRICS["accuracy"], targets.astype("int64"), scores, unit
        ),
        "unit": kind,
        "units": int(unit.max()) + 1,
        "balanced_accuracy": balanced_accuracy(targets, scores),
        "val_accuracy": history["val_accuracy"][best_epoch],
        "best_epoch": best_epoch + 1,
        "clips": {split: int(rows.sum()) for split, rows in fold.rows.items()},
        "validation": fold.validation,
        "tested": fold.tested,
        "parameters": decoder.count_params(),
        "attention_parameters": decoder.attention_layer.count_params(),
        "heads": decoder.attention_layer.num_heads,
        "seconds": round(time.monotonic() - began, 2),
    }


def fit_to_best(decoder, train, val, settings):
    """Trains a decoder, which then has the weights of its best epoch.

    Args:
        decoder: `GaussianAdaptiveDecoder`.
        train, val: as `Embedded.part` returns them.
        settings: `EmotionSettings`.

    Returns:
        Pair of a dict of lists of the figures of the epochs, and of the number
        of the best one, from 0.
    """
    decoder.compile(
        make_optimizer(settings.learning_rate, settings.weight_decay),
        make_loss(settings.focal_gamma),
        metrics=["accuracy"],
        jit_compile=compiling.jit_compile(),
    )
    best = keras.callbacks.EarlyStopping(
        "val_accuracy",
        mode="max",
        patience=settings.epochs,
        restore_best_weights=True,
    )
    lower_rate = keras.callbacks.ReduceLROnPlateau(
        "val_accuracy",
        mode="max",
        factor=settings.plateau_factor,
        patience=settings.plateau_patience,
    )
    fitted = decoder.fit(
        *train[:2],
        batch_size=settings.batch_size,
        epochs=settings.epochs,
        validation_data=val[:2],
        callbacks=[keras.callbacks.TerminateOnNaN(), lower_rate, best],
        verbose=0,
    )
    return fitted.history, best.best_epoch


def write_preset(name, fold, embedded, settings, encoder, folder, origin):
    """Writes a fold's model, from waveform to scores, as a preset.

    Args:
        name: str, the fold.
        fold: `folds.Fold`, whose clips of training the preset has marks of.
        embedded: `fold_arrays.Embedded` of audio.
        settings: `EmotionSettings`.
        encoder: `AudioBackbone`.
        folder: `pathlib.Path` of the fold, which has the decoder.
        origin: dict for `provenance.json`.
    """
    model = GaussianAdaptiveTransformer(
        encoder,
        labels=embedded.vocabulary,
        layers=embedded.layers,
        module=settings.module,
        num_heads=settings.num_heads,
        attention_kwargs=settings.attention_kwargs,
        filters=settings.filters,
        chunk_s=settings.chunk_s or None,
    )
    trained = keras.saving.load_model(folder / "decoder.keras", compile=False)
    model.decoder.set_weights(trained.get_weights())
    with files.whole_folder(folder / "preset") as new:
        model.save_to_preset(str(new))
        files.write_json(new / "provenance.json", {**origin, "fold": name})
        own = heard.Heard(embedded.marks[fold.rows["train"]])
        # What the encoder has learned from, this model has, too.
        heard.write(new, [own, heard.read(settings.model)])


def read_importance(path):
    """Reads the Importance Factor that `write_importance` has written.

    Args:
        path: the file.

    Returns:
        Tuple of a floating array `(layers, dim)`, a list of int, the numbers
        of the layers, and the `weights_mark` of their encoder, `""` of a file
        that does not say it.

    Raises:
        OSError: if the file cannot be read.
        ValueError: if it is none, or its arrays do not fit.
    """
    arrays = stored_arrays(path)
    found, layers = (arrays.get(name) for name in ("importance", "layers"))
    # A name in backticks would be taken for the flag of the same name.
    if found is None or layers is None:
        raise ValueError(
            f"{path}: must be an importance.npz of audio-tf emotion, with the "
            f"arrays 'importance' and 'layers'. Received: {sorted(arrays)}"
        )
    if (
        found.ndim != 2
        or layers.shape != found.shape[:1]
        or found.dtype.kind != "f"
        or not np.isfinite(found).all()
    ):
        raise ValueError(
            f"{path}: 'importance' must be finite floats (layers, dim), and "
            f"'layers' have a number for each. Received: {found.dtype}, "
            f"shape={found.shape} and shape={layers.shape}"
        )
    return found, layers.tolist(), str(arrays.get("encoder", ""))


def write_importance(out, names, embedded, title, encoder):
    """Writes the Importance Factor of all folds, which count alike.

    The map of each fold's decoder is a mean over the chunks of its validation.

    Args:
        out: `pathlib.Path`, the folder of the run.
        names: list of the folds that have a map.
        embedded: `fold_arrays.Embedded`.
        title: str, of the pictures.
        encoder: str, the `weights_mark` of the encoder, or `None`.
    """
    maps = np.mean([np.load(out / name / "map.npy") for name in names], axis=0)
    importance = analysis.importance.scaled(maps)
    with files.whole_file(out / "importance.npz") as new:
        np.savez(
            new,
            map=maps,
            importance=importance,
            layers=np.array(embedded.layers),
            encoder=np.array(encoder or ""),
        )
    if not showing.can_draw():
        return
    shares = analysis.contributions(maps)
    for name, figure in (
        (
            "importance",
            analysis.draw_importance(importance, embedded.layers, title),
        ),
        (
            "contributions",
            analysis.draw_contributions(shares, embedded.layers, title),
        ),
    ):
        figures.save(figure, out / f"{name}.png")
