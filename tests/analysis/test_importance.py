"""The Importance Factor, and its pictures."""

import numpy as np
import pytest

pytest.importorskip("matplotlib")

from audio_tf import analysis, models


@pytest.fixture(scope="module")
def decoder():
    made = models.GaussianAdaptiveDecoder(
        6, 5, num_classes=2, filters=1, compile=False
    )
    rng = np.random.default_rng(1)
    for weight in made.attention_layer.weights:
        weight.assign(np.asarray(weight) + rng.uniform(-0.5, 0.5, weight.shape))
    return made


def naive_map(decoder, clips):
    """Equations 6 to 9 by loops, over two heads of three layers."""
    layer = decoder.attention_layer
    variance, offset = (np.asarray(w) for w in layer.weights)
    total = np.zeros(clips.shape[1:])
    for clip in clips.astype("float64"):
        for place in range(6):
            head = place // 3
            part = clip[3 * head : 3 * head + 3]
            for feature in range(5):
                x = part[:, feature]
                psi = x.mean() + offset[head, feature]
                y = (clip[place, feature] - psi) ** 2 / (x.var() + 1e-5)
                total[place, feature] += np.exp(
                    -y / (2 * variance[head, feature])
                )
    return total / len(clips)


def test_it_is_the_scaled_mean_of_maps(decoder, rng):
    clips = rng.standard_normal((7, 6, 5)).astype("float32")
    expected = naive_map(decoder, clips)
    found = analysis.mean_map(decoder, clips, batch_size=3)
    np.testing.assert_allclose(found, expected, atol=1e-5)
    importance = analysis.importance_factor(decoder, clips)
    span = expected.max() - expected.min()
    np.testing.assert_allclose(
        importance, (expected - expected.min()) / span, atol=1e-4
    )
    assert importance.min() == 0.0 and importance.max() == 1.0
    shares = analysis.contributions(found)
    np.testing.assert_allclose(
        shares, [100 * row.sum() / found.sum() for row in found]
    )
    np.testing.assert_array_equal(
        analysis.mean_map(decoder, clips.tolist(), batch_size=3), found
    )
    with pytest.raises(ValueError, match="needs clips"):
        analysis.mean_map(decoder, clips[:0])
    clips[4, 2, 1] = np.nan
    with pytest.raises(ValueError, match="finite numbers.*[Cc]lip 4"):
        analysis.importance_factor(decoder, clips)


def test_equal_weights_have_no_importance():
    single = models.GaussianAdaptiveDecoder(
        1, 4, num_classes=2, filters=1, compile=False
    )
    clips = np.ones((2, 1, 4), "float32")
    assert (analysis.importance_factor(single, clips) == 0.0).all()


def test_layers_are_selected_by_their_mean():
    means = np.array([0.2, 0.9, 0.1, 0.9, 0.4])
    importance = means[:, None] + np.array([[-0.1, 0.1]])
    assert analysis.select_layers(importance) == {"high": [1], "low": [2]}
    assert analysis.select_layers(importance, 2) == {
        "high": [1, 3],
        "low": [0, 2],
    }
    with pytest.raises(ValueError, match="3 high .*Received: 5 layers"):
        analysis.select_layers(importance, 3)


def test_pictures_show_every_layer(rng, tmp_path):
    layers = [0, 2, 5]
    values = rng.random((3, 4))
    drawn = analysis.draw_importance(values, layers, "$if_$")
    (panel, _) = drawn.axes
    (image,) = panel.images
    np.testing.assert_array_equal(image.get_array(), values)
    assert image.get_clim() == (0.0, 1.0)
    names = [label.get_text() for label in panel.get_yticklabels()]
    assert names == ["0", "2", "5"]
    shares = np.array([30.0, 30.5, 39.5])
    drawn = analysis.draw_contributions(shares, layers, "shares")
    curve, even = drawn.axes[0].lines
    np.testing.assert_allclose(curve.get_ydata(), shares)
    np.testing.assert_allclose(even.get_ydata(), 100 / 3)
    analysis.figures.save(drawn, tmp_path / "shares.png")
    assert (tmp_path / "shares.png").stat().st_size > 1_000
