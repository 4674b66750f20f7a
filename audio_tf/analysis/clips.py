"""Clips whose attention maps are compared: as many, and as long, as fit."""

import math

import numpy as np

from audio_tf.analysis import maps
from audio_tf.terminal import describe_failures

# The paper's maps are 500 x 500.
MAX_FRAMES = 500
# Without `seconds`, the longest of so many files for each clip are taken.
FILES_PER_CLIP = 4
# Of the drawn layer's maps, which are kept of all clips.
MAX_GB = 2


def longest_clip(backbone):
    """Counts the samples of the longest clip that is taken without asking."""
    # The sample that would begin another frame is left out.
    longest = MAX_FRAMES * backbone.frame_size - 1
    if backbone.max_samples is None:
        return longest
    return min(longest, backbone.max_samples)


def read_clips(files, sample_rate_hz, count, seconds, longest, seed):
    """Reads clips of one length, so that their maps compare.

    Files are read in an order drawn by `seed` until there are enough, and cut
    at their ends. Without `seconds`, the longest of up to `4 * count` files
    are cut to the shortest of themselves.

    Args:
        files: paths.
        sample_rate_hz: int, the model's rate.
        count: int, clips wanted.
        seconds: float, length of the clips, or `None`.
        longest: int, samples of the longest clip without `seconds`.
        seed: int.

    Returns:
        Float32 `(clips, samples)`, their files, and a dict of the reason by
        path of each file that cannot be used.

    Raises:
        ValueError: if no file is usable or long enough.
    """
    from audio_tf.audio import AudioError, load_audio

    size = 1 if seconds is None else round(seconds * sample_rate_hz)
    end = longest if seconds is None else size
    wanted = count * FILES_PER_CLIP if seconds is None else count
    read, failures, shorter = [], {}, 0
    for row in np.random.default_rng(seed).permutation(len(files)):
        if len(read) == wanted:
            break
        try:
            audio = load_audio(files[row], sample_rate_hz)
        except AudioError as error:
            failures[error.path] = error.reason
            continue
        if len(audio) < max(size, 1):
            shorter += 1
            continue
        # A view would keep the whole recording.
        read.append((audio[:end].copy(), row))
    if not read:
        raise ValueError(
            f"None of {len(files)} files is usable and long enough. "
            f"Received: seconds={seconds}, {shorter} shorter files, "
            f"{describe_failures(failures)}"
        )
    # Stable: of files of one length, the first drawn are taken.
    read = sorted(read, key=lambda clip: -len(clip[0]))[:count]
    size = len(read[-1][0])
    read.sort(key=lambda clip: clip[1])
    waveforms = np.stack([audio[:size] for audio, _ in read])
    return waveforms, [files[row] for _, row in read], failures


def check_size(backbone, waveforms, layer):
    """Refuses clips whose maps are too large, before any is computed.

    Args:
        backbone: the `AudioBackbone`.
        waveforms: array `(clips, samples)`.
        layer: int, from 1, the layer whose maps of all clips are kept.

    Raises:
        ValueError: if the clips are longer than the attention takes, the
            maps of `layer` would take more than `MAX_GB`, or the front end
            does not say how many frames there are.
    """
    clips, samples = waveforms.shape
    seconds = samples / backbone.sample_rate_hz
    received = f"{clips} clips of {seconds:g} s"
    try:
        shape = maps.map_shapes(backbone, samples)[layer - 1]
    except ValueError as error:
        raise ValueError(
            f"Take shorter clips, by `seconds`. {error}, of {received}"
        ) from error
    if None in shape:
        raise ValueError(
            "The front end must say how many frames a clip of known length "
            "has, by `compute_output_spec` or `compute_output_shape`. "
            f"Received: {type(backbone.frontend).__name__} of "
            f"{type(backbone).__name__}, maps of shape {shape}"
        )
    size = 4e-9 * clips * math.prod(shape)
    if size > MAX_GB:
        raise ValueError(
            f"The maps of layer {layer} would take {size:.1f} GB, above "
            f"{MAX_GB} GB. Take shorter clips, by `seconds`, or fewer, by "
            f"`clips`. Received: {received}, each of "
            f"{' x '.join(map(str, shape))} weights"
        )
