"""Distillation: what teachers hear, what they say of it, and the loss."""

import keras
import numpy as np
import pytest
import tiny
from keras import ops

from audio_tf import layers
from audio_tf.models import (
    AudioClassifier,
    Distiller,
    GaussianAdaptiveTransformer,
)

B, SAMPLES, T, SHARE = 5, 110, 2.5, 0.75
LABELS = ["a", "b", "c"]
TARGETS = np.eye(3, dtype="float32")[[0, 1, 2, 0, 1]]


def classifier(activation, labels=LABELS, chunk_s=0.1, **kwargs):
    return AudioClassifier(
        tiny.backbone(**kwargs),
        labels=labels,
        activation=activation,
        chunk_s=chunk_s,
    )


@pytest.fixture(scope="module")
def teachers():
    """One of each activation, that would drop out and augment in training."""
    random = {"dropout": 0.5, "augmentation": [layers.RandomGain((3.0, 9.0))]}
    return [
        classifier("softmax", ["c", "a", "b"], **random),
        classifier("sigmoid", ["b", "a", "c"], **random),
    ]


@pytest.fixture(scope="module")
def distiller(teachers):
    student = classifier(
        "softmax", augmentation=[layers.RandomGain((-9.0, 9.0), seed=4)]
    )
    mixing = layers.Mixup(1.0, seed=3)
    distiller = Distiller(student, teachers, mixing, SHARE, T)
    distiller.compile(
        keras.optimizers.SGD(0.5),
        keras.losses.CategoricalCrossentropy(label_smoothing=0.1),
    )
    return tiny.eager(distiller)


def softmax(z):
    return np.exp(z) / np.exp(z).sum(axis=1, keepdims=True)


def taught_by_hand(teachers, heard, sums_to_one):
    """The mean of tempered scores, from the scores of inference."""
    total = 0.0
    for teacher, order in zip(teachers, ([1, 2, 0], [1, 0, 2]), strict=True):
        p = ops.convert_to_numpy(teacher(heard)).astype("float64")
        if teacher.activation is keras.activations.softmax:
            p = softmax(np.log(p) / T)
        else:
            p = 1.0 / (1.0 + ((1.0 - p) / p) ** (1.0 / T))
        total = total + p[:, order] / len(teachers)
    return total / total.sum(axis=1, keepdims=True) if sums_to_one else total


def test_a_student_that_decodes_layers_is_scored_as_it_scores(teachers, rng):
    """The backbone is frozen and not augmented: all hear the clips as given."""
    student = GaussianAdaptiveTransformer(
        tiny.backbone(
            num_layers=2,
            filterbank="log_mel",
            frontend_filters=7,
            hop_s=0.01,
            augmentation=[
                layers.RandomGain((3.0, 9.0)),
                layers.BandMasking(7, num_masks=3),
            ],
        ),
        labels=LABELS,
        layers=[0, 1],
        filters=16,
        chunk_s=0.1,
    )
    x = rng.standard_normal((B, SAMPLES)).astype("float32")
    outputs = Distiller(student, teachers, temperature=T)(x, training=True)
    found = {k: ops.convert_to_numpy(outputs[k]) for k in ("scores", "taught")}
    expected = ops.convert_to_numpy(student(x))
    np.testing.assert_allclose(found["scores"], expected, atol=1e-5)
    assert np.ptp(expected, axis=0).max() > 1e-3
    expected = taught_by_hand(teachers, x, sums_to_one=True)
    np.testing.assert_allclose(found["taught"], expected, atol=1e-5)


def test_teachers_hear_what_the_student_hears(distiller, teachers, rng):
    """Mixed, then augmented by the student alone, and not by themselves."""
    x = rng.standard_normal((B, SAMPLES)).astype("float32")
    lengths = np.array([110, 40, 77, 13, 101], "int32")
    student = distiller.classifier
    (gain,) = student.backbone.augmentation
    states = [each.seed_generator.state for each in (distiller.mixing, gain)]
    drawn = [ops.convert_to_numpy(state) for state in states]
    outputs = distiller({"waveform": x, "lengths": lengths}, training=True)
    for state, before in zip(states, drawn, strict=True):
        state.assign(before)
    mixed, lengths, _ = distiller.mixing.mix_clips(x, lengths, training=True)
    heard, lengths = gain(mixed, lengths, training=True)
    assert np.abs(heard - mixed).max() > 0.1
    heard = {"waveform": heard, "lengths": lengths}
    np.testing.assert_allclose(outputs["scores"], student(heard), atol=1e-5)
    np.testing.assert_allclose(
        outputs["taught"], taught_by_hand(teachers, heard, True), atol=1e-5
    )


def test_the_loss_is_of_labels_and_of_teachers(distiller, teachers, rng):
    x = rng.standard_normal((B, SAMPLES)).astype("float32")
    outputs = distiller(x)
    p = ops.convert_to_numpy(distiller.classifier(x)).astype("float64")
    smooth = 0.9 * TARGETS + 0.1 / 3
    hard = -(smooth * np.log(p)).sum(axis=1).mean()
    taught = taught_by_hand(teachers, x, True)
    soft = -(taught * np.log(softmax(np.log(p) / T))).sum(axis=1).mean()
    loss = distiller.compute_loss(x, TARGETS, outputs)
    expected = (1 - SHARE) * hard + SHARE * T**2 * soft
    assert float(loss) == pytest.approx(expected, rel=1e-4)


def test_teachers_judge_a_mix_by_the_weights_of_its_clips(distiller, rng):
    x = rng.standard_normal((B, SAMPLES)).astype("float32")
    weights = np.array([3.0, 0.5, 0.0, 1.0, 2.0], "float32")
    outputs = distiller(x, training=True)
    loss = distiller.compute_loss(x, TARGETS, outputs, weights)
    named = {k: ops.convert_to_numpy(each) for k, each in outputs.items()}
    r, partner = named["ratio"][:, 0], named["partner"]
    assert (r < 1.0).any()
    p = named["scores"].astype("float64")
    shares = [r * weights, (1 - r) * weights[partner]]
    hard = 0.0
    for share, each in zip(shares, [TARGETS, TARGETS[partner]], strict=True):
        smooth = 0.9 * each + 0.1 / 3
        hard = hard - share * (smooth * np.log(p)).sum(axis=1)
    soft = -(named["taught"] * np.log(softmax(np.log(p) / T))).sum(axis=1)
    expected = (1 - SHARE) * hard.mean()
    expected += SHARE * T**2 * (sum(shares) * soft).mean()
    assert float(loss) == pytest.approx(expected, rel=1e-4)


def test_clips_without_labels_are_judged_by_the_teachers_alone(
    distiller, teachers, rng
):
    """Mixes are, by the share of them that has no label."""
    x = rng.standard_normal((B, SAMPLES)).astype("float32")
    shares = np.array([1.0, 0.0, 0.25, 1.0, 0.0], "float32")
    weight = np.array([1.0, 3.0, 2.0, 0.5, 0.0], "float32")
    outputs = distiller(x)
    p = ops.convert_to_numpy(distiller.classifier(x)).astype("float64")
    hard = -((0.9 * TARGETS + 0.1 / 3) * np.log(p)).sum(axis=1)
    taught = taught_by_hand(teachers, x, True)
    soft = -(taught * np.log(softmax(np.log(p) / T))).sum(axis=1)
    targets = shares[:, None] * TARGETS
    for given, factor in (
        (None, np.ones(B)),
        (weight, weight),
        (weight[:, None], weight),
    ):
        loss = distiller.compute_loss(x, targets, outputs, given)
        expected = (1 - SHARE) * (shares * factor * hard).mean()
        expected += SHARE * T**2 * (factor * soft).mean()
        assert float(loss) == pytest.approx(expected, rel=1e-4)
    right = p.argmax(axis=1) == TARGETS.argmax(axis=1)
    metric = keras.metrics.CategoricalAccuracy(name="accuracy")
    again = Distiller(distiller.classifier, teachers, None, SHARE, T)
    again.compile("sgd", "categorical_crossentropy", weighted_metrics=[metric])
    found = again.compute_metrics(x, targets, again(x))
    assert float(found["accuracy"]) == pytest.approx(
        (shares * right).sum() / shares.sum()
    )


def test_a_focal_loss_leaves_clips_without_labels_to_the_teachers(
    distiller, teachers, rng
):
    x = rng.standard_normal((B, SAMPLES)).astype("float32")
    known = np.array([1.0, 0.0, 1.0, 1.0, 0.0], "float32")
    again = Distiller(distiller.classifier, teachers, None, SHARE, T)
    again.compile("sgd", "categorical_focal_crossentropy")
    p = ops.convert_to_numpy(distiller.classifier(x)).astype("float64")
    # Keras' own alpha and gamma.
    hard = -0.25 * (TARGETS * (1 - p) ** 2 * np.log(p)).sum(axis=1)
    taught = taught_by_hand(teachers, x, True)
    soft = -(taught * np.log(softmax(np.log(p) / T))).sum(axis=1)
    loss = again.compute_loss(x, known[:, None] * TARGETS, again(x))
    expected = (1 - SHARE) * (known * hard).mean() + SHARE * T**2 * soft.mean()
    assert float(loss) == pytest.approx(expected, rel=1e-4)


def test_a_batch_of_unknown_classes_may_have_clips_without_labels(distiller):
    """As of `tf.data`, in whose graph the shape of targets is not known."""
    scores = keras.KerasTensor((None, 3), "float32")
    for shape in ((None, None), (B, None), (None, 3)):
        targets = keras.KerasTensor(shape, "float32")
        _, weights = distiller.labelled(targets, scores, None)
        assert weights is not None and len(weights.shape) == 1
    again = Distiller(distiller.classifier, distiller.teachers)
    again.compile("sgd", "sparse_categorical_crossentropy")
    for shape in ((None,), (None, 1), (None, None)):
        ids = keras.KerasTensor(shape, "int32")
        told, weights = again.labelled(ids, scores, None)
        assert told is ids and weights is None


def test_clips_of_several_labels_or_of_no_weight_are_refused(teachers, rng):
    again = Distiller(classifier("softmax"), teachers, None, SHARE, T)
    again.compile("sgd", "categorical_crossentropy")
    x = rng.standard_normal((B, SAMPLES)).astype("float32")
    some = TARGETS.astype("float32").copy()
    some[1] = 0.0
    tiny.eager(again).train_on_batch(x, some)
    # Keras would give a clip without a label the weight of the first class.
    with pytest.raises(ValueError, match="`class_weight` needs.*of clip 1"):
        again.fit(x, some, class_weight={"a": 2.0})
    some[2] = 1.0
    with pytest.raises(ValueError, match="Received: 3 labels for clip 2"):
        again.fit(x, some)


def test_a_student_of_several_labels_learns_each_for_itself(teachers, rng):
    x = rng.standard_normal((B, SAMPLES)).astype("float32")
    student = classifier("sigmoid")
    distiller = Distiller(student, teachers, share=1.0, temperature=T)
    distiller.compile("sgd", "binary_crossentropy")
    z = np.log(1.0 / ops.convert_to_numpy(student(x)).astype("float64") - 1.0)
    p = 1.0 / (1.0 + np.exp(z / T))
    taught = taught_by_hand(teachers, x, False)
    soft = taught * np.log(p) + (1.0 - taught) * np.log(1.0 - p)
    loss = distiller.compute_loss(x, TARGETS, distiller(x))
    assert float(loss) == pytest.approx(-(T**2) * soft.mean(), rel=1e-4)
    # A clip of none of the sounds has been told to be one.
    told, weights = distiller.labelled(0.5 * TARGETS, student(x), None)
    np.testing.assert_array_equal(told, 0.5 * TARGETS)
    assert weights is None


def test_teachers_are_frozen(distiller, teachers, rng):
    x = rng.standard_normal((B, SAMPLES)).astype("float32")
    student = distiller.classifier
    before = [teacher.get_weights() for teacher in teachers]
    learned = student.get_weights()
    distiller.train_on_batch(x, TARGETS)
    for teacher, weights in zip(teachers, before, strict=True):
        for one, other in zip(teacher.get_weights(), weights, strict=True):
            np.testing.assert_array_equal(one, other)
    assert any(map(np.any, map(np.subtract, student.get_weights(), learned)))
    own, all_of_it = student.trainable_weights, distiller.trainable_weights
    assert [id(each) for each in own] == [id(each) for each in all_of_it]


def test_teachers_that_do_not_fit_are_refused(distiller, teachers):
    student = distiller.classifier
    for teacher, said in (
        (classifier("softmax", ["a", "b"]), r"without \['c'\]"),
        (classifier("softmax", ["a", "b", "c", "d"]), r"with \['d'\] beyond"),
        (classifier("softmax", chunk_s=0.2), "chunk_s=0.2.*classifier 0.1"),
        (classifier("softmax", sample_rate_hz=1_000), "sample_rate_hz=1000"),
        (classifier("relu"), "activation='relu'"),
        (AudioClassifier(tiny.backbone(), 3, chunk_s=0.1), "must have `labels"),
    ):
        with pytest.raises(ValueError, match=said):
            Distiller(student, [teachers[0], teacher])
    for options in ({"share": 1.5}, {"temperature": 0.0}, {"teachers": []}):
        (name,) = options
        with pytest.raises(ValueError, match=name):
            Distiller(student, **{"teachers": teachers, **options})
