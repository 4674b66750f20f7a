"""Clips and targets of them that a loss cannot be computed of."""

import keras
import numpy as np
import pytest
import soundfile
import tiny

from audio_tf import compat
from audio_tf.models import (
    AudioClassifier,
    ClassifierTraining,
    Distiller,
    GaussianAdaptiveDecoder,
    MaskedAcousticModel,
    targets,
)

LABELS = ["dog", "rain", "siren"]
WAVEFORM = np.random.default_rng(3).normal(0.0, 0.1, (3, 700)).astype("float32")
FILES = ["a.wav", "b.wav", "c.wav"]  # They are not opened.
LOSSES = [
    "categorical_crossentropy",
    keras.losses.CategoricalCrossentropy(label_smoothing=0.1),
    keras.losses.CategoricalFocalCrossentropy(),
]


def classifier(loss):
    model = AudioClassifier(
        tiny.backbone(), labels=LABELS, chunk_s=None, activation="softmax"
    )
    model.compile("sgd", loss)
    return model


class Table:
    """As one of pandas is, as far as Keras is not asked."""

    def __init__(self, values):
        self.to_numpy = lambda: values


class Batches(keras.utils.PyDataset):
    def __init__(self, *batches, **kwargs):
        super().__init__(**kwargs)
        self.batches = batches
        self.epochs = []

    def __len__(self):
        return len(self.batches)

    def __getitem__(self, index):
        return self.batches[index]

    def on_epoch_begin(self):
        self.epochs.append("begin")

    def on_epoch_end(self):
        self.epochs.append("end")


@pytest.mark.parametrize("loss", LOSSES)
def test_clips_of_several_labels_or_none_are_refused(loss):
    model = classifier(loss)
    one = ["dog", "rain", "siren"]
    for wrong, count in ((["dog", "siren"], 2), ([], 0)):
        names = [["dog"], wrong, ["rain"]]
        message = f"binary_crossentropy.*Received: {count} labels for clip 1"
        numbers = np.array(
            [[label in row for label in LABELS] for row in names]
        )
        for given in (
            lambda: model.fit(FILES, names),
            lambda: model.fit(WAVEFORM, names),
            lambda: model.fit(WAVEFORM, numbers.astype("int32")),
            lambda: model.fit(WAVEFORM, one, validation_data=(FILES, names)),
            lambda: model.fit(WAVEFORM, one, validation_data=(WAVEFORM, names)),
            lambda: model.evaluate(WAVEFORM, names),
            lambda: model.train_on_batch(WAVEFORM, names),
            lambda: model.fit(FILES, numbers.astype("int32").tolist()),
            lambda: model.fit(WAVEFORM, Table(numbers)),
        ):
            with pytest.raises(ValueError, match=message):
                given()


@pytest.mark.parametrize(
    "loss",
    [
        LOSSES[0],
        *(pytest.param(loss, marks=pytest.mark.costly) for loss in LOSSES[1:]),
    ],
)
def test_shares_are_taken_as_they_are(loss):
    """Those of smoothed and mixed labels, and of others' scores."""
    shares = np.array([[0.5, 0.5, 0.0], [0.1, 0.7, 0.2], [0.9, 0.0, 0.0]])
    model = classifier(loss)
    model.fit(WAVEFORM, shares.astype("float32"), verbose=0)
    model.fit(WAVEFORM, LABELS, verbose=0)


@pytest.mark.parametrize(
    "loss",
    ["binary_crossentropy", pytest.param(None, marks=pytest.mark.costly)],
)
def test_other_losses_take_clips_of_several_labels(loss):
    model = classifier(loss or (lambda y, scores: (y - scores) ** 2))
    names = [["dog", "siren"], [], ["rain"]]
    model.fit(WAVEFORM, names, verbose=0)


@pytest.mark.parametrize("loss", ["binary_crossentropy", LOSSES[1], "huber"])
def test_labels_that_are_not_known_are_refused(loss):
    """A researcher's NaN would be the loss, and then every weight."""
    model = classifier(loss)
    training = ClassifierTraining(model)
    training.compile("sgd", loss)
    y = np.eye(3, dtype="float32")
    y[1, 2] = np.nan
    right = np.eye(3, dtype="float32")
    message = r"`y` must be finite.*\[0.0, 1.0, nan\] for clip 1, of 1 such"
    for given in (
        lambda: model.fit(FILES, y),
        lambda: model.fit(FILES, y.tolist()),
        lambda: model.fit(WAVEFORM, y),
        lambda: model.fit(WAVEFORM, y.astype("float16")),
        lambda: model.fit(WAVEFORM, y.astype(object)),
        lambda: model.fit(WAVEFORM, keras.ops.convert_to_tensor(y)),
        lambda: model.fit(WAVEFORM, Table(y)),
        lambda: model.fit(WAVEFORM, right, validation_data=(WAVEFORM, y)),
        lambda: model.evaluate(WAVEFORM, y),
        lambda: training.fit(WAVEFORM, y),
        lambda: training.fit(WAVEFORM, right, validation_data=(WAVEFORM, y)),
        lambda: training.evaluate(WAVEFORM, y),
        lambda: training.train_on_batch(WAVEFORM, y),
        lambda: training.test_on_batch(WAVEFORM, y),
    ):
        with pytest.raises(ValueError, match=message):
            given()
    y[1, 2] = np.inf
    with pytest.raises(ValueError, match=r"\[0.0, 1.0, inf\] for clip 1"):
        model.fit(WAVEFORM, y)


def test_a_loss_of_ones_own_may_leave_out_what_is_not_known():
    def known(y, scores):
        y = keras.ops.where(keras.ops.isnan(y), scores, y)
        return keras.ops.square(y - scores)

    y = np.eye(3, dtype="float32")
    y[1, 2] = np.nan
    model = tiny.eager(classifier(known))
    history = model.fit(WAVEFORM, y, verbose=0).history
    assert np.isfinite(history["loss"]).all()


def stream(x, targets):
    tf = pytest.importorskip("tensorflow")
    return tf.data.Dataset.from_tensor_slices((x, targets)).batch(3)


# Names of clips, in which "" is none, and how many labels the second has.
WRONG = [
    (np.array([["dog", ""], ["dog", "siren"], ["rain", ""]]), 2),
    (np.array([["dog", ""], ["", ""], ["rain", ""]]), 0),
]


@pytest.mark.parametrize("names, count", WRONG)
def test_batches_of_a_dataset_are_checked_as_they_come(names, count, wav_files):
    numbers = np.array([[label in row for label in LABELS] for row in names])
    numbers = numbers.astype("float32")
    model = tiny.eager(classifier(keras.losses.CategoricalCrossentropy()))
    right, wrong = (
        stream(WAVEFORM, np.eye(3, dtype="float32")),
        stream(WAVEFORM, numbers),
    )
    of_batch = "clip 1 of a batch of the dataset$"
    for given in (
        lambda: model.fit(wrong, verbose=0),
        lambda: model.fit(right.concatenate(wrong), verbose=0),
        lambda: (
            model.fit(right.repeat(), steps_per_epoch=1, verbose=0)
            and model.fit(stream(WAVEFORM, names), verbose=0)
        ),
        lambda: model.fit(right, validation_data=wrong, verbose=0),
        lambda: model.evaluate(wrong, verbose=0),
        lambda: model.fit(stream(wav_files, names), verbose=0),
        lambda: model.fit(stream(wav_files, numbers), verbose=0),
        lambda: model.evaluate(stream(wav_files, names), verbose=0),
    ):
        with pytest.raises(ValueError, match=f"{count} labels for {of_batch}"):
            given()
    weighted = {"class_weight": {"dog": 2.0}, "verbose": 0}
    model.compile("sgd", "binary_crossentropy")
    tiny.eager(model)
    for data in (wrong, stream(wav_files, names)):
        with pytest.raises(ValueError, match=f"`class_weight` .*{of_batch}"):
            model.fit(data, **weighted)
    # What fits is trained on, and what nobody needs to check stays as it is.
    model.fit(wrong, verbose=0)
    given = {"x": stream(wav_files, names).map(lambda x, y: x)}
    expected = given["x"]
    with model.checking_stream(given):
        assert given["x"] is expected


@pytest.mark.costly
def test_a_graph_checks_the_batches_of_a_dataset():
    model = classifier("categorical_crossentropy")
    shares = stream(
        WAVEFORM, np.array([[0.5, 0.5, 0], [0.1, 0.7, 0.2], [1] * 3])
    )
    with pytest.raises(ValueError, match="3 labels for clip 2 of a batch"):
        model.fit(shares, verbose=0)
    model.fit(shares.map(lambda x, y: (x[:2], y[:2])), verbose=0)


def test_unknown_names_of_a_dataset_are_named():
    model = tiny.eager(classifier("categorical_crossentropy"))
    wrong = stream(WAVEFORM, np.array(["dog", "rian", "rain"]))
    with pytest.raises(ValueError, match="did you mean 'rain'.*for clip 1 of"):
        model.fit(wrong, verbose=0)
    assert int(model.optimizer.iterations) == 0


def test_trainings_check_the_batches_of_a_dataset():
    model, teacher = classifier(None), classifier(None)
    some = np.array([[1.0, 0, 0], [0, 0, 0], [0, 1, 0]], "float32")
    several = np.array([[1.0, 0, 0], [0, 1, 0], [0, 1, 1]], "float32")
    for training, wrong, message in (
        (ClassifierTraining(model), some, "0 labels for clip 1 of a batch"),
        (Distiller(model, [teacher]), several, "2 labels for clip 2 of a"),
    ):
        training.compile("sgd", "categorical_crossentropy")
        tiny.eager(training).fit(
            stream(WAVEFORM, np.eye(3, dtype="float32")), verbose=0
        )
        with pytest.raises(ValueError, match=message):
            training.fit(stream(WAVEFORM, wrong), verbose=0)
    # A teacher judges clips without labels, which have no class's weight.
    training.fit(stream(WAVEFORM, some), verbose=0)
    weighted = {"class_weight": {"dog": 2.0}, "verbose": 0}
    with pytest.raises(ValueError, match="`class_weight` .*of clip 1 of a b"):
        training.fit(stream(WAVEFORM, some), **weighted)


def sources(*batches):
    """All that gives batches to Keras, of the same ones."""
    yield Batches(*batches)
    yield Batches(*batches, workers=2)
    yield (each for each in batches)
    if keras.backend.backend() == "tensorflow":
        rows = [np.concatenate(each) for each in zip(*batches, strict=True)]
        tf = pytest.importorskip("tensorflow")
        yield tf.data.Dataset.from_tensor_slices((*rows,)).batch(3)


def trainings(loss):
    """A classifier, and what trains it."""
    model = classifier(loss)
    training = ClassifierTraining(model)
    training.compile("sgd", loss)
    return tiny.eager(model), tiny.eager(training)


@pytest.mark.costly
@pytest.mark.parametrize("training", [False, True])
def test_batches_of_any_source_are_checked_as_they_come(training):
    model = trainings(LOSSES[1])[training]
    right = np.eye(3, dtype="float32")
    several, unknown = right.copy(), right.copy()
    several[1, 0], unknown[1, 2] = 1.0, np.nan
    weights = np.ones(3, "float32")
    weight = np.array([1.0, 1.0, np.nan], "float32")
    for batch, message in (
        ((several, weights), "Received: 2 labels for clip 1 of a batch of"),
        ((unknown, weights), r"`y` must .*\[0.0, 1.0, nan\] for clip 1"),
        ((right, weight), r"`sample_weight` must be .*\[nan\] for clip 2"),
    ):
        batches = (WAVEFORM, right, weights), (WAVEFORM, *batch)
        for x in sources(*batches):
            with pytest.raises(ValueError, match=message):
                model.fit(x, verbose=0)
        for x in sources(*batches):
            with pytest.raises(ValueError, match=message):
                model.evaluate(x, verbose=0)
        for x in sources(*batches):
            with pytest.raises(ValueError, match=message):
                model.fit(WAVEFORM, right, validation_data=x, verbose=0)
    model.compile("sgd", "binary_crossentropy")
    tiny.eager(model)
    weighted = {"class_weight": {"dog": 2.0}, "verbose": 0}
    with pytest.raises(ValueError, match="`class_weight` .* of the Batches"):
        model.fit(Batches((WAVEFORM, several)), **weighted)


@pytest.mark.costly
@pytest.mark.parametrize("training", [False, True])
def test_batches_that_are_checked_are_what_they_were(training):
    model = trainings("categorical_crossentropy")[training]
    model.optimizer.learning_rate = 0.0
    y = np.eye(3, dtype="float32")
    expected = model.evaluate(WAVEFORM, y, verbose=0)
    for x in sources(*[(WAVEFORM, y)] * 2):
        found = model.evaluate(x, verbose=0)
        np.testing.assert_allclose(found, expected, rtol=1e-5)
    # As Keras alone takes them: of a generator not one batch more is taken.
    left, epochs = [], []
    for fit in (type(model).fit, keras.Model.fit):
        each = trainings("categorical_crossentropy")[training]
        kept, rest = Batches((WAVEFORM, y)), iter([WAVEFORM[:2]] * 9)
        figures = fit(
            each,
            kept,
            epochs=2,
            validation_data=((x, y[:2]) for x in rest),
            validation_steps=2,
            verbose=0,
        )
        assert len(figures.history["val_loss"]) == 2
        left.append(len([*rest]))
        epochs.append(kept.epochs)
    assert left[0] == left[1] > 0
    assert epochs[0] == epochs[1]


def test_names_in_batches_are_refused_by_what_trains_on_arrays():
    training = trainings("categorical_crossentropy")[True]
    message = "ClassifierTraining is trained on arrays.*names of labels"
    for x in [*sources((WAVEFORM, LABELS))][:3]:
        with pytest.raises(ValueError, match=message):
            training.fit(x, verbose=0)
    with pytest.raises(ValueError, match=message):
        training.evaluate(WAVEFORM, LABELS, verbose=0)


@pytest.mark.parametrize("values", [np.nan, np.inf])
def test_weights_that_are_not_known_are_refused(values):
    model, training = trainings("categorical_crossentropy")
    y = np.eye(3, dtype="float32")
    weights = {"sample_weight": np.array([1.0, values, 2.0])}
    message = rf"`sample_weight` must be finite.*\[{values}\] for clip 1"
    for given in (
        lambda: model.fit(WAVEFORM, y, **weights),
        lambda: model.fit(FILES, LABELS, **weights),
        lambda: model.evaluate(FILES, LABELS, **weights),
        lambda: model.evaluate(WAVEFORM, y, **weights),
        lambda: model.train_on_batch(WAVEFORM, y, **weights),
        lambda: model.fit(
            WAVEFORM, y, validation_data=(WAVEFORM, y, *weights.values())
        ),
        lambda: training.fit(WAVEFORM, y, **weights),
        lambda: training.test_on_batch(WAVEFORM, y, **weights),
    ):
        with pytest.raises(ValueError, match=message):
            given()


def broken(x, *place, value=np.nan):
    """Returns a copy of an array with one number that is none."""
    x = x.copy()
    x[place] = value
    return x


@pytest.mark.parametrize("training", [False, True])
def test_samples_that_are_no_numbers_are_refused(training):
    model = trainings(LOSSES[1])[training]
    before = model.get_weights()
    y = np.eye(3, dtype="float32")
    x = broken(WAVEFORM, 1, 650, value=np.inf)
    message = "`waveform` must .*Received: inf in sample 650 for clip 1, of 1"
    long = {"waveform": x, "lengths": np.array([700, 651, 700], "int32")}
    for given in (
        lambda: model.fit(x, y),
        lambda: model.fit(x.astype("float16"), y),
        lambda: model.fit(keras.ops.convert_to_tensor(x), y),
        lambda: model.fit(long, y),
        lambda: model.fit(WAVEFORM, y, validation_data=(x, y)),
        lambda: model.evaluate(x, y),
        lambda: model.train_on_batch(x, y),
        lambda: model.test_on_batch(x, y),
    ):
        with pytest.raises(ValueError, match=message):
            given()
    for old, new in zip(before, model.get_weights(), strict=True):
        np.testing.assert_array_equal(old, new)


@pytest.mark.costly
@pytest.mark.parametrize("training", [False, True])
def test_samples_of_any_source_are_checked_as_they_come(training):
    model = trainings("categorical_crossentropy")[training]
    y = np.eye(3, dtype="float32")
    lengths = np.array([700, 600, 700], "int32")
    nan = broken(WAVEFORM, 2, 0)
    message = "nan in sample 0 for clip 2, of 1 such clips of a batch of the"
    batches = (WAVEFORM, y), (nan, y)
    for x in sources(*batches):
        with pytest.raises(ValueError, match=message):
            model.fit(x, verbose=0)
    for x in sources(*batches):
        with pytest.raises(ValueError, match=message):
            model.fit(WAVEFORM, y, validation_data=x, verbose=0)
    padded = [
        ({"waveform": x, "lengths": lengths}, y)
        for x in (broken(WAVEFORM, 1, 600), nan)
    ]
    with pytest.raises(ValueError, match=message):
        model.fit(Batches(*padded), verbose=0)
    with pytest.raises(ValueError, match=message):
        model.fit(stream(*padded[1]), verbose=0)
    # Padding may hold anything.
    for x in (Batches(padded[0]), stream(*padded[0])):
        model.fit(x, verbose=0)
    model.fit(*padded[0], verbose=0)
    assert all(np.isfinite(each).all() for each in model.get_weights())


@pytest.mark.parametrize("training", [False, True])
def test_no_clips_are_an_error_on_any_backend(training):
    model = trainings("categorical_crossentropy")[training]
    model.compile("sgd", "categorical_crossentropy", metrics=["accuracy"])
    tiny.eager(model)
    x, y = WAVEFORM[:0], np.eye(3, dtype="float32")[:0]
    some = WAVEFORM, np.eye(3, dtype="float32")
    for method, given in (
        (model.fit, (x, y)),
        (model.evaluate, (x, y)),
        (model.predict, (x,)),
    ):
        with pytest.raises(ValueError, match="^`x` must have a clip at least"):
            method(*given, verbose=0)
    with pytest.raises(ValueError, match="^`validation_data` must have a cl"):
        model.fit(*some, validation_data=(x, y), verbose=0)
    model.fit(*some, verbose=0)


def test_clips_that_are_arrays_are_counted_before_a_backend_is_asked():
    """What Keras makes of none is another error on each of them."""

    def method(x=None, validation_data=None):
        raise AssertionError("it was called")

    none, some = np.zeros((0, 700), "float32"), WAVEFORM
    for name, args, kwargs in (
        ("x", (none,), {}),
        ("x", (), {"x": {"waveform": none, "lengths": none[:, 0]}}),
        ("validation_data", (some,), {"validation_data": (none, none)}),
    ):
        with pytest.raises(ValueError, match=f"^`{name}` must have a clip at"):
            compat.with_clips(method, *args, **kwargs)


def test_ragged_clips_are_refused():
    tf = pytest.importorskip("tensorflow")
    ragged = tf.RaggedTensor.from_tensor(WAVEFORM, [700, 300, 500])
    frames = tf.RaggedTensor.from_tensor(
        np.zeros((3, 5, 13), "float32"), [5, 2, 3], ragged_rank=1
    )
    targets = np.eye(3, dtype="float32")
    model, training = trainings("categorical_crossentropy")
    pretraining = tiny.eager(MaskedAcousticModel(tiny.albert()))
    encoder = pretraining.backbone
    symbolic = keras.KerasTensor((None, None), ragged=True, ragged_rank=1)
    calls = [lambda x=x: model(x) for x in (ragged, symbolic)]
    calls += [lambda: encoder({"features": frames})]
    for each, x in (
        (model, ragged),
        (model, {"waveform": ragged}),
        (training, ragged),
        (pretraining, frames),
    ):
        pairs = tf.data.Dataset.from_tensor_slices((x, targets)).batch(3)
        calls += [
            lambda each=each, x=pairs: each.fit(x),
            lambda each=each, x=pairs: each.evaluate(x),
            lambda each=each, x=pairs: each.predict(x),
            # Whatever a backend makes of them.
            lambda x=pairs: compat.with_clips(len, x),
            lambda x=pairs: compat.with_clips(len, x=[], validation_data=x),
        ]
    calls += [lambda: model.predict(ragged), lambda: encoder.predict(frames)]
    for call in calls:
        with pytest.raises(ValueError, match="^Clips of several lengths must"):
            call()


def test_features_that_are_no_numbers_are_refused():
    model = tiny.eager(MaskedAcousticModel(tiny.albert()))
    x = np.random.default_rng(5).normal(size=(3, 11, 13)).astype("float32")
    real = np.arange(11) < np.array([[11], [7], [11]])
    model.fit({"features": broken(x, 1, 7), "frame_mask": real}, verbose=0)
    nan = broken(x, 1, 6, 12)
    message = "`features` must .*nan in frame 6 for clip 1, of 1 such"
    for given in (
        lambda: model.fit(nan),
        lambda: model.fit({"features": nan, "frame_mask": real}),
        lambda: model.train_on_batch(nan),
        lambda: model.test_on_batch(nan),
        lambda: model.evaluate(nan),
        lambda: model.fit(x, validation_data=(nan,)),
        lambda: model.fit(each for each in (x, nan)),
        lambda: model.fit(Batches((x,), (nan,))),
        lambda: model.fit(stream(nan, x).map(lambda x, y: x), verbose=0),
    ):
        with pytest.raises(ValueError, match=message):
            given()
    assert all(np.isfinite(each).all() for each in model.get_weights())


def test_features_with_padding_among_them_are_refused():
    """A graph counts the frames of a mask, and takes so many of the first."""
    model = MaskedAcousticModel(tiny.albert())
    x = np.random.default_rng(5).normal(size=(3, 11, 13)).astype("float32")
    mask = np.ones((3, 11), bool)
    mask[1, 3:5] = False
    inputs = {"features": x, "frame_mask": mask}
    for given in (
        lambda: model.fit(inputs),
        lambda: model.fit(Batches((inputs,))),
        lambda: model.fit({**inputs, "frame_mask": mask.tolist()}),
        lambda: model.fit(x, validation_data=(inputs,)),
        lambda: model.evaluate(inputs),
        lambda: model.train_on_batch(inputs),
        lambda: model.predict(inputs),
    ):
        with pytest.raises(ValueError, match="must come first.*a row with 11"):
            given()


@pytest.mark.costly
def test_embeddings_that_are_no_numbers_are_refused():
    model = GaussianAdaptiveDecoder(6, 8, num_classes=3, filters=5)
    x = np.random.default_rng(5).normal(size=(3, 6, 8)).astype("float32")
    y, nan = np.eye(3, dtype="float32"), broken(x, 1, 4, 7)
    before = model.get_weights()
    message = "`embeddings` must .*nan in layer 4 for clip 1, of 1 such"
    for given in (
        lambda: model.fit(nan, y),
        lambda: model.fit({"embeddings": nan}, y),
        lambda: model.fit(x, y, validation_data=(nan, y)),
        lambda: model.evaluate(nan, y),
        lambda: model.train_on_batch(nan, y),
        lambda: model.test_on_batch(nan, y),
    ):
        with pytest.raises(ValueError, match=message):
            given()
    several, unknown = broken(y, 1, 2, value=1.0), broken(y, 1, 2)
    for given, message in (
        ((x, unknown), r"`y` must .*\[0.0, 1.0, nan\] for clip 1"),
        ((x, several), "takes clips of one label each.*2 labels for clip 1"),
        ((x, y, [1.0, 2.0, np.inf]), r"`sample_weight` must .*\[inf\] for cl"),
    ):
        with pytest.raises(ValueError, match=message):
            model.train_on_batch(*given)
    for old, new in zip(before, model.get_weights(), strict=True):
        np.testing.assert_array_equal(old, new)
    message = "nan in layer 4 for clip 1, of 1 such clips of a batch of the"
    for batches in sources((x, y), (nan, y)):
        with pytest.raises(ValueError, match=message):
            model.fit(batches, verbose=0)
    for batches in sources((x, y), (nan, y)):
        with pytest.raises(ValueError, match=message):
            model.fit(x, y, validation_data=batches, verbose=0)
    with pytest.raises(ValueError, match="^`x` must have a clip at least"):
        model.fit(x[:0], y[:0], verbose=0)
    model.compile("sgd", "binary_crossentropy")
    with pytest.raises(ValueError, match="^`class_weight` needs clips of"):
        model.fit(x, several, class_weight={0: 2.0}, verbose=0)
    model.fit(x, several, verbose=0)
    assert all(np.isfinite(each).all() for each in model.get_weights())


def test_clips_beyond_what_is_looked_at_together_are_counted(monkeypatch):
    monkeypatch.setattr(targets, "CHECKED", 1400)
    x = np.zeros((7, 700), "float32")
    x[[3, 6], 5] = np.nan
    for given in (x, x.tolist(), Table(x)):
        with pytest.raises(ValueError, match="sample 5 for clip 3, of 2 such"):
            targets.check_inputs(given)


@pytest.fixture
def wav_files(tmp_path):
    files = [str(tmp_path / name) for name in FILES]
    for path, samples in zip(files, WAVEFORM, strict=True):
        soundfile.write(path, samples, tiny.RATE_HZ)
    return files
