"""The rows of Tables 2 to 7 of "Gaussian Adaptive Attention is All You Need".

arXiv 2401.11143: the figures of the paper beside those that were measured, and
the training that the rows of a table have in common.
"""

import dataclasses
import json
import pathlib
import statistics
import typing

from audio_tf import files, released
from audio_tf.corpora import CORPORA
from audio_tf.runs import processes, results, rows
from audio_tf.runs.flags import check_folder, read_config
from audio_tf.runs.settings import (
    SEED,
    THE_CONFIGS,
    Settings,
    setting,
    shared,
)


class PaperRow(typing.NamedTuple):
    """A row of the paper's Tables 2 to 4: accuracies by corpus.

    Attributes:
        label: str, the paper's name of the module.
        iemocap: float, the mean over five sessions, WavLM-Large.
        cifar100: float, the best accuracy, BEiT-Large.
        ag_news: float, the best accuracy, Llama2-13B.
    """

    label: str
    iemocap: float | None = None
    cifar100: float | None = None
    ag_news: float | None = None


MODULES = {
    "mha": PaperRow("MHA", 0.623, 0.604, 0.944),
    "mha_batch_norm": PaperRow("MHA -> BN", 0.634, 0.630, 0.945),
    "sga": PaperRow("SGA", 0.641, 0.802, 0.945),
    "gaam_v2": PaperRow("GAAMv2", 0.646, 0.802, 0.944),
    "bi_sga": PaperRow("bi-SGA", 0.652, 0.802, 0.945),
    "gqgaam": PaperRow("GQGAAM", 0.667, 0.800, 0.948),
    "gaam_v1": PaperRow("GAAMv1", 0.674, 0.799, 0.945),
    "gct": PaperRow("GCT, not in the tables"),
}
# Tables 6 and 7: layer 9 against 23 of WavLM, 10 to 12 against 22 to 24 of
# BEiT, 19 to 21 against 37 to 39 of Llama.
SELECTIONS = {
    "high": PaperRow("high Importance Factor", 0.640, 0.726, 0.949),
    "low": PaperRow("low Importance Factor", 0.623, 0.647, 0.947),
}
CORPORA_OF_THE_PAPER = ("iemocap", "cifar100", "ag_news")
# Settings of `audio-tf emotion` that are handed on, and those of the rows.
HANDED_ON = ("model", "embeddings", "data_dir", "cache_dir")


@dataclasses.dataclass
class TableSettings(Settings):
    """The training that the rows of a table have in common."""

    layouts = CORPORA

    emotion_config: str | None = setting(
        None, "settings of audio-tf emotion", unless_given="its defaults"
    )
    model: str | None = shared("model", None, unless_given=THE_CONFIGS)
    embeddings: str | None = setting(
        None, ".npz of embeddings and labels", unless_given=THE_CONFIGS
    )
    data_dir: str | None = shared("data_dir", None, unless_given=THE_CONFIGS)
    cache_dir: str | None = shared("cache_dir", None, unless_given=THE_CONFIGS)
    seeds: list[int] = setting([0, 1, 2], "seeds whose mean counts", check=SEED)
    paper: str = setting(
        "iemocap", "corpus of the paper's figures beside", CORPORA_OF_THE_PAPER
    )

    own = ("seed", "out")

    def check(self):
        super().check()
        if not self.seeds:
            raise ValueError("--seeds must not be empty")
        self.training()

    def all_seeds(self):
        """Returns a list of the seeds asked for, and others in `out`."""
        return rows.seeds_in(self.out, self.seeds, finished)

    def training(self):
        """Reads the settings of the training, and checks them as it does.

        Returns:
            `EmotionSettings`.

        Raises:
            ValueError: if they say what the rows say.
        """
        from audio_tf.runs.emotion import EmotionSettings

        config = {}
        if self.emotion_config is not None:
            config = read_config(
                self.emotion_config,
                EmotionSettings,
                "emotion_config",
                self.own,
            )
        return EmotionSettings(**{**config, **self.those_given(HANDED_ON)})

    def configured(self):
        """Returns a dict of what the config says of the trainings."""
        training = self.training()
        places = {"data_dir", "cache_dir"}
        return {"training": training.those_given(training.given - places)}

    def begin(self, **more):
        """Makes the folder of the table, once settings and corpus stand.

        Args:
            **more: what else the rows have in common.

        Raises:
            ValueError: if the folder has rows of another setting, of another
                encoder or corpus, or of these before files of them changed.
        """
        from audio_tf.runs import corpus_records, fold_arrays, folds

        training, out = self.training(), pathlib.Path(self.out)
        check_folder("out", self.out, training.data_dir)
        if training.embeddings is None:
            record = folds.listed(training)[2]
        else:
            embedded = fold_arrays.read_arrays(training.embeddings)
            record = fold_arrays.arrays_record(training.embeddings, embedded)
        mark = training.model and released.weights_mark(training.model)
        asked = {**self.configured(), "encoder": mark, **more}
        # A table of before does not say which encoder it is of.
        rows.begin(out, asked, {*asked} - rows.said(out))
        # Or rows of both would be found in one table, hours later.
        for run in rows.runs_in(out):
            corpus_records.check(run, record)
        rows.tell_of_seeds(out, self.seeds, self.all_seeds())

    def train(self, out, seed, **own):
        """Trains the decoders of a row with a seed, unless that is done.

        Args:
            out: `pathlib.Path`, the folder of the run.
            seed: int.
            **own: settings of the row.

        Raises:
            ValueError: if the config was edited since the table has begun.
            subprocess.CalledProcessError: if the training fails.
        """
        if finished(out) and not lacking(out, self.training().presets):
            return
        rows.check_configs(self.out, self.configured())
        config = ()
        if self.emotion_config is not None:
            config = ("--config", self.emotion_config)
        processes.run(
            "emotion",
            *config,
            *rows.as_flags(self.those_given(HANDED_ON)),
            *rows.as_flags({**own, "seed": seed}),
            *("--out", out, *rows.resumed(out)),
        )


def finished(out):
    """Returns whether a run of `audio-tf emotion` has all of its folds."""
    report = read_report(out)
    return bool(report) and set(report["wanted"]) <= set(report["folds"])


def lacking(out, presets):
    """Lists what a run whose folds are done has not written behind them.

    Args:
        out: `pathlib.Path`, the folder of the run.
        presets: bool, whether each fold is to have a preset.

    Returns:
        List of paths.
    """
    wanted = [out / "importance.npz"] if any(out.glob("fold_*/map.npy")) else []
    if presets:
        wanted += [fold / "preset" for fold in sorted(out.glob("fold_*"))]
    return [path for path in wanted if not path.exists()]


def read_report(out):
    """Reads the report of a run, an empty dict without one."""
    file = pathlib.Path(out, "emotion.json")
    return json.loads(file.read_text()) if file.is_file() else {}


def row_facts(reports, paper):
    """Returns a dict of a row's figures over its seeds.

    Args:
        reports: list of reports of `audio-tf emotion`, one a seed.
        paper: pair of the label and the paper's accuracy or `None`.
    """
    first = next(iter(reports[0]["folds"].values()))
    figures = {
        name: [report[name] for report in reports]
        for name in ("accuracy", "balanced_accuracy")
    }
    return {
        "row": paper[0],
        "paper": paper[1],
        "by_seed": figures,
        "mean": {k: statistics.fmean(each) for k, each in figures.items()},
        "deviation": {
            k: results.deviation(each) for k, each in figures.items()
        },
        "heads": first["heads"],
        "attention_parameters": first["attention_parameters"],
        "parameters": first["parameters"],
        "layers": reports[0]["layers"],
    }


def format_table(table, paper):
    """Returns a Markdown table with the paper's figures beside.

    Args:
        table: dict of `row_facts` or `baseline_facts` by name.
        paper: str, the paper's corpus.
    """
    lines = [
        "| row | layers | heads | attention's weights | accuracy | balanced "
        f"| seeds | paper, {paper} |",
        "|---|---|---|---|---|---|---|---|",
    ]
    for name, row in table.items():

        def measured(figure, row=row):
            if figure not in row["mean"]:
                return "-"
            return results.format_mean(
                row["mean"][figure],
                row["deviation"][figure],
                len(row["by_seed"][figure]),
            )

        weights = row.get("attention_parameters")
        cells = [
            f"{row['row']} `{name}`",
            " ".join(map(str, row.get("layers", "-"))),
            str(row.get("heads", "-")),
            "-" if weights is None else f"{weights:,}",
            measured("accuracy"),
            measured("balanced_accuracy"),
            str(len(row["by_seed"]["accuracy"])),
            "-" if row["paper"] is None else f"{row['paper']:.3f}",
        ]
        lines.append(f"| {' | '.join(cells)} |")
    return "\n".join(lines)


def write_table(settings, paper_rows, baselines=None):
    """Writes and returns the table of all rows that have finished seeds.

    Seeds of an earlier command count, too.

    Args:
        settings: `TableSettings`.
        paper_rows: dict of `PaperRow` by name.
        baselines: dict as `baseline_facts` returns it, or `None`.

    Raises:
        ValueError: if two rows are of different corpora or models.
    """
    table, first, out = {}, None, pathlib.Path(settings.out)
    seeds = settings.all_seeds()
    for name, paper in paper_rows.items():
        reports = []
        for seed in seeds:
            folder = out / name / f"seed_{seed}"
            if not finished(folder):
                continue
            report = read_report(folder)
            same = [report["corpus"], report["model"], report["wanted"]]
            first = first or same
            if same != first:
                raise ValueError(
                    f"The corpus or the model of {folder} is not that of the "
                    f"rows before. Received: {same} in place of {first}"
                )
            reports.append(report)
        if reports:
            label = (paper.label, getattr(paper, settings.paper))
            table[name] = row_facts(reports, label)
    table |= baselines or {}
    text = format_table(table, settings.paper)
    files.write_text(out / "table.md", text + "\n")
    files.write_json(out / "table.json", table)
    return text
