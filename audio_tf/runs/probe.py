"""Probe frozen features: do they tell speakers and phonemes?

    audio-tf probe --model runs/full/preset --data-dir LibriSpeech \\
        --train-subsets train-clean-100 --train-list train_split.txt \\
        --test-list test_split.txt --by-time \\
        --alignment converted_aligned_phones.txt --out runs/full/probes
    audio-tf probe --dataset fsdd --data-dir fsdd --features s3prl \\
        --sample-rate-hz 8000 --out runs/mel
    audio-tf probe --out runs/mel --resume

Without --model the features themselves are probed, the papers' mel baseline;
with it the features are the model's. They are computed once and cached. The
folder --out gets config.json and probes.json, whose figures of a task are
those of the epoch that was best on the validation split, tested once.
--resume trains the tasks that are not in probes.json.
"""

import dataclasses
import functools
import pathlib
import sys
import time
import zlib

import keras
import numpy as np

from audio_tf import attention, data, files
from audio_tf.analysis import probes
from audio_tf.audio import RESAMPLER
from audio_tf.export.classifiers import read_provenance
from audio_tf.models import AudioBackbone
from audio_tf.ops.weights import weights_sha256
from audio_tf.runs import corpus_records, heard, provenance, results
from audio_tf.runs.corpus_settings import SpeechSettings
from audio_tf.runs.flags import run_by_flags
from audio_tf.runs.leakage import MODEL
from audio_tf.runs.probe_splits import (
    listed,
    num_classes,
    phonemes,
    task_splits,
    with_phones,
)
from audio_tf.runs.settings import POSITIVE, RATE, flag, setting, shared
from audio_tf.terminal import describe_failures


@dataclasses.dataclass
class ProbeSettings(SpeechSettings):
    """Features, probes and their training.

    The defaults are the settings of s3prl's branch AlbertNew.
    """

    model: str | None = shared(
        "model", None, unless_given="none: the features are probed"
    )
    layer: str | None = setting(
        None,
        "hidden state of the model, a number from 0, the embedding; "
        "`features` for the features that it computes",
        unless_given="the model's output",
    )
    tasks: list[str] = setting(probes.PAPER_PROBES, "probes", probes.PROBES)
    epochs: int = shared("epochs", 40)
    batch_size: int = shared("batch_size", 25)
    learning_rate: float = shared("learning_rate", 1e-3)
    hidden_dim: int = setting(
        768, "units of a probe's hidden layers", check=POSITIVE
    )
    hidden_dropout: float = setting(
        0.0, "dropout rate of a probe's hidden layers", check=RATE
    )
    val_share: float = setting(
        0.1,
        "share of train for validation, where there is no such split, drawn "
        "by --seed",
        check=RATE,
    )
    test_share: float = setting(
        0.0,
        "share of train for the test, where there is no such split, drawn "
        "by --seed",
        check=RATE,
    )
    by_time: bool = setting(
        False, "take the phone at the middle of a frame, if rates do not fit"
    )
    buckets: int = shared("buckets", 5)
    out: str = shared("out", "runs/probe")

    def check(self):
        super().check()
        if not self.tasks:
            raise ValueError("--tasks must name a probe. Received: none")
        if self.layer is None or self.layer == "features":
            return
        if not self.layer.isdecimal():
            raise ValueError(
                "--layer must be a number or `features`. "
                f"Received: --layer {self.layer}"
            )
        if self.model is None:
            raise ValueError(
                f"--layer needs --model. Received: --layer {self.layer}"
            )


# Settings that may differ when a run goes on.
FREE_SETTINGS = ("tasks", "data_dir", "cache_dir")


def load_features(settings):
    """Loads the layer whose outputs are probed.

    Args:
        settings: `ProbeSettings`.

    Returns:
        Triple of the layer, `SpeechFeatures` or `FrozenFeatures`; the settings
        with the model's features and rate in place; and a dict of facts about
        the model, `None` without a model.

    Raises:
        ValueError: if there is no such layer, or settings contradict the
            model.
    """
    if settings.model is None:
        return settings.feature_layer(), settings, None
    encoder = AudioBackbone.from_preset(settings.model, trainable=False)
    if encoder.features is None:
        raise ValueError(
            "--model must compute features, as a SpeechEncoder does. "
            f"Received: {settings.model}, an {type(encoder).__name__}"
        )
    own = {
        "features": encoder.features.preset,
        "sample_rate_hz": encoder.features.sample_rate_hz,
        "features_options": encoder.features.options,
    }
    for name, given in settings.those_given(own).items():
        value = own[name]
        fits = given == value
        if name == "features_options":
            fits = given.items() <= value.items()
        if not fits:
            raise ValueError(
                f"The model has {name}={value}. Received: {flag(name)} {given}"
            )
    print(
        f"features of the model: {own['features']}, "
        f"{own['sample_rate_hz']} Hz, {encoder.features.dim} a frame"
    )
    facts = {
        **provenance.model_facts(encoder),
        "weights_sha256": weights_sha256(encoder.weights),
    }
    origin = read_provenance(settings.model)
    if origin is not None:
        facts["provenance"] = origin
    attention.fold(encoder)
    features = encoder.features
    if settings.layer is None:
        features = probes.FrozenFeatures(encoder)
    elif settings.layer != "features":
        features = probes.FrozenFeatures(encoder, int(settings.layer))
    return features, settings.replace(**own), facts


def check_lengths(features, frames, clips):
    """Raises a `ValueError` if a clip is longer than the model takes.

    Args:
        features: `SpeechFeatures` or `FrozenFeatures`.
        frames: `Frames` of these features.
        clips: dict of `Clips` of samples by split.
    """
    limit = features.max_frames
    longest = max(int(each.lengths.max()) for each in clips.values())
    count = int(frames.lengths(longest))
    if limit is not None and count > limit:
        raise ValueError(
            f"The model takes {limit} frames; --max-s leaves longer "
            f"utterances out. Received: {count} frames"
        )


def run_task(task, clips, settings):
    """Trains and tests one probe; its seed depends on no other task.

    Args:
        task: str, a key of `PROBES`.
        clips: dict of `Clips` of features by split.
        settings: `ProbeSettings`.

    Returns:
        Dict for the report.
    """
    began = time.monotonic()
    keras.utils.set_random_seed(zlib.crc32(f"{settings.seed} {task}".encode()))
    utterances, _ = task_splits(task, clips, settings)
    classes = num_classes(task, utterances)
    probe = probes.create(
        task,
        utterances["train"].dim,
        classes,
        settings.hidden_dim,
        settings.hidden_dropout,
    )
    report = probes.train(
        probe,
        utterances,
        settings.epochs,
        settings.batch_size,
        settings.learning_rate,
        settings.seed,
        verbose=1 if sys.stdout.isatty() else 2,
    )
    targets = np.concatenate(
        [np.atleast_1d(each) for each in utterances["test"].targets]
    )
    return {
        **report,
        # The accuracy of one who always names the most frequent class.
        "chance": float(np.bincount(targets).max() / len(targets)),
        "num_classes": classes,
        "utterances": {split: len(each) for split, each in utterances.items()},
        "frames": {
            split: int(each.clips.lengths.sum())
            for split, each in utterances.items()
        },
        "parameters": probe.count_params(),
        "seconds": round(time.monotonic() - began, 2),
    }


def describe(tasks):
    """Returns a table of the figures, one line for each task.

    Args:
        tasks: dict of reports by task.
    """
    columns = ("test_accuracy", "val_accuracy", "chance")
    lines = [
        f"{'task':<16}{'test':>9}{'val':>9}{'chance':>9}{'classes':>9}"
        f"{'epoch':>7}{'s':>9}"
    ]
    for task, report in tasks.items():
        shares = "".join(f"{report[name]:9.4f}" for name in columns)
        lines.append(
            f"{task:<16}{shares}{report['num_classes']:>9}"
            f"{report['best_epoch']:>7}{report['seconds']:>9.1f}"
        )
    return "\n".join(lines)


def run(asked, out):
    """Trains and tests the probes of all tasks that are not done.

    A run that has begun in the folder goes on.

    Args:
        asked: `ProbeSettings`.
        out: path of the run's folder.
    """
    out = pathlib.Path(out)
    path = out / "probes.json"
    features, settings, model = load_features(asked)
    (corpora, record), root = listed(settings), settings.file_root()
    corpus_records.check(out, record)
    tasks = provenance.parts_done(
        path, "tasks", model, lambda facts: facts and facts["weights_sha256"]
    )
    clips = {
        split: settings.prepare(corpus, split)
        for split, corpus in corpora.items()
    }
    failures = {}
    for each in clips.values():
        failures |= each.failures
    record = corpus_records.leave_out(record, root, failures)
    corpus_records.check(out, record)
    todo = [task for task in settings.tasks if task not in tasks]
    if not todo:
        print(describe(tasks))
        return
    # Whatever does not fit, before hours of features.
    frames = data.Frames.of(features)
    check_lengths(features, frames, clips)
    leakage = settings.leakage()
    found = leakage.of_audio(clips)
    if settings.model is not None:
        known = heard.read(settings.model)
        found += leakage.of_model(MODEL, settings.model, known, clips)
    facts = {
        task: task_splits(task, clips, settings, frames)[1] for task in todo
    }
    for task, counted in facts.items():
        for what, counts in counted.items():
            if any(counts.values()):
                print(f"{task}: {what.replace('_', ' ')}: {counts}")
    if failures:
        print(describe_failures(failures))
    provenance.begin_run(out, asked, record, model=model)
    origin = {
        **provenance.run_facts(settings, out),
        "splits": settings.split_facts(),
        "leaks": results.leak_facts(settings, found),
        "corpus": corpus_records.summary(record),
        "build": settings.build_facts(),
        "resampler": RESAMPLER,
        "files_left_out": len(failures),
    }
    cache_dir = settings.prepare_arguments()["cache_dir"]
    for split, each in clips.items():
        if all(map(phonemes, todo)):
            # Features of utterances that no task sees are not computed.
            each = with_phones(each, split)
        clips[split] = data.cache_features(each, features, cache_dir)
    for task in todo:
        print(f"\n{task}")
        tasks[task] = {**run_task(task, clips, settings), **facts[task]}
        files.write_json(path, {"tasks": tasks, "model": model, **origin})
    print(f"\n{describe(tasks)}")


def kept(out):
    """Returns a text on the tasks that an unfinished run has done.

    Args:
        out: `pathlib.Path`, the folder of the run.
    """
    return provenance.parts_kept(out / "probes.json", "tasks")


main = functools.partial(
    run_by_flags, run, ProbeSettings, __doc__, free=FREE_SETTINGS, kept=kept
)
