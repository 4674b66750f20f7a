"""Chunks of clips, their batches, and scores from them."""

import dataclasses
import math
import os

import hypothesis
import keras
import numpy as np
import pytest
import soundfile
import tensorflow as tf
from clip_files import CLASSES, RATE_HZ, make_corpus, noise, prepare
from hypothesis import strategies

from audio_tf.audio.scoring import ClipClassifier
from audio_tf.corpora import Corpus
from audio_tf.data import cache, score_clips
from audio_tf.data import chunks as chunking


@pytest.fixture(scope="module")
def clips_and_audio(tmp_path_factory):
    folder = tmp_path_factory.mktemp("chunks")
    corpus, audio = make_corpus(folder / "clips")
    return prepare(corpus, folder / "cache"), audio


def test_entry_that_is_cut_while_it_is_in_use(tmp_path):
    corpus, _ = make_corpus(tmp_path / "clips", (503, 1_513))
    for chunk_s in (0.1, 1.0, None):
        clips = prepare(corpus, tmp_path / f"cache {chunk_s}")
        chunks = chunking.Chunks(clips, chunk_s)
        for entry in clips.entries:
            os.truncate(entry, cache.HEADER_SIZE + 4 * 29)
        for row in (0, len(chunks) - 1):
            with pytest.raises(OSError, match="was cut off while it was in"):
                chunks.read(row)


class Whole(ClipClassifier):
    """Takes clips whole."""

    chunk_s = chunk_hop_s = silence_db = None
    sample_rate_hz = RATE_HZ


def test_a_model_of_whole_clips_has_none_that_is_too_long(
    clips_and_audio,
):
    clips, audio = clips_and_audio
    model = Whole()
    assert chunking.Chunks.for_model(clips, model).clips is clips
    model.max_samples = 1_511
    chunks = chunking.Chunks.for_model(clips, model)
    kept = [row for row, each in enumerate(audio) if len(each) <= 1_511]
    assert chunks.clips.lengths.tolist() == [len(audio[row]) for row in kept]
    for row, clip in enumerate(kept):
        np.testing.assert_array_equal(chunks.read(row), audio[clip])
    np.testing.assert_array_equal(chunks.targets, clips.corpus.targets()[kept])
    reason = f"longer than the {1_511 / RATE_HZ:g} s that the model takes"
    long = [row for row in range(len(audio)) if row not in kept]
    assert chunks.clips.failures == {
        str(clips.corpus.files[row]): reason for row in long
    }
    assert not clips.failures
    # In chunks, all are taken.
    model.chunk_s = 0.5
    assert chunking.Chunks.for_model(clips, model).clips is clips
    model.chunk_s, model.max_samples = None, 10
    with pytest.raises(ValueError, match="None of 7 clips .* longer than"):
        chunking.Chunks.for_model(clips, model)
    # Pieces of another length would have scores, too.
    others = dataclasses.replace(clips, sample_rate_hz=2 * RATE_HZ)
    model.chunk_s = 0.5
    with pytest.raises(ValueError, match=f"clips at {2 * RATE_HZ} Hz"):
        chunking.Chunks.for_model(others, model)


sizes = strategies.integers(1, 401)


@hypothesis.settings(deadline=None, database=None)
@hypothesis.given(strategies.integers(1, 3_001), sizes, sizes)
def test_chunk_starts(length, size, hop):
    starts = chunking.chunk_starts(length, size, hop)
    assert starts.dtype == "int64"
    assert len(starts) >= 1
    assert starts[0] == 0
    if length <= size:
        assert len(starts) == 1
        return
    assert all(0 <= start <= length - size for start in starts)
    assert starts[-1] + size == length
    steps = np.diff(starts)
    assert (steps[:-1] == hop).all()
    assert (steps > 0).all() and (steps <= hop).all()
    # No chunk more than it takes.
    assert len(starts) == 1 + math.ceil((length - size) / hop)
    covered = np.zeros(length, bool)
    for start in starts:
        covered[start : start + size] = True
    if hop <= size:
        assert covered.all()


@pytest.mark.parametrize(
    "length, size, hop, starts",
    [
        (11, 13, 13, [0]),
        (13, 13, 13, [0]),
        (14, 13, 13, [0, 1]),
        (26, 13, 13, [0, 13]),
        (27, 13, 13, [0, 13, 14]),
        (29, 13, 7, [0, 7, 14, 16]),
        (27, 13, 7, [0, 7, 14]),
    ],
)
def test_chunk_starts_by_hand(length, size, hop, starts):
    assert chunking.chunk_starts(length, size, hop).tolist() == starts


def naive_chunks(audio, size, hop):
    """List of `(clip, samples)`, sample by sample."""
    chunks = []
    for clip, samples in enumerate(audio):
        if len(samples) <= size:
            repeated = [samples[i % len(samples)] for i in range(size)]
            chunks.append((clip, np.array(repeated)))
            continue
        start = 0
        while start + size < len(samples):
            chunks.append((clip, samples[start : start + size]))
            start += hop
        chunks.append((clip, samples[len(samples) - size :]))
    return chunks


@pytest.mark.parametrize(
    "chunk_s, hop_s, size, hop",
    [
        (1.0, None, 1_009, 1_009),
        (1.0, 0.5, 1_009, 504),
        (0.25, None, 252, 252),
        (0.25, 0.1, 252, 101),
    ],
)
def test_every_chunk_is_a_piece_of_its_clip(
    clips_and_audio, chunk_s, hop_s, size, hop
):
    clips, audio = clips_and_audio
    chunks = chunking.Chunks(clips, chunk_s, hop_s)
    expected = naive_chunks(audio, size, hop)
    assert len(chunks) == len(expected)
    assert chunks.clip_index.tolist() == [clip for clip, _ in expected]
    for row, (_, samples) in enumerate(expected):
        found = chunks.read(row)
        assert (found.dtype, found.shape) == ("float32", (size,))
        np.testing.assert_array_equal(found, samples)


def test_chunks_are_of_one_second_unless_told(clips_and_audio):
    chunks = chunking.Chunks(clips_and_audio[0])
    assert chunks.size == RATE_HZ
    # 11, 503, 1009 | 2017 -> 2 | 3539 -> 4 | 1511 -> 2 | 4036 = 4 * 1009.
    assert chunks.clip_index.tolist() == [
        0,
        1,
        2,
        3,
        3,
        *[4] * 4,
        5,
        5,
        *[6] * 4,
    ]


def test_short_clip_is_repeated_to_the_full_length(clips_and_audio):
    clips, audio = clips_and_audio
    assert len(audio[0]) == 11  # 0.01 s
    chunk = chunking.Chunks(clips).read(0)
    for index in range(RATE_HZ):
        assert chunk[index] == audio[0][index % 11]


def test_chunks_inherit_the_labels(clips_and_audio):
    clips, _ = clips_and_audio
    chunks = chunking.Chunks(clips, 0.25)
    rows = np.array([1, len(chunks) - 1, 3, 2])
    _, lengths, targets = chunks.read_batch(rows, np.zeros(4, np.int64))
    assert lengths.tolist() == [252] * 4
    for row, target in zip(rows, targets, strict=True):
        labels = clips.corpus.labels[chunks.clip_index[row]]
        assert target.tolist() == [float(name in labels) for name in CLASSES]


@pytest.mark.parametrize(
    "chunk_s, hop_s",
    [
        (0, None),
        (-1.0, None),
        (1e-4, None),
        (1.0, -1.0),
        (math.nan, None),
        (math.inf, None),
        (1.0, math.nan),
        (1.0, 1.5),
        (None, 0.5),
    ],
)
def test_chunks_without_a_sample(clips_and_audio, chunk_s, hop_s):
    message = f"Received: chunk_s={chunk_s}, hop_s={hop_s}"
    with pytest.raises(ValueError, match=message):
        chunking.Chunks(clips_and_audio[0], chunk_s, hop_s)


def test_hop_of_zero(clips_and_audio):
    with pytest.raises(ValueError, match="Received: chunk_s=1.0, hop_s=0"):
        chunking.Chunks(clips_and_audio[0], 1.0, 0)


@pytest.mark.parametrize("silence_db", [math.nan, -math.inf, 60])
def test_silence_that_is_no_number(clips_and_audio, silence_db):
    with pytest.raises(ValueError, match=f"silence_db={silence_db}"):
        chunking.Chunks(clips_and_audio[0], silence_db=silence_db)


CHUNK_S, SIZE, BATCH = 0.25, 252, 7


@pytest.fixture(scope="module")
def chunks(clips_and_audio):
    return chunking.Chunks(clips_and_audio[0], CHUNK_S)


def rows_of(chunks, waveforms):
    """Which chunk each waveform is, found by its samples."""
    known = {chunks.read(row).tobytes(): row for row in range(len(chunks))}
    assert len(known) == len(chunks)
    return [known[waveform.tobytes()] for waveform in waveforms]


def one_pass(dataset):
    """Waveforms and targets of one pass, joined."""
    waveforms, targets = zip(*dataset.as_numpy_iterator())
    return np.concatenate(waveforms), np.concatenate(targets)


def test_dataset_without_shuffle(chunks, clips_and_audio):
    clips, audio = clips_and_audio
    dataset = chunks.dataset(BATCH)
    waveform_spec, target_spec = dataset.element_spec
    assert (waveform_spec.shape[1], waveform_spec.dtype) == (SIZE, tf.float32)
    assert (target_spec.shape[1], target_spec.dtype) == (3, tf.float32)
    expected = naive_chunks(audio, SIZE, SIZE)
    sizes = [len(waveform) for waveform, _ in dataset]
    rest = len(expected) % BATCH
    assert rest  # Else nothing below tells of the last batch.
    assert sizes == [BATCH] * (len(expected) // BATCH) + [rest]
    for _ in range(2):
        waveforms, targets = one_pass(dataset)
        np.testing.assert_array_equal(
            waveforms, np.stack([samples for _, samples in expected])
        )
        corpus_targets = clips.corpus.targets()
        np.testing.assert_array_equal(
            targets, corpus_targets[[clip for clip, _ in expected]]
        )
    assert chunks.scoring_order(BATCH).tolist() == list(range(len(chunks)))


def test_shuffled_pass_visits_each_chunk_once(chunks):
    dataset = chunks.dataset(BATCH, shuffle=True, seed=3)
    orders = []
    for _ in range(3):
        waveforms, targets = one_pass(dataset)
        rows = rows_of(chunks, waveforms)
        assert sorted(rows) == list(range(len(chunks)))
        np.testing.assert_array_equal(
            targets, chunks.targets[chunks.clip_index[rows]]
        )
        orders.append(tuple(rows))
    assert len(set(orders)) == 3
    assert tuple(range(len(chunks))) not in orders


def test_shuffle_reaches_over_the_whole_corpus(clips_and_audio):
    """No buffer: any chunk may come first."""
    chunks = chunking.Chunks(clips_and_audio[0], 0.02)
    count = len(chunks)
    waveforms, _ = one_pass(chunks.dataset(BATCH, shuffle=True, seed=3))
    order = np.array(rows_of(chunks, waveforms))
    correlation = np.corrcoef(order, np.arange(count))[0, 1]
    # Independent orders: standard deviation 1 / sqrt(count - 1).
    assert abs(correlation) < 4 / math.sqrt(count - 1)
    # Batches are not runs of neighbours either.
    assert np.abs(np.diff(order)).mean() > count / 5


def test_order_is_the_seeds(chunks):
    def passes(seed):
        dataset = chunks.dataset(BATCH, shuffle=True, seed=seed)
        while True:
            yield rows_of(chunks, one_pass(dataset)[0])

    one, again, other = passes(3), passes(3), passes(4)
    first, second = next(one), next(one)
    # Datasets do not disturb each other, so that passes count for each alone.
    assert [next(again), next(again)] == [first, second]
    neighbour = next(other)
    assert first != neighbour
    # Else a seed would replay, one pass later, the order of its neighbour.
    assert second != neighbour


def stream(chunks, first_epoch, batches, **kwargs):
    dataset = chunks.dataset(
        BATCH, shuffle=True, seed=7, first_epoch=first_epoch, **kwargs
    )
    return list(dataset.take(batches).as_numpy_iterator())


@pytest.mark.parametrize("jitter", [False, True])
def test_resumed_stream_is_the_unbroken_one(chunks, jitter):
    count = chunks.num_batches(BATCH)
    unbroken = stream(chunks, 0, 4 * count, jitter=jitter)
    # At the start of a pass, and within one that others follow.
    for first_epoch, first_batch in ((1, 0), (3, 0), (1, 2)):
        skipped = first_epoch * count + first_batch
        resumed = stream(
            chunks,
            first_epoch,
            len(unbroken) - skipped,
            jitter=jitter,
            first_batch=first_batch,
        )
        pairs = zip(unbroken[skipped:], resumed, strict=True)
        for (waveform, target), (again, target_again) in pairs:
            np.testing.assert_array_equal(waveform, again)
            np.testing.assert_array_equal(target, target_again)
        different = [
            waveform.shape != again.shape or (waveform != again).any()
            for (waveform, _), (again, _) in zip(unbroken, resumed)
        ]
        assert any(different), (first_epoch, first_batch)


def test_stream_is_made_of_whole_passes(chunks):
    steps = chunks.num_batches(BATCH)
    batches = stream(chunks, 0, 2 * steps)
    plain = chunks.dataset(BATCH, shuffle=True, seed=7)
    for epoch in range(2):
        part = batches[epoch * steps : (epoch + 1) * steps]
        waveforms = np.concatenate([waveform for waveform, _ in part])
        np.testing.assert_array_equal(waveforms, one_pass(plain)[0])


def test_cardinality(chunks):
    for batch_size in (1, 5, 7, 1_000):
        dataset = chunks.dataset(batch_size, shuffle=True)
        expected = math.ceil(len(chunks) / batch_size)
        assert chunks.num_batches(batch_size) == expected
        assert dataset.cardinality().numpy() == expected, batch_size
        assert sum(1 for _ in dataset) == expected, batch_size
    endless = chunks.dataset(batch_size, first_epoch=3)
    assert endless.cardinality() == tf.data.INFINITE_CARDINALITY


@pytest.mark.parametrize("batch_size", [0, -1, 2.5, math.nan, True])
def test_batch_size_that_is_none(chunks, batch_size):
    with pytest.raises(ValueError, match="`batch_size` must be a positive"):
        chunks.dataset(batch_size)
    with pytest.raises(ValueError, match="`batch_size` must be a positive"):
        chunks.num_batches(batch_size)


@pytest.mark.parametrize("name", ["seed", "first_epoch", "first_batch"])
@pytest.mark.parametrize("value", [-1, 1.5, "1", True])
def test_what_a_pass_begins_with_is_counted_from_zero(chunks, name, value):
    message = f"`{name}` must be a whole number of at least 0.*{value}"
    with pytest.raises(ValueError, match=message):
        chunks.dataset(BATCH, **{name: value})


def test_a_pass_leaves_out_no_more_batches_than_it_has(chunks):
    count = chunks.num_batches(BATCH)
    assert not list(chunks.dataset(BATCH, first_batch=count))
    # Of one more, TensorFlow would count -1 batches: batches without an end.
    for first in ({}, {"first_epoch": 0}):
        with pytest.raises(ValueError, match=f"must be at most {count}, the"):
            chunks.dataset(BATCH, first_batch=count + 1, **first)


def test_jitter_stays_near_and_within_the_clip(chunks, clips_and_audio):
    _, audio = clips_and_audio
    is_long = np.array([len(samples) > SIZE for samples in audio])
    shifts = []
    dataset = chunks.dataset(BATCH, jitter=True)
    for _ in range(5):
        waveforms, targets = one_pass(dataset)
        np.testing.assert_array_equal(
            targets, chunks.targets[chunks.clip_index]
        )
        for row, waveform in enumerate(waveforms):
            clip = chunks.clip_index[row]
            if not is_long[clip]:
                continue
            # Samples are distinct, so the first tells where it was cut.
            [start] = np.flatnonzero(audio[clip] == waveform[0])
            np.testing.assert_array_equal(
                waveform, audio[clip][start : start + SIZE]
            )
            shifts.append(start - chunks.starts[row])
    assert max(np.abs(shifts)) <= SIZE // 2
    # Early and late, and in most of the reach.
    assert min(shifts) < -SIZE // 3
    assert max(shifts) > SIZE // 3


def test_jitter_turns_a_repeated_clip(chunks, clips_and_audio):
    repeated = np.resize(clips_and_audio[1][0], SIZE)
    turns = {np.roll(repeated, turn).tobytes() for turn in range(SIZE)}
    dataset = chunks.dataset(BATCH, jitter=True)
    # The clip is the first of the first batch.
    batches = [next(dataset.as_numpy_iterator()) for _ in range(7)]
    seen = {waveforms[0].tobytes() for waveforms, _ in batches}
    assert seen <= turns
    assert len(seen) > 3


@pytest.mark.parametrize("offset", [-300, -1, 1, 17, 500])
def test_a_clip_as_long_as_its_chunk_is_turned_too(clips_and_audio, offset):
    """As one that is repeated: it has nowhere else to begin."""
    clips, audio = clips_and_audio
    chunks = chunking.Chunks(clips, 1.0)
    lengths = [len(samples) for samples in audio[:4]]
    assert lengths == [11, 503, RATE_HZ, 2_017]
    for row in range(3):
        turned = [
            audio[row][(i + offset) % RATE_HZ % lengths[row]]
            for i in range(RATE_HZ)
        ]
        np.testing.assert_array_equal(chunks.read(row, offset), turned)
    # The chunks of a longer clip stay within it.
    for row, start in ((3, 0), (4, 2_017 - RATE_HZ)):
        first = min(max(start + offset, 0), 2_017 - RATE_HZ)
        np.testing.assert_array_equal(
            chunks.read(row, offset), audio[3][first : first + RATE_HZ]
        )


def test_jitter_is_new_in_each_pass_and_the_seeds(chunks):
    def passes(seed, count):
        dataset = chunks.dataset(BATCH, seed=seed, jitter=True)
        return [one_pass(dataset)[0] for _ in range(count)]

    first, second, third = passes(3, 3)
    assert (first != second).any(axis=1).mean() > 0.9
    assert (second != third).any(axis=1).mean() > 0.9
    assert (first != passes(4, 1)[0]).any(axis=1).mean() > 0.9
    np.testing.assert_array_equal(passes(3, 2)[1], second)


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    """Whole clips in batches of more than one length, and their samples."""
    folder = tmp_path_factory.mktemp("whole")
    lengths = np.random.default_rng(5).permutation(np.arange(101, 1_300, 53))
    corpus, audio = make_corpus(folder / "clips", lengths.tolist())
    clips = prepare(corpus, folder / "cache")
    return chunking.Chunks(clips, chunk_s=None), audio


def test_whole_clips_have_no_place_to_jitter_to(whole):
    with pytest.raises(ValueError, match="`jitter` is of chunks"):
        whole[0].dataset(BATCH, jitter=True)


def check_whole_batches(chunks, audio, batches):
    """Checks samples, padding and labels; returns the clips in order."""
    known = {samples.tobytes(): clip for clip, samples in enumerate(audio)}
    order = []
    for inputs, targets in batches:
        waveform, lengths = inputs["waveform"], inputs["lengths"]
        assert (waveform.dtype, lengths.dtype) == ("float32", "int32")
        assert len(waveform) == len(lengths) == len(targets) <= 3
        assert waveform.shape[1] >= lengths.max()
        for samples, length, target in zip(waveform, lengths, targets):
            clip = known[samples[:length].tobytes()]
            assert not samples[length:].any()
            np.testing.assert_array_equal(target, chunks.targets[clip])
            order.append(clip)
    return order


def test_whole_clips_are_padded_by_zeros(whole):
    chunks, audio = whole
    dataset = chunks.dataset(3)
    batches = list(dataset.as_numpy_iterator())
    order = check_whole_batches(chunks, audio, batches)
    assert sorted(order) == list(range(len(audio)))
    assert order != sorted(order)  # Else the next line proves nothing.
    assert order == chunks.scoring_order(3).tolist()
    assert len(batches) == chunks.num_batches(3)
    assert len(batches) == dataset.cardinality().numpy()


def test_whole_clips_shuffled(whole):
    chunks, audio = whole
    dataset = chunks.dataset(3, shuffle=True, seed=3)
    orders = []
    for _ in range(3):
        batches = list(dataset.as_numpy_iterator())
        orders.append(check_whole_batches(chunks, audio, batches))
        assert sorted(orders[-1]) == list(range(len(audio)))
        assert len(batches) == chunks.num_batches(3)
    assert len(set(map(tuple, orders))) == 3
    # Long and short batches take turns: no ramp of lengths in a pass.
    widths = [inputs["waveform"].shape[1] for inputs, _ in batches]
    assert widths != sorted(widths)


def test_whole_clips_of_like_length_meet(whole):
    chunks, audio = whole
    batches = list(chunks.dataset(3, shuffle=True).as_numpy_iterator())
    widths = {inputs["waveform"].shape[1] for inputs, _ in batches}
    # Each shape is a new graph for XLA, so there must be few.
    assert 2 <= len(widths) <= 5
    assert max(widths) == max(len(samples) for samples in audio)
    for inputs, _ in batches:
        width = inputs["waveform"].shape[1]
        narrower = [other for other in widths if other < width]
        assert inputs["lengths"].min() > max(narrower, default=0)


def test_whole_clips_of_one_length(tmp_path):
    corpus, audio = make_corpus(tmp_path / "clips", [503] * 7)
    chunks = chunking.Chunks(prepare(corpus, tmp_path / "cache"), None)
    batches = list(chunks.dataset(3).as_numpy_iterator())
    assert [inputs["waveform"].shape for inputs, _ in batches] == [
        (3, 503),
        (3, 503),
        (1, 503),
    ]
    assert check_whole_batches(chunks, audio, batches) == list(range(7))


def test_resumed_stream_of_whole_clips(whole):
    chunks, _ = whole

    def some(first_epoch, skip):
        dataset = chunks.dataset(3, True, seed=5, first_epoch=first_epoch)
        return list(dataset.skip(skip).take(11).as_numpy_iterator())

    steps = chunks.num_batches(3)
    for (inputs, _), (again, _) in zip(some(0, 2 * steps), some(2, 0)):
        np.testing.assert_array_equal(inputs["lengths"], again["lengths"])
        np.testing.assert_array_equal(inputs["waveform"], again["waveform"])


def naive_score(samples):
    """Three figures that depend on the samples and on their number."""
    samples = samples.astype("float64")
    return [samples.sum(), samples[-1], (samples**2).mean()]


class FakeModel:
    """Scores waveforms as `keras.Model.predict` would."""

    def predict(self, dataset, verbose):
        self.verbose = verbose
        scores = []
        for inputs, _ in dataset.as_numpy_iterator():
            if isinstance(inputs, dict):
                pairs = zip(inputs["waveform"], inputs["lengths"], strict=True)
                inputs = [samples[:length] for samples, length in pairs]
            scores += [naive_score(samples) for samples in inputs]
        return np.array(scores)


@pytest.mark.parametrize("batch_size", [1, 5, 64])
def test_score_of_a_clip_is_the_mean_over_its_chunks(
    chunks, clips_and_audio, batch_size
):
    _, audio = clips_and_audio
    expected = []
    for clip in range(len(audio)):
        scores = [
            naive_score(samples)
            for other, samples in naive_chunks(audio, SIZE, SIZE)
            if other == clip
        ]
        expected.append(sum(map(np.array, scores)) / len(scores))
    model = FakeModel()
    scores = score_clips(model, chunks, batch_size, verbose=0)
    assert scores.shape == (len(audio), 3)
    np.testing.assert_allclose(scores, expected, rtol=1e-6, atol=1e-9)
    assert model.verbose == 0


def test_what_fills_no_batch_goes_together_on_jax(whole, monkeypatch):
    """Each shape would be compiled: one for each length, and one more."""
    chunks, audio = whole
    monkeypatch.setattr(keras.backend, "backend", lambda: "jax")
    for batch_size, shapes in ((3, 6), (2, 6), (50, 1)):
        dataset = chunks.dataset(batch_size, shuffle=True, seed=3)
        found, orders = set(), []
        for _ in range(3):
            batches = list(dataset.as_numpy_iterator())
            assert len(batches) == chunks.num_batches(batch_size)
            assert len(batches) == -(-len(audio) // batch_size)
            found |= {inputs["waveform"].shape for inputs, _ in batches}
            orders.append(
                [
                    int(length)
                    for inputs, _ in batches
                    for length in inputs["lengths"]
                ]
            )
            assert sorted(orders[-1]) == sorted(map(len, audio))
        assert len(found) <= shapes, (batch_size, found)
        assert orders[0] != orders[1]
        full = chunks.batch_rows(np.arange(len(audio)), batch_size, True)
        assert len(full) == len(audio) // batch_size
        scores = score_clips(FakeModel(), chunks, batch_size)
        expected = [naive_score(samples) for samples in audio]
        np.testing.assert_allclose(scores, expected, rtol=1e-6, atol=1e-9)


@pytest.mark.parametrize("batch_size", [1, 3, 64])
def test_score_of_a_whole_clip(whole, batch_size):
    chunks, audio = whole
    scores = score_clips(FakeModel(), chunks, batch_size)
    expected = [naive_score(samples) for samples in audio]
    np.testing.assert_allclose(scores, expected, rtol=1e-6, atol=1e-9)


@pytest.mark.parametrize("chunk_s", [CHUNK_S, None])
def test_one_clip_without_finite_scores_loses_no_other(
    clips_and_audio, chunk_s
):
    clips, _ = clips_and_audio
    chunks = chunking.Chunks(clips, chunk_s)
    expected = score_clips(FakeModel(), chunks, 3)
    rows = chunks.scoring_order(3)

    class Overflows(FakeModel):
        def predict(self, dataset, verbose):
            scores = super().predict(dataset, verbose)
            row = np.flatnonzero(chunks.clip_index[rows] == 4)[0]
            scores[row, 1] = np.inf
            return scores

    message = rf"Scores of 1 of 7 clips are not finite.*{clips.corpus.files[4]}"
    with pytest.raises(ValueError, match=message):
        score_clips(Overflows(), chunks, 3)
    scores = score_clips(Overflows(), chunks, 3, strict=False)
    assert np.isnan(scores[4]).all()
    others = [0, 1, 2, 3, 5, 6]
    np.testing.assert_array_equal(scores[others], expected[others])


@pytest.mark.skipif(
    keras.backend.backend() != "tensorflow",
    reason="`train_step` is of the TensorFlow trainer",
)
def test_fit_sees_every_chunk_of_a_pass(chunks):
    seen = []

    class Model(keras.Model):
        def __init__(self):
            super().__init__()
            self.head = keras.layers.Dense(3, activation="sigmoid")

        def call(self, inputs):
            return self.head(inputs)

        def train_step(self, data):
            seen.extend(data[0].numpy())
            return super().train_step(data)

    model = Model()
    model.compile("sgd", "binary_crossentropy", run_eagerly=True)
    history = model.fit(
        chunks.dataset(BATCH, shuffle=True, seed=3),
        epochs=2,
        shuffle=False,
        verbose=0,
    )
    assert np.isfinite(history.history["loss"]).all()
    rows = rows_of(chunks, seen)
    passes = rows[: len(chunks)], rows[len(chunks) :]
    assert sorted(passes[0]) == sorted(passes[1]) == list(range(len(chunks)))
    assert passes[0] != passes[1]


def test_resumed_fit_ends_where_the_unbroken_one_does(chunks):
    inputs = keras.Input((SIZE,))
    outputs = keras.layers.Dense(3, activation="sigmoid")(inputs)
    model = keras.Model(inputs, outputs)
    # Without a state of its own, so that one model serves all runs.
    model.compile(keras.optimizers.SGD(0.3), "binary_crossentropy")

    def fit(weights, first_epoch, epochs):
        dataset = chunks.dataset(
            BATCH, shuffle=True, seed=3, jitter=True, first_epoch=first_epoch
        )
        model.set_weights(weights)
        model.fit(
            dataset,
            initial_epoch=first_epoch,
            epochs=epochs,
            steps_per_epoch=chunks.num_batches(BATCH),
            shuffle=False,
            verbose=0,
        )
        return model.get_weights()

    start = model.get_weights()
    unbroken = fit(start, 0, 3)
    half = fit(start, 0, 1)
    for weight, again in zip(unbroken, fit(half, 1, 3), strict=True):
        np.testing.assert_allclose(weight, again, atol=1e-6)
    # As many batches in another order end elsewhere.
    replayed = fit(half, 0, 2)
    assert np.abs(replayed[0] - unbroken[0]).max() > 1e-4


def test_full_batches_alone(chunks, whole):
    for each, batch_size in ((chunks, BATCH), (whole[0], 5)):
        dataset = each.dataset(batch_size, full_batches=True)
        found = [len(targets) for _, targets in dataset]
        every = [len(targets) for _, targets in each.dataset(batch_size)]
        assert found == [size for size in every if size == batch_size]
        assert 0 < len(found) < len(every)
        assert len(found) == each.num_batches(batch_size, full_batches=True)
        assert len(found) == dataset.cardinality().numpy()
    with pytest.raises(ValueError, match="None of 1 batches is full.*1000"):
        chunks.dataset(1_000, full_batches=True)


def test_fit_and_score_whole_clips(whole):
    chunks, audio = whole
    waveform = keras.Input((None,), name="waveform")
    lengths = keras.Input((), name="lengths", dtype="int32")
    total = keras.ops.sum(waveform, axis=1, keepdims=True)
    count = keras.ops.cast(lengths[:, None], "float32")
    outputs = keras.layers.Dense(3)(total / count)
    model = keras.Model({"waveform": waveform, "lengths": lengths}, outputs)
    model.compile("sgd", "mse")
    history = model.fit(
        chunks.dataset(3, shuffle=True), shuffle=False, verbose=0
    )
    assert np.isfinite(history.history["loss"]).all()
    kernel, bias = model.get_weights()
    expected = [samples.mean() * kernel[0] + bias for samples in audio]
    scores = score_clips(model, chunks, batch_size=3, verbose=0)
    np.testing.assert_allclose(scores, expected, atol=1e-5)


def test_silence_is_left_out_but_for_one_chunk_a_clip(tmp_path):
    rate_hz = 8_000
    loud, quiet = noise(rate_hz, 1), 1e-4 * noise(rate_hz, 2)
    clips = {
        "padded.wav": np.concatenate([loud, np.zeros(2 * rate_hz)]),
        "quiet.wav": np.concatenate([quiet, 2.0 * quiet]),
        "loud.wav": np.concatenate([loud, loud]),
    }
    files = []
    for name, audio in clips.items():
        files.append(tmp_path / name)
        soundfile.write(files[-1], audio, rate_hz, subtype="FLOAT")
    corpus = Corpus(files, [["a"], ["b"], ["c"]], CLASSES)
    prepared = prepare(corpus, tmp_path / "cache", rate_hz)
    every = chunking.Chunks(prepared)
    assert every.silent == 0 and len(every) == 3 + 2 + 2
    heard = chunking.Chunks(prepared, silence_db=-60)
    assert heard.silent == 3
    np.testing.assert_array_equal(heard.clip_index, [0, 1, 2, 2])
    np.testing.assert_array_equal(heard.starts, [0, rate_hz, 0, rate_hz])
