"""Table 2 of "Gaussian Adaptive Attention is All You Need", or 3 or 4.

    audio-tf reproduce emotion --model runs/ssl/preset --data-dir EmoDB \\
        --out runs/emotion_table
    audio-tf reproduce emotion --emotion-config config.py \\
        --embeddings cifar100.npz --paper cifar100 --out runs/cifar100_table

arXiv 2401.11143: a decoder with each attention module over the same embeddings
of a frozen encoder, each speaker or session left out, beside `audio-tf
baseline`. --emotion-config has what else `audio-tf emotion` is told;
--embeddings of CIFAR-100 or AG News, with --paper, make it Table 3 or 4, for
which the config has `"protocol": "splits"` and `"focal_gamma": 0.0`.

--out gets table.md, table.json and a folder for each row. Rows that are
finished are kept, with all of their seeds: the same command goes on where it
stopped.
"""

import dataclasses
import json
import pathlib
import statistics

from audio_tf.corpora import CORPORA
from audio_tf.runs import results, rows
from audio_tf.runs.corpus_settings import DataSettings
from audio_tf.runs.emotion_rows import (
    MODULES,
    TableSettings,
    finished,
    read_report,
    write_table,
)
from audio_tf.runs.settings import setting, shared


@dataclasses.dataclass
class EmotionTableSettings(TableSettings):
    """Modules, seeds and the training that they have in common."""

    rows: list[str] = setting(list(MODULES), "rows of the table", MODULES)
    baseline_rows: bool = setting(
        True, "also run audio-tf baseline, on the same clips"
    )
    out: str = shared("out", "runs/emotion_table")

    own = ("module", "seed", "out", "num_heads", "attention_kwargs")

    def check(self):
        super().check()
        if not self.rows:
            raise ValueError("--rows must not be empty")


def baseline_facts(reports):
    """Returns a dict by baseline of its figures, means over the folds.

    Args:
        reports: list of reports of `audio-tf baseline`, one a fold.
    """
    found = {}
    for name in reports[0]["figures"] if reports else ():
        values = [report["figures"][name]["accuracy"] for report in reports]
        by_seed = [
            statistics.fmean(seeds)
            for seeds in zip(*(each["values"] for each in values), strict=True)
        ]
        found[name] = {
            "row": f"baseline, {name}",
            "paper": None,
            "by_seed": {"accuracy": by_seed},
            "mean": {"accuracy": statistics.fmean(by_seed)},
            "deviation": {"accuracy": results.deviation(by_seed)},
        }
    return found


def folds_asked(training, report):
    """Lists the settings by which `audio-tf baseline` has the decoders' folds.

    Args:
        training: `EmotionSettings`.
        report: dict, the report of a finished row, which has the folds.

    Returns:
        List of dicts, one a fold; empty where the reader of the corpus takes
        no such splits.
    """
    found, takes = [], CORPORA[training.dataset].takes
    for name, fold in report["folds"].items():
        # None where the best epoch is that of the test, as the paper has it.
        validated = fold["validation"] != fold["tested"]
        validation = [fold["validation"]] if validated else []
        if training.protocol == "splits":
            # As the decoders have it, where the test is held back.
            found.append({"split": "test" if validated else "val"})
        elif "test_speakers" in takes:
            own = {"test_speakers": [name], "split": "test"}
            found.append({**own, "val_speakers": validation})
        elif "folds" in takes:
            every = sum(training.folds().values(), [])
            splits = {"test": [int(name)], "val": [*map(int, validation)]}
            held = sum(splits.values(), [])
            splits["train"] = [each for each in every if each not in held]
            own = {f"{split}_folds": each for split, each in splits.items()}
            found.append({**own, "split": "test"})
    return found


def run_baseline(settings, report):
    """Runs `audio-tf baseline` on each fold, unless that is done.

    Args:
        settings: `EmotionTableSettings`.
        report: dict, the report of a finished row, which has the folds.

    Returns:
        Dict as `baseline_facts` returns it; empty where the corpus has no
        baseline.
    """
    training = settings.training()
    if training.embeddings is not None:
        print("no baseline: arrays have no audio")
        return {}
    of_the_corpus = [each.name for each in dataclasses.fields(DataSettings)]
    flags = {
        "dataset": training.dataset,
        **training.those_given(of_the_corpus),
    }
    asked = folds_asked(training, report)
    if not asked:
        print(f"no baseline: {training.dataset} has no such folds")
        return {}
    found = []
    folder = pathlib.Path(settings.out, "baseline")
    folder.mkdir(parents=True, exist_ok=True)
    for number, own in enumerate(asked):
        file = folder / f"fold_{number}.json"
        rows.run_baseline(file, settings.all_seeds(), **flags, **own)
        found.append(json.loads(file.read_text()))
    return baseline_facts(found)


def reproduce_emotion(settings):
    """Runs all rows of Table 2, 3 or 4, and ends with 1 if one has failed.

    Args:
        settings: `EmotionTableSettings`.
    """
    settings.begin()
    failures, text = rows.Failures(), ""
    for name in MODULES:
        if name not in settings.rows:
            continue
        for seed in settings.seeds:
            out = pathlib.Path(settings.out, name, f"seed_{seed}")
            with failures.kept():
                settings.train(out, seed, module=name)
            text = write_table(settings, MODULES)
    done = [
        read_report(each.parent)
        for each in sorted(pathlib.Path(settings.out).glob("*/*/emotion.json"))
        if finished(each.parent)
    ]
    if settings.baseline_rows and done:
        with failures.kept():
            text = write_table(
                settings, MODULES, run_baseline(settings, done[0])
            )
    print(f"\nmeasured; beside it the paper's {settings.paper}")
    print(text)
    failures.end()
