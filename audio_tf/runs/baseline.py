"""Score what ten lines of scikit-learn reach: the row beside every accuracy.

    audio-tf baseline --dataset esc10 --data-dir ESC-10 \\
        --train-folds 1 2 3 --val-folds 4 --test-folds 5 --split val \\
        --report baseline.json

A clip becomes means, standard deviations and quantiles of its MFCC and their
first and second slopes, over the frames that are no silence; with --statistics
moments the means and deviations alone, over all frames. A random forest and a
logistic regression learn them on the split `train`. Prints each figure of the
split --split as mean and standard deviation over --seeds, and the 95 % interval
of the first seed's over clips, or over the speakers or recordings that the
corpus knows of; --report gets all of them as JSON.
"""

import collections
import dataclasses
import functools
import os
import typing

import numpy as np
from sklearn.ensemble import RandomForestClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.multioutput import MultiOutputClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import (
    FunctionTransformer,
    StandardScaler,
)

from audio_tf import data, files, layers, metrics
from audio_tf.corpora import leaks
from audio_tf.ops import masks
from audio_tf.runs import corpus_records, provenance, results
from audio_tf.runs.corpus_settings import ReportSettings
from audio_tf.runs.flags import run_by_flags
from audio_tf.runs.settings import POSITIVE, SEED, Check, setting
from audio_tf.terminal import describe_failures

FEATURE_BATCH = 16
QUANTILES = (0.05, 0.25, 0.5, 0.75, 0.95)
# A frame is silent whose peak is this far below that of its clip's loudest.
SILENCE_DB = -60.0


class Statistics(typing.NamedTuple):
    """A set of statistics that the frames of a clip become.

    Attributes:
        quantiles: tuple of shares, whose quantiles are computed beside means
            and deviations.
        silence_db: float, dB relative to the loudest frame below which frames
            are left out, or `None`.
        regression_slopes: bool, whether the logistic regression sees those of
            the slopes: by moments its accuracy on fold 4 of ESC-10 is 0.85
            without and 0.78 with them, which help the forest.
    """

    quantiles: tuple
    silence_db: float | None
    regression_slopes: bool


STATISTICS = {
    "quantiles": Statistics(QUANTILES, SILENCE_DB, True),
    "moments": Statistics((), None, False),
}

# They are held in memory, each of them some kilobytes and more.
TREES = Check("from 1 to 100000", lambda value: 1 <= value <= 100_000)


@dataclasses.dataclass
class BaselineSettings(ReportSettings):
    """Features, classifiers and the split that they are scored on."""

    sample_rate_hz: int = setting(
        16_000, "rate of the waveform", check=POSITIVE
    )
    coefficients: int = setting(20, "MFCC of a frame", check=POSITIVE)
    statistics: str = setting(
        "quantiles",
        "quantiles, means and deviations of frames that are no silence, or "
        "the moments alone, of all frames",
        STATISTICS,
    )
    trees: int = setting(500, "trees of the forest", check=TREES)
    seeds: list[int] = setting([0, 1, 2], "seeds whose mean counts", check=SEED)

    def check(self):
        super().check()
        if not self.seeds:
            raise ValueError("--seeds must name a seed. Received: none")


def forest(settings, seed, one_label):
    """Makes a random forest, which takes any number of labels a clip."""
    return RandomForestClassifier(
        settings.trees, random_state=seed, n_jobs=os.cpu_count()
    )


def logistic(settings, seed, one_label):
    """Makes a logistic regression on features of mean 0 and deviation 1."""
    regression = LogisticRegression(C=0.1, max_iter=2_000)
    slopes = STATISTICS[settings.statistics].regression_slopes
    taken = None if slopes else 2 * settings.coefficients
    return make_pipeline(
        FunctionTransformer(lambda x: x[:, :taken]),
        StandardScaler(),
        regression if one_label else MultiOutputClassifier(regression),
    )


# A classifier by name; `draws` says whether a seed makes a difference.
Baseline = collections.namedtuple("Baseline", ["make", "draws"])
BASELINES = {
    "forest": Baseline(forest, draws=True),
    "logistic": Baseline(logistic, draws=False),
}


def features(clips, settings):
    """Computes statistics of MFCC and of their slopes over time.

    Args:
        clips: `Clips` of samples.
        settings: `BaselineSettings`.

    Returns:
        float32 `(clips, 6 * coefficients)`: means and deviations of the MFCC,
        then of their first and of their second slopes. With quantiles
        `(clips, 21 * coefficients)`, each quantile of these behind them.
    """
    mfcc = layers.MFCC(
        settings.coefficients,
        sample_rate_hz=settings.sample_rate_hz,
        window_s=0.025,
        hop_s=0.01,
        fft_length=2 ** int(np.ceil(np.log2(0.025 * settings.sample_rate_hz))),
    )
    slopes, pooling = layers.Deltas(), layers.StatisticsPooling()
    statistics = STATISTICS[settings.statistics]
    rows = np.argsort(clips.lengths, kind="stable")
    width = 6 + 3 * len(statistics.quantiles)
    found = np.zeros((len(clips), width * settings.coefficients), "float32")
    for start in range(0, len(rows), FEATURE_BATCH):
        batch = rows[start : start + FEATURE_BATCH]
        lengths = clips.lengths[batch].astype("int32")
        waveform = np.zeros((len(batch), lengths[-1]), "float32")
        for samples, row in zip(waveform, batch, strict=True):
            samples[: clips.lengths[row]] = clips.read(row)
        x = mfcc(waveform, lengths)
        frames = np.asarray(mfcc.frame_lengths(lengths))
        mask = masks.from_lengths(frames, x.shape[1])
        first = slopes(x, mask=mask)
        all_three = x, first, slopes(first, mask=mask)
        kept = np.array(mask)
        for row, samples in enumerate(waveform):
            kept[row, : frames[row]] &= loud_frames(
                samples[: lengths[row]],
                frames[row],
                mfcc,
                statistics.silence_db,
            )
        parts = [pooling(each, mask=kept) for each in all_three]
        if statistics.quantiles:
            values = np.concatenate(all_three, axis=-1)
            parts.append(
                [
                    np.quantile(
                        row[those], statistics.quantiles, axis=0
                    ).reshape(-1)
                    for row, those in zip(values, kept, strict=True)
                ]
            )
        found[batch] = np.concatenate(parts, axis=1)
    return found


def loud_frames(samples, count, mfcc, silence_db):
    """Tells which frames of a clip are no silence.

    Args:
        samples: float32 `(samples,)`.
        count: int, the frames of the clip.
        mfcc: `layers.MFCC`, whose frames have their middle at each hop.
        silence_db: float, dB relative to the peak of the loudest frame below
            which the peak of a frame is silence; `None` keeps all.

    Returns:
        Bool array `(count,)`.
    """
    if silence_db is None:
        return np.ones(count, bool)
    half = mfcc.window_size // 2
    needed = (count - 1) * mfcc.hop_size + 2 * half
    around = np.pad(np.abs(samples), (half, max(0, needed - len(samples))))
    windows = np.lib.stride_tricks.sliding_window_view(around, 2 * half)
    peaks = windows[:: mfcc.hop_size][:count].max(axis=1)
    return peaks >= peaks.max() * 10.0 ** (silence_db / 20.0)


def fit_and_score(make, train, inputs):
    """Learns on the split `train` and scores other clips.

    Args:
        make: function that returns a new classifier, for clips of one label
            each if its argument is True and of any number if False.
        train: pair of features and multi-hot targets.
        inputs: features of the clips to score, `(clips, dim)`.

    Returns:
        float32 `(clips, classes)`. A class that all clips of `train` have, or
        none, has its share of them as its score.
    """
    x, targets = train
    scores = np.tile(targets.mean(axis=0), (len(inputs), 1))
    if metrics.one_label_each(targets) and targets.any(axis=0).sum() > 1:
        model = make(True).fit(x, targets.argmax(axis=1))
        scores[:, model.classes_] = model.predict_proba(inputs)
        return scores
    varied = np.flatnonzero(targets.any(axis=0) & ~targets.all(axis=0))
    if len(varied):
        # Twice, if there is but one: a forest of one label answers otherwise.
        varied = np.resize(varied, max(2, len(varied)))
        model = make(False).fit(x, targets[:, varied])
        shares = model.predict_proba(inputs)
        scores[:, varied] = np.stack([share[:, 1] for share in shares], axis=1)
    return scores


def summary(reports):
    """Returns means and deviations of each figure over the seeds.

    Args:
        reports: list of dicts of figures, one for each seed.

    Returns:
        Dict by figure of `mean`, `deviation` and `values`, one for each seed.
        A figure that some seeds leave undefined has `None` for these, and for
        mean and deviation; what all leave undefined is not there.
    """
    figures = {}
    for name in metrics.METRICS:
        values = [report[name] for report in reports]
        if values.count(None) == len(values):
            continue
        known = None not in values
        figures[name] = {
            "mean": float(np.mean(values)) if known else None,
            "deviation": results.deviation(values) if known else None,
            "values": values,
        }
    return figures


def describe(figure):
    """Returns a figure of `summary` as text.

    Args:
        figure: dict of `mean`, `deviation` and `values`, or `None` where it
            is undefined.
    """
    if figure is None:
        return "n/a"
    values = figure["values"]
    if figure["mean"] is None:
        return f"n/a, undefined by {values.count(None)} of {len(values)} seeds"
    return results.format_mean(figure["mean"], figure["deviation"], len(values))


def still_holds(content, settings):
    """Returns whether a report is what a command would write now.

    Nothing is decoded: files that could not be used then are taken for such.

    Args:
        content: dict, the JSON of the report.
        settings: `BaselineSettings` of the command. Its seeds do not count.
    """
    # What says which clips there are is looked at below.
    own = {field.name for field in dataclasses.fields(settings)}
    own -= {field.name for field in dataclasses.fields(ReportSettings)}
    for name in {"decoder", *own} - {"seeds"}:
        # Defaults may have changed since, or there were no such settings.
        if content["settings"].get(name) != getattr(settings, name):
            return False
    corpora = settings.load()
    used = {split: corpora[split] for split in ("train", settings.split)}
    record = corpus_records.make(used, settings.file_root())
    # A report of before does not say what was left out.
    record["left_out"] = content.get("left_out")
    return corpus_records.summary(record) == content["corpus"]


def run(settings):
    """Prints the figures of all baselines, and writes them if asked.

    Args:
        settings: `BaselineSettings`.

    Returns:
        Dict by baseline of what `summary` returns.

    Raises:
        ValueError: if every clip of training has the same label and no other.
    """
    corpora = settings.load()
    corpora["train"].check_teaches()
    clips = {
        split: data.prepare(
            corpora[split],
            settings.sample_rate_hz,
            name=split,
            **settings.prepare_arguments(),
        )
        for split in dict.fromkeys(("train", settings.split))
    }
    # The files of a class may all be bad.
    clips["train"].check_teaches()
    same = settings.leakage().of_audio(clips)
    inputs = {split: features(clips[split], settings) for split in clips}
    targets = {split: clips[split].corpus.targets() for split in clips}
    result, spread = {}, {}
    for name, baseline in BASELINES.items():
        scores = [
            fit_and_score(
                functools.partial(baseline.make, settings, seed),
                (inputs["train"], targets["train"]),
                inputs[settings.split],
            )
            for seed in settings.seeds[: None if baseline.draws else 1]
        ]
        scored = targets[settings.split]
        reports = [
            metrics.evaluate(scored, each, corpora["train"].vocabulary)
            for each in scores
        ]
        # Of the first seed: seeds are means of their own in the figures.
        spread[name] = results.intervals_of(
            results.WITH_INTERVAL,
            scored,
            scores[0],
            clips[settings.split].corpus,
        )
        result[name] = summary(reports)
        for figure in metrics.METRICS:
            shown = describe(result[name].get(figure))
            print(f"{name:10} {figure:14} {shown}")
        one = f", seed {settings.seeds[0]} alone" if len(reports) > 1 else ""
        for line in results.format_intervals(spread[name], reports[0]):
            print(line + one)
    if settings.report is not None:
        found = [*leaks.of_sources(corpora), *same]
        files.write_json(
            settings.report,
            {
                **report_facts(settings, corpora, clips, found),
                "figures": result,
                "intervals": spread,
            },
        )
    for split in clips:
        if clips[split].failures:
            print(describe_failures(clips[split].failures))
    return result


def report_facts(settings, corpora, clips, found):
    """Describes what the figures of a report are of.

    Args:
        settings: `BaselineSettings`.
        corpora: dict of `Corpus` by split.
        clips: dict of `Clips` by split, of those that were read.
        found: list of `leaks.Leak`, what is on both sides of the splits.

    Returns:
        Dict ready for JSON.
    """
    root, failures = settings.file_root(), {}
    for each in clips.values():
        failures |= each.failures
    record = corpus_records.leave_out(
        corpus_records.make({split: corpora[split] for split in clips}, root),
        root,
        failures,
    )
    return {
        **provenance.run_facts(settings),
        **results.facts(settings, record, found),
        "split": settings.split,
        "left_out": record["left_out"],
        "scored": {"unit": "clips", "how": "statistics of whole clips"},
    }


main = functools.partial(run_by_flags, run, BaselineSettings, __doc__)
