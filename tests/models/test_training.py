"""Training on mixed clips: what is heard, and what it is compared with."""

import keras
import numpy as np
import pytest
import tiny
from keras import ops

from audio_tf import layers
from audio_tf.models import (
    AudioClassifier,
    ClassifierTraining,
    Distiller,
    GaussianAdaptiveDecoder,
    MaskedAcousticModel,
)

B, SAMPLES, C = 5, 130, 3


def softmax_classifier(**kwargs):
    return AudioClassifier(
        tiny.backbone(**kwargs), num_classes=C, activation="softmax"
    )


def padded(rng):
    """Clips of several lengths, with something behind their ends."""
    return {
        "waveform": rng.standard_normal((B, SAMPLES)).astype("float32"),
        "lengths": np.array([130, 40, 77, 0, 101], "int32"),
    }


@pytest.fixture(scope="module")
def training():
    mixing = layers.Mixup(1.0, rate=0.8, seed=3)
    training = ClassifierTraining(softmax_classifier(), mixing)
    training.compile(
        keras.optimizers.SGD(0.5),
        keras.losses.CategoricalCrossentropy(label_smoothing=0.1),
        metrics=[keras.metrics.CategoricalAccuracy(name="accuracy")],
    )
    return tiny.eager(training)


def mixed_by_hand(inputs, targets, outputs):
    """What each mix is of, row by row."""
    partner = ops.convert_to_numpy(outputs["partner"])
    ratio = ops.convert_to_numpy(outputs["ratio"])[:, 0]
    waveform, lengths = np.zeros((B, SAMPLES)), np.zeros(B, "int32")
    mixed = np.zeros((B, C))
    for row, other, r in zip(range(B), partner, ratio, strict=True):
        for each, share in ((row, r), (other, 1.0 - r)):
            if share == 0.0:
                continue
            size = inputs["lengths"][each]
            waveform[row, :size] += share * inputs["waveform"][each, :size]
            lengths[row] = max(lengths[row], size)
            mixed[row] += share * targets[each]
    return {"waveform": waveform.astype("float32"), "lengths": lengths}, mixed


def test_what_is_heard_is_mixed_as_its_targets(training, rng):
    inputs, targets = padded(rng), np.eye(C, dtype="float32")[[0, 1, 2, 0, 1]]
    outputs = training(inputs, training=True)
    heard, mixed = mixed_by_hand(inputs, targets, outputs)
    assert ((mixed > 0).sum(axis=1) > 1).any()
    expected = training.classifier(heard)
    np.testing.assert_allclose(outputs["scores"], expected, atol=1e-5)

    scores = ops.convert_to_numpy(expected).astype("float64")
    smooth = 0.9 * mixed + 0.1 / C
    loss = training.compute_loss(inputs, targets, outputs)
    by_hand = -(smooth * np.log(scores)).sum(axis=1).mean()
    assert float(loss) == pytest.approx(by_hand, rel=1e-4)
    # Of a test before this one in the same process something may be counted.
    training.reset_metrics()
    figures = training.compute_metrics(inputs, targets, outputs)
    hits = (mixed.argmax(axis=1) == scores.argmax(axis=1)).mean()
    assert float(figures["accuracy"]) == pytest.approx(hits)
    training.reset_metrics()


def cross_entropies(scores, classes):
    """The smoothed loss of each row, as if it had each of the labels."""
    scores = ops.convert_to_numpy(scores).astype("float64")
    smooth = 0.9 * np.eye(C)[classes] + 0.1 / C
    return -(smooth * np.log(scores)).sum(axis=1)


def test_labels_of_integers_are_mixed_as_those_of_floats(training, rng):
    inputs, targets = padded(rng), np.eye(C, dtype="float32")[[0, 1, 2, 0, 1]]
    outputs = training(inputs, training=True)
    _, mixed = mixed_by_hand(inputs, targets, outputs)
    scores = ops.convert_to_numpy(outputs["scores"]).astype("float64")
    by_hand = -((0.9 * mixed + 0.1 / C) * np.log(scores)).sum(axis=1).mean()
    loss = training.compute_loss(inputs, targets.astype("int64"), outputs)
    assert float(loss) == pytest.approx(by_hand, rel=1e-4)


@pytest.mark.parametrize("column", [False, True])
def test_each_clip_of_a_mix_has_its_own_weight(column, training, rng):
    inputs, classes = padded(rng), np.array([0, 1, 2, 0, 1])
    weights = np.array([3.0, 0.5, 0.0, 1.0, 2.0], "float32")
    given = weights[:, None] if column else weights
    outputs = training(inputs, training=True)
    partner = ops.convert_to_numpy(outputs["partner"])
    ratio = ops.convert_to_numpy(outputs["ratio"])[:, 0]
    assert (ratio < 1.0).any()
    own = cross_entropies(outputs["scores"], classes)
    other = cross_entropies(outputs["scores"], classes[partner])
    by_hand = ratio * weights * own + (1 - ratio) * weights[partner] * other
    targets = np.eye(C, dtype="float32")[classes]
    loss = training.compute_loss(inputs, targets, outputs, given)
    assert float(loss) == pytest.approx(by_hand.mean(), rel=1e-4)


def test_metrics_weigh_mixes_by_their_clips(rng):
    training = ClassifierTraining(
        softmax_classifier(), layers.Mixup(1.0, seed=3)
    )
    training.compile(
        "sgd",
        "categorical_crossentropy",
        weighted_metrics=[keras.metrics.CategoricalAccuracy(name="accuracy")],
    )
    inputs, weights = padded(rng), np.array([3.0, 0.5, 0.0, 1.0, 2.0])
    weights = weights.astype("float32")
    outputs = training(inputs, training=True)
    # Of whatever weights a model has, the first clip's own class is right.
    right = ops.convert_to_numpy(outputs["scores"])[0].argmax()
    classes = (right + np.array([0, 1, 2, 0, 1])) % C
    partner = ops.convert_to_numpy(outputs["partner"])
    ratio = ops.convert_to_numpy(outputs["ratio"])[:, 0]
    shares = [ratio * weights, (1 - ratio) * weights[partner]]
    eye = np.eye(C, dtype="float32")
    mixed = shares[0][:, None] * eye[classes]
    mixed += shares[1][:, None] * eye[classes[partner]]
    scores = ops.convert_to_numpy(outputs["scores"])
    hits = mixed.argmax(axis=1) == scores.argmax(axis=1)
    figures = training.compute_metrics(inputs, eye[classes], outputs, weights)
    expected = (hits * sum(shares)).sum() / sum(shares).sum()
    assert 0.0 < expected < 1.0
    assert float(figures["accuracy"]) == pytest.approx(expected, abs=1e-6)


@pytest.mark.costly
def test_a_clip_of_no_weight_teaches_no_label_by_fit(rng):
    """Not in the mixes of others either, through all that `fit` does."""
    biases = []
    for wrong in (0, 1):
        keras.utils.set_random_seed(8)
        classifier = softmax_classifier(dropout=0.0)
        training = ClassifierTraining(classifier, layers.Mixup(1.0, seed=3))
        training.compile(keras.optimizers.SGD(0.5), "categorical_crossentropy")
        x = np.sin(np.arange(4 * SAMPLES)).reshape(4, -1).astype("float32")
        y = np.eye(C, dtype="float32")[[2, wrong, 2, wrong]]
        weights = np.array([1.0, 0.0, 2.0, 0.0], "float32")
        tiny.eager(training).fit(
            x, y, batch_size=4, sample_weight=weights, shuffle=False, verbose=0
        )
        biases.append(ops.convert_to_numpy(classifier.output_dense.bias))
    assert np.abs(biases[0]).max() > 0.0
    np.testing.assert_array_equal(*biases)


@pytest.mark.parametrize("globally", [False, True])
@pytest.mark.parametrize("policy", ["mixed_float16", "mixed_bfloat16"])
def test_half_precision_scales_the_loss_and_rounds_no_sound(
    policy, globally, rng
):
    """As the classifier alone does; the policy is global or its backbone's."""
    if globally:
        keras.mixed_precision.set_global_policy(policy)
    classifier = softmax_classifier(**({} if globally else {"dtype": policy}))
    mixing = layers.Mixup(1.0, seed=3)
    training = ClassifierTraining(classifier, mixing, layers.AdditiveNoise())
    training.compile("adam", "categorical_crossentropy")
    scales = isinstance(training.optimizer, keras.optimizers.LossScaleOptimizer)
    assert scales == (policy == "mixed_float16")
    heard = []
    classifier.completed = lambda x, mask=None: heard.append(x) or x
    inputs = padded(rng)
    scores = training(inputs, training=True)["scores"]
    assert np.isfinite(ops.convert_to_numpy(scores)).all()
    # JAX traces what it hears: its dtype alone is known.
    dtypes = [each["waveform"].dtype for each in heard]
    assert {keras.backend.standardize_dtype(x) for x in dtypes} == {"float32"}


def test_a_step_follows_the_loss_of_the_mixes(training, rng):
    """Down its gradient by the bias of the scores, which is known by hand."""
    inputs = padded(rng)
    targets = np.eye(C, dtype="float32")[[0, 1, 2, 0, 1]]
    bias = training.classifier.output_dense.bias
    before = ops.convert_to_numpy(bias)
    state = training.mixing.seed_generator.state
    drawn = ops.convert_to_numpy(state)
    outputs = training(inputs, training=True)
    _, mixed = mixed_by_hand(inputs, targets, outputs)
    scores = ops.convert_to_numpy(outputs["scores"])
    state.assign(drawn)
    training.train_on_batch(inputs, targets)
    gradient = (scores - (0.9 * mixed + 0.1 / C)).mean(axis=0)
    after = ops.convert_to_numpy(bias)
    np.testing.assert_allclose(after - before, -0.5 * gradient, atol=1e-5)


@pytest.mark.costly
def test_a_training_that_broke_off_goes_on_from_its_backup(rng, tmp_path):
    x, y = padded(rng), np.eye(C, dtype="float32")[[0, 1, 2, 0, 1]]

    def train(*callbacks):
        keras.utils.set_random_seed(8)
        training = ClassifierTraining(softmax_classifier(dropout=0.0))
        optimizer = keras.optimizers.SGD(0.5, momentum=0.9)
        training.compile(optimizer, "categorical_crossentropy")
        tiny.eager(training).fit(
            x, y, epochs=2, shuffle=False, verbose=0, callbacks=callbacks
        )
        return training.get_weights()

    class Killed(keras.callbacks.Callback):
        def on_epoch_begin(self, epoch, logs=None):
            if epoch == 1:
                raise KeyboardInterrupt

    backup = keras.callbacks.BackupAndRestore(str(tmp_path / "backup"))
    expected = train()
    with pytest.raises(KeyboardInterrupt):
        train(backup, Killed())
    assert list((tmp_path / "backup").iterdir())
    for found, weights in zip(train(backup), expected, strict=True):
        np.testing.assert_allclose(found, weights, atol=1e-6)


def test_evaluation_mixes_nothing(training, rng):
    inputs, targets = padded(rng), np.eye(C, dtype="float32")[[0, 1, 2, 0, 1]]
    classifier = training.classifier
    outputs = training(inputs)
    np.testing.assert_allclose(outputs["scores"], classifier(inputs), atol=1e-6)
    weights = np.array([0.3, 0.0, 7.0, 1.0, 0.1], "float32")
    mixed, weighed = training.targets_of(targets, outputs, weights)
    np.testing.assert_array_equal(mixed, targets)
    np.testing.assert_array_equal(weighed, weights)


def test_without_mixing_the_classifier_hears_what_it_is_given(rng):
    classifier = softmax_classifier(dropout=0.0)
    inputs = padded(rng)
    outputs = ClassifierTraining(classifier)(inputs, training=True)
    assert list(outputs) == ["scores"]
    np.testing.assert_allclose(outputs["scores"], classifier(inputs), atol=1e-6)


def test_labels_and_weights_are_taken_as_a_classifier_takes_them(rng):
    """Keras would look up no name of a class, and say nothing."""
    classifier = AudioClassifier(
        tiny.backbone(), labels=["a", "b", "c"], activation="softmax"
    )
    training = ClassifierTraining(classifier)
    training.compile(keras.optimizers.SGD(0.0), "categorical_crossentropy")
    tiny.eager(training)
    x = rng.standard_normal((B, SAMPLES)).astype("float32")
    y = np.eye(C, dtype="float32")[[0, 1, 2, 0, 1]]
    weights = {"sample_weight": np.array([4.0, 1.0, 1.0, 4.0, 1.0])}
    expected = training.fit(x, y, verbose=0, **weights).history["loss"]
    found = training.fit(x, y, verbose=0, class_weight={"a": 4.0})
    np.testing.assert_allclose(found.history["loss"], expected, rtol=1e-5)
    batch = training.train_on_batch(x, y, class_weight={"a": 4.0})
    np.testing.assert_allclose(float(batch), expected[0], rtol=1e-5)
    for call in (training.fit, training.train_on_batch):
        with pytest.raises(ValueError, match="Received: class 'z'"):
            call(x, y, class_weight={"z": 4.0})
        for wrong, count in ((1.0, 3), (0.0, 0)):
            targets = np.full((B, C), wrong, "float32")
            with pytest.raises(ValueError, match=f"Received: {count} labels"):
                call(x, targets)


def test_what_cannot_be_mixed_is_refused(training, rng):
    with pytest.raises(ValueError, match="RandomGain.*the waveform"):
        ClassifierTraining(training.classifier, layers.RandomGain())
    other = layers.BetweenClassMixing(2 * training.classifier.sample_rate_hz)
    with pytest.raises(ValueError, match="BetweenClassMixing must be made for"):
        ClassifierTraining(training.classifier, other)
    inputs = padded(rng)
    outputs = training(inputs, training=True)
    for targets in (np.arange(B), np.zeros((B, C + 1), "float32")):
        with pytest.raises(ValueError, match=rf"\(batch, {C}\)"):
            training.targets_of(ops.convert_to_tensor(targets), outputs)
    targets = np.zeros((B, C), "float32")
    with pytest.raises(ValueError, match=rf"`sample_weight`.*\({B}, {C}\)"):
        training.targets_of(ops.convert_to_tensor(targets), outputs, targets)


def test_noise_of_a_bank_is_laid_under_what_is_heard(rng):
    classifier = softmax_classifier(dropout=0.0)
    bank = rng.standard_normal((2, 50)).astype("float32")
    training = ClassifierTraining(
        classifier,
        noise=layers.AdditiveNoise((6.0, 6.0), seed=2),
        noise_bank=bank,
    )
    inputs = padded(rng)
    heard, _ = training.mixed(inputs, True)
    np.testing.assert_array_equal(heard["lengths"], inputs["lengths"])
    rounds = np.concatenate([bank, bank, bank, bank], axis=1)
    for row, size in enumerate(inputs["lengths"]):
        if not size:
            continue
        clip = inputs["waveform"][row, :size].astype("float64")
        noise = ops.convert_to_numpy(heard["waveform"])[row, :size] - clip
        ratio = 10 * np.log10(np.sum(clip**2) / np.sum(noise**2))
        assert ratio == pytest.approx(6.0, abs=1e-3)
        # A piece of one of the recordings, which goes round, at some level.
        alike = [
            np.dot(noise, piece) / np.linalg.norm(noise) / np.linalg.norm(piece)
            for line in rounds
            for piece in (line[start : start + size] for start in range(50))
        ]
        assert max(alike) == pytest.approx(1.0, abs=1e-5)
    still, _ = training.mixed(inputs, False)
    np.testing.assert_array_equal(still["waveform"], inputs["waveform"])
    assert not any(
        weight is training.noise_bank for weight in classifier.weights
    )
    trainable = [weight.path for weight in training.trainable_weights]
    assert trainable == [each.path for each in classifier.trainable_weights]


def test_a_bank_that_nothing_or_nobody_can_take_from_is_refused():
    classifier = softmax_classifier()
    bank = np.ones((1, 10), "float32")
    with pytest.raises(ValueError, match="`noise_bank` needs `noise`"):
        ClassifierTraining(classifier, noise_bank=bank)
    for wrong in (bank[0], bank[:0]):
        with pytest.raises(ValueError, match=r"must be floats \(recordings"):
            ClassifierTraining(
                classifier, noise=layers.AdditiveNoise(), noise_bank=wrong
            )


@pytest.mark.parametrize("kind", [ClassifierTraining, Distiller])
def test_names_are_refused_by_what_trains_on_arrays(kind, rng):
    classifier, teacher = (
        AudioClassifier(
            tiny.backbone(), labels=["a", "b", "c"], activation="softmax"
        )
        for _ in range(2)
    )
    more = [[teacher]] if kind is Distiller else []
    training = kind(classifier, *more)
    training.compile("sgd", "categorical_crossentropy")
    tiny.eager(training)
    x = rng.standard_normal((B, SAMPLES)).astype("float32")
    files, names = [f"{row}.wav" for row in range(B)], list("abcab")
    of = f"A {kind.__name__} is trained on arrays.*Received: names of "
    y = classifier.preprocessor.targets(names)
    given = [
        (files, names, "files"),
        (np.array(files), y, "files"),
        (x, names, "labels"),
        (x, np.array(names), "labels"),
    ]
    for first, second, found in given:
        with pytest.raises(ValueError, match=of + found):
            training.fit(first, second)
        with pytest.raises(ValueError, match=of + found):
            training.train_on_batch(first, second)
        with pytest.raises(ValueError, match=of + found):
            training.fit(x, y, validation_data=(first, second))
    tf = pytest.importorskip("tensorflow")
    for first, second, found in given:
        data = tf.data.Dataset.from_tensor_slices((first, second)).batch(2)
        with pytest.raises(ValueError, match=of + found):
            training.fit(data)
    # What the sentence says is a way to go on.
    made = data.map(classifier.preprocessor).unbatch().batch(32)
    training.fit(made, shuffle=False, verbose=0)
    training.fit(*classifier.preprocessor(x, names), verbose=0)


@pytest.mark.costly
@pytest.mark.parametrize("moment", ["train", "test", "predict"])
def test_weights_are_there_after_ctrl_c(moment, rng):
    """Keras on JAX takes them out of a model for as long as it works."""
    model = tiny.eager(softmax_classifier())
    model.compile("sgd", "categorical_crossentropy")
    x = rng.standard_normal((2, SAMPLES)).astype("float32")
    y = np.eye(C, dtype="float32")[:2]
    before = model.get_weights()

    def interrupt(batch, logs):
        raise KeyboardInterrupt

    how = {"on_" + moment + "_batch_end": interrupt}
    callbacks = [keras.callbacks.LambdaCallback(**how)]
    work = {"train": model.fit, "test": model.evaluate}
    with pytest.raises(KeyboardInterrupt):
        if moment == "predict":
            model.predict(x, callbacks=callbacks, verbose=0)
        else:
            work[moment](x, y, callbacks=callbacks, verbose=0)
    same = [
        np.array_equal(*each)
        for each in zip(before, model.get_weights(), strict=True)
    ]
    assert all(same) == (moment != "train")
    model.fit(x, y, verbose=0)


@pytest.mark.costly
@pytest.mark.parametrize("moment", ["test", "predict"])
@pytest.mark.parametrize("name", ["training", "masked", "backbone", "decoder"])
def test_weights_are_there_after_an_error_beside_fit(name, moment, rng):
    """So they are of what trains a classifier, and of what it is made of."""
    if name == "training":
        model = ClassifierTraining(softmax_classifier())
        model.compile("sgd", "categorical_crossentropy")
        x = rng.standard_normal((2, SAMPLES)).astype("float32")
    elif name == "masked":
        model = MaskedAcousticModel(tiny.albert())
        x = rng.standard_normal((2, 7, 13)).astype("float32")
    elif name == "decoder":
        model = GaussianAdaptiveDecoder(3, 8, C, filters=2)
        x = rng.standard_normal((2, 3, 8)).astype("float32")
    else:
        model = tiny.backbone()
        x = rng.standard_normal((2, SAMPLES)).astype("float32")
        model.compile(loss={"sequence_output": "mse", "frame_mask": None})
    tiny.eager(model)
    y = np.eye(C, dtype="float32")[:2]
    if name in ("masked", "backbone"):
        y = model(x)
        y = x if name == "masked" else {**y}
    model(x)
    before = model.get_weights()

    def interrupt(batch, logs):
        raise KeyboardInterrupt

    how = {"on_" + moment + "_batch_end": interrupt}
    callbacks = [keras.callbacks.LambdaCallback(**how)]
    with pytest.raises(KeyboardInterrupt):
        if moment == "predict":
            model.predict(x, callbacks=callbacks, verbose=0)
        else:
            model.evaluate(x, y, callbacks=callbacks, verbose=0)
    for one, other in zip(before, model.get_weights(), strict=True):
        np.testing.assert_array_equal(one, other)
    assert model.weights


def with_lora(model):
    model.enable_lora(2)
    rng = np.random.default_rng(0)
    for weight in model.weights:
        if "lora_kernel" in weight.path:
            weight.assign(rng.standard_normal(weight.shape))


def with_integers(model):
    model.quantize("int8")


@pytest.mark.costly
@pytest.mark.parametrize(
    "change", [pytest.param(with_integers, marks=pytest.mark.slow), with_lora]
)
def test_answers_are_those_of_the_weights_within(change, rng):
    """TensorFlow had traced what is around a model with the old ones."""
    x = rng.standard_normal((2, SAMPLES)).astype("float32")
    y = np.eye(C, dtype="float32")[:2]
    classifier = softmax_classifier()
    training = ClassifierTraining(classifier)
    training.compile("sgd", "categorical_crossentropy")
    training.fit(x, y, verbose=0)
    features = rng.standard_normal((2, 7, 13)).astype("float32")
    masked = MaskedAcousticModel(tiny.albert())
    output = masked.head[-1].kernel
    output.assign(rng.standard_normal(output.shape))

    def answers():
        return (
            training.predict(x, verbose=0)["scores"],
            training.evaluate(x, y, verbose=0),
            masked.predict(features, verbose=0)["reconstruction"],
        )

    before = answers()
    for model in (classifier.backbone, masked.backbone):
        change(model)
    scores = ops.convert_to_numpy(classifier(x))
    loss = -np.log(scores.astype("float64")[y > 0]).mean()
    filled = ops.convert_to_numpy(masked(features)["reconstruction"])
    for old, new, found in zip(
        before, answers(), (scores, loss, filled), strict=True
    ):
        np.testing.assert_allclose(new, found, atol=1e-5)
        assert np.abs(np.subtract(new, old)).max() > 1e-5
    # What is trained from now on has an optimizer of its own.
    training.compile(keras.optimizers.SGD(0.5), "categorical_crossentropy")
    kernels = [w for w in training.trainable_weights if "lora" in w.path]
    kept = [ops.convert_to_numpy(each) for each in kernels]
    training.fit(x, y, verbose=0)
    for weight, old in zip(kernels, kept, strict=True):
        assert (ops.convert_to_numpy(weight) != old).any(), weight.path


@pytest.mark.parametrize("kind", [ClassifierTraining, Distiller])
def test_what_trains_is_not_saved_whole(kind, tmp_path):
    more = [AudioClassifier(tiny.backbone(), labels=["a", "b"])]
    classifier = AudioClassifier(tiny.backbone(), labels=["a", "b"])
    training = kind(classifier, *([more] if kind is Distiller else []))
    message = f"A {kind.__name__} is not saved whole: save its `classifier`"
    with pytest.raises(NotImplementedError, match=message):
        training.save(tmp_path / "training.keras")
    training.save_weights(tmp_path / "training.weights.h5")
    classifier.save(tmp_path / "classifier.keras")
