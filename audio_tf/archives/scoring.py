"""`score`: all sources into one folder of scores, and what is left of it."""

import contextlib
import dataclasses
import os

import tqdm

from audio_tf import files, pipelines
from audio_tf.ahead import map_ahead
from audio_tf.archives import (
    extending,
    listing,
    places,
    planning,
    settling,
    tables,
)
from audio_tf.audio.audio_files import tell_of_others
from audio_tf.ops.checks import check_positive, check_sizes

LOG = "run.log"


@dataclasses.dataclass(frozen=True)
class Result:
    """The content of a folder of results.

    Attributes:
        rows: int, clips and windows that have scores.
        failed: list of pairs of a name and why it has none.
        forgotten: list of names that had none, and that are given no more.
        counters: dict of what this run has counted; empty if there was
            nothing to do.
    """

    rows: int
    failed: list
    counters: dict
    forgotten: list


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

    Scores are those of `audio-tf classify`. A run that was stopped goes on
    where it was; sources that are new or have changed are scored, what is
    there is left alone. A source that was given by mistake is forgotten when
    it is given no more; see `extending.extend`.

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
        retry_failed: bool, whether to score anew the shards, and whole
            archives, in which clips had failed.
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
        workers = os.cpu_count() if workers is None else workers
        check_sizes(workers=workers)
        flags = [*pipelines.local_options(workers), *options]
    elif workers is not None:
        raise ValueError(
            "`workers` is of the runner of this machine. "
            f"Received: workers={workers}, runner={runner!r}"
        )
    else:
        flags = pipelines.remote_options(runner, list(options))
    pipelines.check_options(flags, local=runner is None)
    if not places.is_remote(out):
        files.check_folder("`out`", out)
        out = os.path.abspath(out)
    if not places.is_remote(model) and os.path.exists(model):
        model = os.path.abspath(model)
    settings = tables.Settings(model, labels, window_s, top, embeddings)
    # Sources that hold nothing leave no folder.
    found = list(listing.find(sources, column))
    with locked(out):
        settling.check(out, settings)
        plan = planning.Plan(out)
        plan.clear()
        forgotten = extending.extend(
            plan, found, read_ended(plan), retry_failed
        )
        plan.clear()
        todo = plan.todo()
        counted = {}
        if todo.shards or todo.unlisted:
            with (
                logged(plan.out, runner is None) as terminal,
                progress(plan, terminal),
                settling.refusals(out),
            ):
                counted = pipeline.run(todo, out, settings, flags, workers)
        else:
            # No worker looks whether the model is that of the folder.
            settling.settle(out, settings, pipeline.load_classifier(model))
        return finish(plan, counted, forgotten)


@contextlib.contextmanager
def locked(out):
    """Refuses a second run into the same folder of this machine.

    Where its files have no locks, the run goes on without.

    Raises:
        RuntimeError: if there is one.
    """
    if places.is_remote(out):
        yield
        return
    os.makedirs(out, exist_ok=True)
    with open(os.path.join(out, ".lock"), "w") as file:
        if not files.take_lock(file):
            raise RuntimeError(f"{out}: another run is at work in this folder")
        yield


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


def read_ended(plan):
    """Reads what the files of scores say of rows and of what failed.

    Args:
        plan: `planning.Plan`.

    Returns:
        `extending.Ended`, without what is forgotten.
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

    rows = {}
    for name, counts in map_ahead(read, names, 8):
        rows[name] = counts.rows
        left_out = plan.forgotten.get(name, ())
        failed[name] = [
            pair for pair in counts.failed if pair[0] not in left_out
        ]
    return extending.Ended(rows, failed)


def finish(plan, counted, forgotten):
    """Writes the list of what failed, and returns the `Result`.

    A warning for each archive counts what is passed over in it.
    """
    # A process that outlived its run may have written what is out of date.
    plan.clear()
    listings = plan.listings()
    for part in plan.parts:
        # Workers have listed them, whose warnings nobody sees.
        if listings[part.name] is not None:
            tell_of_others(part.archive, listings[part.name].others)
    ended = read_ended(plan)
    pairs = sorted(pair for found in ended.failed.values() for pair in found)
    tables.write_failed(plan.out, pairs)
    rows = sum(ended.rows.values())
    return Result(rows, pairs, counted, sorted(forgotten))
