"""Checks of the labels and the backbone of a classifier."""

from audio_tf.audio.chunking import in_samples
from audio_tf.ops import checks


def check_labels(labels, num_classes):
    """Checks the names of the classes, and returns them as a list or `None`.

    Raises:
        ValueError: if they are no list of different names, or not as many as
            there are classes.
    """
    if labels is None:
        if num_classes is None:
            raise ValueError(
                "Either `num_classes` or `labels` is needed. Received neither"
            )
        checks.check_sizes(num_classes=num_classes)
        return None
    if isinstance(labels, str):
        raise ValueError(
            f"`labels` must be a list of names. Received: the string {labels!r}"
        )
    labels = list(labels)
    twice = {label for label in labels if labels.count(label) > 1}
    if twice or not labels or not all(isinstance(x, str) for x in labels):
        raise ValueError(
            "`labels` must be different names, one for each class. Received: "
            f"labels={labels}"
            + (f", twice: {sorted(map(str, twice))}" if twice else "")
        )
    if num_classes not in (None, len(labels)):
        raise ValueError(
            "There must be one label for each class. Received: "
            f"num_classes={num_classes}, {len(labels)} labels"
        )
    return labels


def check_backbone(backbone, chunk_s, chunk_hop_s):
    """Raises a `ValueError` if a backbone cannot score chunks of a length."""
    if backbone.takes != "waveform":
        raise ValueError(
            "The backbone must take waveforms; a SpeechEncoder makes features "
            f"of them for {type(backbone).__name__}. "
            f"Received: a backbone that takes {backbone.takes}"
        )
    checks.check_sizes(sample_rate_hz=backbone.sample_rate_hz)
    if chunk_s is None:
        return
    samples, hop = in_samples(chunk_s, chunk_hop_s, backbone.sample_rate_hz)
    if samples < 1:
        raise ValueError(
            "`chunk_s` must hold a sample, or be None for whole clips. "
            f"Received: chunk_s={chunk_s}"
        )
    if hop < 1:
        raise ValueError(
            "`chunk_hop_s` must hold a sample, or be None for chunks side by "
            f"side. Received: chunk_hop_s={chunk_hop_s}"
        )
    if backbone.max_samples is not None and samples > backbone.max_samples:
        longest_s = backbone.max_samples / backbone.sample_rate_hz
        raise ValueError(
            f"The backbone takes at most {longest_s:g} s, its "
            f"{backbone.attention!r} attention {backbone.max_frames} frames, "
            "and chunks would be longer: `made_for_frames` of the backbone "
            f"says what it is made for. Received: chunk_s={chunk_s}"
        )
