"""Whether models are compiled by XLA, and for how many shapes of inputs."""

import keras
import numpy as np

# Four widths for each doubling: less than a quarter of each is padding.
WIDTHS = np.unique(
    [(4 + part) * 2**power // 4 for power in range(31) for part in range(4)]
)


def jit_compile():
    """Returns `jit_compile` of `keras.Model.compile`, where nobody says it.

    TensorFlow runs graphs without XLA, which would compile longer than small
    models run. JAX has no other graphs: it would run each operation by
    itself, a hundred times slower.
    """
    return keras.backend.backend() == "jax"


def few_shapes(inputs, longest=None):
    """Fills a batch up to one of few shapes, where each one is compiled.

    The last row is repeated until there are as many as a power of two. Whole
    clips get further zeros, which `lengths` tells from samples.

    Args:
        inputs: float array `(batch, samples)`, or a dict of it as `waveform`
            and of `lengths`, int array `(batch,)`.
        longest: int, the samples that the model takes at most, or `None`.

    Returns:
        Inputs alike, the same ones on other backends than JAX.
    """
    if not jit_compile():
        return inputs
    if not isinstance(inputs, dict):
        return filled_up(inputs)
    waveform = np.asarray(inputs["waveform"])
    samples = waveform.shape[1]
    width = wider(samples, longest)
    waveform = np.pad(waveform, ((0, 0), (0, width - samples)))
    return {
        "waveform": filled_up(waveform),
        "lengths": filled_up(np.asarray(inputs["lengths"])),
    }


def filled_up(rows):
    """Repeats the last row of an array until there are a power of two."""
    more = 2 ** (len(rows) - 1).bit_length() - len(rows)
    return np.pad(rows, [(0, more)] + [(0, 0)] * (rows.ndim - 1), "edge")


def wider(samples, longest=None):
    """Returns the width that clips of so many samples are padded to.

    Args:
        samples: int, of the longest clip.
        longest: int, the samples that the model takes at most, or `None`.
    """
    found = widths(longest)
    place = np.searchsorted(found, samples)
    # What is too long is for the model to refuse.
    return int(found[place]) if place < len(found) else samples


def widths(longest=None):
    """Returns the widths of whole clips, an int array in ascending order.

    Args:
        longest: int, the last of them, or `None`.
    """
    if longest is None:
        return WIDTHS
    return np.append(WIDTHS[WIDTHS < longest], longest)
