"""Which explanations can be trusted: each method against what knows nothing.

    pip install -e ".[test]"
    python benchmarks/explanations.py --model audio_transformer_fsdd_digits \\
        --files 'recordings/*_[5-9].wav' --unit '_([a-z]+)_' --clips 40

A clip's patches are taken out in the order of their weights, the largest
first, and the score of its label is followed: the mean of that curve is
`deletion`, and should be low. The same the other way, from silence, is
`insertion`, and should be high. Both stand beside patches in random order and
those with most energy first, clip by clip, with 95 % intervals of the
bootstrap over units of clips, which `--unit` finds in the names of files.

`randomised` is the rank correlation of a method's weights with those that it
gives for the same model before training (J. Adebayo et al., "Sanity Checks
for Saliency Maps", 2018): a method that says the same of it does not look at
what was learned.

`passes` is said of a method whose deletion is below and whose insertion is
above both random and energy, with intervals that exclude 0, and the interval
of whose correlation ends below `MOST_ALIKE`.
"""

import argparse
import os
import random
import re

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")

import keras  # noqa: E402
import numpy as np  # noqa: E402
from scipy.stats import spearmanr  # noqa: E402

from audio_tf import corpora, files, intervals  # noqa: E402
from audio_tf.analysis import attention_maps  # noqa: E402
from audio_tf.audio import load_audio  # noqa: E402
from audio_tf.audio.chunking import Cutting  # noqa: E402
from audio_tf.models import AudioClassifier, explaining  # noqa: E402
from audio_tf.models.sound_patches import SoundPatches  # noqa: E402

SHARES = np.array([0, 0.02, 0.05, 0.1, 0.2, 0.3, 0.5, 0.7, 0.9, 1.0])
MOST_ALIKE = 0.5
# Of random masks, for each chunk.
MASKS = 512


def energy(model, patches, label):
    """Weighs each patch by its energy: the loudest first."""
    weights = np.zeros(patches.shape)
    for chunk in patches.chunks:
        for band, sound in enumerate(patches.bands_of(chunk.audio)):
            weights[:, band] += patches.sum_by_patch(chunk, sound**2)
    return weights


def rollout(model, patches, label):
    """Weighs time by the rollout of attention, and its bands by energy.

    S. Abnar and W. Zuidema, "Quantifying Attention Flow in Transformers",
    2020: maps of the layers, means over heads and half of it the residual
    path, multiplied. It knows no label and no frequency.
    """
    weights = np.zeros(patches.shape)
    for chunk in patches.chunks:
        total = None
        for maps in attention_maps(model, chunk.audio[None]):
            rows = maps[0].mean(axis=0)
            rows = 0.5 * rows + 0.5 * np.eye(len(rows))
            rows /= rows.sum(axis=1, keepdims=True)
            total = rows if total is None else rows @ total
        time = total.mean(axis=0)
        frame = np.arange(len(chunk.audio)) // model.backbone.frame_size
        time = time[np.minimum(frame, len(time) - 1)]
        for band, sound in enumerate(patches.bands_of(chunk.audio)):
            weights[:, band] += patches.sum_by_patch(chunk, time * sound**2)
    return weights


def gradient(model, patches, label):
    """Weighs each patch by the gradient at the clip itself, times the patch."""
    weights = np.zeros(patches.shape)
    for chunk in patches.chunks:
        found = explaining.input_gradients(
            lambda x: model(x, training=False)[:, label], chunk.audio[None]
        )
        found = keras.ops.convert_to_numpy(found)[0]
        for band, sound in enumerate(patches.bands_of(chunk.audio)):
            weights[:, band] += patches.sum_by_patch(chunk, found * sound)
    return weights / len(patches.chunks)


def random_masks(model, patches, label):
    """Measures how a score falls as a patch is missing beside others.

    Patches are taken out at random, from few of them to nearly all, and each
    has the difference of the scores with it and without it. V. Petsiuk, A.
    Das and K. Saenko, "RISE: Randomized Input Sampling for Explanation of
    Black-box Models", 2018; shares of all sizes are Shapley's.

    Args:
        model: as `integrated_gradients` takes it.
        patches: as well.
        label: as well.

    Returns:
        Float64 array `(times, bands)`, the same in every call.
    """
    weights, rng = np.zeros(patches.shape), np.random.default_rng(0)
    for chunk in patches.chunks:
        mix, most = patches.mixer(chunk), explaining.rows_at_once
        heard = np.isin(np.arange(patches.shape[0]), chunk.patch)
        total, spread = np.zeros(patches.shape), 0.0
        for first in range(0, MASKS, most(len(chunk.audio))):
            size = min(MASKS - first, most(len(chunk.audio)))
            shares = rng.random((size, 1, 1))
            masks = rng.random((size, *patches.shape)) < shares
            scores = explaining.scores_of(model, mix(masks), label)
            total += np.tensordot(scores, masks - shares, 1)
            spread += (shares * (1.0 - shares)).sum()
        weights += total / spread * heard[:, None]
    return weights / len(patches.chunks)


CANDIDATES = {
    "integrated_gradients": explaining.integrated_gradients,
    "occlusion": explaining.occlusion,
    "shapley": explaining.shapley,
    "random_masks": random_masks,
    "gradient": gradient,
    "rollout": rollout,
    "energy": energy,
}


class Curves:
    """The scores of one clip as its patches go or come.

    Args:
        model: `AudioClassifier`.
        patches: `SoundPatches`.
        label: int.
    """

    def __init__(self, model, patches, label):
        self.model, self.label = model, label
        self.mixers = [patches.mixer(chunk) for chunk in patches.chunks]

    def scores(self, gains):
        """Scores the clip with each of some gains `(rows, times, bands)`."""
        total = sum(
            explaining.scores_of(self.model, mix(gains), self.label)
            for mix in self.mixers
        )
        return total / len(self.mixers)

    def areas(self, weights):
        """Returns the means of the deletion and of the insertion curve."""
        rank = np.empty(weights.size)
        rank[np.argsort(-weights.ravel(), kind="stable")] = np.arange(
            weights.size
        )
        rank = rank.reshape(weights.shape) / weights.size
        gone = rank >= SHARES[:, None, None]
        scores = self.scores(np.concatenate([gone, ~gone]))
        deleted, inserted = scores.reshape(2, -1)
        return np.trapezoid(deleted, SHARES), np.trapezoid(inserted, SHARES)


def interval(values, units):
    """Returns the mean with the interval over units of clips."""
    values = np.asarray(values, "float64")
    drawn = [
        (weights @ values) / weights.sum(axis=1)
        for weights in intervals.draw_weights(units, intervals.DRAWS)
    ]
    low, high = np.quantile(np.concatenate(drawn), [0.025, 0.975])
    return float(values.mean()), float(low), float(high)


def judge_clip(model, blank, path, rng, methods):
    """Measures all candidates on one clip.

    Args:
        model: `AudioClassifier`.
        blank: the same before training.
        path: the file.
        rng: `numpy.random.Generator`, of the random order.
        methods: list of names of `CANDIDATES`; `energy` comes beside them.

    Returns:
        Dict by method of dicts of `deletion`, `insertion` and `randomised`.
    """
    audio = load_audio(path, model.sample_rate_hz)
    patches = SoundPatches(audio, model.sample_rate_hz, Cutting.of(model))
    rows = np.stack([chunk.audio for chunk in patches.chunks])
    label = int(np.asarray(model.score_batch(rows)).mean(axis=0).argmax())
    curves, found = Curves(model, patches, label), {}
    for name in dict.fromkeys([*methods, "energy"]):
        method = CANDIDATES[name]
        weights = method(model, patches, label)
        alike = spearmanr(
            weights.ravel(), method(blank, patches, label).ravel()
        ).statistic
        deletion, insertion = curves.areas(weights)
        found[name] = {
            "deletion": deletion,
            "insertion": insertion,
            "randomised": alike,
        }
    orders = [curves.areas(rng.random(patches.shape)) for _ in range(3)]
    deletion, insertion = np.mean(orders, axis=0)
    found["random"] = {
        "deletion": deletion,
        "insertion": insertion,
        "randomised": 0.0,
    }
    return found


def summary(found, units):
    """Returns figures by method, and whether the method passes.

    Args:
        found: list by clip of dicts as `judge_clip` returns them.
        units: int64 array `(clips,)`.
    """
    table = {}
    for name in found[0]:
        row, passes = {}, True
        for figure in ("deletion", "insertion", "randomised"):
            own = np.array([each[name][figure] for each in found])
            row[figure] = interval(own, units)
            if figure == "randomised":
                passes &= row[figure][2] < MOST_ALIKE
                continue
            for rival in ("random", "energy"):
                theirs = np.array([each[rival][figure] for each in found])
                better = own - theirs if figure == "insertion" else theirs - own
                key = f"{figure}_better_than_{rival}"
                row[key] = interval(better, units)
                passes &= row[key][1] > 0
        table[name] = {**row, "passes": bool(passes)}
    return table


def units_of(files, unit):
    """Returns the unit of each file, which is the file itself without one.

    Args:
        files: list of str.
        unit: str, a regular expression with one group or more, of which the
            first names the unit, or None.

    Returns:
        Dict from file to unit.

    Raises:
        ValueError: if `unit` is no such expression, or a file has none.
    """
    if unit is None:
        return {file: file for file in files}
    try:
        expression = re.compile(unit)
    except re.error as error:
        raise ValueError(f"argument --unit: {unit!r}: {error}") from error
    if not expression.groups:
        raise ValueError(
            f"argument --unit: {unit!r} has no group that names the unit; "
            "expected one, such as '_([a-z]+)_'"
        )
    found = {file: expression.search(file) for file in files}
    for file, match in found.items():
        if match is None:
            raise ValueError(f"argument --unit: no match of {unit!r} in {file}")
    return {file: match.group(1) for file, match in found.items()}


def main():
    """Judges all candidates on clips of one model, and prints a table."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--model", required=True, help="a released preset")
    parser.add_argument(
        "--files",
        required=True,
        nargs="+",
        help="files, folders, or quoted patterns",
    )
    parser.add_argument(
        "--unit", help="regular expression whose group names a file's unit"
    )
    parser.add_argument(
        "--methods",
        nargs="+",
        choices=CANDIDATES,
        default=list(CANDIDATES),
        help="energy, which they are held against, is always among them "
        "(default: all)",
    )
    parser.add_argument("--clips", type=int, default=40)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--out", help="file of JSON for the figures")
    arguments = parser.parse_args()
    try:
        files = sorted(set(map(str, corpora.list_files(arguments.files))))
        units = units_of(files, arguments.unit)
    except (FileNotFoundError, ValueError) as error:
        parser.error(str(error))
    keras.utils.set_random_seed(arguments.seed)
    model = AudioClassifier.from_preset(arguments.model)
    blank = AudioClassifier.from_preset(arguments.model, load_weights=False)
    random.Random(arguments.seed).shuffle(files)
    files = files[: arguments.clips]
    rng, found = np.random.default_rng(arguments.seed), []
    for number, file in enumerate(files):
        found.append(judge_clip(model, blank, file, rng, arguments.methods))
        if number % 10 == 9 or number + 1 == len(files):
            names = [units[each] for each in files[: len(found)]]
            _, places = np.unique(names, return_inverse=True)
            report(arguments, summary(found, places), len(found), places)


def report(arguments, table, clips, units):
    """Prints the table, and writes it."""
    units = len(np.unique(units))
    print(f"{arguments.model}: {clips} clips of {units} units", flush=True)
    for name, row in table.items():
        figures = "  ".join(
            f"{figure} {mean:.3f} [{low:.3f}, {high:.3f}]"
            for figure, (mean, low, high) in (
                (k, v) for k, v in row.items() if k != "passes"
            )
        )
        print(f"  {name}: passes={row['passes']}  {figures}", flush=True)
    if arguments.out:
        content = {"clips": clips, "units": units, **table}
        files.write_json(arguments.out, content)


if __name__ == "__main__":
    main()
