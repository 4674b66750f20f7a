"""Train an audio classifier from files to a preset and a SavedModel.

    audio-tf train --config training/configs/demo.py
    audio-tf train --dataset fsd50k --data-dir FSD50K --out runs/fsd
    audio-tf train --out runs/fsd --resume

The folder --out gets config.json, history.csv, last.keras and best.keras,
TensorBoard logs, the best model as a KerasHub preset, its figures (val.json,
test.json), learning curves, confusion matrices, figures of each class and
lists of errors, and with --export a SavedModel for TensorFlow Serving. Where
clips have any number of labels, thresholds.json has the score from which on a
clip is said to have each, calibrated on validation. --no-test leaves the test
split out while settings are chosen; `audio-tf evaluate` scores it then.
"""

import dataclasses
import functools
import pathlib
import sys

import keras
import numpy as np

from audio_tf import data, files, metrics, thresholds
from audio_tf.audio import RESAMPLER
from audio_tf.corpora import leaks
from audio_tf.data.shares import WHOLE
from audio_tf.export import export
from audio_tf.models import freezing
from audio_tf.runs import (
    beside,
    checkpoints,
    corpus_records,
    heard,
    hosts,
    provenance,
    results,
    showing,
    train_callbacks,
    train_data,
    unlabelled,
)
from audio_tf.runs.flags import run_by_flags
from audio_tf.runs.model_leaks import ModelLeaks
from audio_tf.runs.optimizing import compile
from audio_tf.runs.teaching import (
    check_teachers,
    load_teachers,
    make_training,
    teacher_facts,
)
from audio_tf.runs.train_model import build, kept_model
from audio_tf.runs.train_settings import TrainSettings
from audio_tf.terminal import describe_failures

# Settings that may differ when a run goes on.
FREE_SETTINGS = ("data_dir", "cache_dir", "export", "test", *beside.BESIDE)


@dataclasses.dataclass(frozen=True)
class Prepared:
    """The clips and facts that a training is made from, and tells at its end.

    The models are not in it: they are let go of before the one that is kept
    is loaded.

    Attributes:
        chunks: dict of `Chunks` by split, as `load_chunks` returns it.
        known: list of the `Clips` that are trained on, and of those beside.
        before: `heard.Heard` of the model that training begins with.
        failures: dict of the reason by path of each file that was left out.
        facts: dict of what all figures have beside them.
        origin: dict, how the model comes to be.
    """

    chunks: dict
    known: list
    before: heard.Heard
    failures: dict
    facts: dict
    origin: dict


def fit(settings, classifier, chunks, out, teachers=(), share=WHOLE, bank=None):
    """Trains a new or a resumed model to the last epoch.

    Args:
        settings: `TrainSettings`.
        classifier: `AudioClassifier`; compiled here if it is new.
        chunks: dict of `Chunks` by split, as `load_chunks` returns it.
        out: `pathlib.Path`, the folder of the run.
        teachers: list of `AudioClassifier`, as `load_teachers` returns it.
        share: `Share` of this host.
        bank: float32 array of recordings of noise, or `None`.

    Raises:
        ValueError: if devices cannot share batches evenly, or none is full.
    """
    spread = settings.distribution != "none"
    share.check(settings.batch_size)
    steps = chunks["train"].num_batches(settings.batch_size, spread)
    if not steps:
        raise ValueError(
            f"No batch is full, as --distribution needs. Received: "
            f"--batch-size {settings.batch_size}, "
            f"{len(chunks['train'])} chunks"
        )
    targets = known_targets(settings, chunks)
    figure = metrics.headline(targets)
    one_label = metrics.one_label_each(targets)
    last = out / "last.keras"
    if not last.is_file():
        compile(classifier, settings, steps, one_label)
    training = make_training(settings, classifier, one_label, teachers, bank)
    first_epoch = checkpoints.epochs_done(last)
    stages = train_callbacks.of_training(
        settings, classifier, chunks, out, share, figure, first_epoch
    )
    is_over = train_callbacks.is_over(settings, out, first_epoch)
    if hosts.first_says(is_over, share):
        return
    training.fit(
        chunks["train"].dataset(
            settings.batch_size,
            shuffle=True,
            seed=settings.seed,
            jitter=settings.jitter,
            first_epoch=first_epoch,
            full_batches=spread,
            share=share,
        ),
        steps_per_epoch=steps,
        initial_epoch=first_epoch,
        epochs=settings.epochs,
        callbacks=train_callbacks.in_order(stages),
        shuffle=False,  # The dataset has its own order for each epoch.
        verbose=1 if sys.stdout.isatty() and share.is_first else 0,
    )


def known_targets(settings, chunks):
    """Returns the targets of training but those that the teachers alone judge.

    Args:
        settings: `TrainSettings`.
        chunks: dict of `Chunks` by split, as `load_chunks` returns it.
    """
    return chunks["train"].targets[unlabelled.known(settings, chunks)]


def have_one_label(settings, chunks):
    """Returns whether each clip of training and validation has one label.

    Args:
        settings: `TrainSettings`.
        chunks: dict of `Chunks` by split, as `load_chunks` returns it.
    """
    targets = [known_targets(settings, chunks)]
    if "val" in chunks:
        targets.append(chunks["val"].targets)
    return all(map(metrics.one_label_each, targets))


def report(classifier, chunks, out, facts, one_label, batch_size):
    """Scores the test split, writes its figures, and shows both splits.

    Args:
        classifier: `AudioClassifier`.
        chunks: dict of `Chunks` by split, as `load_chunks` returns it.
        out: `pathlib.Path`, the folder of the run.
        facts: dict of what `val.json` and `test.json` have beside the
            figures.
        one_label: bool, whether each clip has one label, as `have_one_label`
            says, and none a threshold.
        batch_size: int, chunks that are scored at once.

    Returns:
        Pair of a dict of the figures by split, of those that there are, and
        of a dict by label of the thresholds that the validation split has
        been taken for, `None` without one and where each clip has one label.
    """
    figures, calibrated = {}, None
    for split, words in (
        ("val", "validation split, the best epoch's clip scores"),
        ("test", "test split, clip scores are means over chunks"),
    ):
        if split not in chunks:
            continue
        kept = out / checkpoints.SCORES
        # The best epoch's, which need no second pass over the clips.
        scores = (
            np.load(kept)
            if split == "val" and kept.is_file()
            else data.score_clips(
                classifier, chunks[split], batch_size, verbose=0
            )
        )
        figures[split] = showing.report_split(
            out,
            split,
            chunks[split],
            scores,
            classifier.labels,
            facts,
            calibrated,
        )
        print(f"\n{words}")
        print(results.format_figures(figures[split]))
        if split == "val" and not one_label:
            # After its own figures, which would be flattered.
            calibrated = thresholds.calibrate(
                chunks[split].targets, scores, classifier.labels
            )
            files.write_json(out / "thresholds.json", calibrated)
    return figures, calibrated


def save(classifier, out, origin, known, exported=False, before=heard.Heard()):
    """Writes the preset of a run, whole or not at all, and a SavedModel.

    Args:
        classifier: `AudioClassifier`.
        out: `pathlib.Path`, the folder of the run.
        origin: dict for `provenance.json`, how the model came to be.
        known: list of `Clips` that it was trained on.
        exported: bool, whether to write a SavedModel too.
        before: `heard.Heard` of the model that it began with.
    """
    has_heard = [heard.Heard(clips.marks) for clips in known]
    teachers = map(heard.read, origin["settings"]["teachers"])
    with files.whole_folder(out / "preset") as new:
        classifier.save_to_preset(str(new))
        files.write_json(new / "provenance.json", origin)
        heard.write(new, [*has_heard, before, *teachers])
    print(f"\npreset: {out / 'preset'}")
    if exported:
        origin = heard.noted(origin, out / "preset")
        path = export(classifier, out / "saved_model", provenance=origin)
        print(f"SavedModel: {path}")


def run(settings, out):
    """Trains a classifier, from the corpus to the preset.

    A run that has begun in the folder goes on. Of several hosts the first one
    alone writes, and scores the splits at the end.

    Args:
        settings: `TrainSettings`.
        out: path of the run's folder.
    """
    out = pathlib.Path(out)
    with hosts.scope(settings, out) as share:
        prepared = train(settings, out, share)
    if not share.is_first:
        return
    classifier = kept_model(settings, out)
    # A preset that was frozen for this run is not for the next one.
    if settings.trainable == "head":
        freezing.thaw(classifier.backbone)
    chunks = prepared.chunks
    one_label = have_one_label(settings, chunks)
    figures, calibrated = report(
        classifier,
        chunks,
        out,
        prepared.facts,
        one_label,
        settings.scored_at_once,
    )
    origin = {
        **prepared.origin,
        **prepared.facts,
        "resampler": RESAMPLER,
        "labels": classifier.labels,
        "thresholds": calibrated,
        "test": figures.get("test"),
    }
    known, before = prepared.known, prepared.before
    save(classifier, out, origin, known, settings.export, before)
    if prepared.failures:
        print(describe_failures(prepared.failures))


def train(settings, out, share):
    """Trains a classifier on this host, among others.

    Args:
        settings: `TrainSettings`.
        out: `pathlib.Path`, the folder of the run.
        share: `Share` of this host.

    Returns:
        `Prepared`.
    """
    keras.mixed_precision.set_global_policy(settings.precision)
    corpora = settings.load()
    found = leaks.of_sources(corpora)
    corpora, record = train_data.listed(settings, corpora, out)
    # Before all is decoded, for which hosts wait for each other.
    hosts.check_same(settings, record, out, FREE_SETTINGS, share, later="test")
    if (out / "last.keras").is_file():
        classifier = keras.saving.load_model(out / "last.keras")
    else:
        classifier = build(settings, corpora["train"])
    settings.check_chunks(classifier)
    teachers = load_teachers(settings, classifier)
    taught_by = teacher_facts(settings, teachers)
    check_teachers(out, taught_by)
    of_models = ModelLeaks(settings, out)
    by_list = of_models.by_list(corpora, record)
    clips = train_data.decode_all(settings, corpora, classifier, share)
    found += settings.leakage().of_audio(clips.sides)
    found += of_models.by_marks(clips.sides, by_list)
    root, others = settings.file_root(), beside.roots(corpora)
    record = corpus_records.leave_out(record, root, clips.failures, others)
    hosts.check_same(settings, record, out, FREE_SETTINGS, share, later="test")
    begun = {
        "model": provenance.model_facts(classifier.backbone),
        "teachers": taught_by,
        "built_on": provenance.built_on(settings, out),
    }
    if share.is_first:
        heard.keep(out, of_models.before)
        provenance.begin_run(out, settings, record, **begun)
    prepared = Prepared(
        clips.chunks,
        clips.learned_from,
        of_models.before,
        clips.failures,
        facts={
            **results.facts(settings, record, found, others),
            "causal": begun["model"]["causal"],
        },
        origin={
            **provenance.run_facts(settings, out),
            **begun,
            "licences": corpus_records.licence_facts(
                corpora["train"], clips.failures
            ),
        },
    )
    fit(settings, classifier, clips.chunks, out, teachers, share, clips.bank)
    return prepared


main = functools.partial(
    run_by_flags,
    run,
    TrainSettings,
    __doc__,
    free=FREE_SETTINGS,
    kept=checkpoints.kept,
)
