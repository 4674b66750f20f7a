"""Files and label names in `fit`, `evaluate` and `predict`, and in presets."""

import contextlib
import functools
import json
import os
import re
import warnings

import keras
import numpy as np
import pytest
import soundfile
import tiny

from audio_tf import data
from audio_tf.audio import graph_rows
from audio_tf.audio.kept import KeptAudio
from audio_tf.audio.sources import Source
from audio_tf.corpora import Corpus
from audio_tf.models import (
    AudioClassifier,
    AudioClassifierPreprocessor,
    ClassifierTraining,
    MaskedAcousticModel,
    WaveformConverter,
    file_task,
)

if keras.backend.backend() != "tensorflow":
    pytest.skip("tf.data is asked for", allow_module_level=True)

import tensorflow as tf

LABELS = ["dog", "rain", "siren"]
# At the model's rate; the chunks of 0.25 s are of 275 samples.
SIZES = [1_511, 7, 700, 275, 550]
NAMES = ["dog", "rain", "siren", "siren", "dog"]
CHUNKS = [6, 1, 3, 1, 2]
TARGETS = np.eye(3, dtype="float32")[[0, 1, 2, 2, 0]]


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    """Clips whose second half is quiet."""
    folder = tmp_path_factory.mktemp("clips")
    rng = np.random.default_rng(5)
    paths = [folder / f"{number}.wav" for number in range(len(SIZES))]
    for path, size in zip(paths, SIZES, strict=True):
        audio = rng.uniform(-0.5, 0.5, size)
        audio[size // 2 :] *= 1e-4
        soundfile.write(path, audio, tiny.RATE_HZ, subtype="FLOAT")
    return paths


@pytest.fixture(scope="module")
def backbone():
    return tiny.backbone()


@pytest.fixture(scope="module")
def classifier(backbone):
    model = AudioClassifier(backbone, labels=LABELS, chunk_s=0.25)
    model.compile(
        keras.optimizers.SGD(0.0),
        "binary_crossentropy",
        metrics=["binary_accuracy"],
        run_eagerly=True,
    )
    return model


@pytest.fixture
def given(monkeypatch):
    """Dict of the arguments of the last call of `keras.Model.fit`.

    Nothing is trained; with `given["read"]` the data is read, as many times
    as there are epochs, into `given["passes"]`.
    """
    seen = {"read": False}

    def fit(
        self,
        x=None,
        y=None,
        batch_size=None,
        shuffle=True,
        validation_data=None,
        validation_split=0.0,
        class_weight=None,
        sample_weight=None,
        epochs=1,
        steps_per_epoch=None,
        validation_batch_size=None,
    ):
        seen.update(x=x, y=y, sample_weight=sample_weight, epochs=epochs)
        seen.update(validation_data=validation_data, batch_size=batch_size)
        seen.update(class_weight=class_weight)
        if not seen["read"]:
            return None
        seen["passes"] = [[*x] for _ in range(epochs)]
        return seen["passes"][-1]

    monkeypatch.setattr(keras.Model, "fit", fit)
    return seen


def scores_of(classifier, files):
    found = classifier.classify([*files], top=None)
    return np.array([[c["scores"][name] for name in LABELS] for c in found])


def dataset(files, names=NAMES, batch_size=2):
    paths = [str(file) for file in files]
    return tf.data.Dataset.from_tensor_slices((paths, names)).batch(batch_size)


def rows_of(batches):
    """All rows of the batches of a dataset, input by input."""
    return [np.concatenate(each) for each in zip(*batches.as_numpy_iterator())]


def test_predict_is_one_row_a_clip_as_classify_gives_it(
    files, classifier, monkeypatch
):
    expected = scores_of(classifier, files)
    for x in (
        files,
        [str(file) for file in files],
        np.array([str(file) for file in files]),
        tf.constant([str(file) for file in files]),
        dataset(files),
        dataset(files).map(lambda path, name: path),
    ):
        found = classifier.predict(x, verbose=0)
        assert found.dtype == np.float32
        np.testing.assert_allclose(found, expected, atol=1e-5)
    paths = np.array(files, object)  # as an index of a fold gives them
    some = classifier.predict(paths[[3, 0]], verbose=0)
    np.testing.assert_allclose(some, expected[[3, 0]], atol=1e-5)
    found = classifier.predict(files, batch_size=2, steps=2)
    np.testing.assert_allclose(found, expected[:4], atol=1e-5)
    found = classifier.predict_on_batch(files[:2])
    np.testing.assert_allclose(found, expected[:2], atol=1e-5)


def test_evaluate_is_of_clips(files, classifier):
    """Loss and metric by hand, from the scores of clips and their weights."""
    scores = scores_of(classifier, files)
    losses = -np.where(TARGETS == 1.0, np.log(scores), np.log(1 - scores))
    losses = losses.mean(axis=1)
    hits = ((scores > 0.5) == TARGETS).mean(axis=1)
    for x, y in ((files, NAMES), (files, TARGETS), (dataset(files), None)):
        for batch_size in (None, 2) if y is not None else (None,):
            found = classifier.evaluate(
                x, y, batch_size=batch_size, verbose=0, return_dict=True
            )
            assert found == {
                "loss": pytest.approx(losses.mean(), abs=1e-5),
                "binary_accuracy": pytest.approx(hits.mean(), abs=1e-6),
            }
    weights = np.array([1.0, 2.0, 0.0, 0.5, 0.0])
    found = classifier.evaluate(
        files, NAMES, sample_weight=weights, verbose=0, steps=1
    )
    expected = [(losses * weights).mean(), hits.mean()]
    assert found == pytest.approx(expected, abs=1e-5)
    found = classifier.test_on_batch(files, NAMES)
    assert found == pytest.approx([losses.mean(), hits.mean()], abs=1e-5)


def test_figures_of_each_class_are_kept(files, classifier):
    """As `keras.Model.evaluate` keeps those of Keras' own F1Score."""
    scores = scores_of(classifier, files)
    # In the widest gap, where rounding moves no clip.
    ranked = np.sort(scores.ravel())
    place = np.diff(ranked).argmax()
    threshold = float(ranked[place : place + 2].mean())
    model = AudioClassifier(classifier.backbone, labels=LABELS, chunk_s=0.25)
    model.set_weights(classifier.get_weights())
    model.compile(
        keras.optimizers.SGD(0.0),
        "binary_crossentropy",
        metrics=[keras.metrics.F1Score(threshold=threshold, name="f1")],
        run_eagerly=True,
    )
    picked = scores > threshold
    hits = (picked & (TARGETS == 1.0)).sum(axis=0)
    expected = 2.0 * hits / (picked.sum(axis=0) + TARGETS.sum(axis=0))
    found = model.evaluate(files, NAMES, verbose=0, return_dict=True)
    np.testing.assert_allclose(found["f1"], expected, atol=1e-5)
    history = model.fit(
        files, NAMES, validation_data=(files, NAMES), verbose=0
    ).history
    np.testing.assert_allclose(history["val_f1"], [expected], atol=1e-5)


def cut_by_hand(audio):
    """The chunks of a clip, as the README defines them."""
    if len(audio) <= 275:
        return [np.tile(audio, 275)[:275]]
    starts = [*range(0, len(audio) - 274, 275)]
    if starts[-1] + 275 < len(audio):
        starts.append(len(audio) - 275)
    return [audio[start : start + 275] for start in starts]


def test_fit_trains_on_all_chunks(files, classifier, given):
    """Each with the targets and the weight of its clip, in any order."""
    chunks, owners = [], []
    for clip, file in enumerate(files):
        found = cut_by_hand(soundfile.read(file, dtype="float32")[0])
        assert len(found) == CHUNKS[clip]
        chunks += found
        owners += [clip] * len(found)
    expected = [np.stack(chunks), TARGETS[owners]]
    weights = np.arange(5.0)
    classifier.fit(files, NAMES, 4, shuffle=False, sample_weight=weights)
    assert given["batch_size"] is None and given["y"] is None
    batches = [len(x) for x, _, _ in given["x"]]
    assert batches == [4, 4, 4, 1]
    for one, other in zip(
        rows_of(given["x"]), [*expected, weights[owners]], strict=True
    ):
        np.testing.assert_array_equal(one, other)
    # A dataset keeps its order, and its batches have as many rows.
    several = tf.ragged.constant([[name] for name in NAMES])
    for labels in (NAMES, TARGETS, several):
        classifier.fit(dataset(files, labels, 3))
        assert [len(x) for x, _ in given["x"]] == [3, 3, 3, 3, 1]
        for one, other in zip(rows_of(given["x"]), expected, strict=True):
            np.testing.assert_array_equal(one, other)
    # A list is shuffled, in another order in each pass.
    classifier.fit(files, NAMES)
    orders = []
    for _ in range(2):
        x, y = rows_of(given["x"])
        same = (x[:, None] == expected[0]).all(axis=2)
        order = same.argmax(axis=1)
        assert sorted(order) == list(range(13)) and same.any(axis=1).all()
        np.testing.assert_array_equal(y, expected[1][order])
        orders.append(order.tolist())
    assert orders[0] != orders[1]
    keras.utils.set_random_seed(3)
    classifier.fit(files, NAMES)
    first = rows_of(given["x"])[0]
    keras.utils.set_random_seed(3)
    classifier.fit(files, NAMES)
    np.testing.assert_array_equal(rows_of(given["x"])[0], first)


def test_fit_trains_on_what_chunks_are(files, backbone, given, tmp_path):
    """Overlapping, silence left out, as `data.Chunks` does it."""
    quiet = AudioClassifier(
        backbone,
        labels=LABELS,
        chunk_s=0.25,
        chunk_hop_s=0.1,
        silence_db=-40.0,
    )
    quiet.fit(files, NAMES, shuffle=False)
    x, y = rows_of(given["x"])
    clips = data.prepare(
        Corpus(files, [[name] for name in NAMES], LABELS),
        tiny.RATE_HZ,
        tmp_path,
        progress=False,
    )
    chunks = data.Chunks(clips, 0.25, 0.1, silence_db=-40.0)
    assert chunks.silent > 0
    np.testing.assert_array_equal(x, [chunks.read(r) for r in range(len(x))])
    np.testing.assert_array_equal(y, chunks.targets[chunks.clip_index])
    assert len(x) == len(chunks)


def test_sizes_that_cannot_be_are_named(files, classifier):
    for call in (classifier.fit, classifier.evaluate):
        for size in (0, "8", 2.0):
            with pytest.raises(ValueError, match="`batch_size` must be a pos"):
                call(files, NAMES, batch_size=size)
        # Those of a dataset are its own, and would be ignored.
        with pytest.raises(ValueError, match="its own batches.*batch_size=3"):
            call(dataset(files), batch_size=3)
        with pytest.raises(ValueError, match=r"a clip at least.*x=\[\]"):
            call([], [])
    with pytest.raises(ValueError, match=r"a clip at least.*x=\[\]"):
        classifier.predict([])
    evaluate = functools.partial(classifier.evaluate, y=NAMES)
    for call in (classifier.predict, evaluate):
        with pytest.raises(ValueError, match="`steps` must be a positive"):
            call(files, steps=0)


def test_whole_clips_are_padded(files, backbone, given):
    whole = AudioClassifier(backbone, labels=LABELS, chunk_s=None)
    whole.fit(files, NAMES, batch_size=3, shuffle=False)
    (first, y), (second, _) = given["x"].as_numpy_iterator()
    assert first["waveform"].shape == (3, 1_511)
    assert second["waveform"].shape == (2, 550)
    assert first["lengths"].tolist() == SIZES[:3]
    np.testing.assert_array_equal(y, TARGETS[:3])
    audio = soundfile.read(files[1], dtype="float32")[0]
    np.testing.assert_array_equal(first["waveform"][1, :7], audio)
    assert not first["waveform"][1, 7:].any()


def test_whole_clips_have_few_widths_on_jax(files, monkeypatch, given):
    """Each width would be compiled; what is too long still is left out."""
    monkeypatch.setattr(keras.backend, "backend", lambda: "jax")
    for limit, width in (({}, 1_536), ({"made_for_frames": 138}, 1_518)):
        table = {"attention": "random_synthesizer", **limit} if limit else {}
        whole = AudioClassifier(
            tiny.backbone(**table), labels=LABELS, chunk_s=None
        )
        whole.fit(files, NAMES, batch_size=3, shuffle=False)
        (first, _), (second, _) = given["x"].as_numpy_iterator()
        assert first["waveform"].shape == (3, width)
        assert second["waveform"].shape == (2, 640)
        assert first["lengths"].tolist() == SIZES[:3]
        audio = soundfile.read(files[0], dtype="float32")[0]
        np.testing.assert_array_equal(first["waveform"][0, :1_511], audio)
        assert not first["waveform"][0, 1_511:].any()


def test_a_fit_with_validation_by_clips(files, classifier):
    """All of Keras' own loop, with the figures of `evaluate`."""
    expected = classifier.evaluate(files, NAMES, verbose=0, return_dict=True)
    for validation in ((files, NAMES), dataset(files)):
        history = classifier.fit(
            files, NAMES, validation_data=validation, verbose=0
        ).history
        for name, value in expected.items():
            assert history[f"val_{name}"] == [pytest.approx(value, abs=1e-6)]
    x, y = classifier.preprocessor(files, NAMES)
    by_chunk = keras.Model.evaluate(
        classifier, x, y, verbose=0, return_dict=True
    )
    assert history["loss"] == [pytest.approx(by_chunk["loss"], abs=1e-5)]


@pytest.fixture
def decoded(monkeypatch):
    """Names of the files that were decoded, in their order."""
    names, load = [], Source.load

    def count(self, sample_rate_hz):
        names.append(os.path.basename(self.name))
        return load(self, sample_rate_hz)

    monkeypatch.setattr(Source, "load", count)
    return names


@pytest.mark.costly
def test_a_fit_decodes_each_file_once(files, classifier, decoded):
    """Training and validation together, in all passes; the next fit anew."""
    every = sorted(file.name for file in files)
    validation = [*files[:2], str(files[2])], NAMES[:3]
    for _ in range(2):
        classifier.fit(
            files, NAMES, epochs=3, validation_data=validation, verbose=0
        )
        assert sorted(decoded) == every
        decoded.clear()
    classifier.evaluate(files, NAMES, verbose=0)
    assert sorted(decoded) == every
    # Files for validation alone, beside waveforms.
    decoded.clear()
    x = np.zeros((2, 300), "float32")
    classifier.fit(
        x, NAMES[:2], epochs=3, validation_data=validation, verbose=0
    )
    assert sorted(decoded) == every[:3]


def test_a_fit_keeps_no_more_than_its_limit(
    files, classifier, decoded, given, monkeypatch
):
    """Here some clips of 1,518 samples at most; the others come each time."""
    defaults = (4 * 1_518, None)
    monkeypatch.setattr(KeptAudio.__init__, "__defaults__", defaults)
    given["read"] = True
    classifier.fit(files, NAMES, 4, shuffle=False, epochs=3)
    first, *others = (
        np.concatenate([x for x, _ in batches]) for batches in given["passes"]
    )
    for other in others:
        np.testing.assert_array_equal(other, first)
    # Which clips come first is up to threads.
    sizes = dict(zip((file.name for file in files), SIZES, strict=True))
    assert sorted(decoded[:5]) == sorted(sizes)
    again = set(decoded[5:])
    assert sorted(decoded[5:]) == sorted([*again] * 2)
    kept = [size for name, size in sizes.items() if name not in again]
    assert kept and sum(kept) <= 1_518


@pytest.mark.parametrize("error", [None, KeyboardInterrupt])
def test_what_a_fit_has_decoded_is_freed(files, classifier, monkeypatch, error):
    """TensorFlow holds the function that has read it for ever."""
    stores, held = [], []

    class Recorded(KeptAudio):
        def __init__(self, **kwargs):
            super().__init__(**kwargs)
            stores.append(self)

    def look(batch, logs):
        held.append(len(stores[0].clips))
        if error:
            raise error

    monkeypatch.setattr(file_task, "KeptAudio", Recorded)
    callback = keras.callbacks.LambdaCallback(on_train_batch_end=look)
    expected = pytest.raises(error) if error else contextlib.nullcontext()
    with expected:
        classifier.fit(files, NAMES, verbose=0, callbacks=[callback])
    (kept,) = stores
    assert held[0] and not kept.clips
    # A thread of tf.data may be decoding still.
    assert len(kept.source(files[0]).load(tiny.RATE_HZ)) == SIZES[0]
    assert not kept.clips


@pytest.mark.costly
def test_a_bad_file_is_tried_in_each_pass(files, classifier, decoded, tmp_path):
    late, chunks = tmp_path / "late.wav", []
    callback = keras.callbacks.LambdaCallback(
        on_epoch_end=lambda epoch, logs: late.write_bytes(
            files[3].read_bytes()
        ),
        on_train_batch_end=lambda batch, logs: chunks.append(batch),
    )
    with pytest.warns(UserWarning, match="1 bad files"):
        classifier.fit(
            [files[0], late],
            NAMES[:2],
            batch_size=1,
            epochs=2,
            verbose=0,
            callbacks=[callback],
        )
    assert chunks == [*range(6), *range(6 + 1)]
    assert sorted(decoded) == ["0.wav", "late.wav", "late.wav"]


def test_validation_split_takes_the_last_files(files, classifier, given):
    classifier.fit(files, NAMES, validation_split=0.4, shuffle=False)
    assert len(rows_of(given["x"])[0]) == sum(CHUNKS[:3])
    ((paths, targets),) = given["validation_data"].as_numpy_iterator()
    assert [path.decode() for path in paths] == [str(f) for f in files[3:]]
    np.testing.assert_array_equal(targets, TARGETS[3:])
    with pytest.raises(ValueError, match="`validation_split` must leave"):
        classifier.fit(files, NAMES, validation_split=0.9)
    with pytest.raises(ValueError, match="of lists of files, not of a dataset"):
        classifier.fit(dataset(files), validation_split=0.5)
    for share in (1.5, -0.1):
        for clips in (files, np.zeros((len(files), 8), "float32")):
            with pytest.raises(ValueError, match=r"`validation_split`.*\[0, 1"):
                classifier.fit(clips, TARGETS, validation_split=share)


def test_bad_files_are_left_out_and_counted(files, classifier, tmp_path, given):
    bad = tmp_path / "bad.wav"
    bad.write_text("no audio")
    some, names = [files[0], bad, files[3], "none.wav"], ["dog"] * 4
    with pytest.warns(UserWarning, match=r"2 bad files.* NaN.*bad.wav: not"):
        scores = classifier.predict(some, verbose=0)
    np.testing.assert_array_equal(
        np.isnan(scores).all(axis=1), [False, True, False, True]
    )
    good = [files[0], files[3]]
    expected = scores_of(classifier, good)
    np.testing.assert_allclose(scores[[0, 2]], expected, atol=1e-5)
    with pytest.warns(UserWarning, match="2 bad files, left out of loss"):
        figures = classifier.evaluate(some, names, verbose=0)
    assert figures == pytest.approx(
        classifier.evaluate(good, names[:2], verbose=0), abs=1e-6
    )
    for call in (classifier.predict, classifier.evaluate):
        labels = [] if call == classifier.predict else [["dog"]]
        with pytest.raises(ValueError, match="None of the files.*bad.wav: not"):
            call([bad], *labels, verbose=0)
    # `fit` knows them once its dataset has been read.
    given["read"] = True
    with pytest.warns(UserWarning, match="2 bad files, left out of train"):
        rows = classifier.fit(some, names)
    assert sum(len(x) for x, _ in rows) == 6 + 1
    for x, y in (([bad], ["dog"]), (dataset([bad], ["dog"]), None)):
        with pytest.raises(ValueError, match="None of the files.*1, the"):
            classifier.fit(x, y)


@pytest.mark.costly
def test_clips_longer_than_a_table_are_left_out(files):
    """A whole-clip model of 704 samples at most: the first clip has more."""
    backbone = tiny.backbone(attention="random_synthesizer", made_for_frames=64)
    whole = AudioClassifier(backbone, labels=LABELS, chunk_s=None)
    whole.compile(loss="categorical_crossentropy")
    batches = []
    heard = keras.callbacks.LambdaCallback(
        on_train_batch_end=lambda batch, logs: batches.append(batch)
    )
    with pytest.warns(UserWarning, match="bad files, left out") as told:
        history = whole.fit(
            files,
            NAMES,
            batch_size=1,
            validation_data=(files, NAMES),
            callbacks=[heard],
            verbose=0,
        ).history
    assert len(batches) == len(files) - 1
    known = whole.evaluate(files[1:], NAMES[1:], verbose=0)
    assert history["val_loss"] == [pytest.approx(known, abs=1e-6)]
    words = "1 bad files, left out of {}; the first is .*0.wav: longer than "
    told = [str(warning.message) for warning in told]
    for part in ("training", "loss and metrics"):
        pattern = words.format(part) + "the 0.64 s that the model takes"
        assert any(re.match(pattern, each) for each in told)
    with pytest.raises(ValueError, match="None of the files.*0.64 s that"):
        whole.fit(files[:1], NAMES[:1], verbose=0)


WRONG = {
    "unknown label": (
        lambda c, f: c.fit(f, [*NAMES[:-1], "dgo"]),
        "among the 3 of the model; did you mean 'dog'.*'dgo' for clip 4",
    ),
    "fewer labels": (
        lambda c, f: c.evaluate(f, NAMES[:-1]),
        r"one of `y` for each file.*\(4, 3\), 5 files",
    ),
    "fewer weights": (
        lambda c, f: c.fit(f, NAMES, sample_weight=np.ones(4)),
        r"one of `sample_weight` for each file.*\(4,\), 5 files",
    ),
    "one label": (lambda c, f: c.fit(f, "dog"), "a list.*the string 'dog'"),
    "mixed labels": (
        lambda c, f: c.fit(f, ["dog", 1, 2, 0, 1]),
        "not be mixed with numbers. Received: 1 among",
    ),
    "no labels": (lambda c, f: c.fit(f), "Files need labels.*5 files alone"),
    "no labels to compare": (
        lambda c, f: c.evaluate(dataset(f).map(lambda path, name: path)),
        "Files need labels.*dataset of",
    ),
    "labels twice": (
        lambda c, f: c.fit(dataset(f), NAMES),
        "labels and weights in it. Received: `y`",
    ),
    "no batches": (
        lambda c, f: c.fit(dataset(f).unbatch()),
        r"must have batches.*shape \(\)",
    ),
    "one file": (lambda c, f: c.predict(f[0]), "`classify` takes a single"),
    "mixed files": (lambda c, f: c.predict([f[0], 3]), "Received: int among 2"),
    "content": (
        lambda c, f: c.predict([f[0].read_bytes()]),
        "given by their names here; `classify`",
    ),
    "two axes of files": (
        lambda c, f: c.predict(np.array([["a.wav"], ["b.wav"]])),
        r"of shape \(clips,\).*\(2, 1\)",
    ),
    "call": (
        lambda c, f: c(list(map(str, f))),
        "called with its `waveform`; `fit`",
    ),
    "integers": (
        lambda c, f: c.predict(np.zeros((2, 300), "int16")),
        "floating numbers; integer samples.*int16",
    ),
    "channels": (
        lambda c, f: c.fit(np.zeros((300, 2), "float32"), NAMES),
        r"one clip of shape \(samples, channels\).*\(300, 2\)",
    ),
    "one axis": (
        lambda c, f: c.predict(np.zeros(300, "float32")),
        r"shape \(batch, samples\).*\(300,\)",
    ),
    "three axes": (
        lambda c, f: c.evaluate(np.zeros((2, 300, 2), "float32"), NAMES),
        r"shape \(batch, samples\).*\(2, 300, 2\)",
    ),
}


@pytest.mark.parametrize("case", WRONG)
def test_surprises_are_errors(case, files, classifier, given):
    call, message = WRONG[case]
    with pytest.raises((ValueError, TypeError), match=message):
        call(classifier, files)


@pytest.mark.costly
def test_no_clips_are_an_error(files, classifier):
    """Keras trains on nothing, evaluates to nothing, and stumbles."""
    x = np.zeros((2, 300), "float32")
    clips = dataset(files, TARGETS)
    arrays = tf.data.Dataset.from_tensor_slices((x, TARGETS[:2]))
    for given in (
        (arrays.batch(2).take(0),),
        (arrays.filter(lambda *_: False).batch(2),),
        (x[:0], TARGETS[:0]),
    ):
        for method in ("fit", "evaluate", "predict"):
            clips_alone = given[:1] if method == "predict" else given
            with pytest.raises(ValueError, match="^`x` must have a clip"):
                getattr(classifier, method)(*clips_alone, verbose=0)
        validation = given if len(given) > 1 else given[0]
        with pytest.raises(ValueError, match="^`validation_data` must have a"):
            classifier.fit(x, NAMES[:2], validation_data=validation, verbose=0)
    for none in (clips.take(0), clips.filter(lambda *_: False)):
        for method in ("fit", "evaluate", "predict"):
            with pytest.raises(ValueError, match="files must not be empty"):
                getattr(classifier, method)(none, verbose=0)
    training = ClassifierTraining(classifier)
    sgd = keras.optimizers.SGD(0.0)
    training.compile(sgd, "binary_crossentropy", run_eagerly=True)
    pretraining = MaskedAcousticModel(tiny.albert())
    pretraining.compile("sgd", run_eagerly=True)
    for model in (training, pretraining):
        none = tf.data.Dataset.from_tensors(np.zeros((2, 9, 13), "float32"))
        for method in ("fit", "evaluate", "predict"):
            with pytest.raises(ValueError, match="^`x` must have a clip"):
                getattr(model, method)(none.take(0), verbose=0)
    # As Keras alone has it.
    assert classifier.fit(x, NAMES[:2], epochs=0).history == {}


def test_a_step_of_ones_own_may_return_anything():
    class Counting(AudioClassifier):
        def train_step(self, data):
            return {"steps": 1.0}

    classifier = Counting(tiny.backbone(), labels=["dog", "rain"])
    classifier.compile("sgd", "binary_crossentropy", run_eagerly=True)
    done = classifier.fit(np.zeros((2, 300), "float32"), NAMES[:2], verbose=0)
    assert done.history == {"steps": [1.0]}


def test_names_go_with_waveforms_too(classifier, given, rng):
    x = rng.uniform(-0.5, 0.5, (2, 300)).astype("float32")
    classifier.fit(x, [["dog", "siren"], []], validation_data=(x, ["rain"] * 2))
    assert given["x"] is x
    np.testing.assert_array_equal(given["y"], [[1, 0, 1], [0, 0, 0]])
    validation = given["validation_data"]
    np.testing.assert_array_equal(validation[1], [[0, 1, 0], [0, 1, 0]])
    pairs = tf.data.Dataset.from_tensor_slices((x, ["rain", "dog"])).batch(2)
    classifier.fit(pairs)
    ((seen, targets),) = given["x"].as_numpy_iterator()
    np.testing.assert_array_equal(seen, x)
    np.testing.assert_array_equal(targets, [[0, 1, 0], [1, 0, 0]])
    several = np.empty(2, object)
    several[:] = [["rain"], ["dog", "rain"]]
    classifier.fit(x, several)
    np.testing.assert_array_equal(given["y"], [[0, 1, 0], [1, 1, 0]])
    # No clip has a label.
    classifier.fit(x, [[], []])
    np.testing.assert_array_equal(given["y"], np.zeros((2, 3)))
    # What is no file and no name goes to Keras as it came.
    classifier.fit(x, TARGETS[:2], batch_size=7, epochs=3)
    assert given["x"] is x and given["batch_size"] == 7 and given["epochs"] == 3
    pairs = tf.data.Dataset.from_tensor_slices((x, TARGETS[:2])).batch(2)
    classifier.fit(pairs, validation_data=pairs)
    for name in ("x", "validation_data"):
        ((seen, targets),) = given[name].as_numpy_iterator()
        np.testing.assert_array_equal(seen, x)
        np.testing.assert_array_equal(targets, TARGETS[:2])


def test_a_model_without_labels_takes_numbers(files, backbone, given):
    model = AudioClassifier(backbone, num_classes=3, chunk_s=0.25)
    with pytest.raises(ValueError, match="`num_classes` alone"):
        model.fit(files, NAMES)
    model.fit(files, np.arange(5), shuffle=False)
    np.testing.assert_array_equal(
        rows_of(given["x"])[1], np.repeat(np.arange(5), CHUNKS)
    )


def test_a_preprocessor_maps_a_dataset(files, classifier):
    """A clip is a batch, in graphs and outside of them."""
    preprocessor = classifier.preprocessor
    x, y, weights = preprocessor(files, NAMES, np.arange(5.0))
    assert x.shape == (13, 275) and y.shape == (13, 3)
    np.testing.assert_array_equal(weights, np.repeat(np.arange(5.0), CHUNKS))
    for given in (dataset(files), dataset(files).unbatch()):
        mapped = given.map(preprocessor)
        assert mapped.element_spec[0].shape.as_list() == [None, 275]
        for one, other in zip(rows_of(mapped), (x, y), strict=True):
            np.testing.assert_array_equal(one, other)
    one = preprocessor(str(files[0]), "dog")
    np.testing.assert_array_equal(one[0], x[:6])
    np.testing.assert_array_equal(one[1], y[:6])
    np.testing.assert_array_equal(preprocessor.audio_converter(files), x)
    assert preprocessor.audio_converter.audio_shape() == (275,)
    with pytest.raises(ValueError, match="none.wav: no such file"):
        preprocessor(["none.wav"], ["dog"])
    # Labels of other clips, or a label too many, are those of none.
    for given, named in (
        ((files[:4], NAMES), "y.*shape .5,.*, 4 files"),
        ((files, NAMES[:4]), "y.*shape .4,.*, 5 files"),
        ((files, NAMES, np.ones(6)), "sample_weight.*shape .6,.*, 5 files"),
    ):
        with pytest.raises(ValueError, match=f"one of `{named}"):
            preprocessor(*given)


def test_files_are_averaged_and_resampled(backbone, tmp_path, rng):
    """By the one resampler there is, which `classify` uses too."""
    audio = rng.uniform(-0.5, 0.5, (500, 2))
    soundfile.write(tmp_path / "a.flac", audio, 1_337)
    converter = WaveformConverter(tiny.RATE_HZ)
    found = converter(str(tmp_path / "a.flac"))
    expected = soundfile.read(tmp_path / "a.flac")[0].mean(axis=1)
    from audio_tf.audio.resampling import resample

    expected = resample(expected.astype("float32"), 1_337, tiny.RATE_HZ)
    np.testing.assert_allclose(found["waveform"][0], expected, atol=1e-6)
    assert found["lengths"].tolist() == [len(expected)]


@pytest.mark.costly
def test_presets_and_files_keep_the_preprocessor(files, classifier, tmp_path):
    preset = str(tmp_path / "preset")
    classifier.save_to_preset(preset)
    stored = {
        name: json.loads((tmp_path / "preset" / name).read_text())["config"]
        for name in ("preprocessor.json", "audio_converter.json")
    }
    facts = {
        "sample_rate_hz": tiny.RATE_HZ,
        "chunk_s": 0.25,
        "chunk_hop_s": None,
        "silence_db": None,
        "mono": True,
    }
    assert facts.items() <= stored["audio_converter.json"].items()
    assert "Kaiser" in stored["audio_converter.json"]["resampler"]
    assert stored["preprocessor.json"]["labels"] == LABELS
    config = classifier.preprocessor.get_config()
    found = AudioClassifierPreprocessor.from_preset(preset)
    assert found.get_config() == config
    assert (
        WaveformConverter.from_preset(preset).get_config()
        == classifier.preprocessor.audio_converter.get_config()
    )
    loaded = AudioClassifier.from_preset(preset)
    assert loaded.preprocessor.get_config() == config
    other = AudioClassifier.from_preset(preset, chunk_s=0.5, labels=["a", "b"])
    assert other.preprocessor.audio_converter.chunk_s == 0.5
    assert other.preprocessor.labels == ["a", "b"]
    assert AudioClassifier.from_preset(
        preset, preprocessor=None
    ).preprocessor is (None)
    classifier.save(tmp_path / "model.keras")
    again = keras.saving.load_model(tmp_path / "model.keras")
    assert again.preprocessor.get_config() == config
    # A preset that disagrees with itself.
    path = tmp_path / "preset" / "task.json"
    task = json.loads(path.read_text())
    converter = task["config"]["preprocessor"]["config"]["audio_converter"]
    converter["config"]["sample_rate_hz"] = 8_000
    path.write_text(json.dumps(task))
    message = "sample_rate_hz=8000 of the preprocessor, sample_rate_hz=1100 of"
    with pytest.raises(ValueError, match=message):
        AudioClassifier.from_preset(preset)
    # One from before there were preprocessors.
    task["config"]["preprocessor"] = None
    path.write_text(json.dumps(task))
    for name in stored:
        (tmp_path / "preset" / name).unlink()
    old = AudioClassifier.from_preset(preset)
    np.testing.assert_allclose(
        old.predict(files, verbose=0),
        classifier.predict(files, verbose=0),
        atol=1e-6,
    )
    for found in (old.preprocessor, type(found).from_preset(preset)):
        assert found.labels == LABELS
        assert facts.items() <= found.audio_converter.get_config().items()
    changes = {"silence_db": -50.0, "chunk_hop_s": 0.1}
    converter = WaveformConverter.from_preset(preset, **changes)
    assert {"chunk_s": 0.25, **changes}.items() <= vars(converter).items()
    overlapping = AudioClassifier.from_preset(preset, chunk_hop_s=0.1)
    assert overlapping.preprocessor.audio_converter.chunk_hop_s == 0.1


def test_a_preprocessor_cannot_disagree(backbone, classifier):
    right = classifier.preprocessor
    for change, message in (
        ({"sample_rate_hz": 8_000}, "sample_rate_hz=8000.*sample_rate_hz=1100"),
        ({"chunk_s": 1.0}, "chunk_s=1.0 of the pre.*chunk_s=0.25 of the model"),
        ({"chunk_hop_s": 0.1}, "chunk_hop_s=0.1.*chunk_hop_s=None"),
        ({"silence_db": -3.0}, "silence_db=-3.0.*silence_db=None"),
    ):
        config = {**right.audio_converter.get_config(), **change}
        wrong = AudioClassifierPreprocessor(
            WaveformConverter.from_config(config), LABELS
        )
        with pytest.raises(ValueError, match=message):
            classifier.preprocessor = wrong
    wrong = AudioClassifierPreprocessor(right.audio_converter, LABELS[::-1])
    with pytest.raises(ValueError, match=r"labels=\['siren'.*labels=\['dog'"):
        AudioClassifier(
            backbone, labels=LABELS, chunk_s=0.25, preprocessor=wrong
        )
    assert classifier.preprocessor is right
    bare = AudioClassifier(backbone, labels=LABELS, preprocessor=None)
    with pytest.raises(ValueError, match="Files need a preprocessor"):
        bare.predict(["a.wav"])
    bare.preprocessor = "auto"
    assert bare.preprocessor.audio_converter.chunk_s == 1.0
    bare.chunk_s = 2.0
    with pytest.raises(ValueError, match="chunk_s=1.0.*chunk_s=2.0"):
        bare.predict(["a.wav"])


@pytest.mark.parametrize(
    "make, message",
    [
        (lambda: WaveformConverter(0), "`sample_rate_hz` must be a positive"),
        (lambda: WaveformConverter(8_000, chunk_s=-1.0), "`chunk_s` must be"),
        (
            lambda: WaveformConverter(8_000, silence_db=-60.0),
            "applies to chunk",
        ),
        (
            lambda: WaveformConverter(8_000, chunk_s=1.0, silence_db=3.0),
            "`silence_db` must be a peak in dB.*silence_db=3.0",
        ),
        (
            lambda: WaveformConverter(8_000, chunk_hop_s=0.5),
            "applies to chunks.*chunk_hop_s=0.5",
        ),
        (lambda: WaveformConverter(8_000, mono=False), "`mono` must be True"),
        (
            lambda: WaveformConverter(8_000, chunks_s=1.0),
            "did you mean 'chunk_s'",
        ),
        (
            lambda: AudioClassifierPreprocessor(None),
            "must be a WaveformConverter. Received: NoneType",
        ),
        (
            lambda: AudioClassifierPreprocessor(
                WaveformConverter(8_000), lables=[]
            ),
            "did you mean 'labels'",
        ),
        (
            lambda: WaveformConverter.from_preset("audio_transformer_small"),
            "Only the preset of a classifier",
        ),
        (
            lambda: WaveformConverter.from_preset("x", chunks_s=2.0),
            "did you mean 'chunk_s'",
        ),
        (
            lambda: AudioClassifier(
                tiny.backbone(), num_classes=2, preprocessor=abs
            ),
            "must be an AudioClassifierPreprocessor, 'auto' or None",
        ),
    ],
)
def test_what_a_preprocessor_refuses(make, message):
    with pytest.raises((ValueError, TypeError), match=message):
        make()


def test_a_converter_of_another_resampler_is_told_of():
    config = WaveformConverter(8_000).get_config()
    with pytest.warns(UserWarning, match="'by ear'; this version has"):
        WaveformConverter(**{**config, "resampler": "by ear"})


@pytest.mark.costly
def test_files_of_a_released_preset(shared_data):
    """One from before there were preprocessors, on a real recording."""
    classifier = AudioClassifier.from_preset("audio_transformer_esc10")
    file = sorted(shared_data.rglob("*.ogg"))[0]
    found = classifier.predict([file], verbose=0)
    expected = classifier.classify(file, top=None)["scores"]
    np.testing.assert_allclose(
        found[0], [expected[name] for name in classifier.labels], atol=1e-5
    )


def test_shuffled_chunks_are_bounded(monkeypatch, files, classifier, given):
    """However small the buffer, every chunk comes once."""
    monkeypatch.setattr(graph_rows, "SHUFFLED_SAMPLES", 1)
    classifier.fit(files, NAMES, batch_size=2)
    assert len(rows_of(given["x"])[0]) == 13


class Batches(keras.utils.PyDataset):
    def __init__(self, batch):
        super().__init__()
        self.batch = batch

    def __len__(self):
        return 2

    def __getitem__(self, index):
        if not 0 <= index < len(self):
            raise IndexError(index)
        return self.batch


def test_names_in_batches_of_others_are_refused(files, classifier):
    waveform = np.zeros((5, 275), "float32")
    paths = [str(file) for file in files]
    for batch in (
        (files, NAMES),
        (np.array(paths), TARGETS),
        paths,
        (waveform, NAMES),
    ):
        for x in (Batches(batch), (each for each in [batch])):
            message = r"preprocessor.*Received: .* in a batch"
            with pytest.raises(ValueError, match=message):
                classifier.fit(x, verbose=0)
    with pytest.raises(ValueError, match="of a Batches"):
        classifier.predict(Batches(paths), verbose=0)
    with pytest.raises(ValueError, match="of a Batches"):
        classifier.fit(
            waveform,
            TARGETS,
            validation_data=Batches((files, NAMES)),
            verbose=0,
        )


@pytest.mark.costly
def test_batches_of_others_are_read_whole(files, classifier):
    batch = classifier.preprocessor(files, NAMES)
    expected = classifier.evaluate(*batch, verbose=0)
    given = (Batches(batch), (batch for _ in range(2)))
    for x in given:
        found = classifier.evaluate(x, verbose=0)
        np.testing.assert_allclose(found, expected, rtol=1e-5)
    before = int(classifier.optimizer.iterations)
    batches = (batch for _ in range(3))
    classifier.fit(batches, verbose=0, validation_data=Batches(batch))
    assert int(classifier.optimizer.iterations) == before + 3
    scores = classifier.predict(Batches(batch[0]), verbose=0)
    assert scores.shape == (2 * sum(CHUNKS), 3)


def test_a_dataset_is_no_reason_for_a_warning(files, classifier):
    batch = classifier.preprocessor(files, NAMES)
    shuffled = tf.data.Dataset.from_tensors(batch).shuffle(2)
    with warnings.catch_warnings():
        warnings.filterwarnings("error", ".*shuffle.*")
        classifier.fit(shuffled, verbose=0)
        with pytest.raises(UserWarning, match="will be ignored"):
            classifier.fit(shuffled, shuffle=True, verbose=0)


def test_a_list_of_waveforms_is_a_batch_of_them(classifier):
    x = np.random.default_rng(7).normal(0.0, 0.1, (3, 275)).astype("float32")
    expected = classifier.predict(x, verbose=0)
    for given in ([*x], x.tolist(), [tf.constant(clip) for clip in x]):
        found = classifier.predict(given, verbose=0)
        np.testing.assert_allclose(found, expected, atol=1e-6)
    loss = classifier.evaluate(x, TARGETS[:3], verbose=0)
    found = classifier.evaluate([*x], NAMES[:3], verbose=0)
    np.testing.assert_allclose(found, loss, rtol=1e-5)
    found = classifier.fit([*x], TARGETS[:3], verbose=0).history["loss"]
    np.testing.assert_allclose(found, loss[:1], rtol=1e-5)
    for given in ([x[0], x[1, :7]], [x, np.array([275, 7, 7])]):
        with pytest.raises(ValueError, match="padded.*a list of 2, of shapes"):
            classifier.predict(given, verbose=0)
    with pytest.raises(ValueError, match=r"shape=\(1, 3, 275\)"):
        classifier.predict([x], verbose=0)


@pytest.mark.costly
def test_lists_within_a_dict_are_arrays(classifier, backbone):
    """Keras takes each number of them for an input of its own."""
    x = np.random.default_rng(7).normal(0.0, 0.1, (3, 275)).astype("float32")
    lengths, targets = [275, 7, 130], TARGETS[:3]
    expected = classifier.predict(
        {"waveform": x, "lengths": np.array(lengths)}, verbose=0
    )
    given = {"waveform": x.tolist(), "lengths": lengths}
    for found in (
        classifier.predict(given, verbose=0),
        classifier.predict_on_batch(given),
        classifier.predict_on_batch({"waveform": [*x], "lengths": lengths}),
    ):
        np.testing.assert_allclose(found, expected, atol=1e-6)
    frames = backbone.predict(given, verbose=0)["frame_mask"]
    assert frames.sum(axis=1).tolist() == [25, 1, 12]
    training = ClassifierTraining(classifier)
    sgd = keras.optimizers.SGD(0.0)
    training.compile(sgd, "binary_crossentropy", run_eagerly=True)
    loss = classifier.evaluate(given, targets, verbose=0)[0]
    for model in (classifier, training):
        history = model.fit(
            given, targets, validation_data=(given, targets), verbose=0
        ).history
        for name in ("loss", "val_loss"):
            np.testing.assert_allclose(history[name], [loss], rtol=1e-3)
    for found in (
        classifier.train_on_batch(given, targets)[0],
        classifier.test_on_batch(given, targets)[0],
    ):
        np.testing.assert_allclose(found, loss, rtol=1e-3)
    ragged = {"waveform": [[0.1] * 9, [0.2] * 7]}
    for call in (classifier.predict, classifier.predict_on_batch, classifier):
        with pytest.raises(ValueError, match="padded.*a list of 2, not all"):
            call(ragged)


@pytest.mark.parametrize("step", ["train", "test", "predict"])
def test_a_list_is_a_batch_of_waveforms_for_one_step(
    step, classifier, monkeypatch
):
    """A graph would be traced of as many inputs as there are clips."""
    seen, method = [], f"{step}_on_batch"
    monkeypatch.setattr(
        keras.Model, method, lambda self, x, **beside: seen.append(x)
    )
    x = np.random.default_rng(7).normal(0.0, 0.1, (3, 275)).astype("float32")
    getattr(classifier, method)([*x])
    np.testing.assert_array_equal(seen[0], x)
    assert isinstance(seen[0], np.ndarray)


@pytest.mark.costly
def test_steps_of_an_epoch_go_on_where_files_end(files, classifier):
    before = int(classifier.optimizer.iterations)
    with warnings.catch_warnings():
        warnings.filterwarnings("error", ".*ran out of data")
        # There are 13 chunks.
        classifier.fit(files, NAMES, 4, epochs=3, steps_per_epoch=3, verbose=0)
    assert int(classifier.optimizer.iterations) == before + 9
