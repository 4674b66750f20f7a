"""Table 1 of "Audio Transformers": four convolutional rivals, four sizes.

    audio-tf reproduce fsd50k --data-dir FSD50K --out runs/table1
    audio-tf reproduce fsd50k --dataset esc50 --data-dir ESC-50-master \\
        --rows small vgg_like --epochs 16 --out runs/table1_esc50

arXiv 2105.00335: each row is trained with --seeds, on FSD50K or any corpus of
`audio-tf train`. Where TensorFlow finds several GPUs, each has a row of its
own. --train-settings and --row-settings change settings of `audio-tf train` for
all rows or for one, such as the learning rate, the one thing that the paper
tunes: '{"large": {"learning_rate": 3e-4}}'.

--out gets table1.md, table1.csv and table1.json, with the published mAP and
parameters beside the measured ones, and what depth, pooling and multi-scale
averages change, by pairs of runs of one seed. Figures are means over seeds with
Student's 95 % interval, in the CSV from `_low` to `_high`; parameters are the
trained weights, with the head's. Rows that are finished are kept, with all of
their seeds: the same command goes on where it stopped. What was trained with
--score-split val and "test": false in --train-settings is scored on the test,
without another training, by the command without both.
"""

import contextlib
import csv
import json
import math
import pathlib

from audio_tf import files
from audio_tf.runs import processes, rows
from audio_tf.runs.flags import check_folder
from audio_tf.runs.sound_rows import QUESTIONS, TABLE_1

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


def begin(settings):
    """Makes the folder of the table, once rows and corpus stand.

    Args:
        settings: `SoundTableSettings`.

    Returns:
        Whether the corpus has a validation split.

    Raises:
        ValueError: if the folder has rows of another setting, of a teacher
            before it was trained anew in place, or of the corpus as it was
            before files of it changed, or the corpus has no clips with labels
            in the split.
    """
    from audio_tf.runs import corpus_records, train_data

    check_folder("out", settings.out, settings.data_dir)
    corpora = settings.load()
    rows.check_scored(corpora, settings.score_split)
    validated = bool(len(corpora.get("val", ())))
    asked = {name: settings.values(name, validated) for name in TABLE_1}
    for values in asked.values():
        values.pop("cache_dir", None)
        if settings.data_dir is not None:
            place = pathlib.Path(settings.data_dir).resolve()
            values["data_dir"] = str(place)
    # What a row failed by can be put right.
    out = pathlib.Path(settings.out)
    begun = rows.begun(out)
    unused = set(asked) - begun
    # A table of before does not say which weights its teachers had.
    unused |= {"weights"} - rows.said(out) | {f"weights.{n}" for n in unused}
    marks = {}
    for name in TABLE_1:
        training = settings.training(name)
        marks[name], gone = rows.weights_of(
            training.teachers, f"weights.{name}"
        )
        # A test that was left out so far needs no training.
        unused |= {*gone, *[f"{name}.test"] * training.test}
    rows.begin(out, {**asked, "weights": marks}, unused)
    # Or seeds that are finished would be averaged with others of another
    # corpus.
    for row in [each for each in TABLE_1 if each in begun]:
        training = settings.training(row)
        record = train_data.listed(training, corpora)[1]
        for run in rows.runs_in(out / row):
            corpus_records.check(run, record, later="test")
    return validated


def train(row, seed, settings, validated, device=None):
    """Trains the model of a row with a seed, unless that is done.

    Args:
        row: str, a key of `TABLE_1`.
        seed: int.
        settings: `SoundTableSettings`.
        validated: bool, whether the corpus has a validation split.
        device: as `processes.run` takes it.
    """
    out = settings.folder(row, seed)
    if settings.finished(row, seed):
        return
    values = {**settings.values(row, validated), "seed": seed}
    test = settings.training(row).test
    processes.run(
        "train",
        *rows.as_flags(values),
        *("--out", out, *rows.resumed(out, test)),
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
    out = settings.folder(row, seed)
    asked = {"model": str(out / "preset"), "made_with": rows.made_with(out)}
    # Not on a GPU, which may have a row.
    command = ["reproduce", "parameters"]
    return processes.measure(command, file, asked, device="")["parameters"]


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
    """Reads the figures of all rows that have a finished seed, of any command.

    Args:
        settings: `SoundTableSettings`.

    Returns:
        Dict by row of dicts by seed of dicts of figures by name.

    Raises:
        ValueError: if two runs are of different corpora.
    """
    from audio_tf.runs import corpus_records

    found, first = {}, {}
    seeds = rows.seeds_scored(settings)
    for row in TABLE_1:
        for seed in seeds:
            out = settings.folder(row, seed)
            if not settings.finished(row, seed):
                continue
            # No seed of a training draws its clips.
            corpus = read(out / "preset" / "provenance.json")["corpus"]
            corpus_records.check_alike(first, out, corpus)
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
    seeds = rows.seeds_scored(settings)
    rows.tell_of_seeds(settings.out, settings.seeds, seeds)

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
    # Closed here: the garbage collector must not be who waits for rows.
    with contextlib.closing(processes.over_devices(one, jobs)) as done:
        for row, seed in done:
            if row not in counted and settings.finished(row, seed):
                with failures.kept():
                    parameters(row, seed, settings)
                    counted.add(row)
            text = write_table(settings)
    print(f"\n{text}")
    failures.end()
