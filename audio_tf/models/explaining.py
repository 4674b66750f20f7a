"""Explanations of labels: a weight for every patch of a clip's sound.

Each method of `METHODS` is measured by benchmarks/explanations.py on clips of
the released models. One that says the same of a model before training, or is
behind random order, is not here.
"""

import numpy as np
from keras import ops

from audio_tf.audio import sources
from audio_tf.audio.chunking import Cutting
from audio_tf.audio.scoring import refuse_longer
from audio_tf.gradients import input_gradients
from audio_tf.models.sound_patches import BANDS, PATCH_S, SoundPatches
from audio_tf.ops.answers import refusal
from audio_tf.ops.checks import check_choice, closest

# Of the path of integrated gradients, from silence to the clip. Most models
# hear levels in dB, so its steps are equal in dB.
STEPS = 48
DEPTH_DB = 120.0
# In which patches come, for Shapley's values; each also counts backwards.
ORDERS = 8
BATCH_SIZE = 64
# Of the inputs of a batch; longer clips are explained with fewer at once.
MAX_SAMPLES = 2**21


def path(steps=STEPS):
    """Returns the levels that integrated gradients pass on their way.

    Args:
        steps: int, how many there are.

    Returns:
        Pair of float64 arrays `(steps,)`: the factors that the clip is
        multiplied by, and how much of the way from 0 to 1 each stands for.
    """
    edges = 10.0 ** (np.linspace(-DEPTH_DB, 0.0, steps + 1) / 20.0)
    levels = np.sqrt(edges[:-1] * edges[1:])
    edges[0] = 0.0
    return levels, np.diff(edges)


def integrated_gradients(model, patches, label):
    """Integrates how a score grows with each patch, from silence to the clip.

    M. Sundararajan, A. Taly and Q. Yan, "Axiomatic Attribution for Deep
    Networks", 2017. A clip is the sum of its patches, and the path turns all
    of them up alike: what the gradient is along the way, times the patch, is
    what the patch adds. The weights add up to the clip's score less that of
    silence, as nearly as the steps of the path let them.

    Args:
        model: an `AudioClassifier`.
        patches: `SoundPatches` of the clip.
        label: int, the number of the label.

    Returns:
        Float64 array `(times, bands)`.
    """
    levels, widths = path()
    weights = np.zeros(patches.shape)
    for chunk in patches.chunks:
        size = rows_at_once(len(chunk.audio))
        gradient = np.zeros(len(chunk.audio))
        for first in range(0, len(levels), size):
            part = slice(first, first + size)
            rows = levels[part, None] * chunk.audio
            found = input_gradients(
                lambda x: model(x, training=False)[:, label],
                ops.convert_to_tensor(rows.astype("float32")),
            )
            gradient += widths[part] @ ops.convert_to_numpy(found)
        for band, sound in enumerate(patches.bands_of(chunk.audio)):
            weights[:, band] += patches.sum_by_patch(chunk, gradient * sound)
    return weights / len(patches.chunks)


def occlusion(model, patches, label):
    """Measures how a score falls as each patch is taken out of the clip.

    M. D. Zeiler and R. Fergus, "Visualizing and Understanding Convolutional
    Networks", 2014. It scores the clip once for each patch: exact, and slow.

    Args:
        model: as `integrated_gradients` takes it.
        patches: as well.
        label: as well.

    Returns:
        Float64 array `(times, bands)`.
    """
    weights = np.zeros(patches.shape)
    for chunk in patches.chunks:
        size = rows_at_once(len(chunk.audio))
        whole = scores_of(model, chunk.audio[None], label)[0]
        times = np.unique(chunk.patch)
        for band, sound in enumerate(patches.bands_of(chunk.audio)):
            for first in range(0, len(times), size):
                part = times[first : first + size]
                taken = [
                    sound * patches.slopes(chunk, row)
                    for row in np.eye(patches.shape[0])[part]
                ]
                rows = (chunk.audio - taken).astype("float32")
                weights[part, band] += whole - scores_of(model, rows, label)
    return weights / len(patches.chunks)


def shapley(model, patches, label):
    """Measures what each patch adds to a score, beside any of the others.

    L. S. Shapley, "A Value for n-Person Games", 1953: the mean, over all
    orders in which patches can be put into silence, of what the score gains
    by one. E. Štrumbelj and I. Kononenko, "Explaining prediction models and
    individual predictions with feature contributions", 2014, draw some orders
    of all; here each one also counts backwards, so that a patch that came
    early once comes late once. The weights add up to the clip's score less
    that of silence. It scores each chunk `2 * ORDERS` times for each patch.

    Args:
        model: as `integrated_gradients` takes it.
        patches: as well.
        label: as well.

    Returns:
        Float64 array `(times, bands)`, the same in every call.
    """
    weights, rng = np.zeros(patches.shape), np.random.default_rng(0)
    for chunk in patches.chunks:
        mix, size = patches.mixer(chunk), rows_at_once(len(chunk.audio))
        heard = np.isin(np.arange(patches.shape[0]), chunk.patch)
        places = np.flatnonzero(np.repeat(heard, patches.shape[1]))
        for _ in range(ORDERS):
            order = rng.permutation(places)
            for each in (order, order[::-1]):
                # Patches that are not heard come last, and change nothing.
                rank = np.full(weights.size, len(each))
                rank[each] = np.arange(len(each))
                rank = rank.reshape(weights.shape)
                scores = []
                for first in range(0, len(each) + 1, size):
                    count = np.arange(first, min(first + size, len(each) + 1))
                    rows = mix(rank < count[:, None, None])
                    scores.append(scores_of(model, rows, label))
                gained = np.diff(np.concatenate(scores))
                weights.ravel()[each] += gained / (2 * ORDERS)
    return weights / len(patches.chunks)


def rows_at_once(samples):
    """Returns how many rows of so many samples are computed at once."""
    return max(1, min(BATCH_SIZE, MAX_SAMPLES // samples))


def scores_of(model, rows, label):
    """Scores rows as one label, float64 `(rows,)`."""
    scores = model.score_batch(rows)
    return np.asarray(ops.convert_to_numpy(scores), "float64")[:, label]


METHODS = {
    "integrated_gradients": integrated_gradients,
    "occlusion": occlusion,
    "shapley": shapley,
}


class Explainer:
    """The base of a Keras model that says what its scores rest on.

    A subclass is a `ClipClassifier` whose gradients can be computed.
    """

    def explain(
        self,
        clips,
        label=None,
        method="integrated_gradients",
        patch_s=PATCH_S,
        bands=BANDS,
        strict=False,
    ):
        """Weighs every patch of time and frequency by what it says for a label.

        ```python
        found = classifier.explain("dog.wav", "dog_bark")
        found["weights"].sum(axis=1)  # of each tenth of a second
        audio_tf.analysis.draw_explanation(found).savefig("why.png")
        ```

        A positive weight is of a patch that raises the label's score. Those
        of integrated gradients and of Shapley add up to the score less that
        of silence; one of occlusion is what the score loses when its patch is
        silent. Clips
        are cut into the chunks that `classify` scores: long clips may be
        explained, and chunks that `silence_db` leaves out weigh nothing.

        Args:
            clips: as `classify` takes them.
            label: str, the label that is explained, or `None` for each
                clip's best.
            method: `"integrated_gradients"`; or, slower and without
                gradients, `"shapley"`, the one to trust most, which takes
                16 scorings for each patch, or `"occlusion"`, with one.
            patch_s: float, about the seconds of a patch: a clip is cut into
                patches of equal length.
            bands: int, the bands of frequency, of equal width in mel.
            strict: bool. If True, the first bad clip is an error.

        Returns:
            Dict of `file`, `label` and `method`, each a str; of `score` and
            `silence_score`, floats, the label's score of the clip and of
            silence of its length; of the edges of the patches, `time_s`,
            float64 `(times + 1,)`, and `frequency_hz`, `(bands + 1,)`; and
            of `weights`, float64 `(times, bands)`. Or, for a bad clip, of
            `file` and `error`. A list, a folder and a pattern give a list of
            such dicts.

        Raises:
            AudioError, TypeError: as `classify`.
            ValueError: as `classify`, or if there is no such label or
                method; it names the closest.
        """
        found, single = sources.find_sources(clips)
        answers = [
            answer
            for _, answer in self.explain_sources(
                found, label, method, patch_s, bands, strict
            )
        ]
        return answers[0] if single else answers

    def explain_sources(self, found, label, method, patch_s, bands, strict):
        """Yields what `explain` says of each clip as soon as it is there.

        Args:
            found: iterable of `audio.sources.Source`.
            label, method, patch_s, bands, strict: as `explain` takes them.

        Yields:
            Pair of the `Source` and the dict of `explain`.
        """
        check_choice("method", method, METHODS)
        names, rate_hz = self.label_names, self.sample_rate_hz
        if label is not None and label not in names:
            raise ValueError(
                f"`label` must be one of {names}{closest(label, names)}. "
                f"Received: label={label!r}"
            )
        loaded = sources.load_ahead(found, rate_hz)
        for source, audio, reason in refuse_longer(self, loaded):
            if reason is None:
                patches = SoundPatches(
                    audio,
                    rate_hz,
                    Cutting.of(self),
                    patch_s,
                    bands,
                )
                answer = self.explain_patches(patches, label, method)
                if not np.isfinite(answer["weights"]).all():
                    reason = "its weights are not finite"
            if reason is None:
                yield source, {"file": str(source.name), **answer}
            elif strict:
                raise sources.AudioError(source.name, reason)
            else:
                yield source, refusal(source.name, reason)

    def explain_patches(self, patches, label, method):
        """Explains the score of one clip; see `explain`.

        Args:
            patches: `SoundPatches` of the clip.
            label: str, or `None` for the best.
            method: str.

        Returns:
            Dict as `explain` returns it, without `file`.
        """
        rows = [chunk.audio for chunk in patches.chunks]
        scores = []
        for first in range(0, len(rows), BATCH_SIZE):
            part = self.score_batch(np.stack(rows[first : first + BATCH_SIZE]))
            scores.append(np.asarray(ops.convert_to_numpy(part), "float64"))
        scores = np.concatenate(scores).mean(axis=0)
        number = int(scores.argmax())
        if label is not None:
            number = self.label_names.index(label)
        return {
            "label": self.label_names[number],
            "method": method,
            "score": float(scores[number]),
            "silence_score": float(
                scores_of(self, np.zeros_like(rows[0])[None], number)[0]
            ),
            "time_s": patches.time_s,
            "frequency_hz": patches.frequency_hz,
            "weights": METHODS[method](self, patches, number),
        }
