"""Clips to the rows of a batch: whole clips, or the chunks of clips."""

import typing

import numpy as np

from audio_tf.audio.decode import AudioError
from audio_tf.audio.sources import load_ahead


class Rows(typing.NamedTuple):
    """Some clips as the rows of a batch.

    Attributes:
        waveform: float32 `(rows, samples)`, padded by zeros.
        lengths: int32 `(rows,)`, the real samples of each row.
        clips: int64 `(rows,)`, the place of each row's clip among those that
            were given; it ascends.
    """

    waveform: np.ndarray
    lengths: np.ndarray
    clips: np.ndarray


def load_rows(sources, sample_rate_hz, cutting, report=None):
    """Decodes clips, and cuts them as they are cut to be scored.

    Args:
        sources: iterable of `audio.sources.Source`.
        sample_rate_hz: int, the rate wanted.
        cutting: `audio.chunking.Cutting`. Whole clips are padded to the
            longest.
        report: function of the name of a bad clip and of the reason, both
            str; such a clip has no row. `None` makes it an error.

    Returns:
        `Rows`.

    Raises:
        AudioError: at the first bad clip, without a `report`.
    """
    pieces, clips = [], []
    decoded = load_ahead(sources, sample_rate_hz)
    for clip, (source, audio, reason) in enumerate(decoded):
        if reason is not None:
            if report is None:
                raise AudioError(source.name, reason)
            report(str(source.name), reason)
            continue
        found, _ = cutting.cut(audio)
        pieces += [*found]
        clips += [clip] * len(found)
    lengths = np.array([len(piece) for piece in pieces], np.int32)
    waveform = np.zeros(
        (len(pieces), lengths.max(initial=cutting.size or 0)), np.float32
    )
    for row, piece in enumerate(pieces):
        waveform[row, : len(piece)] = piece
    return Rows(waveform, lengths, np.array(clips, np.int64))
