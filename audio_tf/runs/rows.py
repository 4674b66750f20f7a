"""Rows of a table: commands, each done once.

A table takes days, and is stopped and goes on: what is finished is not done
again, a row that fails is named and leaves the others alone.
"""

import contextlib
import functools
import hashlib
import json
import pathlib
import shlex
import statistics
import subprocess
import time

from audio_tf import files, intervals, released
from audio_tf.runs import processes
from audio_tf.runs.flags import check_folder, held
from audio_tf.runs.settings import flag


def resumed(out, test=False):
    """Returns a list of the flags that go on with a run, empty for none.

    Args:
        out: `pathlib.Path`, the folder of the run.
        test: bool, whether it scores the test, also if it has begun with
            `--no-test`.
    """
    flags = ["--resume", *["--test"] * test]
    return flags if (out / "config.json").is_file() else []


def scored(out, split):
    """Returns whether an `audio-tf train` has come to its end with a split.

    Args:
        out: path of the folder of the run.
        split: str; `"test"` may have been left out so far.
    """
    # Written behind all figures.
    file = pathlib.Path(out, "preset", "provenance.json")
    return file.is_file() and split in json.loads(file.read_text())["corpus"]


def seeds_in(out, asked, finished, kind="seed"):
    """Lists the seeds whose figures count in a table.

    What is finished stays in the table, whether its seed is asked for now or
    an earlier command has asked for it.

    Args:
        out: path of the table's folder.
        asked: list of int, the seeds that are asked for now.
        finished: function of the folder of a run to a bool.
        kind: str, what the names of such folders begin with.

    Returns:
        List of int, those asked for first, then others in order.
    """
    done = {seed_of(run, kind) for run in runs_in(out, kind) if finished(run)}
    return [*asked, *sorted(done.difference(asked))]


def seeds_scored(settings):
    """Lists the seeds whose trainings have scored the split of a table.

    Args:
        settings: those of the table: `out`, `seeds` and `score_split`.

    Returns:
        As `seeds_in`.
    """
    finished = functools.partial(scored, split=settings.score_split)
    return seeds_in(settings.out, settings.seeds, finished)


def seed_of(run, kind="seed"):
    """Returns the seed that the folder of a run is named after.

    Args:
        run: `pathlib.Path`, such as `full/seed_3`.
        kind: str, what the names of such folders begin with.

    Returns:
        int, or `None` of another folder, as of a copy that a user keeps.
    """
    kind_of, _, number = run.name.rpartition("_")
    return int(number) if kind_of == kind and number.isdecimal() else None


def tell_of_seeds(out, asked, seeds):
    """Prints which seeds of a table are not asked for now, and count.

    Args:
        out, asked: as `seeds_in` takes them.
        seeds: list that it has returned.
    """
    others = seeds[len(asked) :]
    if others:
        print(
            f"{out} has finished runs of other seeds than --seeds "
            f"{' '.join(map(str, asked))}, which count in their rows, too: "
            f"{', '.join(map(str, others))}"
        )


def made_with(out):
    """Returns a mark of the settings that a training was made with.

    What was measured of a training is not true of one that took its place.

    Args:
        out: `pathlib.Path`, the folder of the training.

    Returns:
        Str, the same for settings that train the same model.
    """
    from audio_tf.runs.train_settings import ASIDE

    settings = json.loads((out / "config.json").read_text())["settings"]
    told = {name: settings[name] for name in sorted({*settings} - ASIDE)}
    return hashlib.sha256(json.dumps(told).encode()).hexdigest()


def as_flags(values):
    """Returns a list of flags and values from a dict of settings."""
    flags = []
    for name, value in values.items():
        if isinstance(value, bool):
            flags.append(flag(name) if value else flag(f"no_{name}"))
            continue
        if isinstance(value, dict):
            value = json.dumps(value)
        several = value if isinstance(value, list) else [value]
        flags += [flag(name), *several]
    return flags


def has_baseline(report, seeds):
    """Returns whether a report of `audio-tf baseline` is there, of some seeds.

    One of others, as the folder may have, does not stand beside the rows.
    """
    report = pathlib.Path(report)
    if not report.is_file():
        return False
    its_own = json.loads(report.read_text())["settings"]["seeds"]
    return sorted(its_own) == sorted(seeds)


def run_baseline(report, seeds, **values):
    """Runs `audio-tf baseline` unless its report is there.

    A report of other seeds, or of the corpus before files of it changed, is
    removed first: it would stand beside the rows if the command failed.

    Args:
        report: path of the report.
        seeds: list of int, those of the rows.
        **values: its other settings.
    """
    from audio_tf.runs import baseline

    report = pathlib.Path(report)
    asked = {**values, "seeds": seeds, "report": str(report)}
    if has_baseline(report, seeds):
        content = json.loads(report.read_text())
        if baseline.still_holds(content, baseline.BaselineSettings(**asked)):
            return
    report.unlink(missing_ok=True)
    processes.run("baseline", *as_flags(asked))


def said(out):
    """Returns what a table's folder says of its rows, a set of names.

    Args:
        out: `pathlib.Path` of the folder; one that has not begun says nothing.
    """
    file = out / "config.json"
    return set(json.loads(file.read_text())) if file.is_file() else set()


def begin(out, asked, unused=()):
    """Makes the folder of a table.

    Args:
        out: path of the folder.
        asked: dict that JSON can hold: all that rows are made with.
        unused: names in `asked` that no row in the folder was made with; a
            dot leads into a dict, as in `"kwargs_by_attention.xbox"`.

    Raises:
        ValueError: if the folder has rows of another setting.
    """
    out = pathlib.Path(out)
    # As it comes out of the file.
    asked = json.loads(json.dumps(asked))
    file = out / "config.json"
    before = json.loads(file.read_text()) if file.is_file() else asked
    changed = list(differing(before, asked, unused))
    if changed:
        raise ValueError(
            f"{out} holds rows of other configs or data; choose another --out. "
            f"Received: other values of {', '.join(changed)}"
        )
    out.mkdir(parents=True, exist_ok=True)
    files.write_json(file, asked)


def check_configs(out, asked):
    """Checks that the configs of a table say what they said as it began.

    Each row reads them when it begins, hours or days after the table has: one
    that was edited meanwhile would train the other rows otherwise.

    Args:
        out: path of the folder of the table; one that has not begun is of no
            configs yet.
        asked: dict, those parts of what `begin` was given that configs say,
            as they say it now.

    Raises:
        ValueError: if a config says something else.
    """
    file = pathlib.Path(out, "config.json")
    if not file.is_file():
        return
    before = json.loads(file.read_text())
    before = {name: before.get(name) for name in asked}
    changed = list(differing(before, json.loads(json.dumps(asked)), ()))
    if changed:
        raise ValueError(
            f"Configs must say until {out} is done what they said as it "
            "began: each row reads them anew. Received: other values of "
            + ", ".join(changed)
        )


def weights_of(presets, within="weights"):
    """Marks the presets that rows build on, which may be trained anew in place.

    Args:
        presets: iterable of str, their names or folders.
        within: str, the name in `asked` that the marks will have.

    Returns:
        Pair of a dict by preset of `released.weights_mark`, and the set of
        the names that `begin` takes as `unused`: of sizes, and of presets that
        are gone, from which nothing can be trained any more.
    """
    marks = {each: released.weights_mark(each) for each in presets}
    gone = {f"{within}.{each}" for each in marks if marks[each] is None}
    return marks, gone


def alone(table):
    """Returns a function of settings that makes a table as no other process.

    Two at work in one folder would name each other's rows as failed, and be
    in the way of what is timed.

    Args:
        table: function of the settings of a table, which have `out`.

    Raises:
        BlockingIOError: if another process holds the folder.
    """

    @functools.wraps(table)
    def run(settings):
        check_folder("out", settings.out)
        with held(pathlib.Path(settings.out)):
            table(settings)

    return run


def check_scored(corpora, split):
    """Checks that the split whose figures count has clips with labels.

    Args:
        corpora: dict of `Corpus` by split.
        split: str, the value of `--score-split`.

    Raises:
        ValueError: if it has none; there would be no figure of any row.
    """
    clips = {name: len(corpus) for name, corpus in corpora.items()}
    if not clips.get(split):
        raise ValueError(
            "--score-split must have clips. Received: "
            f"{split}, and clips {clips}"
        )
    if not any(corpora[split].labels):
        raise ValueError(
            "--score-split must have clips with labels, or no figure is "
            f"defined. Received: {split}, {clips[split]} clips without any"
        )


def runs_in(out, kind="seed"):
    """Lists the folders of the trainings of a table that were begun.

    Args:
        out: path of the table's folder.
        kind: str, what the names of such folders begin with.
    """
    begun = pathlib.Path(out).rglob(f"{kind}_*/config.json")
    runs = sorted(file.parent for file in begun)
    return [run for run in runs if seed_of(run, kind) is not None]


def begun(out):
    """Returns the set of the rows' names of which a training was begun.

    Args:
        out: `pathlib.Path` of the table's folder.
    """
    return {run.parts[-2] for run in runs_in(out)}


def differing(before, asked, unused, within=""):
    """Yields a text for each value that two dicts do not share.

    Args:
        before, asked: dicts, which may have dicts within.
        unused: names whose values do not count.
        within: str, what the names of these dicts begin with.

    Yields:
        Such as `"training.epochs (10, now 20)"`.
    """
    for key in sorted({**before, **asked}):
        name, old, new = within + key, before.get(key), asked.get(key)
        if name in unused or old == new:
            continue
        if isinstance(old, dict) and isinstance(new, dict):
            yield from differing(old, new, unused, f"{name}.")
        else:
            yield f"{name} ({old!r}, now {new!r})"


class Failures:
    """The commands of a table that have failed.

    Attributes:
        commands: list of str, with a comment on the signal that ended one.
    """

    def __init__(self):
        self.commands = []

    @contextlib.contextmanager
    def kept(self):
        """Makes a context in which a command may fail, and is remembered."""
        try:
            yield
        except subprocess.CalledProcessError as error:
            # Hours of other rows must not be lost with this one.
            command = error.cmd[len(processes.AUDIO_TF) :]
            ended = processes.ended_by(error.returncode)
            self.commands.append(shlex.join(["audio-tf", *command]) + ended)

    def end(self):
        """Names the commands that have failed, if there are any.

        Raises:
            SystemExit: with status 1, after that.
        """
        if self.commands:
            print(
                f"\n{len(self.commands)} runs failed:",
                *self.commands,
                sep="\n  ",
            )
            raise SystemExit(1)


def in_turn(functions, repeats, clock=time.perf_counter):
    """Measures functions that take turns, so that other load meets all alike.

    Args:
        functions: dict by name of functions without arguments.
        repeats: int, turns that count; one before them compiles.
        clock: function that returns seconds.

    Returns:
        Dict by name of the median of the seconds of a call.
    """
    seconds = {name: [] for name in functions}
    for turn in range(repeats + 1):
        for name, function in functions.items():
            start = clock()
            function()
            if turn:
                seconds[name].append(clock() - start)
    return {name: statistics.median(each) for name, each in seconds.items()}


def interval(values, least=0.0, most=1.0):
    """Computes a mean and its 95 % interval by Student's t.

    Args:
        values: list of floats, one a seed.
        least: float, below which no value can be.
        most: float, above which no value can be.

    Returns:
        Triple of floats: mean, lower and upper end. The ends are `None` for
        one value, and for values that are all the same: the interval would be
        of no width, as sure of any other seed.
    """
    from scipy import stats

    mean = statistics.fmean(values)
    if max(values) - min(values) <= intervals.SAME:
        return mean, None, None
    error = statistics.stdev(values) / len(values) ** 0.5
    reach = float(stats.t.ppf(0.975, len(values) - 1)) * error
    return mean, max(least, mean - reach), min(most, mean + reach)
