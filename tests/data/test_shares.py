"""What each of several hosts reads, against what one reads."""

import numpy as np
import pytest
from clip_files import make_corpus, prepare

from audio_tf import compiling
from audio_tf.data import chunks as chunking
from audio_tf.data import score_clips
from audio_tf.data.shares import Share

DEVICES = 6
HOSTS = [Share(index, 3, DEVICES) for index in range(3)]


@pytest.fixture(scope="module", params=[0.1, None])
def chunks(request, tmp_path_factory):
    """Chunks of equal size, and whole clips in buckets."""
    folder = tmp_path_factory.mktemp("shares")
    corpus, _ = make_corpus(folder / "clips")
    return chunking.Chunks(prepare(corpus, folder / "cache"), request.param)


def waveforms(chunks, **options):
    """The waveforms of all batches of a pass."""
    batches = chunks.dataset(DEVICES, **options).as_numpy_iterator()
    inputs = [batch[0] for batch in batches]
    return [x["waveform"] if chunks.size is None else x for x in inputs]


@pytest.mark.parametrize("compiled", [False, True])
def test_hosts_read_the_batches_of_one(chunks, compiled, monkeypatch):
    """Rows of hosts one after another are those of one host, then fillers.

    Where each shape is compiled, clips of all lengths meet in some batches,
    which must have one width on all hosts.
    """
    monkeypatch.setattr(compiling, "jit_compile", lambda: compiled)
    options = {"shuffle": True, "seed": 7, "jitter": chunks.size is not None}
    whole = waveforms(chunks, **options)
    parts = [waveforms(chunks, **options, share=share) for share in HOSTS]
    assert len({len(part) for part in parts}) == 1
    for batch, *shares in zip(whole, *parts, strict=True):
        assert len({len(share) for share in shares}) == 1
        joined = np.concatenate(shares)
        np.testing.assert_array_equal(joined[: len(batch)], batch)
        fillers = joined[len(batch) :]
        assert len(joined) % DEVICES == 0 and len(fillers) < DEVICES
        assert (fillers == batch[-1]).all()


class Levels:
    """Scores as a model over hosts gives them: each has the rows of all."""

    def __init__(self, chunks):
        self.chunks = chunks

    def predict(self, dataset, verbose=None):
        """Returns the mean of each row of all hosts, twice."""
        batches = [
            np.concatenate(rows)
            for rows in zip(
                *(waveforms(self.chunks, share=share) for share in HOSTS),
                strict=True,
            )
        ]
        sums = [np.abs(batch).sum(axis=1) for batch in batches]
        return np.repeat(np.concatenate(sums)[:, None], 2, axis=1)


def test_rows_that_fill_batches_up_score_nothing(chunks):
    found = score_clips(Levels(chunks), chunks, DEVICES, share=HOSTS[1])
    for clip in range(len(chunks.clips)):
        rows = np.flatnonzero(chunks.clip_index == clip)
        level = np.mean([np.abs(chunks.read(row)).sum() for row in rows])
        np.testing.assert_allclose(found[clip], level, rtol=1e-5)


def test_devices_share_batches_evenly():
    HOSTS[0].check(12)
    with pytest.raises(ValueError, match="6 devices .* Received: 10 rows"):
        HOSTS[0].check(10)
