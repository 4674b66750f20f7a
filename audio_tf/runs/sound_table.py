"""Table 1 of "Audio Transformers": four convolutional rivals, four sizes.

arXiv 2105.00335. `audio-tf reproduce fsd50k` trains each row with several
seeds on FSD50K, or on any corpus of `audio-tf train`, and writes what it
reaches beside what the paper says.
"""

import csv
import dataclasses
import json
import math
import pathlib
import typing

from audio_tf import files
from audio_tf.corpora import CORPORA
from audio_tf.ops.checks import closest
from audio_tf.runs import rows
from audio_tf.runs.corpus_settings import DataSettings
from audio_tf.runs.flags import check_folder
from audio_tf.runs.settings import SEED, flag, setting, shared


class PaperRow(typing.NamedTuple):
    """A row of the paper's Table 1.

    Attributes:
        label: str, the paper's name of the model.
        mAP: float, the paper's on the evaluation split of FSD50K, or `None`
            where it prints a question mark.
        parameters: float, the paper's.
        settings: dict, the settings of `audio-tf train` that the row has
            unless others are asked for.
    """

    label: str
    mAP: float | None
    parameters: float
    settings: dict


# What the paper says: Adam, the Huber loss, Glorot's scale. It leaves out the
# rate, the epochs and the batch size; the recipe `paper` has ours.
TRANSFORMER = {"recipe": "paper", "model_kwargs": {"frontend_gain": 1.0}}
# Of FSD50K's paper (arXiv 2010.00475): patches that overlap by half, no better
# precision for ten epochs. Its rate falls on a plateau; here it is constant.
RIVAL = {
    "recipe": "paper",
    "loss": "binary_crossentropy",
    "learning_rate": 5e-4,
    "batch_size": 64,
    "hop_s": 0.5,
    "monitor": "val_pr_auc_macro",
    "patience": 10,
}
TABLE_1 = {
    "crnn": PaperRow("CRNN", 0.417, 0.96e6, {"model": "crnn", **RIVAL}),
    "vgg_like": PaperRow(
        "VGG-like", 0.434, 0.27e6, {"model": "vgg_like", **RIVAL}
    ),
    "resnet18": PaperRow(
        "ResNet-18", 0.373, 11.3e6, {"model": "resnet18", **RIVAL}
    ),
    "densenet121": PaperRow(
        "DenseNet-121", 0.425, 12.5e6, {"model": "densenet121", **RIVAL}
    ),
    "small": PaperRow(
        "Small Transformer",
        0.469,
        0.9e6,
        {"model": "audio_transformer_small", **TRANSFORMER},
    ),
    "large": PaperRow(
        "Large 6-Layer Transformer",
        0.525,
        2.3e6,
        {"model": "audio_transformer_large", **TRANSFORMER},
    ),
    "large_multiscale": PaperRow(
        "Large Transformer with multi-scale filters",
        None,
        2.3e6,
        {"model": "audio_transformer_large_multiscale", **TRANSFORMER},
    ),
    "large_pooled": PaperRow(
        "Large 6-Layer Transformer with Pooling",
        0.537,
        2.3e6,
        {"model": "audio_transformer_large_pooled", **TRANSFORMER},
    ),
}
# What the paper says helps: the row without it, and the row with it.
QUESTIONS = {
    "more depth": ("small", "large"),
    "pooling": ("large", "large_pooled"),
    "multi-scale averages": ("large", "large_multiscale"),
}
# Settings of a training that a row has of its own.
OWN = ("model", "seed", "out")
# Settings of rows that a corpus without a validation split has no use for.
OF_VALIDATION = ("monitor", "patience")
FIGURES = ("mAP", "accuracy")
COLUMNS = (
    "row",
    "model",
    *(f"{name}{end}" for name in FIGURES for end in ("", "_low", "_high")),
    "seeds",
    "parameters",
    "paper_mAP",
    "paper_parameters",
)


@dataclasses.dataclass
class SoundTableSettings(DataSettings):
    """The corpus, the rows, and what their trainings have in common."""

    # Each row has one of `seeds`.
    seed: typing.ClassVar[int] = 0

    dataset: str = setting("fsd50k", "layout of the corpus", CORPORA)
    rows: list[str] = setting(list(TABLE_1), "rows of the table", TABLE_1)
    seeds: list[int] = setting([0, 1, 2], "seeds whose mean counts", check=SEED)
    epochs: int | None = shared(
        "epochs", None, unless_given="the recipe's of each row"
    )
    batch_size: int | None = shared(
        "batch_size", None, unless_given="that of each row's paper or recipe"
    )
    train_settings: dict = setting(
        {}, "further settings of audio-tf train for all rows, a JSON object"
    )
    row_settings: dict = setting(
        {}, "the same by row, a JSON object of objects"
    )
    score_split: str = setting(
        "test", "split whose figures count", ["val", "test"]
    )
    out: str = shared("out", "runs/table1")

    def check(self):
        super().check()
        for name in ("rows", "seeds"):
            if not getattr(self, name):
                raise ValueError(f"{flag(name)} must not be empty")
        flags = [field.name for field in dataclasses.fields(self)]
        check_settings("train_settings", self.train_settings, flags)
        for name, options in self.row_settings.items():
            if name not in TABLE_1 or not isinstance(options, dict):
                raise ValueError(
                    "--row-settings must be objects by names of rows, "
                    f"{list(TABLE_1)}{closest(name, TABLE_1)}. "
                    f"Received: {name!r}: {options!r}"
                )
            check_settings("row_settings", options, self.of_corpus())
        for name in self.rows:
            training = self.training(name)
            if self.score_split == "test" and not training.test:
                raise ValueError(
                    f"row {name}: --score-split test needs the test, which "
                    f"the settings leave out. Received: test={training.test}"
                )

    @staticmethod
    def of_corpus():
        """Returns a list of the settings that say what the corpus is."""
        names = [field.name for field in dataclasses.fields(DataSettings)]
        return [name for name in names if name not in OWN]

    def values(self, row, validated=True):
        """Returns a dict of the settings of a row's training.

        What is asked of one row comes before what is asked of all, and that
        before the row's own; `model_kwargs` and the like are put together,
        and `None` takes back what the row has of its own.

        Args:
            row: str, a key of `TABLE_1`.
            validated: bool, whether the corpus has a validation split.
        """
        own = dict(TABLE_1[row].settings)
        if not validated:
            own = {k: own[k] for k in own if k not in OF_VALIDATION}
        asked = self.those_given([*self.of_corpus(), "epochs", "batch_size"])
        found = {**own, "dataset": self.dataset, **asked}
        for more in (self.train_settings, self.row_settings.get(row, {})):
            for name, value in more.items():
                if isinstance(value, dict):
                    value = {**found.get(name, {}), **value}
                found[name] = value
        return {k: value for k, value in found.items() if value is not None}

    def training(self, row):
        """Makes the settings of a row's training, checked as it does.

        Args:
            row: str, a key of `TABLE_1`.

        Returns:
            `TrainSettings`.

        Raises:
            ValueError: if they do not fit; it names the row.
        """
        from audio_tf.runs.train_settings import TrainSettings

        try:
            return TrainSettings(**self.values(row))
        except ValueError as error:
            raise ValueError(f"row {row}: {error}") from None

    def folder(self, row, seed):
        """Returns the path of the run of a row with a seed."""
        return pathlib.Path(self.out, row, f"seed_{seed}")

    def counted(self, row):
        """Returns the path of the file of a row's parameters."""
        return pathlib.Path(self.out, row, "parameters.json")


def check_settings(name, given, taken):
    """Checks the names of settings that are handed on to `audio-tf train`.

    Args:
        name: str, the setting that holds them.
        given: dict of them.
        taken: list of the names that have flags of their own here.

    Raises:
        ValueError: if one is unknown, is that of the rows, or has a flag.
    """
    from audio_tf.runs.train_settings import TrainSettings

    known = [field.name for field in dataclasses.fields(TrainSettings)]
    for each in given:
        if each in OWN:
            raise ValueError(
                f"{flag(name)}: {each!r} is that of the rows. "
                f"Received: {given[each]!r}"
            )
        if each in taken:
            raise ValueError(
                f"{flag(name)}: {each!r} has a flag of its own, {flag(each)}. "
                f"Received: {given[each]!r}"
            )
        if each not in known:
            raise ValueError(
                f"{flag(name)}: audio-tf train has no setting {each!r}"
                f"{closest(each, known)}. Received: {given}"
            )


def begin(settings):
    """Makes the folder of the table, once rows and corpus stand.

    Args:
        settings: `SoundTableSettings`.

    Returns:
        Whether the corpus has a validation split.

    Raises:
        ValueError: if the folder has rows of another setting, or the corpus
            has no clips in the split.
    """
    check_folder("out", settings.out)
    clips = {split: len(found) for split, found in settings.load().items()}
    if not clips.get(settings.score_split):
        raise ValueError(
            "--score-split must have clips. Received: "
            f"{settings.score_split}, and clips {clips}"
        )
    validated = bool(clips.get("val"))
    asked = {name: settings.values(name, validated) for name in TABLE_1}
    for values in asked.values():
        values.pop("cache_dir", None)
        if settings.data_dir is not None:
            place = pathlib.Path(settings.data_dir).resolve()
            values["data_dir"] = str(place)
    # What a row failed by can be put right.
    out = pathlib.Path(settings.out)
    begun = {run.parts[-3] for run in out.glob("*/seed_*/config.json")}
    rows.begin(out, asked, unused=set(asked) - begun)
    return validated


def train(row, seed, settings, validated, device=None):
    """Trains the model of a row with a seed, unless that is done.

    Args:
        row: str, a key of `TABLE_1`.
        seed: int.
        settings: `SoundTableSettings`.
        validated: bool, whether the corpus has a validation split.
        device: as `rows.run` takes it.
    """
    out = settings.folder(row, seed)
    if rows.trained(out):
        return
    values = {**settings.values(row, validated), "seed": seed}
    rows.run(
        "train",
        *rows.as_flags(values),
        *("--out", out, *rows.resumed(out)),
        device=device,
    )


def parameters(row, seed, settings):
    """Returns the trained weights of a row's model, counted once.

    Args:
        row: str, a key of `TABLE_1`.
        seed: int, one that is trained.
        settings: `SoundTableSettings`.

    Raises:
        subprocess.CalledProcessError: if counting fails.
    """
    file = settings.counted(row)
    asked = {"model": str(settings.folder(row, seed) / "preset")}
    # Not on a GPU, which may have a row.
    command = ["reproduce", "parameters"]
    return rows.measure(command, file, asked, device="")["parameters"]


def count_parameters(file, asked):
    """Counts in a process of its own what `parameters` returns.

    Args:
        file: path of the JSON file that is written.
        asked: dict of the `model`, the folder of a preset.
    """
    from audio_tf.models import AudioClassifier

    model = AudioClassifier.from_preset(asked["model"])
    count = sum(math.prod(each.shape) for each in model.trainable_weights)
    files.write_json(file, {"asked": asked, "parameters": count})


def finished_reports(settings):
    """Reads the figures of all rows that have a finished seed.

    Args:
        settings: `SoundTableSettings`.

    Returns:
        Dict by row of dicts by seed of dicts of figures by name.

    Raises:
        ValueError: if two rows of a seed are of different corpora.
    """
    found, first = {}, {}
    for row in TABLE_1:
        for seed in settings.seeds:
            out = settings.folder(row, seed)
            if not rows.trained(out):
                continue
            corpus = read(out / "preset" / "provenance.json")["corpus"]
            known = first.setdefault(seed, (out, corpus))
            if corpus != known[1]:
                raise ValueError(
                    f"The corpus of {out} is not that of {known[0]}. "
                    f"Received: {corpus}, then {known[1]}"
                )
            report = read(out / f"{settings.score_split}.json")
            found.setdefault(row, {})[seed] = report
    return found


def read(file):
    """Returns the content of a JSON file."""
    return json.loads(file.read_text())


def row_facts(row, reports, count):
    """Returns a dict of a row's figures: mean, interval and each seed's.

    Args:
        row: str, a key of `TABLE_1`.
        reports: dict by seed of dicts of figures.
        count: int, its trained weights, or `None` if they are not known.
    """
    figures = {}
    for name in FIGURES:
        values = {seed: each[name] for seed, each in reports.items()}
        if None not in values.values():
            mean, low, high = rows.interval(list(values.values()))
            figures[name] = {"mean": mean, "low": low, "high": high}
            figures[name]["by_seed"] = values
    paper = TABLE_1[row]
    return {
        "row": paper.label,
        "model": paper.settings["model"],
        **figures,
        "seeds": sorted(reports),
        "parameters": count,
        "paper_mAP": paper.mAP,
        "paper_parameters": paper.parameters,
    }


def answers(table):
    """Compares rows by pairs of runs with the same seed.

    Args:
        table: dict of `row_facts` by row.

    Returns:
        Dict by question of a dict of `mean`, `low` and `high`, the difference
        of mAP and its 95 % interval, `seeds`, and `paper`, the paper's
        difference, or `None`.
    """
    found = {}
    for question, (without, having) in QUESTIONS.items():
        pair = [table.get(each, {}).get("mAP") for each in (without, having)]
        if None in pair:
            continue
        before, after = (each["by_seed"] for each in pair)
        both = [seed for seed in before if seed in after]
        if not both:
            continue
        mean, low, high = rows.interval(
            [after[seed] - before[seed] for seed in both], least=-1.0
        )
        printed = [TABLE_1[each].mAP for each in (without, having)]
        paper = None if None in printed else printed[1] - printed[0]
        found[question] = {
            "mean": mean,
            "low": low,
            "high": high,
            "seeds": len(both),
            "paper": paper,
        }
    return found


def number(value, form=".4f"):
    """Returns a number as the text of a cell, a dash for `None`."""
    return "-" if value is None else format(value, form)


def between(facts, form=".4f"):
    """Returns the interval of a figure as the text of a cell."""
    if facts is None or facts["low"] is None:
        return "-"
    return f"{number(facts['low'], form)} to {number(facts['high'], form)}"


def format_table(table):
    """Returns the Markdown tables of the rows and of what helps.

    Args:
        table: dict of `row_facts` by row.
    """
    lines = [
        "| model | mAP | 95 % interval | accuracy | seeds | parameters | "
        "paper's mAP, FSD50K | paper's parameters |",
        "|---|---|---|---|---|---|---|---|",
    ]
    for facts in table.values():
        scored, right = (facts.get(name) for name in FIGURES)
        cells = [
            f"{facts['row']} `{facts['model']}`",
            number(scored and scored["mean"]),
            between(scored),
            number(right and right["mean"]),
            str(len(facts["seeds"])),
            number(facts["parameters"], ",d"),
            number(facts["paper_mAP"], ".3f"),
            f"{facts['paper_parameters'] / 1e6:.2f} M",
        ]
        lines.append(f"| {' | '.join(cells)} |")
    helped = answers(table)
    if helped:
        lines += [
            "",
            "| does it help? | mAP with it, less without | 95 % interval | "
            "seeds | paper |",
            "|---|---|---|---|---|",
        ]
    for question, facts in helped.items():
        cells = [
            question,
            number(facts["mean"], "+.4f"),
            between(facts, "+.4f"),
            str(facts["seeds"]),
            number(facts["paper"], "+.3f"),
        ]
        lines.append(f"| {' | '.join(cells)} |")
    return "\n".join(lines)


def csv_row(facts):
    """Returns a dict by `COLUMNS` of what `row_facts` returned."""
    cells = {**facts, "seeds": len(facts["seeds"])}
    for name in FIGURES:
        figure = facts.get(name, {})
        cells[name] = figure.get("mean")
        cells[f"{name}_low"] = figure.get("low")
        cells[f"{name}_high"] = figure.get("high")
    return {name: cells[name] for name in COLUMNS}


def write_table(settings):
    """Writes and returns the table of all rows that have a finished seed.

    Args:
        settings: `SoundTableSettings`.
    """
    table = {}
    for row, reports in finished_reports(settings).items():
        file = settings.counted(row)
        count = read(file)["parameters"] if file.is_file() else None
        table[row] = row_facts(row, reports, count)
    text, out = format_table(table), pathlib.Path(settings.out)
    splits = settings.split_facts()
    text += f"\n\n{settings.dataset}, {settings.score_split} split"
    if splits["departure"]:
        text += f"; not the official splits: {splits['departure']}"
    files.write_text(out / "table1.md", text + "\n")
    files.write_json(
        out / "table1.json",
        {
            "dataset": settings.dataset,
            "split": settings.score_split,
            "splits": splits,
            "rows": table,
            "help": answers(table),
        },
    )
    with (
        files.whole_file(out / "table1.csv") as new,
        open(new, "w", newline="", encoding="utf-8") as file,
    ):
        writer = csv.DictWriter(file, COLUMNS)
        writer.writeheader()
        writer.writerows(map(csv_row, table.values()))
    return text


def reproduce_sounds(settings):
    """Runs all rows, and ends with 1 if one has failed.

    Args:
        settings: `SoundTableSettings`.
    """
    validated = begin(settings)
    failures, counted = rows.Failures(), set()

    def one(job, device):
        with failures.kept():
            train(*job, settings, validated, device)

    # Seed by seed: a table that is stopped has all rows.
    jobs = [
        (row, seed)
        for seed in settings.seeds
        for row in TABLE_1
        if row in settings.rows
    ]
    for row, seed in rows.over_devices(one, jobs):
        if row not in counted and rows.trained(settings.folder(row, seed)):
            with failures.kept():
                parameters(row, seed, settings)
                counted.add(row)
        text = write_table(settings)
    print(f"\n{text}")
    failures.end()
