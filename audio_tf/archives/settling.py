"""The settings of a folder of scores, completed by the model and compared.

They lie in `run.json`. What needs the model is looked at by the workers, which
load it anyway: the process that starts them need not.
"""

import builtins
import contextlib
import json

import numpy as np

from audio_tf.archives import places
from audio_tf.audio.chunking import Cutting

RUN, REFUSAL = "run.json", "refusal.json"
# Samples of noise that tell one model from another of the same name.
PROBE = 8_000
# What scores of one model may differ by from machine to machine.
SAME = 1e-3


def check(out, settings):
    """Compares settings with the folder's, as far as no model is needed.

    Args:
        out: str, the folder of the results.
        settings: `tables.Settings` as they are given.

    Raises:
        ValueError: if the folder holds scores of other settings.
    """
    there = read(out)
    if there is not None:
        skipped = ["labels"] if settings.labels is None else []
        compare(out, there, settings, skipped)


def read(out):
    """Returns the settings of a folder, a dict, or `None` if it has none."""
    try:
        return json.loads(places.read(places.join(out, RUN)))
    except FileNotFoundError:
        return None


def compare(out, there, settings, skipped=()):
    """Raises a `ValueError` if a setting is not the folder's.

    Args:
        out: str, the folder of the results.
        there: dict, its settings.
        settings: `tables.Settings`.
        skipped: names of fields that are not compared.
    """
    for name, value in settings._asdict().items():
        # Its place may be another one on another machine.
        if name not in ("model", *skipped) and there[name] != value:
            raise ValueError(
                f"{out} has scores with {name}={there[name]!r}; another "
                f"`out` takes others. Received: {name}={value!r}"
            )


def settle(out, settings, classifier):
    """Completes settings by the model, and compares them with the folder's.

    Workers that do so at the same time come to the same.

    Args:
        out: str, the folder of the results.
        settings: `tables.Settings`.
        classifier: `audio.scoring.ClipClassifier`.

    Returns:
        `tables.Settings`.

    Raises:
        ValueError: if the model knows no labels and none are given, gives no
            embeddings, or the folder holds scores of other settings.
    """
    settings = settings._replace(labels=labels_of(settings, classifier))
    if settings.embeddings and not classifier.embeds:
        raise ValueError(
            "`embeddings` needs a preset or a SavedModel; files of other "
            f"formats have scores alone. Received: model={settings.model}"
        )
    window = settings.window_s
    if None not in (window, classifier.chunk_s) and window < classifier.chunk_s:
        raise ValueError(
            "`window_s` must be at least the chunk that the model takes, "
            f"{classifier.chunk_s} s. Received: window_s={window}"
        )
    noise = np.random.default_rng(7).normal(0, 0.1, PROBE)
    audio = np.resize(noise, round((classifier.chunk_s or 1) * 16_000))
    audio = audio[: classifier.max_samples].astype("float32")[None]
    probe = np.asarray(classifier.score_batch(audio))[0].tolist()
    cutting = {
        "sample_rate_hz": classifier.sample_rate_hz,
        **Cutting.of(classifier)._asdict(),
    }
    there = read(out)
    if there is None:
        text = {**settings._asdict(), "probe": probe, "cutting": cutting}
        path = places.join(out, RUN)
        places.write(path, json.dumps(text, indent=1).encode())
        return settings
    compare(out, there, settings)
    if not np.allclose(there["probe"], probe, rtol=0, atol=SAME):
        raise ValueError(
            f"{out} has scores of another model, {there['model']}, or of "
            f"other weights. Received: {settings.model}"
        )
    # Folders of before do not say it. The probe is one chunk, and cannot.
    if there.get("cutting", cutting) != cutting:
        raise ValueError(
            f"{out} has scores of clips that were cut into chunks otherwise, "
            f"{there['cutting']} in samples. Received: {settings.model}, "
            f"which cuts them by {cutting}"
        )
    return settings


def labels_of(settings, classifier):
    """Returns the names of a model's classes.

    Raises:
        ValueError: if there are none, or others than it has classes.
    """
    given, own = settings.labels, classifier.labels
    if given is not None and own is not None:
        raise ValueError(
            "`labels` are for a model that knows none. Received: labels for "
            f"{settings.model}, which has {list(own)[:3]}..."
        )
    labels = own if given is None else given
    if labels is None:
        raise ValueError(
            f"{settings.model} knows no names of its {classifier.num_classes} "
            "classes: `labels` must name them. Received: none"
        )
    if len(labels) != classifier.num_classes:
        raise ValueError(
            f"`labels` must name the {classifier.num_classes} classes of "
            f"{settings.model}. Received: {len(labels)} names"
        )
    return list(labels)


@contextlib.contextmanager
def telling(out):
    """Leaves an error of a worker in the folder, for `refusals`.

    Runners hand on errors of workers as a trace, each in its own way.

    Args:
        out: str, the folder of the results.
    """
    try:
        yield
    except (ImportError, OSError, ValueError) as error:
        kinds = [each.__name__ for each in type(error).__mro__]
        kind = next(each for each in kinds if hasattr(builtins, each))
        text = json.dumps({"kind": kind, "message": str(error)})
        places.write(places.join(out, REFUSAL), text.encode())
        raise


@contextlib.contextmanager
def refusals(out):
    """Raises the error that a worker has left if a block raises one.

    Args:
        out: str, the folder of the results.
    """
    path = places.join(out, REFUSAL)
    places.remove([path])
    try:
        yield
    except Exception:
        try:
            told = json.loads(places.read(path))
        except FileNotFoundError:
            told = None
        if told is None:
            raise
        places.remove([path])
        raise getattr(builtins, told["kind"])(told["message"]) from None
