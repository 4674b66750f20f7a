"""Masking by the papers' counts, and the model that fills frames in."""

import fractions
import json
import math

import keras
import naive
import numpy as np
import pytest
import tiny

from audio_tf.layers import MASKING_POLICIES, FrameMasking, SpeechFeatures
from audio_tf.layers.frame_masking import expected_runs
from audio_tf.models import (
    AudioAlbertBackbone,
    MaskedAcousticModel,
    SpeechEncoder,
)

every_policy = pytest.mark.parametrize("policy", MASKING_POLICIES)


def masking(policy="paper", **kwargs):
    return FrameMasking(**{**MASKING_POLICIES[policy], "seed": 3, **kwargs})


def numbered(lengths, frames):
    """Clips that tell of each value its clip and frame, from 1 on."""
    clip, frame = np.mgrid[1 : len(lengths) + 1, 1 : frames + 1]
    x = np.stack([clip, frame], axis=-1).astype("float32")
    return x, np.arange(frames) < np.asarray(lengths)[:, None]


def draw(layer, lengths, frames):
    """Outputs and mask of `numbered` clips, in training."""
    x, mask = numbered(lengths, frames)
    lengths = np.asarray(lengths, "int32")
    outputs, masked = layer(x, lengths=lengths, training=True)
    return np.asarray(outputs), np.asarray(masked), x, mask


def runs_of(length, policy):
    """How many runs s3prl's code draws from a clip, in exact arithmetic."""
    size = MASKING_POLICIES[policy]["run_frames"]
    wanted = fractions.Fraction(15, 100) * length / size
    if policy == "s3prl":
        return round(wanted)
    if (length - size - 1) // 3 < 2:
        return 0
    return max(1, int(wanted))


def naive_masks(length, policy, rng):
    """One clip's masked frames, as the authors' loops draw them."""
    masked = np.zeros(length, bool)
    size = MASKING_POLICIES[policy]["run_frames"]
    if policy == "paper":
        starts = list(range(0, length - size - 1, 3))
    else:
        starts = list(range(max(length - size - 1, 0) + 1))
    for start in rng.permutation(starts)[: runs_of(length, policy)]:
        masked[int(start) : int(start) + size] = True
    return masked


@pytest.mark.parametrize("evaluation_seed", [None, 7])
def test_integers_are_masked_as_floats(evaluation_seed):
    """As the layer says it; they had stayed what they were."""
    layer = FrameMasking(mask_rate=0.5, evaluation_seed=evaluation_seed)
    x = np.arange(2 * 40 * 3).reshape(2, 40, 3)
    expected, chosen = layer(x.astype("float32"))
    found, also = layer(x)
    said, _ = layer.compute_output_spec(keras.KerasTensor(x.shape, "int32"))
    for tensor in (expected, found, said):
        assert keras.backend.standardize_dtype(tensor.dtype) == "float32"
    for one, other in ((found, expected), (also, chosen)):
        np.testing.assert_array_equal(
            *map(keras.ops.convert_to_numpy, (one, other))
        )


def test_policies_are_those_of_the_facts():
    assert MASKING_POLICIES == {
        "paper": {"run_frames": 1, "gap_frames": 2},
        "s3prl": {"run_frames": 7, "gap_frames": None},
    }
    config = FrameMasking().get_config()
    shares = [config[k] for k in ("mask_rate", "zero_rate", "replace_rate")]
    assert shares == [0.15, 0.8, 0.1] and config["evaluation_seed"] is None


@pytest.mark.parametrize("size", [1, 3, 7])
def test_numbers_of_runs_are_those_of_decimals(size):
    lengths = np.arange(3001)
    runs = np.asarray(expected_runs(lengths[:, None], 0.15, size))[:, 0]
    exact = [fractions.Fraction(15 * int(n), 100 * size) for n in lengths]
    np.testing.assert_array_equal(np.floor(runs), [int(e) for e in exact])
    rounded = np.asarray(keras.ops.round(runs))
    np.testing.assert_array_equal(rounded, [round(e) for e in exact])


def test_paper_masks_exactly_so_many_frames():
    lengths = np.arange(131)
    _, masked, _, mask = draw(masking("paper"), lengths, 131)
    expected = [runs_of(int(n), "paper") for n in lengths]
    np.testing.assert_array_equal(masked.sum(axis=1), expected)
    assert expected[7] == 0 and expected[8] == 1 and expected[100] == 15
    assert not masked[~mask].any()
    assert set(np.nonzero(masked)[1] % 3) == {0}


@pytest.mark.parametrize("kind", ["paper", "s3prl"])
def test_a_batch_without_any_frame_has_nothing_to_mask(kind):
    """Pooling to no frame ends a process, by a division by zero."""
    outputs, masked = masking(kind)(np.zeros((2, 0, 3)), training=True)
    assert outputs.shape == (2, 0, 3) and masked.shape == (2, 0)


def test_paper_masks_one_frame_at_least():
    _, masked, _, _ = draw(masking(mask_rate=0.01), [7, 8, 31], 31)
    np.testing.assert_array_equal(masked.sum(axis=1), [0, 1, 1])


def test_wider_spacing_of_the_other_setting():
    _, masked, _, _ = draw(masking(gap_frames=3), np.full(64, 101), 101)
    np.testing.assert_array_equal(masked.sum(axis=1), 15)
    places = np.nonzero(masked)[1]
    assert set(places % 4) == {0} and places.max() == 96


def test_spaced_runs_begin_at_a_random_phase():
    layer = masking(run_frames=3, gap_frames=4)
    _, masked, _, _ = draw(layer, np.full(200, 101), 103)
    # floor(101 * 0.15 / 3) runs of 3.
    np.testing.assert_array_equal(masked.sum(axis=1), 15)
    phases = set()
    for row in masked:
        starts = np.nonzero(np.diff(row.astype(int), prepend=0) == 1)[0]
        ends = np.nonzero(np.diff(row.astype(int), append=0) == -1)[0]
        np.testing.assert_array_equal(ends - starts, 2)
        assert len({int(start) % 7 for start in starts}) == 1
        assert starts.max() < 101 - 3 - 1
        phases.add(int(starts[0]) % 7)
    assert phases == {0, 1, 2}


def test_s3prl_masks_whole_runs():
    lengths = np.arange(131)
    layer = masking("s3prl")
    for _ in range(5):
        _, masked, _, mask = draw(layer, lengths, 131)
        assert not masked[~mask].any()
        for length, row in zip(lengths, masked, strict=True):
            runs = runs_of(int(length), "s3prl")
            assert row.sum() <= 7 * runs
            edges = np.diff(row.astype(int), prepend=0, append=0)
            starts, ends = np.nonzero(edges == 1)[0], np.nonzero(edges == -1)[0]
            assert (ends - starts >= 7).all() and len(starts) <= runs
            assert len(starts) >= min(runs, 1)
            if runs == 1:
                assert row.sum() == 7
    assert runs_of(23, "s3prl") == 0 and runs_of(24, "s3prl") == 1


@every_policy
def test_each_frame_is_as_likely_as_in_the_authors_loops(policy, rng):
    draws, length = 3000, 53
    _, masked, _, _ = draw(masking(policy), np.full(draws, length), 59)
    expected = np.mean(
        [naive_masks(length, policy, rng) for _ in range(draws)], axis=0
    )
    np.testing.assert_allclose(
        masked.mean(axis=0)[:length], expected, atol=0.05
    )
    # The last real frame is never reached, in either code.
    assert not masked[:, length - 1 :].any()


@every_policy
def test_one_die_for_each_clip(policy):
    """80 % zeros, 10 % other frames, 10 % as they are."""
    lengths = np.resize([53, 47, 31], 3000)
    outputs, masked, x, mask = draw(masking(policy), lengths, 59)
    np.testing.assert_array_equal(outputs[~masked], x[~masked])
    kinds = []
    for clip, length in enumerate(lengths):
        assert masked[clip].any()
        seen, own = outputs[clip][masked[clip]], x[clip][masked[clip]]
        if (seen == 0.0).all():
            kinds.append("zero")
            continue
        assert (seen[:, 0] == clip + 1).all(), "of another clip"
        assert (1 <= seen[:, 1]).all() and (seen[:, 1] <= length).all()
        kinds.append("same" if (seen == own).all() else "other")
    kinds = np.array(kinds)
    # Five standard deviations; a replacement may be by the frame itself.
    assert abs(np.mean(kinds == "zero") - 0.8) < 0.037
    assert abs(np.mean(kinds == "same") - 0.1) < 0.028
    assert abs(np.mean(kinds == "other") - 0.1) < 0.028
    # The die knows nothing of the places.
    for kind in ("zero", "same", "other"):
        share = masked[kinds == kind].mean(axis=0)
        np.testing.assert_allclose(share, masked.mean(axis=0), atol=0.15)


@every_policy
def test_runs_are_replaced_by_runs_from_anywhere(policy):
    size = MASKING_POLICIES[policy]["run_frames"]
    layer = masking(policy, zero_rate=0.0, replace_rate=1.0)
    lengths = np.full(1500, 61)
    outputs, masked, x, _ = draw(layer, lengths, 67)
    used = np.zeros(68)
    for clip in range(len(lengths)):
        frames = outputs[clip, :, 1].astype(int)
        places = np.nonzero(masked[clip])[0]
        np.add.at(used, frames[places], 1)
        if policy == "paper":
            assert len(set(frames[places])) == len(places) == 9
        elif masked[clip].sum() == size:
            assert (np.diff(frames[places]) == 1).all()
    assert used[62:].sum() == used[0] == used[61] == 0
    inner = used[size : 61 - size]
    assert inner.min() > 0.7 * inner.mean() and inner.max() < 1.3 * inner.mean()


def test_overlapping_runs_show_the_later_replacement():
    layer = masking("s3prl", mask_rate=0.9, zero_rate=0.0, replace_rate=1.0)
    outputs, masked, _, _ = draw(layer, np.full(200, 61), 61)
    for clip in range(200):
        frames = outputs[clip, :, 1].astype(int)
        edges = np.diff(masked[clip].astype(int), prepend=0, append=0)
        ends = np.nonzero(edges == -1)[0]
        for end in ends:
            # The last run of a stretch is whole.
            assert (np.diff(frames[end - 7 : end]) == 1).all()


def test_short_clips_of_long_runs():
    layer = masking("s3prl", mask_rate=1.0, zero_rate=0.0, replace_rate=1.0)
    outputs, masked, x, mask = draw(layer, [0, 1, 4, 6, 7, 8], 11)
    assert not masked[~mask].any()
    # round(4 / 7) is 1: the whole clip is one run.
    np.testing.assert_array_equal(masked.sum(axis=1), [0, 0, 4, 6, 7, 7])
    np.testing.assert_array_equal(outputs[:, :, 0] * mask, x[:, :, 0] * mask)
    assert (outputs[..., 1][mask] <= 8).all() and (outputs[..., 1] > 0).all()


@every_policy
def test_masking_is_of_training_unless_a_seed_is_given(policy, rng):
    x = rng.standard_normal((5, 61, 3)).astype("float32")
    layer = masking(policy)
    outputs, masked = layer(x, training=False)
    np.testing.assert_array_equal(outputs, x)
    assert masked.shape == (5, 61) and not np.asarray(masked).any()
    one, two = (np.asarray(layer(x, training=True)[1]) for _ in range(2))
    assert (one != two).any() and one.any() and two.any()
    again = masking(policy)
    np.testing.assert_array_equal(again(x, training=True)[1], one)
    fixed = masking(policy, evaluation_seed=0)
    first, chosen = fixed(x, training=False)
    fixed(x, training=True)
    second, same = fixed(x, training=False)
    np.testing.assert_array_equal(first, second)
    np.testing.assert_array_equal(chosen, same)
    assert np.asarray(chosen).any()
    other = masking(policy, evaluation_seed=1)(x, training=False)[1]
    assert (np.asarray(other) != np.asarray(chosen)).any()


def test_a_mask_says_what_lengths_say():
    x, mask = numbered([61, 31, 8], 61)
    lengths = np.array([61, 31, 8], "int32")
    for one, other in zip(
        masking()(x, mask=mask, training=True),
        masking()(x, lengths=lengths, training=True),
        strict=True,
    ):
        np.testing.assert_array_equal(one, other)
    with pytest.raises(ValueError, match="not by both"):
        masking()(x, mask=mask, lengths=lengths, training=True)


def test_masking_config_is_complete():
    changed = {
        "mask_rate": 0.3,
        "run_frames": 5,
        "gap_frames": None,
        "zero_rate": 0.5,
        "replace_rate": 0.25,
        "evaluation_seed": 11,
        "seed": 13,
    }
    layer = FrameMasking(**changed)
    assert naive.missing_from_config(layer) == []
    again = FrameMasking.from_config(layer.get_config())
    for name, value in changed.items():
        assert again.get_config()[name] == value, name


# === The model ===


def model(masking="paper", dtype=None, masking_kwargs=None, **kwargs):
    backbone = AudioAlbertBackbone(
        num_layers=1,
        num_heads=2,
        key_dim=5,
        hidden_dim=12,
        intermediate_dims=(17,),
        feature_dim=11,
        initializer_range=0.2,
        dtype=dtype,
    )
    return tiny.eager(
        MaskedAcousticModel(
            backbone,
            masking=masking,
            masking_kwargs={"seed": 5, **(masking_kwargs or {})},
            **kwargs,
        )
    )


def clips(rng, batch=5, frames=61, dim=11):
    return rng.standard_normal((batch, frames, dim)).astype("float32")


LENGTHS = np.array([61, 59, 31, 8, 3], "int32")


@pytest.mark.parametrize("wrong", ["", 0, "float23"])
def test_a_head_has_a_dtype_that_there_is(wrong):
    with pytest.raises(ValueError, match="dtype|DType"):
        model(head_dtype=wrong)


@pytest.mark.costly
@pytest.mark.parametrize("policy", [None, "mixed_bfloat16"])
def test_an_int8_model_loads_again(policy, rng, tmp_path):
    net, x = model(head_dtype=policy), clips(rng)
    net.quantize("int8")
    expected, path = net.reconstruct(x)["reconstruction"], tmp_path / "m.keras"
    for _ in range(2):
        net.save(path)
        net = keras.saving.load_model(path)
        assert net.get_layer("head_dense").quantization_mode == "int8"
        assert net.get_layer("head_norm").compute_dtype == (
            "bfloat16" if policy else "float32"
        )
        np.testing.assert_array_equal(
            net.reconstruct(x)["reconstruction"], expected
        )


def test_head_has_the_counts_of_the_authors_code():
    for feature_dim, target_dim, count in (
        (480, 3075, 2_956_803),
        (80, None, 653_648),
    ):
        backbone = AudioAlbertBackbone(num_layers=1, feature_dim=feature_dim)
        whole = MaskedAcousticModel(backbone, target_dim=target_dim)
        assert whole.count_params() - backbone.count_params() == count
        kernel = np.asarray(whole.get_layer("head_dense").kernel)
        assert 0.0195 < kernel.std() < 0.0205
        assert whole.get_layer("head_norm").epsilon == 1e-12


@every_policy
def test_loss_is_l1_of_masked_real_frames(policy, rng):
    net, x = model(policy), clips(rng)
    inputs = {"features": x.copy(), "lengths": LENGTHS}
    shown = net.reconstruct(inputs)
    masked = shown["masked_frames"]
    real = np.arange(61) < LENGTHS[:, None]
    np.testing.assert_array_equal(shown["frame_mask"], real)
    assert masked.any() and not masked[~real].any()
    differences = [
        abs(float(x[b, t, f]) - float(shown["reconstruction"][b, t, f]))
        for b, t in zip(*np.nonzero(masked), strict=True)
        for f in range(11)
    ]
    loss = net.evaluate(inputs, batch_size=5, verbose=0)
    assert loss == pytest.approx(np.mean(differences), rel=1e-5)
    inputs["features"][~real] = 1e6
    again = net.evaluate(inputs, batch_size=5, verbose=0)
    assert again == pytest.approx(loss, rel=1e-5)


def test_the_backbone_sees_the_masked_features_alone(rng):
    net, x = (
        model(masking_kwargs={"zero_rate": 1.0, "replace_rate": 0.0}),
        clips(rng),
    )
    shown = net.reconstruct({"features": x, "lengths": LENGTHS})
    hidden = x.copy()
    hidden[shown["masked_frames"]] = 0.0
    np.testing.assert_array_equal(shown["masked_features"], hidden)
    y = net.backbone({"features": hidden, "lengths": LENGTHS})
    y = np.asarray(y["sequence_output"], "float64")
    into, norm, out = ([np.asarray(w) for w in e.weights] for e in net.head)
    y = y @ into[0] + into[1]
    y = 0.5 * y * (1.0 + np.vectorize(math.erf)(y / math.sqrt(2.0)))
    y = y - y.mean(axis=-1, keepdims=True)
    y = y / np.sqrt((y**2).mean(axis=-1, keepdims=True) + 1e-12)
    y = (y * norm[0] + norm[1]) @ out[0] + out[1]
    real = shown["frame_mask"]
    np.testing.assert_allclose(
        shown["reconstruction"][real], y[real], atol=1e-5
    )
    # What is hidden is not there to be copied.
    x[shown["masked_frames"]] += 1.0
    other = net.reconstruct({"features": x, "lengths": LENGTHS})
    np.testing.assert_allclose(
        other["reconstruction"][real], shown["reconstruction"][real], atol=1e-5
    )


def test_targets_of_their_own(rng):
    net, x, y = model(target_dim=13), clips(rng), clips(rng, dim=13)
    shown = net.reconstruct(x)
    expected = np.abs(y - shown["reconstruction"])[
        shown["masked_frames"]
    ].mean()
    loss = net.evaluate(x, y, verbose=0)
    assert loss == pytest.approx(expected, rel=1e-5)
    with pytest.raises(ValueError, match="11 features, target_dim=13"):
        net.evaluate(x, verbose=0)
    # They would be repeated over all frames, or over all clips.
    for other in (y[:, :1], y[:, 0]):
        with pytest.raises(ValueError, match="have the frames of the feat"):
            net.evaluate(x, other, verbose=0)


def test_what_cannot_be_trained_on_is_refused(rng):
    net, x = model(), clips(rng)
    net.compile("sgd", "mse", run_eagerly=True)
    with pytest.raises(ValueError, match="takes no loss.*'mse'"):
        net.fit(x, x, verbose=0)
    for call in (net.fit, net.train_on_batch):
        with pytest.raises(ValueError, match=r"`sample_weight`.*\{0: 2.0\}"):
            call(x, class_weight={0: 2.0})
    for name in ("metrics", "weighted_metrics"):
        net.compile("sgd", **{name: {"reconstruction": "mae"}})
        for call in (net.fit, net.evaluate, net.test_on_batch):
            with pytest.raises(ValueError, match=rf"no metr.*{name}=\{{'recon"):
                call(x)
    for wrong in (0, -3, 2.5):
        with pytest.raises(ValueError, match="`target_dim` must be"):
            MaskedAcousticModel(net.backbone, target_dim=wrong)
    with pytest.raises(ValueError, match="needs a backbone of features.*wave"):
        MaskedAcousticModel(tiny.backbone())
    with pytest.raises(ValueError, match="SpeechEncoder needs a backbone of"):
        SpeechEncoder(tiny.backbone(), SpeechFeatures("s3prl"))


@pytest.mark.costly
def test_weights_of_clips(rng):
    net, x = tiny.eager(model()), clips(rng)
    shown = net.reconstruct(x)
    weights = np.array([0.0, 1.0, 2.0, 0.0, 0.5], "float32")
    frames = np.abs(x - shown["reconstruction"]).mean(axis=2)
    counts = shown["masked_frames"] * weights[:, None]
    expected = pytest.approx((frames * counts).sum() / counts.sum(), rel=1e-5)
    assert net.evaluate(x, x, sample_weight=weights, verbose=0) == expected
    # Keras hands no weights on where there are no targets.
    for inputs in (x, {"features": x, "lengths": np.full(len(x), 61)}):
        given = {"x": inputs, "sample_weight": weights}
        assert net.evaluate(**given, verbose=0) == expected
        assert net.test_on_batch(**given) == expected
    net.compile(keras.optimizers.SGD(0.0), run_eagerly=True)
    history = net.fit(
        x,
        sample_weight=0.0 * weights,
        validation_data=(x, None, weights),
        verbose=0,
    ).history
    assert history == {"loss": [0.0], "val_loss": [expected]}
    with pytest.raises(ValueError, match=r"one weight for each.*\(5, 61\)"):
        net.fit(x, sample_weight=np.ones((5, 61)), verbose=0)


def test_nothing_to_mask_is_no_loss(rng):
    net, x = tiny.eager(model()), clips(rng, frames=5)
    before = net.get_weights()
    assert net.fit(x, verbose=0).history["loss"] == [0.0]
    for one, two in zip(before, net.get_weights(), strict=True):
        np.testing.assert_array_equal(one, two)


def test_padding_of_nan_trains_the_same(rng):
    """Forward, loss and gradients see the real frames alone."""
    x, lengths = clips(rng), np.array([41, 29, 17, 23, 11], "int32")
    x = x[:, :41]
    lengths = np.minimum(lengths, x.shape[1])
    padding = np.arange(x.shape[1]) >= lengths[:, None]
    start, weights = model().get_weights(), []
    for filling in (0.0, np.nan):
        x[padding] = filling
        net = model()
        net.set_weights(start)
        net.compile(keras.optimizers.SGD(0.1), run_eagerly=True)
        # Masks are drawn by the place of a clip in its batch.
        net.fit({"features": x, "lengths": lengths}, shuffle=False, verbose=0)
        weights.append(net.get_weights())
    for one, two in zip(*weights, strict=True):
        np.testing.assert_allclose(one, two, atol=1e-5)


@every_policy
def test_fit_takes_a_step_down_the_slope_of_its_loss(policy, rng):
    """What a small step gains is its length; one policy in a graph.

    A step of `rate` times the gradient `g` changes the loss by
    `rate * |g|^2`, which is `|step|^2 / rate`, but for the curvature. The
    masks of training are those of the other network, of the same seed.
    """
    rate, x = 1e-3, clips(rng)
    net, other = (model(policy) for _ in range(2))
    other.set_weights(net.get_weights())
    net.compile(keras.optimizers.SGD(rate), run_eagerly=policy == "paper")
    history = net.fit(
        x, batch_size=5, shuffle=False, validation_data=(x,), verbose=0
    ).history
    outputs = other(x, training=True)
    masked = np.asarray(outputs["masked_frames"])
    assert masked.any()
    start = other.get_weights()
    hidden = np.asarray(outputs["masked_features"])

    def loss():
        """Of the frames that training hid, with the weights at hand."""
        y = other.backbone(hidden)["sequence_output"]
        for layer in other.head:
            y = layer(y)
        return np.abs(np.asarray(y, "float64") - x)[masked].mean()

    before = loss()
    assert history["loss"] == [pytest.approx(before, rel=1e-4)]
    other.set_weights(net.get_weights())
    steps = [w - s for w, s in zip(net.get_weights(), start, strict=True)]
    gain = sum((step.astype("float64") ** 2).sum() for step in steps) / rate
    assert before - loss() == pytest.approx(gain, rel=0.1)
    # Validation draws the same masks again.
    assert net.evaluate(x, batch_size=5, verbose=0) == pytest.approx(
        history["val_loss"][0], rel=1e-5
    )


@pytest.mark.long
def test_training_is_reproducible_and_masks_anew(rng):
    """Equal seeds end alike; the state of the draws moves in `fit` alone."""
    weights, x = [], clips(rng, batch=16, frames=41)
    for _ in range(2):
        keras.utils.set_random_seed(11)
        net = model()
        net.fit(x, batch_size=8, shuffle=False, verbose=0)
        weights.append(net.get_weights())
    for one, two in zip(*weights, strict=True):
        np.testing.assert_allclose(one, two, atol=1e-6)
    state = net.get_layer("masking").seed_generator.state
    before = np.asarray(state).copy()
    net.fit(x, batch_size=8, verbose=0)
    after = np.asarray(state).copy()
    assert (before != after).any()
    net.evaluate(x, verbose=0)
    np.testing.assert_array_equal(state, after)
    one, two = (net(x, training=True)["masked_frames"] for _ in range(2))
    assert (np.asarray(one) != np.asarray(two)).any()


@pytest.mark.costly
def test_file_round_trip_goes_on_training(rng, tmp_path):
    net, x = model("s3prl", target_dim=11), clips(rng)
    net.compile(keras.optimizers.Adam(1e-3), run_eagerly=True)
    net.fit(x, verbose=0)
    net.save(tmp_path / "model.keras")
    loaded = tiny.eager(keras.saving.load_model(tmp_path / "model.keras"))
    assert loaded.get_config() == net.get_config()
    assert int(loaded.optimizer.iterations) == 1
    expected, shown = net.reconstruct(x), loaded.reconstruct(x)
    for name, value in expected.items():
        np.testing.assert_array_equal(shown[name], value, name)
    loaded.fit(x, verbose=0)
    loaded.backbone.save_to_preset(str(tmp_path / "preset"))
    again = AudioAlbertBackbone.from_preset(str(tmp_path / "preset"))
    np.testing.assert_array_equal(
        again(x)["sequence_output"], loaded.backbone(x)["sequence_output"]
    )


def test_model_config_is_complete():
    net = model("s3prl", target_dim=13, name="pretraining")
    # Keras itself stores how a model is compiled.
    assert naive.missing_from_config(net) == ["compile"]
    config = json.loads(json.dumps(net.get_config()))
    assert (config["masking"], config["target_dim"]) == ("s3prl", 13)
    again = MaskedAcousticModel.from_config(config)
    assert json.loads(json.dumps(again.get_config())) == config
    net.backbone.trainable = False
    again = MaskedAcousticModel.from_config(net.get_config())
    assert len(again.trainable_weights) == len(net.trainable_weights) == 6
    layer = again.get_layer("masking")
    assert (layer.run_frames, layer.seed, layer.evaluation_seed) == (7, 5, 0)


def test_mixed_precision(rng):
    dtype = "mixed_float16"
    net, x = tiny.eager(model("s3prl", dtype=dtype)), clips(rng)
    full = tiny.eager(model("s3prl"))
    net.set_weights(full.get_weights())
    assert net.get_layer("head_dense").compute_dtype == dtype[6:]
    inputs = {"features": x, "lengths": LENGTHS}
    losses = [each.evaluate(inputs, verbose=0) for each in (net, full)]
    assert losses[0] == pytest.approx(losses[1], rel=0.02)
    history = net.fit(inputs, verbose=0).history
    assert np.isfinite(history["loss"]).all()
    assert all(np.isfinite(w).all() for w in net.get_weights())


@pytest.mark.costly
def test_half_precision_of_the_backbone_scales_the_loss(rng, tmp_path):
    """The global policy stays as it is: the backbone alone says float16."""
    net, inputs = model(dtype="mixed_float16"), {"features": clips(rng)}
    assert net.dtype_policy.name == "mixed_float16"
    # As the constructor compiles it; an L1 of the papers' batches has slopes
    # of 1e-8, which float16 does not have.
    for each in (net, MaskedAcousticModel.from_config(net.get_config())):
        assert isinstance(each.optimizer, keras.optimizers.LossScaleOptimizer)
    net.fit(inputs, verbose=0)
    net.save(tmp_path / "net.keras")
    again = keras.saving.load_model(tmp_path / "net.keras")
    for one, two in zip(
        again.optimizer.variables, net.optimizer.variables, strict=True
    ):
        np.testing.assert_array_equal(
            keras.ops.convert_to_numpy(one), keras.ops.convert_to_numpy(two)
        )
    assert int(again.optimizer.iterations) == 1


@every_policy
def test_time_is_dynamic_in_a_graph(policy, rng):
    tf = pytest.importorskip("tensorflow")
    if keras.backend.backend() != "tensorflow":
        pytest.skip("graphs are TensorFlow's")
    net = model(policy)

    @tf.function(input_signature=[tf.TensorSpec((None, None, 11))])
    def graph(features):
        return net(features, training=False)

    for batch, frames in ((3, 61), (2, 37), (1, 1)):
        x = clips(rng, batch, frames)
        outputs, expected = graph(x), net.reconstruct(x)
        for name, value in expected.items():
            np.testing.assert_allclose(outputs[name], value, atol=1e-5)


@pytest.mark.costly
def test_pictures_show_what_is_filled_in(rng, tmp_path, monkeypatch):
    tf = pytest.importorskip("tensorflow")
    pytest.importorskip("matplotlib")
    from readable import check_labelled, check_legends_apart

    from audio_tf.analysis import figures
    from audio_tf.runs import reconstruction

    net, x = model(), clips(rng, dim=11)
    inputs = {"features": x, "lengths": LENGTHS}
    shown = net.reconstruct(inputs)
    drawn = reconstruction.draw_clips(x, shown, 0.25)
    assert len(drawn) == 5
    figure = drawn[2]
    check_labelled(figure)
    check_legends_apart(figure)
    real = shown["frame_mask"][2]
    panels = [panel for panel in figure.axes if panel.get_images()]
    for panel, values in zip(
        panels,
        (x, shown["masked_features"], shown["reconstruction"]),
        strict=True,
    ):
        (image,) = panel.get_images()
        # Without the padding, and one scale for all.
        np.testing.assert_allclose(image.get_array(), values[2, real].T)
        assert image.get_extent() == [0.0, 0.25 * real.sum(), 0, 11]
        assert image.origin == "lower"
        low, high = np.percentile(x[2, real], (1, 99))
        np.testing.assert_allclose(image.get_clim(), (low, high), rtol=1e-5)
    assert panels[-1].get_xlabel() == "time (s)"
    (strips,) = panels[0].collections
    covered = np.zeros(real.sum(), bool)
    for path in strips.get_paths():
        begin, end = path.vertices[:, 0].min(), path.vertices[:, 0].max()
        covered[round(begin / 0.25) : round(end / 0.25)] = True
    np.testing.assert_array_equal(covered, shown["masked_frames"][2, real])

    half = {**shown, "masked_features": x[..., :10]}
    half["reconstruction"] = x[..., :8]
    one = {name: values[:1] for name, values in half.items()}
    stacked = reconstruction.draw_clips(
        x[:1, :, :10], one, 0.25, 2, x[:1, :, 2:10]
    )
    titles = [p.get_title() for p in stacked[0].axes if p.get_images()]
    assert titles[2] == "target" and len(titles) == 4
    shapes = [
        panel.get_images()[0].get_array().shape
        for panel in stacked[0].axes
        if panel.get_images()
    ]
    spectra = 2 * shown["frame_mask"][0].sum()
    assert shapes == [(5, spectra)] * 2 + [(4, spectra)] * 2

    # What is drawn is seen above; a layout takes a second.
    monkeypatch.setattr(
        reconstruction, "draw_clips", lambda *_: [figures.new_figure(1, 1)] * 5
    )
    file = tmp_path / "reconstruction.png"
    pictures = reconstruction.ReconstructionPictures(
        inputs, tmp_path / "logs", file, 0.25, 2
    )
    tiny.eager(net).fit(inputs, epochs=5, callbacks=[pictures], verbose=0)
    assert file.read_bytes().startswith(b"\x89PNG")
    steps = []
    for events in (tmp_path / "logs").iterdir():
        for record in tf.data.TFRecordDataset(str(events)):
            event = tf.compat.v1.Event.FromString(record.numpy())
            for value in event.summary.value:
                steps.append(event.step)
                assert value.tag == "reconstruction"
                # Width, height and one picture for each clip.
                assert len(value.tensor.string_val) == 2 + 5
    # The last of all, too, whose weights are kept.
    assert steps == [1, 3, 4]


@pytest.mark.parametrize(
    "call, message",
    [
        (lambda: model("none"), "masking='none'"),
        (lambda: model(compile="no"), "`compile` must be True"),
        (lambda: FrameMasking(mask_rate=1.5), "mask_rate=1.5"),
        (lambda: FrameMasking(zero_rate=0.95), "zero_rate=0.95"),
        (lambda: FrameMasking(run_frames=0), "run_frames=0"),
        (lambda: FrameMasking(gap_frames=-1), "gap_frames=-1"),
        (lambda: model()({"audio": np.zeros((1, 9))}), "audio"),
    ],
)
def test_mistakes_are_named(call, message):
    with pytest.raises(ValueError, match=message):
        call()


def test_unknown_arguments_are_named():
    with pytest.raises(TypeError, match="did you mean 'masking'"):
        MaskedAcousticModel(model().backbone, maskin="paper")
