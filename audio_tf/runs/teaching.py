"""The model that trains a classifier: itself, or by mixes and by teachers."""

import json
import os
import pathlib

import numpy as np

from audio_tf import data
from audio_tf.audio.audio_files import list_files
from audio_tf.corpora import Corpus
from audio_tf.models import AudioClassifier, ClassifierTraining, Distiller
from audio_tf.models.distillation import fit_of
from audio_tf.ops.weights import weights_sha256
from audio_tf.runs import callbacks, provenance
from audio_tf.runs.recipes import MIXINGS
from audio_tf.runs.train_settings import SOFTMAX_LOSS

# The name of the clips that the teachers alone judge, beside those of splits.
UNLABELLED = "unlabelled"


def load_teachers(settings, classifier):
    """Loads the teachers of a training, and checks that they fit.

    Args:
        settings: `TrainSettings`.
        classifier: `AudioClassifier` that is to be taught.

    Returns:
        List of `AudioClassifier`.

    Raises:
        ValueError: if one does not fit the classifier or is no classifier; it
            names the preset.
    """
    teachers = []
    for preset in settings.teachers:
        try:
            teacher = AudioClassifier.from_preset(preset)
            fit_of(classifier, teacher)
        except ValueError as error:
            raise ValueError(f"--teachers {preset}: {error}") from error
        teachers.append(teacher)
    return teachers


def teacher_facts(settings, teachers):
    """Describes the teachers of a training for its provenance.

    Args:
        settings: `TrainSettings`.
        teachers: list of `AudioClassifier`, as `load_teachers` returns it.

    Returns:
        List of dicts of `preset` and `weights_sha256`.
    """
    return [
        {"preset": preset, "weights_sha256": weights_sha256(teacher.weights)}
        for preset, teacher in zip(settings.teachers, teachers, strict=True)
    ]


def check_teachers(out, facts):
    """Raises a `ValueError` if a run would go on with other teachers.

    Args:
        out: `pathlib.Path`, the folder of the run; it may not be there yet.
        facts: list that `teacher_facts` has returned.
    """
    path = pathlib.Path(out, "config.json")
    if not path.is_file():
        return
    before = json.loads(path.read_text())["teachers"]
    changed = [
        now["preset"]
        for then, now in zip(before, facts, strict=True)
        if then != now
    ]
    if changed:
        raise ValueError(
            f"--teachers are not those that {path} lists, with which this run "
            f"began. Received: other weights of {changed}"
        )


def check_unheard(settings, record):
    """Checks that no teacher has learned from clips that are scored.

    What it has learned from is known where its preset lies in the folder of
    its training.

    Args:
        settings: `TrainSettings`.
        record: dict that `provenance.corpus_record` has returned.

    Raises:
        ValueError: if one has; it names the teacher and a clip.
    """
    scored = {
        (name, *entry)
        for split in ("val", "test")
        for name, entry in record["splits"].get(split, {}).items()
    }
    for preset in settings.teachers:
        folder = pathlib.Path(preset)
        path = folder.parent / "corpus.json"
        # A name of a released preset is no folder, whatever is around.
        if not (folder.is_dir() and path.is_file()):
            continue
        heard = json.loads(path.read_text())["splits"]["train"]
        shared = scored & {(name, *entry) for name, entry in heard.items()}
        if shared:
            raise ValueError(
                f"--teachers {preset} must not have learned from clips that "
                f"are scored here. Received: {len(shared)} of them, such as "
                f"{min(shared)[0]}"
            )


def without_labels(settings, corpus):
    """Lists the clips that the teachers alone judge.

    Args:
        settings: `TrainSettings`.
        corpus: `Corpus` of the training split.

    Returns:
        Dict of a `Corpus` whose clips have no labels by the name
        `UNLABELLED`; empty if no such clips are asked for.

    Raises:
        FileNotFoundError: if there is no such file or folder, a folder holds
            no audio, or a pattern matches none.
        ValueError: if a clip of the corpus has several labels or none, or
            scores are no softmax: to have no label says something then.
    """
    if not settings.unlabelled:
        return {}
    one_label = corpus.has_one_label()
    loss = settings.loss_name(one_label)
    if not one_label or loss != SOFTMAX_LOSS:
        clips = (
            "one label a clip"
            if one_label
            else "clips of several labels or none"
        )
        raise ValueError(
            "--unlabelled needs a corpus of one label a clip, and --loss "
            f"{SOFTMAX_LOSS}. Received: {clips}, loss={loss!r}"
        )
    found = list(dict.fromkeys(map(str, list_files(settings.unlabelled))))
    for file in found:
        if provenance.size_of(file) == provenance.MISSING:
            raise FileNotFoundError(f"{file}: no such file or folder")
    labels = [[] for _ in found]
    return {UNLABELLED: Corpus(found, labels, corpus.vocabulary)}


def further_roots(corpora):
    """Returns the folders that names of files without labels are relative to.

    Args:
        corpora: dict of `Corpus` by split, maybe with `UNLABELLED`.

    Returns:
        List of the path of the folder that all of them are below, empty if
        there are none.
    """
    if UNLABELLED not in corpora:
        return []
    files = map(os.path.abspath, corpora[UNLABELLED].files)
    return [os.path.commonpath([*map(os.path.dirname, files)])]


def with_unlabelled(corpora):
    """Puts the clips without labels behind those that are trained on.

    Args:
        corpora: dict of `Corpus` by split, maybe with `UNLABELLED`.

    Returns:
        Dict of `Corpus` by split, without `UNLABELLED`.
    """
    corpora = dict(corpora)
    more = corpora.pop(UNLABELLED, None)
    if more is not None:
        train = corpora["train"]
        corpora["train"] = Corpus(
            [*train.files, *more.files],
            [*train.labels, *more.labels],
            train.vocabulary,
        )
    return corpora


def same_audio(settings, chunks):
    """Finds clips that are in two splits.

    Args:
        settings: `TrainSettings`.
        chunks: dict of `Chunks` by split, where clips of `train` may be
            without labels.

    Returns:
        List of `leaks.Leak`. That a clip without a label is one of those with
        labels is no leak.

    Raises:
        ValueError: if a clip without a label is one that is scored, unless
            `other_splits` allows it.
    """
    clips = {split: each.clips for split, each in chunks.items()}
    if settings.unlabelled:
        known = chunks["train"].targets.any(axis=1)
        clips[UNLABELLED] = clips["train"].select(np.flatnonzero(~known))
        clips["train"] = clips["train"].select(np.flatnonzero(known))
    found = []
    for leak in data.same_audio(clips):
        if UNLABELLED in leak.splits:
            if "train" in leak.splits:
                continue
            if not settings.other_splits:
                raise ValueError(
                    "--unlabelled must not hold clips that are scored; "
                    "--other-splits allows that, and stands in the result. "
                    f"Received: {leak}"
                )
        found.append(leak)
    return found


def make_training(settings, classifier, one_label, teachers=()):
    """Makes the model whose `fit` trains a classifier.

    It is made anew where a run goes on: its layers draw by the epoch.

    Args:
        settings: `TrainSettings`.
        classifier: `AudioClassifier`, compiled.
        one_label: bool, whether each clip of the corpus has one label.
        teachers: list of `AudioClassifier`, as `load_teachers` returns it.

    Returns:
        The classifier itself, or a `ClassifierTraining` that has its
        optimizer and its loss.
    """
    mixing = MIXINGS[settings.mixing](classifier.sample_rate_hz)
    if teachers:
        training = Distiller(
            classifier,
            teachers,
            mixing,
            settings.teacher_share,
            settings.teacher_temperature,
        )
    elif mixing is not None:
        training = ClassifierTraining(classifier, mixing)
    else:
        return classifier
    # Where the optimizer is saved, its variables are in the classifier's order.
    classifier.optimizer.build(classifier.trainable_variables)
    training.compile(
        classifier.optimizer,
        classifier.loss,
        # Clips without labels do not count.
        weighted_metrics=callbacks.training_metrics(
            one_label, classifier.num_classes
        ),
        jit_compile=settings.compiles(),
    )
    return training


def training_name(settings):
    """Returns what the loss and the figures of training are of, in words."""
    words = []
    if settings.mixing != "none":
        words.append(f"mixed by {settings.mixing}")
    if settings.teachers:
        words.append(f"taught by {len(settings.teachers)}")
    return f"training ({', '.join(words)})" if words else "training"
