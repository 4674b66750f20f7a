"""`score`: all sources into one folder of scores, and what is left of it."""

import contextlib
import dataclasses
import fcntl
import json
import os

import numpy as np
import tqdm

from audio_tf import pipelines
from audio_tf.ahead import map_ahead
from audio_tf.archives import listing, places, planning, tables
from audio_tf.ops.checks import check_positive, check_sizes

RUN, LOG = "run.json", "run.log"
# Samples of noise that tell one model from another of the same name.
PROBE = 8_000
# What scores of one model may differ by from machine to machine.
SAME = 1e-3


@dataclasses.dataclass(frozen=True)
class Result:
    """The content of a folder of results.

    Attributes:
        rows: int, clips and windows that have scores.
        failed: list of pairs of a name and why it has none.
        counters: dict of what this run has counted; empty if there was
            nothing to do.
    """

    rows: int
    failed: list
    counters: dict


def progress(plan, terminal):
    """Makes a bar of the clips that are scored, by the files that are there.

    Args:
        plan: `planning.Plan`.
        terminal: the file that the bar is written to.

    Returns:
        `pipelines.Watch`.
    """

    def look(bar):
        done, shards = plan.done(), []
        for found in plan.listings().values():
            shards += found.shards if found is not None else []
        bar.total = sum(shard.clips for shard in shards)
        bar.n = sum(shard.clips for shard in shards if shard.name in done)

    bar = tqdm.tqdm(unit=" clips", disable=None, file=terminal)
    every_s = 30.0 if places.is_remote(plan.out) else 1.0
    return pipelines.Watch(bar, look, every_s)


def score(
    sources,
    model,
    out,
    window_s=60.0,
    top=5,
    embeddings=False,
    labels=None,
    column="file",
    retry_failed=False,
    runner=None,
    options=(),
    workers=None,
):
    """Scores all clips of some sources into a folder of Parquet files.

    Scores are those of `audio_tf.classify`. A run that was stopped goes on
    where it was; sources that are new or have changed are scored, what is
    there is left alone.

    Args:
        sources: list of str, see `listing.find`.
        model: str, a preset or an export, as `load_classifier` takes it.
        out: str, the folder, which all machines must see.
        window_s: float, seconds from which on a recording becomes windows of
            that length, or `None`.
        top: int, how many labels a clip has, or `None` for all scores.
        embeddings: bool, whether clips get their embeddings, too.
        labels: list of str, names for a model that has none, or `None`.
        column: str, the column of manifests that has the paths.
        retry_failed: bool, whether to score anew the shards in which clips
            had failed.
        runner: str, a runner of Beam, or `None` for that of this machine.
        options: list of str, Beam's own flags.
        workers: int, processes on this machine; `None` for one a core.

    Returns:
        `Result`.

    Raises:
        ImportError: if Beam or pyarrow is not installed.
        FileNotFoundError: if a source holds nothing.
        OSError: if a filesystem refuses.
        ValueError: if an argument does not fit, also to what the folder holds
            already.
    """
    places.need_beam()
    from audio_tf.archives import pipeline

    if top is not None:
        check_sizes(top=top)
    if window_s is not None:
        check_positive(window_s=window_s)
    if runner is None:
        workers = workers or os.cpu_count()
        check_sizes(workers=workers)
        flags = [*pipelines.local_options(workers), *options]
    else:
        flags = pipelines.remote_options(runner, list(options))
    pipelines.check_options(flags, local=runner is None)
    if not places.is_remote(out):
        out = os.path.abspath(out)
    if not places.is_remote(model) and os.path.exists(model):
        model = os.path.abspath(model)
    with locked(out):
        settings = settle(
            out,
            tables.Settings(model, labels, window_s, top, embeddings),
            pipeline.load_classifier(model),
        )
        plan = planning.Plan(out)
        retried = failed_shards(plan) if retry_failed else ()
        plan.extend(listing.find(sources, column), retried)
        plan.clear()
        counted = work(plan, settings, flags, pipeline, runner is None)
        return finish(plan, counted)


@contextlib.contextmanager
def locked(out):
    """Refuses a second run into the same folder of this machine.

    Raises:
        RuntimeError: if there is one.
    """
    if places.is_remote(out):
        yield
        return
    os.makedirs(out, exist_ok=True)
    with open(os.path.join(out, ".lock"), "w") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise RuntimeError(
                f"{out}: another run is at work in this folder"
            ) from None
        yield


def settle(out, settings, classifier):
    """Completes settings by the model, and compares them with the folder's.

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
    audio = audio.astype("float32")[None]
    probe = np.asarray(classifier.score_batch(audio))[0].tolist()
    path = places.join(out, RUN)
    try:
        there = json.loads(places.read(path))
    except FileNotFoundError:
        text = {**settings._asdict(), "probe": probe}
        places.write(path, json.dumps(text, indent=1).encode())
        return settings
    for name, value in settings._asdict().items():
        # Its place may be another one on another machine.
        if name != "model" and there[name] != value:
            raise ValueError(
                f"{out} has scores with {name}={there[name]!r}; another "
                f"`out` takes others. Received: {name}={value!r}"
            )
    if not np.allclose(there["probe"], probe, rtol=0, atol=SAME):
        raise ValueError(
            f"{out} has scores of another model, {there['model']}, or of "
            f"other weights. Received: {settings.model}"
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


def logged(out, local):
    """Keeps what workers of this machine say in a file beside the results.

    Args:
        out: str, the folder of the results.
        local: bool. If False, all is left as it is.

    Returns:
        Context of the standard error as it was, open for writing.
    """
    here = local and not places.is_remote(out)
    return pipelines.logged(os.path.join(out, LOG) if here else None)


def work(plan, settings, flags, pipeline, local):
    """Scores the shards of a plan that have no file.

    Args:
        plan: `planning.Plan`.
        settings: `tables.Settings`.
        flags: list of str, Beam's.
        pipeline: the module.
        local: bool, whether the workers are of this machine.

    Returns:
        Dict of counters.
    """
    done, missing, unlisted = plan.done(), [], []
    listings = plan.listings()
    for part in plan.parts:
        if listings[part.name] is None:
            unlisted.append(part)
        else:
            missing += [
                shard
                for shard in listings[part.name].shards
                if shard.name not in done
            ]
    if not missing and not unlisted:
        return {}
    names = [shard.name for shard in pipeline.largest_first(missing)]
    with logged(plan.out, local) as terminal, progress(plan, terminal):
        return pipeline.run(names, unlisted, plan.out, settings, flags)


def read_ended(plan):
    """Reads what the files of scores say of rows and of what failed.

    Args:
        plan: `planning.Plan`.

    Returns:
        Pair of the rows in all, and a dict by the names of shards, and of
        parts for archives, of lists of pairs of a name and a reason.
    """
    found = plan.listings()
    failed = {
        name: listing.failed
        for name, listing in found.items()
        if listing is not None
    }
    names = sorted(plan.done())

    def read(name):
        return name, tables.read_counts(planning.shard_path(plan.out, name))

    rows = 0
    for name, counts in map_ahead(read, names, 8):
        rows += counts.rows
        failed[name] = counts.failed
    return rows, failed


def failed_shards(plan):
    """Returns the names of the shards and parts in which clips have failed."""
    return [name for name, found in read_ended(plan)[1].items() if found]


def finish(plan, counted):
    """Writes the list of what failed, and returns the `Result`."""
    # A process that outlived its run may have written what is out of date.
    plan.clear()
    rows, failed = read_ended(plan)
    pairs = sorted(pair for found in failed.values() for pair in found)
    tables.write_failed(plan.out, pairs)
    return Result(rows, pairs, counted)
