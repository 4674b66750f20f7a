"""When frames are, and which label each has."""

import fractions
import math

import numpy as np
import pytest

from audio_tf.data import align_labels


def test_equal_rates_keep_the_labels():
    labels = np.arange(13, dtype=np.int16)
    aligned = align_labels(labels, 100, 100.0, 13)
    np.testing.assert_array_equal(aligned, labels)
    assert aligned.dtype == np.int16


@pytest.mark.parametrize("step", [2, 3, 5])
def test_labels_that_are_a_multiple_as_frequent(step):
    labels = np.arange(7 * step)
    aligned = align_labels(labels, 100, 100 / step, 7)
    np.testing.assert_array_equal(aligned, labels[::step])
    later = align_labels(labels, 100, 100 / step, 7, first_s=0.015)
    np.testing.assert_array_equal(later, labels[1::step])


@pytest.mark.parametrize(
    "label_hz, frame_hz",
    [(100, 80), (100, 80 / 3), (50, 100), (100, 99.99), (100, 40)],
)
def test_rates_that_do_not_fit_are_refused_with_both(label_hz, frame_hz):
    with pytest.raises(ValueError) as caught:
        align_labels(np.zeros(7), label_hz, frame_hz, 7, "5-11-0002")
    assert "5-11-0002" in str(caught.value)
    assert f"labels at {label_hz:.10g} Hz" in str(caught.value)
    assert f"frames at {frame_hz:.10g} Hz" in str(caught.value)


@pytest.mark.parametrize("rates", [(0, 100), (100, 0), (-1, 100), (100, "nan")])
def test_rates_must_be_positive(rates):
    with pytest.raises(ValueError, match="must be positive"):
        align_labels(np.zeros(7), float(rates[0]), float(rates[1]), 7)


@pytest.mark.parametrize("samples", [9_001, 16_000, 30_011, 240_007])
@pytest.mark.parametrize("stack", [1, 3])
def test_by_time_takes_the_label_at_the_middle(samples, stack):
    """Against whole fractions: the paper's 12.5 ms, alone and in threes."""
    hop, label_samples = 200, 160
    labels = np.arange(samples // label_samples)
    frames = (1 + samples // hop) // stack
    aligned = align_labels(
        labels,
        100,
        16_000 / (hop * stack),
        frames,
        first_s=(stack - 1) / 2 * hop / 16_000,
        by_time=True,
    )
    expected = [
        math.floor(
            fractions.Fraction((i * stack + (stack - 1) // 2) * hop)
            / label_samples
        )
        for i in range(frames)
    ]
    expected = np.minimum(expected, labels[-1])
    np.testing.assert_array_equal(aligned, expected)


def test_labels_of_cpc_fit_every_length_at_the_default_tolerance():
    """Kaldi's frames, all within the audio, against centred ones."""
    lacking = set()
    for samples in range(1_600, 1_600 + 2 * 160):
        labels = np.arange(1 + (samples - 400) // 160)
        frames = 1 + samples // 160
        aligned = align_labels(labels, 100, 100, frames)
        np.testing.assert_array_equal(aligned[: len(labels)], labels)
        assert (aligned[len(labels) :] == labels[-1]).all()
        lacking.add(frames - len(labels))
    assert lacking == {2, 3}


def test_ends_that_do_not_fit():
    labels = np.arange(11)
    repeated = align_labels(labels, 100, 100, 14)
    assert repeated.tolist() == [*range(11), 10, 10, 10]
    assert align_labels(labels, 100, 100, 8).tolist() == list(range(8))
    for frames in (15, 7):
        with pytest.raises(ValueError) as caught:
            align_labels(labels, 100, 100, frames, "13-17-0000")
        message = str(caught.value)
        assert message.startswith("13-17-0000: 11 labels at 100 Hz")
        assert f"{frames} frames at 100 Hz" in message
        assert len(align_labels(labels, 100, 100, frames, tolerance=4))


def test_ends_under_sub_sampling_are_counted_in_labels():
    # Frames at 0, 3, 6, 9 of labels 0 to 11.
    for count in range(7, 16):
        aligned = align_labels(np.arange(count), 99, 33, 4)
        assert aligned.tolist() == np.minimum([0, 3, 6, 9], count - 1).tolist()
    for count in (6, 16):
        with pytest.raises(ValueError, match=f"{count} labels"):
            align_labels(np.arange(count), 99, 33, 4)


def test_no_frames_or_no_labels():
    assert align_labels(np.arange(3), 100, 100, 0).shape == (0,)
    with pytest.raises(ValueError, match="0 labels"):
        align_labels(np.zeros(0, int), 100, 100, 2)
