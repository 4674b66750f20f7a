"""One report of parity, size, latency and accuracy over exported formats."""

import dataclasses
import statistics
import time

import numpy as np
import tensorflow as tf

from audio_tf import data, metrics
from audio_tf.audio import load_audio
from audio_tf.export import signature_parity
from audio_tf.export.base import TOLERANCE
from audio_tf.export.formats import format_of, load
from audio_tf.export.runtimes import RuntimeClassifier

# How far weights of the signature `explain` may be from those of the model, by
# the least precise dtype that it computes in: they are sums of gradients.
EXPLAIN_TOLERANCES = {"float32": 1e-4, "float16": 2e-3, "bfloat16": 2e-2}
# Calls of an engine in a round; each round gives one ratio.
ROUNDS, CALLS = 9, 10
# Lengths of the noise that formats are compared on without clips: others than
# those that the converters tried.
NOISE_S = (1.0, 0.31, 0.05)


@dataclasses.dataclass
class Row:
    """One line of the report: the figures of one format.

    Attributes:
        name: str, the format, and the quantization behind a blank.
        quantized: bool, whether it is quantized, and scores may differ.
        size_mb: float, the millions of bytes on disk.
        max_difference: float, the largest difference of a score from that of
            the model.
        relative_difference: float, `max_difference` by the largest score.
        agreement: float, the share of clips with the top class of the model.
        latency_ms: float, the median milliseconds of a call with one clip.
        ratio: float, its time to that of TensorFlow, the median of all
            rounds.
        ratio_range: pair of floats, the ratio of the fastest and of the
            slowest round.
        scores: dict of `"accuracy"` and `"mAP"`, or `None` without labels.
        explained: float, the largest difference of a weight, or of the
            label's score, of the signature `explain` from what the model's
            `explain` gives; `None` where there is no such signature.
        explain_tolerance: float, the largest `explained` that passes.
        signatures: dict by name of how far each other signature is, as
            `signature_parity.differences` returns it.
        signature_tolerance: float, the largest of them that passes.
    """

    name: str
    quantized: bool
    size_mb: float
    max_difference: float
    relative_difference: float
    agreement: float
    latency_ms: float = float("nan")
    ratio: float = float("nan")
    ratio_range: tuple = (float("nan"), float("nan"))
    scores: dict | None = None
    explained: float | None = None
    explain_tolerance: float = EXPLAIN_TOLERANCES["float32"]
    signatures: dict = dataclasses.field(default_factory=dict)
    signature_tolerance: float = TOLERANCE

    @property
    def passed(self):
        """Whether all is equal, or finite if it is quantized."""
        return self.fault is None

    @property
    def parity(self):
        """A str that says in a few words what differs, if anything does."""
        return self.fault or ("quantized" if self.quantized else "equal")

    @property
    def fault(self):
        """A str that says in a few words what differs, or `None`."""

        def passes(value, tolerance):
            return np.isfinite(value) if self.quantized else value <= tolerance

        if not passes(self.max_difference, TOLERANCE):
            return f"DIFFERS (over {TOLERANCE:.0e})"
        most = self.signature_tolerance
        for name, value in self.signatures.items():
            if not passes(value, most):
                return f"DIFFERS IN {name} (over {most:.0e})"
        if self.explained is not None and not passes(
            self.explained, self.explain_tolerance
        ):
            return f"EXPLAINS OTHERWISE (over {self.explain_tolerance:.0e})"
        return None


class TensorFlowClassifier(RuntimeClassifier):
    """The model itself as a graph, with which the others are compared."""

    def __init__(self, model):
        self._serve = tf.function(
            lambda waveform, lengths: model(
                {"waveform": waveform, "lengths": lengths}, training=False
            ),
            input_signature=[
                tf.TensorSpec((None, None), tf.float32),
                tf.TensorSpec((None,), tf.int32),
            ],
        )

    def run(self, waveform, lengths):
        lengths = np.where(lengths < 0, waveform.shape[1], lengths)
        return self._serve(waveform, lengths).numpy()


def verify(model, files, waveforms, chunks=None, rounds=ROUNDS, calls=CALLS):
    """Compares exported files with the model that they were written from.

    Every waveform, cut to what the model takes, is scored alone and all as one
    padded batch, and further signatures are compared on that batch. Latency
    is that of the first waveform alone. TensorFlow is timed right before each
    engine, in an order that rotates from round to round: machines slow down for
    seconds, and medians over all of an engine's calls then misled.

    Args:
        model: the `AudioClassifier`.
        files: dict of paths by the name of the format; behind a blank, the
            name of a quantized file has the quantization, as in
            `"litert dynamic"`.
        waveforms: float32 arrays `(samples,)` at the model's rate.
        chunks: `audio_tf.data.Chunks` of labelled clips, or `None`.
        rounds: int, ratios taken; 0 for no latency.
        calls: int, calls of a round.

    Returns:
        List of a `Row` for `"tensorflow"` and one for each of `files`.

    Raises:
        ValueError: if there is no waveform.
    """
    if not waveforms:
        raise ValueError("At least one waveform is needed.")
    waveforms = [waveform[: model.max_samples] for waveform in waveforms]
    reference = TensorFlowClassifier(model)
    runtimes = {name: load(path) for name, path in files.items()}
    engines = {"tensorflow": reference, **runtimes}
    batches = alone_and_together(waveforms)
    expected = [reference(batch) for batch in batches]
    rows = []
    for name, engine in engines.items():
        found = [np.asarray(engine(batch)) for batch in batches]
        path = files.get(name)
        rows.append(compared(name, found, expected, path))
        if chunks is not None:
            rows[-1].scores = accuracy(engine, chunks)
        if "explain" in engine.signatures:
            rows[-1].explained = explained(
                model, engine, waveforms, batches[-1]
            )
            rows[-1].explain_tolerance = explain_tolerance(model)
        rows[-1].signatures = signature_parity.differences(
            model, engine, waveforms, batches[-1]
        )
        rows[-1].signature_tolerance = signature_parity.tolerance(model)
    if rounds:
        time_in_rounds(rows, engines, batches[0], rounds, calls)
    return rows


def noise(sample_rate_hz):
    """Draws waveforms to compare formats on where there are no clips.

    Args:
        sample_rate_hz: int, the model's rate.

    Returns:
        List of float64 arrays `(samples,)`, the same in each call.
    """
    rng = np.random.default_rng(0)
    return [
        0.1 * rng.standard_normal(round(seconds * sample_rate_hz))
        for seconds in NOISE_S
    ]


def read_waveforms(model, files):
    """Reads clips to compare formats on, each cut to the model's first chunk.

    Args:
        model: the `AudioClassifier`.
        files: paths.

    Returns:
        List of float32 arrays `(samples,)` at the model's rate.

    Raises:
        AudioError: if a file is no audio.
    """
    waveforms = [load_audio(file, model.sample_rate_hz) for file in files]
    if model.chunk_s is None:
        return waveforms
    size = round(model.chunk_s * model.sample_rate_hz)
    return [waveform[:size] for waveform in waveforms]


def alone_and_together(waveforms):
    """Returns inputs of each waveform alone, and of all as a padded batch."""
    batches = [
        {
            "waveform": np.asarray(waveform, "float32")[np.newaxis],
            "lengths": np.array([-1], "int32"),
        }
        for waveform in waveforms
    ]
    lengths = np.array([len(w) for w in waveforms], "int32")
    padded = np.zeros((len(waveforms), lengths.max()), "float32")
    for row, waveform in zip(padded, waveforms, strict=True):
        row[: len(waveform)] = waveform
    return [*batches, {"waveform": padded, "lengths": lengths}]


def compared(name, found, expected, path):
    """Returns the `Row` of a format from its scores and those of the model."""
    found, expected = np.concatenate(found), np.concatenate(expected)
    # A NaN stays one: `max` of Python would lose it.
    difference = float(np.max(np.abs(found - expected)))
    return Row(
        name,
        " " in name,
        size_mb(path) if path is not None else float("nan"),
        difference,
        difference / float(np.max(np.abs(expected))),
        float(np.mean(found.argmax(-1) == expected.argmax(-1))),
    )


def explained(model, engine, waveforms, batch):
    """Compares explanations of clips with those of the model.

    Args:
        model: the `AudioClassifier`.
        engine: `loading.ExportedClassifier` with the signature `explain`.
        waveforms: float32 arrays `(samples,)`.
        batch: dict of them all as one padded batch.

    Returns:
        Float, the largest difference of weights and of scores.
    """
    rate_hz = model.sample_rate_hz
    expected = [
        model.explain((np.asarray(waveform, "float32"), rate_hz))
        for waveform in waveforms
    ]
    # The model's choice of label: another may be as good.
    names = model.label_names
    labels = [each.get("label", names[0]) for each in expected]
    found = engine.explain(batch, labels)
    found = {key: value.numpy() for key, value in found.items()}
    differences = []
    for row, each in enumerate(expected):
        if found["valid"][row] == ("error" in each):
            return float("inf")
        if "error" in each:
            continue
        weights = np.zeros(found["weights"].shape[1:])
        weights[: len(each["weights"])] = each["weights"]
        differences += [
            np.abs(found["weights"][row] - weights).max(),
            abs(found["score"][row] - each["score"]),
        ]
    return float(np.max(differences, initial=0.0))


def explain_tolerance(model):
    """Returns how far explanations of a model may be from its own."""
    return signature_parity.loosest(model, EXPLAIN_TOLERANCES)


def size_mb(path):
    """Returns the megabytes of all files that were exported to a path."""
    files = format_of(path).files(path)
    return sum(file.stat().st_size for file in files) / 1e6


def accuracy(engine, chunks):
    """Returns `"mAP"`, and `"accuracy"` where clips have one label each."""
    scores = data.score_clips(engine, chunks, verbose=0)
    report = metrics.evaluate(
        chunks.targets, scores, chunks.clips.corpus.vocabulary
    )
    figures = {key: report[key] for key in ("accuracy", "mAP")}
    return {k: figure for k, figure in figures.items() if figure is not None}


def time_in_rounds(rows, engines, inputs, rounds, calls):
    """Writes latencies and ratios of batch 1 into the rows."""

    def time_ms(engine):
        times = []
        for _ in range(calls):
            start = time.perf_counter()
            engine(inputs)
            times.append(1e3 * (time.perf_counter() - start))
        return statistics.median(times)

    others = [name for name in engines if name != "tensorflow"]
    times = {name: [] for name in engines}
    ratios = {name: [] for name in others}
    for engine in engines.values():
        engine(inputs)
    for number in range(rounds):
        turn = number % max(len(others), 1)
        for name in others[turn:] + others[:turn] or [None]:
            base = time_ms(engines["tensorflow"])
            times["tensorflow"].append(base)
            if name is not None:
                times[name].append(time_ms(engines[name]))
                ratios[name].append(times[name][-1] / base)
    for row in rows:
        row.latency_ms = statistics.median(times[row.name])
        ratio = ratios.get(row.name, [1.0])
        row.ratio = statistics.median(ratio)
        row.ratio_range = (min(ratio), max(ratio))


def format_rows(rows):
    """Returns the report as a table of Markdown with one line a format."""
    scored = rows[0].scores or {}
    # A column where a format explains.
    explains = any(row.explained is not None for row in rows)
    signed = any(row.signatures for row in rows)
    titles = [
        "format",
        "MB",
        "max diff",
        "relative",
        "same top-1",
        "ms at batch 1",
        "to TensorFlow",
        *scored,
        *(["signatures diff"] if signed else []),
        *(["explain diff"] if explains else []),
        "parity",
    ]
    lines = [titles, ["---"] * len(titles)]
    for row in rows:
        of_explain = "" if row.explained is None else f"{row.explained:.1e}"
        of_others = list(row.signatures.values())
        of_others = f"{np.max(of_others):.1e}" if of_others else ""
        low, high = row.ratio_range
        lines.append(
            [
                row.name,
                "" if np.isnan(row.size_mb) else f"{row.size_mb:.2f}",
                f"{row.max_difference:.1e}",
                f"{row.relative_difference:.1e}",
                f"{row.agreement:.3f}",
                f"{row.latency_ms:.2f}",
                f"{row.ratio:.2f} [{low:.2f}-{high:.2f}]",
                *(f"{value:.4f}" for value in (row.scores or {}).values()),
                *([of_others] if signed else []),
                *([of_explain] if explains else []),
                row.parity,
            ]
        )
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)
