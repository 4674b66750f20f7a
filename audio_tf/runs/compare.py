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
table.

--out gets leaderboard.csv and leaderboard.png. A row of the CSV is an
attention at a causality: the mean of the figure of the split over the seeds
and its 95 % interval by Student's t; parameters; multiply-adds of the
attentions for one chunk, as `audio-tf attentions` counts; the medians of the
time of inference of one chunk and of a training step, taken in turn with
`full` attention, and the ratio to it; peak memory of training, beyond that of
the libraries. The last rows are what `audio-tf baseline` reaches.
"""

import dataclasses
import json
import pathlib
import sys

from audio_tf.runs import compare_costs, leaderboard, rows
from audio_tf.runs.flags import check_folder, read_config, run_by_flags
from audio_tf.runs.model_settings import attention_names, check_attention
from audio_tf.runs.settings import (
    POSITIVE,
    SEED,
    THE_CONFIGS,
    Settings,
    flag,
    setting,
    shared,
)

# The attention whose time is 1.
BASELINE = "full"
CAUSALITIES = {"no": False, "yes": True}
# Settings of a training that a row of the table has of its own.
OWN = ("attention", "attention_kwargs", "causal", "seed", "out")


@dataclasses.dataclass
class CompareSettings(Settings):
    """Attentions, seeds and the training that they have in common."""

    train_config: str | None = setting(
        None, "settings of audio-tf train", unless_given="needed"
    )
    data_dir: str | None = shared("data_dir", None, unless_given=THE_CONFIGS)
    cache_dir: str | None = shared("cache_dir", None, unless_given=THE_CONFIGS)
    attentions: list[str] | None = setting(
        None,
        "attentions of the rows, with `full`; `hybrid_local` has local and "
        "full attention block by block in turn",
        unless_given="all",
    )
    kwargs_by_attention: dict = setting(
        {}, "further arguments by attention, a JSON object of objects"
    )
    causality: list[str] = setting(
        ["no"], "whether attentions are causal: no, yes, or both", CAUSALITIES
    )
    seeds: list[int] = setting([0, 1, 2], "seeds whose mean counts", check=SEED)
    score_split: str = setting(
        "val", "split whose figures count", ["val", "test"]
    )
    turns: int = setting(
        21, "timed turns, of which the median counts", check=POSITIVE
    )
    baseline_rows: bool = setting(
        True, "also run audio-tf baseline, on the same clips"
    )
    out: str = shared("out", "runs/compare")

    def check(self):
        super().check()
        if "train_config" not in self.given:
            raise ValueError("--train-config is needed. Received: none")
        for name in ("causality", "seeds", "attentions"):
            if getattr(self, name) == []:
                raise ValueError(f"{flag(name)} must not be empty")
        # A config may add attentions.
        self.training()
        names = self.names()
        for name in names:
            check_attention(name, "attentions")
        if BASELINE not in names:
            raise ValueError(
                f"--attentions must name {BASELINE}, whose time is 1. "
                f"Received: {names}"
            )
        for name, options in self.kwargs_by_attention.items():
            if name not in names or not isinstance(options, dict):
                raise ValueError(
                    "--kwargs-by-attention must be objects by names of "
                    f"--attentions. Received: {name!r}: {options!r}"
                )
            check_options(name, options)

    def names(self):
        """Returns a list of the attentions, the baseline's first."""
        names = self.attentions
        if names is None:
            names = attention_names()
        return sorted(names, key=lambda name: name != BASELINE)

    def training(self):
        """Reads the settings of the training, and checks them as it does.

        Returns:
            `TrainSettings`.

        Raises:
            ValueError: if they say what the rows say, or the model has no
                attention.
        """
        from audio_tf.runs.train_settings import TrainSettings

        config = read_config(
            self.train_config, TrainSettings, "train_config", OWN
        )
        if "causal" in config.get("model_kwargs", {}):
            raise ValueError(
                f"{self.train_config}: 'causal' of 'model_kwargs' is that of "
                f"the rows. Received: {config['model_kwargs']}"
            )
        places = self.those_given(("data_dir", "cache_dir"))
        settings = TrainSettings(**{**config, **places})
        if self.score_split == "test" and not settings.test:
            raise ValueError(
                f"{self.train_config}: --score-split test needs the test, "
                f"which it leaves out. Received: test={settings.test}"
            )
        takes = model_takes(settings)
        needed = ["attention", *["causal"] * ("yes" in self.causality)]
        for name in [each for each in needed if each not in takes]:
            raise ValueError(
                f"{self.train_config}: the rows differ in `{name}`, and the "
                f"model has none. Received: model={settings.model!r}"
            )
        return settings


def check_options(name, options):
    """Raises a `ValueError` if an attention has no argument of such a name.

    A row that could not be built would be found when it begins, hours later.

    Args:
        name: str, as `attention.parts_of` takes it.
        options: dict of its further arguments.
    """
    from audio_tf import attention

    try:
        parts = attention.by_block(name, options, len(attention.parts_of(name)))
        for part, own in zip(*parts, strict=True):
            attention.check_arguments(part, own)
    except TypeError as error:
        raise ValueError(f"--kwargs-by-attention: {error}") from error


def model_takes(training):
    """Lists the arguments that the backbone of `TrainSettings` takes."""
    from audio_tf.models import preset_backbones

    return preset_backbones.accepted(*preset_backbones.describe(training.model))


@dataclasses.dataclass(frozen=True)
class Row:
    """One attention at one causality.

    Attributes:
        attention: str, its name.
        causal: str, a key of `CAUSALITIES`.
        folder: `pathlib.Path` of its runs.
    """

    attention: str
    causal: str
    folder: pathlib.Path

    def of_full(self):
        """Returns the row of `full` attention at the same causality."""
        return Row(BASELINE, self.causal, self.folder.with_name(BASELINE))

    def run_folder(self, seed):
        """Returns the folder of the run with a seed."""
        return self.folder / f"seed_{seed}"

    def finished(self, seed):
        """Returns whether the training with a seed has written its preset."""
        return rows.trained(self.run_folder(seed))


def table_rows(settings):
    """Lists the rows of the table, and says which there cannot be.

    Args:
        settings: `CompareSettings`.

    Returns:
        List of `Row`, the baseline's first at each causality.
    """
    from audio_tf import attention

    found, out = [], pathlib.Path(settings.out)
    for causal in settings.causality:
        for name in settings.names():
            parts = map(attention.find, attention.parts_of(name))
            can = all(part.supports_causal for part in parts)
            if CAUSALITIES[causal] and not can:
                print(f"{name} cannot be causal: no row of --causality yes")
                continue
            folder = out / f"causal_{causal}" / name
            found.append(Row(name, causal, folder))
    return found


def kept_rows(settings, table):
    """Lists the rows of the folder that an earlier command has asked for.

    They are of the same settings, as `begin` has found.

    Args:
        settings: `CompareSettings`.
        table: list of `Row`, those that are asked for now.

    Returns:
        List of `Row`, none of the table's.
    """
    found = {}
    for run in rows.runs_in(pathlib.Path(settings.out)):
        causal = run.parts[-3].removeprefix("causal_")
        found[Row(run.parts[-2], causal, run.parent)] = None
    return [row for row in found if row not in table]


def of_row(row, settings):
    """Returns a dict of the settings of the training that a row has its own.

    Args:
        row: `Row`.
        settings: `CompareSettings`.
    """
    own = {"attention": row.attention}
    training = settings.training()
    if CAUSALITIES[row.causal]:
        # `--causal` would refuse a front end that looks ahead.
        own["model_kwargs"] = {**training.model_kwargs, "causal": None}
    elif "causal" in model_takes(training):
        own["causal"] = False
    if row.attention in settings.kwargs_by_attention:
        own["attention_kwargs"] = settings.kwargs_by_attention[row.attention]
    return own


def buildable(table, settings):
    """Selects the rows whose models can be built, and says which cannot be.

    That would be found when the row begins, hours later. It is as the training
    will do it, with the weights of a preset, which may not fit the attention.
    Models of which a training was begun are known to be.

    Args:
        table: list of `Row`.
        settings: `CompareSettings`.

    Returns:
        List of `Row`.

    Raises:
        ValueError: if it is that of the baseline, or one whose arguments
            `kwargs_by_attention` says.
    """
    from audio_tf.runs import train_model

    training, found = settings.training(), []
    for row in table:
        own = of_row(row, settings)
        try:
            if not rows.runs_in(row.folder):
                each = training.replace(**own)
                # The labels are those of the corpus, whichever these are.
                head = {**train_model.head(each, True), "labels": ["a", "b"]}
                train_model.load(each, head)
        except (TypeError, ValueError) as error:
            if "attention_kwargs" in own:
                raise ValueError(
                    f"--kwargs-by-attention: {row.attention}: {error}"
                ) from error
            if row.attention == BASELINE:
                raise ValueError(f"{settings.train_config}: {error}") from error
            print(f"{row.attention} has no row, as it cannot be built: {error}")
            continue
        found.append(row)
    return found


def train(row, seed, settings):
    """Trains the model of a row with a seed, unless that is done.

    Args:
        row: `Row`.
        seed: int.
        settings: `CompareSettings`.
    """
    out = row.run_folder(seed)
    if row.finished(seed):
        return
    rows.run(
        "train",
        *("--config", settings.train_config),
        *rows.as_flags({**of_row(row, settings), "seed": seed}),
        *rows.as_flags(settings.those_given(("data_dir", "cache_dir"))),
        *("--out", out, *rows.resumed(out)),
    )


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
    return rows.measure(["compare", "costs"], file, asked)


def summed_up(settings, table, measured):
    """Sums up all rows that have a finished seed, asked for now or before.

    Args:
        settings: `CompareSettings`.
        table: list of `Row`.
        measured: dict by `Row` of `costs`.

    Returns:
        List of dicts by `leaderboard.COLUMNS`, without the cells that a row
        lacks, and without rows that have no figure.
    """
    found, seeds = [], rows.seeds_in(settings.out, settings.seeds)
    for row in table:
        done = [seed for seed in seeds if row.finished(seed)]
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
        rows.seeds_in(settings.out, settings.seeds),
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
    from audio_tf.runs import provenance, train_data

    training = settings.training()
    corpora = training.load()
    rows.check_scored(corpora, settings.score_split)
    asked = {
        "training": training.those_given(training.given - {"cache_dir"}),
        "kwargs_by_attention": dict(settings.kwargs_by_attention),
        "split": settings.score_split,
    }
    if training.data_dir is not None:
        place = pathlib.Path(training.data_dir).resolve()
        asked["training"]["data_dir"] = str(place)
    out = pathlib.Path(settings.out)
    # Rows that are not asked for now stay as they were made.
    if (out / "config.json").is_file():
        before = read(out / "config.json")["kwargs_by_attention"]
        for name in rows.begun(out) & {*before} - {*settings.names()}:
            asked["kwargs_by_attention"][name] = before[name]
    # What a row failed by can be put right, or left out.
    known = {*attention.ATTENTIONS, *attention.MIXTURES, *settings.names()}
    names = known - rows.begun(out)
    unused = {f"kwargs_by_attention.{name}" for name in names}
    presets = (training.model, *training.teachers)
    asked["weights"], gone = rows.weights_of(presets)
    # A table of before does not say of which weights it is.
    rows.begin(out, asked, unused | gone | {"weights"} - rows.said(out))
    # Or rows that are finished would stand beside others of another corpus.
    runs = rows.runs_in(out)
    record = train_data.listed(training, corpora)[1] if runs else None
    for run in runs:
        provenance.check_corpus(run, record, later="test")


def compare(settings):
    """Runs all rows, and ends with 1 if one has failed."""
    check_folder("out", settings.out, settings.training().data_dir)
    table = buildable(table_rows(settings), settings)
    begin(settings)
    out = pathlib.Path(settings.out)
    measured, failures = {}, rows.Failures()
    kept = kept_rows(settings, table)
    seeds = rows.seeds_in(out, settings.seeds)
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
    failures.end()


def main(argv=None, prog=None):
    """Runs the comparison that the flags say.

    Args:
        argv: list of str, the flags; those of the process if `None`.
        prog: str, the program's name in usage and errors; the script's if
            `None`.
    """
    argv = sys.argv[1:] if argv is None else argv
    if argv[:1] == ["costs"]:
        _, file, asked = argv
        compare_costs.measure_costs(file, json.loads(asked))
        return
    run_by_flags(rows.alone(compare), CompareSettings, __doc__, argv, prog)
