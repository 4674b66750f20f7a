"""Train the same model with each attention, and compare what they reach.

    audio-tf compare --train-config training/configs/esc10_paper.py \\
        --data-dir ESC-50-master --score-split test --out runs/attentions
    audio-tf compare --train-config commands.py --attentions full xbox \\
        --causality no yes --seeds 0 1 2 --out runs/commands

Each row is `audio-tf train` with the settings of --train-config, an attention,
a seed and a causality: the model has the same layers, heads and widths, and
trains as long. --causality yes is of the attentions: none sees a later frame,
whatever the front end does. Commands are printed, each has a process and a
folder of its own, and what is finished is kept: the same command goes on where
it stopped, and rows and seeds of --out that are not asked for now stay in the
table. With `test=False` in the config, settings are chosen by validation; once
it is taken out, --score-split test scores in the same --out what has been
trained.

--out gets leaderboard.csv and leaderboard.png. A row of the CSV is an
attention at a causality: the mean of the figure of the split over the seeds
and its 95 % interval by Student's t, `low` to `high`; how many seeds;
parameters, without the head's; multiply-adds of the attentions for one chunk,
as `audio-tf attentions` counts, and `paper_cost`, the "Theoretical Time" of
arXiv 2006.05174 for the same where that has one; the medians of the seconds of
inference of one chunk and of a training step, taken in turn with `full`
attention, and the ratio to it; peak MiB of training, beyond those of the
libraries. The last rows are what `audio-tf baseline` reaches. What was trained
or scored on other clips than most is named, and in no row.
"""

import dataclasses
import json
import pathlib
import sys

from audio_tf.runs import compare_costs, leaderboard, processes, rows
from audio_tf.runs.compare_rows import (
    buildable,
    kept_rows,
    of_row,
    table_rows,
)
from audio_tf.runs.compare_settings import BASELINE, CompareSettings
from audio_tf.runs.flags import check_folder, run_by_flags


def train(row, seed, settings):
    """Trains the model of a row with a seed, unless that is done.

    Args:
        row: `Row`.
        seed: int.
        settings: `CompareSettings`.

    Raises:
        ValueError: if the config was edited since the table has begun.
        subprocess.CalledProcessError: if the training fails.
    """
    out = row.run_folder(seed)
    if row.finished(seed):
        return
    training = settings.training()
    rows.check_configs(settings.out, configured(training))
    processes.run(
        "train",
        *("--config", settings.train_config),
        *rows.as_flags({**of_row(row, settings), "seed": seed}),
        *rows.as_flags(settings.those_given(("data_dir", "cache_dir"))),
        *("--out", out, *rows.resumed(out, training.test)),
    )


def configured(training):
    """Returns a dict of what the config of a table says of its trainings.

    Args:
        training: `TrainSettings`, which `CompareSettings.training` has read.
    """
    found = {"training": training.those_given(training.given - {"cache_dir"})}
    if training.data_dir is not None:
        place = pathlib.Path(training.data_dir).resolve()
        found["training"]["data_dir"] = str(place)
    return found


def timed_seed(row, seeds):
    """Returns the seed of the models whose time and memory are measured.

    Args:
        row: `Row`.
        seeds: list of int.

    Returns:
        The least that the row and `full` attention have finished, whatever
        order seeds are asked for in; `None` where there is none.
    """
    both = row, row.of_full()
    done = (seed for seed in seeds if all(each.finished(seed) for each in both))
    return min(done, default=None)


def costs(row, seed, settings):
    """Measures time and memory of a row's model, unless that is done.

    Args:
        row: `Row`.
        seed: int, of which the row's training and that of `full` attention
            are finished.
        settings: `CompareSettings`.

    Returns:
        Dict, as `compare_costs` writes it.
    """
    out, full = row.run_folder(seed), row.of_full().run_folder(seed)
    asked = {
        "model": str(out / "last.keras"),
        "full": str(full / "last.keras"),
        "made_with": [rows.made_with(each) for each in (out, full)],
        "batch_size": settings.training().batch_size,
        "repeats": settings.turns,
    }
    file = row.folder / "costs.json"
    return processes.measure(["compare", "costs"], file, asked)


def summed_up(settings, table, measured):
    """Sums up all rows that have a finished seed, asked for now or before.

    Args:
        settings: `CompareSettings`.
        table: list of `Row`.
        measured: dict by `Row` of `costs`.

    Returns:
        List of dicts by `leaderboard.COLUMNS`, without the cells that a row
        lacks, and without rows that have no figure, or none of the clips that
        most have.
    """
    found, seeds = [], rows.seeds_scored(settings)
    alike, _ = by_clips(settings, table)
    for row in table:
        done = [seed for seed in seeds if (row, seed) in alike]
        if not done:
            continue
        name, values = leaderboard.figure_of(
            [
                read(row.run_folder(seed) / f"{settings.score_split}.json")
                for seed in done
            ]
        )
        # The files of all labels may have been bad.
        if None in values:
            continue
        mean, low, high = rows.interval(values)
        facts = measured.get(row, {})
        found.append(
            {
                "attention": row.attention,
                "causal": row.causal,
                "figure": name,
                "mean": mean,
                "low": low,
                "high": high,
                "seeds": len(done),
                **{
                    each: facts[each]
                    for each in facts
                    if each in leaderboard.COLUMNS
                },
            }
        )
    found.sort(key=lambda each: (each["causal"], -each["mean"]))
    if settings.baseline_rows and rows.has_baseline(
        baseline_report(settings), seeds
    ):
        report = read(baseline_report(settings))
        found += leaderboard.baseline_rows(report)
    return found


def by_clips(settings, table):
    """Tells the runs that have the clips that most have from all others.

    Of whole clips an attention may take none that are as long as others take,
    and a file may not have been readable for a while.

    Args:
        settings: `CompareSettings`.
        table: list of `Row`.

    Returns:
        Pair of lists of pairs of a `Row` and a seed that it has finished:
        those that are compared, and the others.
    """
    found, seeds = {}, rows.seeds_scored(settings)
    for row in table:
        for seed in seeds:
            if not row.finished(seed):
                continue
            preset = row.run_folder(seed) / "preset"
            corpus = read(preset / "provenance.json")["corpus"]
            counts = "train", "val", settings.score_split
            mark = json.dumps({split: corpus.get(split) for split in counts})
            found.setdefault(mark, []).append((row, seed))
    # Of equally many the first, which has `full`.
    most = max(found.values(), key=len, default=[])
    others = [each for each in found.values() if each is not most]
    return most, sum(others, [])


def tell_of_others(others):
    """Prints which runs are not compared, as they are of other clips.

    Args:
        others: list of pairs of a `Row` and a seed, as `by_clips` returns it.
    """
    if others:
        print(
            "\nNot in the table, as their clips are not those that most have; "
            "`made_for_frames` in the config says up to which length "
            "attentions take whole clips:",
            *(str(row.run_folder(seed)) for row, seed in others),
            sep="\n  ",
        )


def read(file):
    """Returns the content of a JSON file."""
    return json.loads(pathlib.Path(file).read_text())


def baseline_report(settings):
    """Returns the path of the report of the baselines."""
    return pathlib.Path(settings.out) / f"baseline_{settings.score_split}.json"


def run_baseline(settings):
    """Runs `audio-tf baseline` on the same clips, unless that is done."""
    from audio_tf.runs.baseline import BaselineSettings

    training = settings.training()
    names = {each.name for each in dataclasses.fields(BaselineSettings)}
    rows.run_baseline(
        baseline_report(settings),
        rows.seeds_scored(settings),
        **training.those_given(names & training.given),
        split=settings.score_split,
    )


def begin(settings):
    """Makes the folder of the table, once config and corpus stand.

    Raises:
        ValueError: if the folder has rows of another setting, which is
            named, of a preset before it was trained anew in place, or of the
            corpus as it was before files of it changed, or the corpus has no
            clips with labels in the split.
    """
    from audio_tf import attention
    from audio_tf.runs import corpus_records, train_data

    training = settings.training()
    corpora = training.load()
    rows.check_scored(corpora, settings.score_split)
    asked = {
        **configured(training),
        "kwargs_by_attention": dict(settings.kwargs_by_attention),
        "split": settings.score_split,
    }
    out = pathlib.Path(settings.out)
    # Rows that are not asked for now stay as they were made.
    if (out / "config.json").is_file():
        # Without any it is of another command, which `rows.begin` refuses.
        before = read(out / "config.json").get("kwargs_by_attention", {})
        for name in rows.begun(out) & {*before} - {*settings.names()}:
            asked["kwargs_by_attention"][name] = before[name]
    # What a row failed by can be put right, or left out.
    known = {*attention.ATTENTIONS, *attention.MIXTURES, *settings.names()}
    names = known - rows.begun(out)
    unused = {f"kwargs_by_attention.{name}" for name in names}
    # Another split, and a test that was left out so far, need no training.
    unused |= {"split", *["training.test"] * training.test}
    presets = (training.model, *training.teachers)
    asked["weights"], gone = rows.weights_of(presets)
    # A table of before does not say of which weights it is.
    rows.begin(out, asked, unused | gone | {"weights"} - rows.said(out))
    # Or rows that are finished would stand beside others of another corpus.
    runs = rows.runs_in(out)
    record = train_data.listed(training, corpora)[1] if runs else None
    for run in runs:
        corpus_records.check(run, record, later="test")


def compare(settings):
    """Runs all rows, and ends with 1 if one has failed or is of other clips."""
    check_folder("out", settings.out, settings.training().data_dir)
    table = buildable(table_rows(settings), settings)
    begin(settings)
    out = pathlib.Path(settings.out)
    measured, failures = {}, rows.Failures()
    kept = kept_rows(settings, table)
    seeds = rows.seeds_scored(settings)
    rows.tell_of_seeds(out, settings.seeds, seeds)
    if settings.baseline_rows:
        with failures.kept():
            run_baseline(settings)
    # Seed by seed: a table that is stopped has all attentions.
    for seed in settings.seeds:
        for row in [*table, *kept]:
            if row not in kept:
                with failures.kept():
                    train(row, seed, settings)
            timed = timed_seed(row, seeds)
            if row not in measured and timed is not None:
                # Once, also where it fails.
                measured[row] = {}
                with failures.kept():
                    measured[row] = costs(row, timed, settings)
            board = summed_up(settings, [*table, *kept], measured)
            leaderboard.write(out / "leaderboard.csv", board)
    leaderboard.draw(out / "leaderboard.png", board, out.name)
    print(f"\n{settings.score_split} split; times are relative to {BASELINE}")
    print(leaderboard.format_table(board))
    _, others = by_clips(settings, [*table, *kept])
    tell_of_others(others)
    failures.end()
    if others:
        raise SystemExit(1)


def main(argv=None, prog=None):
    """Runs the comparison that the flags say.

    Args:
        argv: list of str, the flags; those of the process if `None`.
        prog: str, the program's name in usage and errors; the script's if
            `None`.
    """
    argv = sys.argv[1:] if argv is None else argv
    if len(argv) == 3 and argv[0] == "costs":
        _, file, asked = argv
        compare_costs.measure_costs(file, json.loads(asked))
        return
    run_by_flags(rows.alone(compare), CompareSettings, __doc__, argv, prog)
