"""Batches of whole utterances, with speakers or labels of frames."""

import os

import keras
import numpy as np
import pytest
from corpus_files import FRAME_SIZE, RATE_HZ, write_audio, write_text
from utterance_cases import LENGTHS, batches, small_features

from audio_tf import data
from audio_tf.audio import AudioError, load_audio
from audio_tf.corpora import (
    read_fsdd,
    read_librispeech,
    read_speech_folder,
)
from audio_tf.data import PADDING_LABEL
from audio_tf.layers import SpeechFeatures
from audio_tf.terminal import describe_failures


def test_utterances_with_their_lengths_and_speakers(speech):
    corpus, _, clips = speech
    utterances = data.Utterances(clips, "speaker", buckets=3)
    order = utterances.scoring_order(2)
    assert sorted(order) == list(range(7))
    row = 0
    widths = set()
    for inputs, speakers in batches(utterances):
        assert speakers.dtype == np.int32 and speakers.ndim == 1
        widths.add(inputs["waveform"].shape[1])
        for audio, length, speaker in zip(
            inputs["waveform"], inputs["lengths"], speakers, strict=True
        ):
            clip = order[row]
            whole = load_audio(corpus.files[clip], RATE_HZ)
            assert length == len(whole) == LENGTHS[clip]
            np.testing.assert_array_equal(audio[:length], whole)
            assert not audio[length:].any()
            assert speaker == clip % 3
            row += 1
    assert row == 7
    assert widths <= set(utterances.length_bounds())
    assert len(utterances.length_bounds()) == 3


def test_speakers_train_the_classifier_on_chunks_too(speech):
    targets = data.Chunks(speech[2], 0.1).targets
    np.testing.assert_array_equal(targets, np.eye(3)[np.arange(7) % 3])


def test_utterances_of_like_length_meet(speech):
    utterances = data.Utterances(speech[2], buckets=3)
    padding = 0
    for inputs in batches(utterances, shuffle=True, seed=3):
        padding += inputs["waveform"].size - inputs["lengths"].sum()
    alone = 7 * max(LENGTHS) - sum(LENGTHS)
    assert padding < alone / 3


def test_labels_of_frames(speech):
    _, labels, clips = speech
    frames = data.Frames(RATE_HZ, FRAME_SIZE)
    assert frames.rate_hz == 100.0
    utterances = data.Utterances(clips, "frame_labels", frames)
    order, row = utterances.scoring_order(2), 0
    names = clips.corpus.utterances
    for inputs, targets in batches(utterances):
        assert targets.dtype == np.int32
        assert targets.shape[1] == 1 + inputs["waveform"].shape[1] // FRAME_SIZE
        for length, each in zip(inputs["lengths"], targets, strict=True):
            count = 1 + length // FRAME_SIZE
            np.testing.assert_array_equal(
                each[:count], labels[names[order[row]]]
            )
            assert (each[count:] == PADDING_LABEL).all()
            row += 1
    assert row == 7


def test_speakers_of_frames_follow_any_rate(speech):
    frames = data.Frames(RATE_HZ, 53)
    utterances = data.Utterances(speech[2], "frame_speaker", frames)
    order, row = utterances.scoring_order(2), 0
    for inputs, targets in batches(utterances):
        for length, each in zip(inputs["lengths"], targets, strict=True):
            count = 1 + length // 53
            assert (each[:count] == order[row] % 3).all()
            assert (each[count:] == PADDING_LABEL).all()
            row += 1


def test_nothing_but_inputs_for_pre_training(speech):
    utterances = data.Utterances(speech[2])
    found = batches(utterances)
    assert [sorted(inputs) for inputs in found] == [
        ["lengths", "waveform"]
    ] * utterances.num_batches(2)


def test_a_pass_is_the_same_again_and_from_the_middle(speech):
    utterances = data.Utterances(speech[2], "speaker")
    steps = utterances.num_batches(2)
    dataset = utterances.dataset(2, shuffle=True, seed=5, first_epoch=0)
    unbroken = list(dataset.take(2 * steps).as_numpy_iterator())
    dataset = utterances.dataset(2, shuffle=True, seed=5, first_epoch=1)
    resumed = list(dataset.take(steps).as_numpy_iterator())
    for (x, y), (other, labels) in zip(unbroken[steps:], resumed, strict=True):
        np.testing.assert_array_equal(x["waveform"], other["waveform"])
        np.testing.assert_array_equal(y, labels)


def test_rates_are_refused_before_training(speech):
    frames = data.Frames(RATE_HZ, 53)
    with pytest.raises(ValueError) as caught:
        data.Utterances(speech[2], "frame_labels", frames)
    assert "labels at 100 Hz" in str(caught.value)
    assert f"frames at {RATE_HZ / 53:.10g} Hz" in str(caught.value)
    data.Utterances(speech[2], "frame_labels", frames, by_time=True)
    frames = data.Frames(16_000, 160)
    with pytest.raises(ValueError, match="16000 Hz .* 3700 Hz"):
        data.Utterances(speech[2], "frame_labels", frames)


def test_ends_are_refused_with_the_utterance(speech):
    corpus, labels, clips = speech
    short = {**labels, "b/4": labels["b/4"][:-5]}
    clips = data.prepare(
        corpus.with_frame_labels(short),
        RATE_HZ,
        clips.entries[0].parents[2],
        progress=False,
    )
    frames = data.Frames(RATE_HZ, FRAME_SIZE)
    with pytest.raises(ValueError, match="b/4: 23 labels .* 28 frames"):
        data.Utterances(clips, "frame_labels", frames)
    found = data.Utterances(clips, "frame_labels", frames, tolerance=5)
    assert len(found.targets[4]) == 28


def test_targets_that_are_not_there(speech, tmp_path):
    corpus, labels, clips = speech
    with pytest.raises(ValueError, match="`targets` must be one of"):
        data.Utterances(clips, "phones")
    with pytest.raises(ValueError, match="need `frames`"):
        data.Utterances(clips, "frame_labels")
    write_audio(tmp_path / "top.wav")
    write_audio(tmp_path / "a" / "b.wav")
    corpus = read_speech_folder(tmp_path, lists={"train": ["top", "a/b"]})[
        "train"
    ]
    clips = data.prepare(corpus, RATE_HZ, tmp_path / "c", progress=False)
    with pytest.raises(ValueError, match="1 utterances have no speaker.*top"):
        data.Utterances(clips, "speaker")
    frames = data.Frames(RATE_HZ, FRAME_SIZE)
    with pytest.raises(ValueError, match="2 of 2 utterances have no labels"):
        data.Utterances(clips, "frame_labels", frames)


def test_bad_files_are_left_out_with_their_labels(speech, tmp_path):
    for number in range(3):
        write_audio(tmp_path / "a" / f"{number}.wav", 149 + number)
    write_text(tmp_path / "a" / "1.wav", "RIFF")
    names = [f"a/{number}" for number in range(3)]
    labels = {name: np.full(5, n) for n, name in enumerate(names)}
    corpus = read_speech_folder(tmp_path, lists={"train": names})
    corpus = corpus["train"].with_frame_labels(labels)
    clips = data.prepare(corpus, RATE_HZ, tmp_path / "c", progress=False)
    assert clips.corpus.utterances == ["a/0", "a/2"]
    assert [each[0] for each in clips.corpus.frame_labels] == [0, 2]
    assert list(clips.failures) == [str(tmp_path / "a" / "1.wav")]
    assert "not readable" in describe_failures(clips.failures)
    with pytest.raises(AudioError, match=r"1\.wav"):
        data.prepare(
            corpus, RATE_HZ, tmp_path / "d", strict=True, progress=False
        )
    # The second time nothing is decoded.
    for file in corpus.files:
        status = file.stat()
        file.write_bytes(b"\0" * status.st_size)
        os.utime(file, ns=(status.st_atime_ns, status.st_mtime_ns))
    again = data.prepare(corpus, RATE_HZ, tmp_path / "c", progress=False)
    assert again.lengths.tolist() == [149, 151]


def test_limits_of_length_name_the_others(speech):
    clips = data.limit_lengths(speech[2], 0.07, 0.3)
    assert clips.lengths.tolist() == [367, 823, 1_009]
    assert clips.corpus.utterances == ["c/2", "a/3", "b/4"]
    assert len(clips.entries) == 3
    assert len(clips.failures) == 4
    reasons = " ".join(clips.failures.values())
    assert "0.06 s, not within 0.07 s to 0.3 s" in reasons
    for low, high in ((0.3, 0.07), (np.nan, 1.0), (0.0, np.nan), (-1.0, 1.0)):
        with pytest.raises(ValueError, match=f"min_s={low}, max_s={high}"):
            data.limit_lengths(speech[2], low, high)
    with pytest.raises(ValueError, match="None of 7 clips"):
        data.limit_lengths(speech[2], 9.0)


def test_a_model_learns_from_padded_labels(speech):
    """The loss leaves `PADDING_LABEL` out, finite and equal to a loop."""
    clips = speech[2]
    features = small_features()
    frames = data.Frames.of(features)
    utterances = data.Utterances(clips, "frame_labels", frames, by_time=True)
    inputs = {
        "waveform": keras.Input((None,), name="waveform"),
        "lengths": keras.Input((), dtype="int32", name="lengths"),
    }
    x = features(inputs["waveform"], inputs["lengths"])
    model = keras.Model(inputs, keras.layers.Dense(41)(x))
    loss = keras.losses.SparseCategoricalCrossentropy(
        from_logits=True, ignore_class=PADDING_LABEL
    )
    # Eagerly: a graph of the features takes seconds to trace.
    model.compile("sgd", loss, run_eagerly=True)
    inputs, targets = batches(utterances)[0]
    scores = model.predict_on_batch(inputs)
    expected = []
    for row, each in zip(scores, targets, strict=True):
        for logits, label in zip(row, each, strict=True):
            if label >= 0:
                shifted = logits - logits.max()
                expected.append(np.log(np.exp(shifted).sum()) - shifted[label])
    assert len(expected) < targets.size
    found = float(loss(targets, scores))
    assert found == pytest.approx(np.mean(expected), rel=1e-4)
    history = model.fit(utterances.dataset(2), shuffle=False, verbose=0)
    assert np.isfinite(history.history["loss"][0])


def test_the_librispeech_sample(shared_data, tmp_path):
    splits = read_librispeech(shared_data)
    train, dev = splits["train-clean-100"], splits["dev-clean"]
    assert list(splits) == ["train-clean-100", "dev-clean"]
    assert train.utterances == [
        "1088-134315-0000",
        "198-209-0000",
        "3436-172162-0000",
        "5703-47212-0000",
    ]
    assert dev.utterances == ["2412-153948-0000", "2412-153948-0001"]
    assert train.vocabulary == ["1088", "198", "2412", "3436", "5703"]
    assert train.speakers.tolist() == [0, 1, 3, 4]
    assert dev.speakers.tolist() == [2, 2]
    clips = data.prepare(train, 16_000, tmp_path, strict=True, progress=False)
    assert clips.lengths.tolist() == [256_640, 222_561, 267_920, 237_440]
    features = SpeechFeatures("s3prl")
    frames = data.Frames.of(features)
    assert frames.rate_hz == 100.0
    # As many labels as Kaldi would make, the number of each its index.
    labels = {
        name: np.arange(1 + (length - 400) // 160)
        for name, length in zip(train.utterances, clips.lengths, strict=True)
    }
    clips = data.prepare(
        train.with_frame_labels(labels), 16_000, tmp_path, progress=False
    )
    utterances = data.Utterances(clips, "frame_labels", frames, buckets=1)
    (inputs, targets), *rest = batches(utterances)
    assert len(rest) == 1
    assert inputs["waveform"].shape == (2, 267_920)
    assert targets.shape == (2, 1_675)
    assert targets[0, :1_605].tolist() == [*range(1_602), 1_601, 1_601, 1_601]
    assert (targets[0, 1_605:] == PADDING_LABEL).all()


def test_the_digits_with_their_phones(shared_data, tmp_path):
    splits = read_fsdd(shared_data / "fsdd")
    assert {k: len(v) for k, v in splits.items()} == {
        "train": 2_100,
        "val": 300,
        "test": 300,
    }
    labelled = {k: len(v.labelled()) for k, v in splits.items()}
    assert labelled == {"train": 2_037, "val": 292, "test": 291}
    train, test = splits["train"], splits["test"]
    assert {k: len(v) for k, v in train.report.items()} == {
        "utterances without labels": 80
    }
    assert len(train.vocabulary) == 6
    assert np.bincount(train.speakers).tolist() == [350] * 6
    assert train.label_names[0] == "SIL" and len(train.label_names) == 20
    top = max(each.max() for each in train.labelled().frame_labels)
    assert top == 19
    part = test.labelled()
    part = part.select(range(0, len(part), 7))
    clips = data.prepare(part, 16_000, tmp_path, strict=True, progress=False)
    for preset, by_time in (("s3prl", False), ("paper", True)):
        frames = data.Frames.of(SpeechFeatures(preset))
        found = data.Utterances(clips, "frame_labels", frames, by_time=by_time)
        assert sum(len(each) for each in found.targets) == sum(
            frames.lengths(clips.lengths)
        )
