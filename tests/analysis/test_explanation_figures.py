"""Pictures of explanations: what long clips have is all in them."""

import numpy as np
import pytest

from audio_tf.analysis import explanation_figures

pytest.importorskip("matplotlib")

RATE_HZ = 1_000


def explained(weights, seconds):
    """Returns what `AudioClassifier.explain` would, with some weights."""
    patches, bands = weights.shape
    return {
        "file": "a.wav",
        "label": "dog",
        "score": 0.9,
        "silence_score": 0.1,
        "method": "occlusion",
        "weights": weights,
        "time_s": np.linspace(0, seconds, patches + 1),
        "frequency_hz": np.linspace(0, RATE_HZ / 2, bands + 1),
    }


@pytest.mark.parametrize("seconds, patches", [(3, 29), (700, 6_997)])
def test_every_patch_and_every_sound_is_in_the_picture(seconds, patches, rng):
    most = 2 * explanation_figures.COLUMNS
    weights = rng.normal(size=(patches, 3))
    samples = np.zeros(seconds * RATE_HZ)
    at = np.arange(RATE_HZ // 2, len(samples), RATE_HZ)  # A click a second.
    samples[at] = 1.0
    figure = explanation_figures.draw_explanation(
        explained(weights, seconds), samples, RATE_HZ
    )
    sound, _, plane, _, below, _, bar = figure.axes
    (mesh,) = plane.collections
    drawn = np.asarray(mesh.get_array()).reshape(3, -1)
    assert drawn.shape[1] < most
    assert drawn.shape[1] == patches or patches > most / 2
    np.testing.assert_allclose(drawn.sum(axis=1), weights.sum(axis=0))
    edges = mesh.get_coordinates()[0, :, 0]
    assert (edges[0], edges[-1]) == (0.0, seconds)
    # A column has the patches that lie within its edges.
    starts = np.searchsorted(np.linspace(0, seconds, patches + 1), edges[:-1])
    np.testing.assert_allclose(drawn.T, np.add.reduceat(weights, starts))
    heights = [each.get_height() for each in below.patches]
    np.testing.assert_allclose(heights, drawn.sum(axis=0))
    count = -(-patches // drawn.shape[1])
    assert bar.get_ylabel() == (
        "weight of a patch" if count == 1 else f"weight of {count} patches"
    )

    (image,) = sound.images
    level_db = np.asarray(image.get_array())
    columns = level_db.shape[1]
    assert columns < most
    found = (at / RATE_HZ / image.get_extent()[1] * columns).astype(int)
    near = np.clip(found[:, None] + [-1, 0, 1], 0, columns - 1)
    assert np.all(level_db[:, near].max(axis=(0, 2)) > -3.0)


def test_long_names_do_not_hide_the_score(rng):
    found = explained(rng.normal(size=(3, 2)), 1)
    found["file"] = f"{'a long folder/' * 20}which\nclip.wav"
    found["label"] = "of a taxonomy, whose names have commas, " * 9
    figure = explanation_figures.draw_explanation(found)
    figure.draw_without_rendering()
    (title,) = figure.texts
    box = title.get_window_extent()
    assert 0.0 < box.x0 < box.x1 < figure.bbox.width
    path, label = title.get_text().splitlines()
    assert path.startswith("...") and path.endswith("/which\\nclip.wav")
    assert label.startswith("of a taxonomy, whose")
    assert label.endswith(": score 0.900, silence 0.100")
