"""Attention maps against naive ones, their kinds, projection and figures."""

import ast
import importlib.util
import json
import math
import pathlib
import sys
import weakref

import keras
import naive
import numpy as np
import pytest
import soundfile
import tiny

if keras.backend.backend() != "tensorflow":
    pytest.skip("audio is read through tf.data", allow_module_level=True)

from sklearn.decomposition import PCA

from audio_tf import analysis, cli
from audio_tf.analysis import (
    checkpoints,
    figures,
    inspection,
    maps,
)
from audio_tf.analysis import clips as clips_of
from audio_tf.attention import patterns
from audio_tf.audio import load_audio
from audio_tf.layers import SpeechFeatures
from audio_tf.models import (
    AudioAlbertBackbone,
    AudioClassifier,
    MaskedAcousticModel,
    SpeechEncoder,
)
from audio_tf.ops.weights import weights_sha256

ANALYSIS = pathlib.Path(analysis.__file__).parent
RATE_HZ = 8_000

needs_matplotlib = pytest.mark.skipif(
    importlib.util.find_spec("matplotlib") is None,
    reason="FIGURES ARE NOT TESTED",
)


def imread(path):
    from matplotlib.image import imread

    return imread(path)


def albert(**kwargs):
    """A small encoder whose weights are large enough to look at frames."""
    return AudioAlbertBackbone(
        **{
            "num_layers": 3,
            "num_heads": 2,
            "key_dim": 5,
            "hidden_dim": 14,
            "intermediate_dims": (11,),
            "feature_dim": 80,
            "initializer_range": 0.4,
            **kwargs,
        }
    )


def speech_encoder(**kwargs):
    return SpeechEncoder(
        albert(**kwargs), SpeechFeatures("s3prl", sample_rate_hz=RATE_HZ)
    )


@pytest.fixture(scope="module")
def encoder():
    """A speech encoder that no test changes."""
    return speech_encoder()


@pytest.fixture(scope="module")
def pooled():
    """A model of three sizes of maps that no test changes."""
    return tiny.backbone(num_layers=3, pool_every=1, key_dim=6)


def noise(rng, clips, samples):
    return rng.uniform(-0.5, 0.5, (clips, samples)).astype("float32")


# === Maps ===


@pytest.mark.parametrize("share_layers", [True, False])
def test_maps_are_of_what_each_layer_is_given(share_layers, rng, encoder):
    model = encoder if share_layers else speech_encoder(share_layers=False)
    waveforms = noise(rng, 2, 1_000)
    found = analysis.attention_maps(model, waveforms)

    x = model.features(waveforms)
    for layer in model.encoder.embedding:
        x = layer(x)
    x = np.asarray(x, "float64")
    erf = np.vectorize(math.erf)
    assert len(found) == 3
    for layer, block in enumerate(model.encoder.blocks):
        attended, expected = naive.full_attention(block.attention, x)
        assert found[layer].shape == (2, 2, 13, 13)
        np.testing.assert_allclose(found[layer], expected, atol=2e-5)
        x = naive.layer_norm(x + attended, 1e-12)
        y = naive.dense(block.feed_forward.hidden[0], x)
        y = 0.5 * y * (1.0 + erf(y / math.sqrt(2.0)))
        y = naive.dense(block.feed_forward.output_dense, y)
        x = naive.layer_norm(x + y, 1e-12)
    # The same weights see something else in each layer.
    assert np.abs(found[0] - found[1]).max() > 0.01


@pytest.mark.costly
def test_a_tables_map_is_its_slice(rng):
    model = speech_encoder(
        num_heads=8,
        attention="crafted_synthesizer",
        attention_kwargs={"max_length": 19},
    )
    table = model.encoder.blocks[0].attention.table
    table.assign(rng.standard_normal(table.shape))
    table = np.asarray(table, "float64")
    (one, *others) = analysis.attention_maps(model, noise(rng, 3, 1_000))
    for head in range(8):
        # The decreasing head counts from the end.
        start = 6 if head == 6 else 0
        rows = table[head, start : start + 13, start : start + 13]
        expected = np.stack([naive.softmax(row) for row in rows])
        np.testing.assert_allclose(
            one[:, head], np.stack([expected] * 3), atol=1e-6
        )
    np.testing.assert_allclose(others[1], one, atol=1e-6)


def test_maps_between_pooling_are_causal_and_of_several_sizes(rng, pooled):
    model = pooled
    waveforms = noise(rng, 2, 11 * 13)
    found = analysis.attention_maps(model, waveforms)
    assert [layer.shape[2:] for layer in found] == [(13, 13), (7, 7), (4, 4)]
    for layer in found:
        np.testing.assert_allclose(layer.sum(axis=-1), 1.0, atol=1e-5)
        assert not np.triu(layer, 1).any()
    part = keras.Model(model.input, model.get_layer("positions").output)
    x = part({"waveform": waveforms, "lengths": np.array([143, 143])})
    attention = model.get_layer("block_0").attention
    _, expected = naive.full_attention(attention, np.asarray(x, "float64"))
    np.testing.assert_allclose(found[0], expected, atol=2e-5)


@pytest.mark.parametrize("kind", ["speech", "waveform"])
def test_a_padded_clip_has_the_maps_that_it_has_alone(kind, rng, encoder):
    if kind == "speech":
        model, size, short, frames = encoder, 1_400, 1_000, 13
    else:
        model = tiny.backbone(num_layers=2, causal=False)
        size, short, frames = 11 * 17, 11 * 13, 13
    waveforms = noise(rng, 3, size)
    waveforms[1, short:] = 0.0
    lengths = [size, short, size]
    together = analysis.attention_maps(model, waveforms, lengths, batch_size=2)
    alone = analysis.attention_maps(model, waveforms[1:2, :short])
    for layer, expected in zip(together, alone, strict=True):
        assert len(layer) == 3
        found = layer[1]
        np.testing.assert_allclose(
            found[:, :frames, :frames], expected[0], atol=2e-5
        )
        assert not found[:, frames:].any() and not found[:, :, frames:].any()
        assert (layer[0].sum(axis=-1) > 0.99).all()


def test_maps_of_a_classifier_are_its_backbones(rng, pooled):
    waveforms = noise(rng, 2, 143)
    classifier = AudioClassifier(pooled, num_classes=3)
    for found, expected in zip(
        analysis.attention_maps(classifier, waveforms),
        analysis.attention_maps(pooled, waveforms),
        strict=True,
    ):
        np.testing.assert_array_equal(found, expected)
    assert maps.map_shapes(classifier, 143) == maps.map_shapes(pooled, 143)


@pytest.mark.parametrize("samples", [1_000, 1_043])
def test_shapes_of_maps_are_known_before_them(samples, encoder, pooled):
    for model in (encoder, pooled):
        found = analysis.attention_maps(model, np.zeros((1, samples)))
        assert maps.map_shapes(model, samples) == [
            layer.shape[1:] for layer in found
        ]


def test_clips_that_have_no_maps_are_named(rng):
    model = tiny.backbone()
    clips = noise(rng, 3, 400)
    pcm = (clips * 32_767).astype("int16")
    lengths = np.array([400, 300, 200, 100], "int32")
    for arguments, message in (
        ((pcm,), "integer samples have to be divided by their full scale"),
        ((clips[0],), r"must be of shape \(batch, samples\)"),
        ((clips[:0],), r"must have a clip at least. Received: shape=\(0, 400"),
        ((clips, lengths), "Received: 4 lengths, 3 clips"),
        ((clips, lengths[:3] / 2), "`lengths` must be integers"),
        ((clips, 300), "Received: 1 lengths, 3 clips"),
        ((clips, lengths[:3], -2), "batch_size=-2"),
        ((clips, None, 0), "batch_size=0"),
    ):
        with pytest.raises(ValueError, match=message):
            analysis.attention_maps(model, *arguments)


def test_a_map_over_features_is_refused(rng):
    model = tiny.backbone(attention="gaussian_adaptive")
    with pytest.raises(ValueError, match="'gaussian_adaptive' weights feat"):
        analysis.attention_maps(model, noise(rng, 1, 143))


# === Kinds ===


def rows(values, frames=40):
    return np.tile(values, (frames, 1)) / np.sum(values)


def normalised(weights):
    return weights / weights.sum(axis=1, keepdims=True)


def blurred(frames, offset, width):
    distance = np.arange(frames) - np.arange(frames)[:, None] - offset
    return normalised(np.exp(-0.5 * np.square(distance / width)))


def stripes(frames, slope):
    """Stripes that differ, in random places, with a trend."""
    rng = np.random.default_rng(5)
    height = np.exp(rng.standard_normal(frames))
    height *= np.exp(slope * np.linspace(-1.0, 1.0, frames))
    return normalised(height * rng.uniform(0.5, 1.5, (frames, frames)))


RANDOM = np.random.default_rng(1)
CASES = {
    "identity": (np.eye(40), "diagonal", False),
    "wide diagonal": (blurred(100, 0, 4.0), "diagonal", False),
    "far shift": (blurred(100, -20, 1.0), "diagonal", False),
    "diagonal on a uniform ground": (
        0.4 * np.eye(40) + 0.6 / 40,
        "diagonal",
        False,
    ),
    "linear": (rows(np.arange(1.0, 41.0)), "increasing", False),
    "linear, down": (rows(np.arange(40.0, 0.0, -1.0)), "decreasing", False),
    "stripes": (stripes(100, 1.5), "increasing", False),
    "stripes, down": (stripes(100, -1.5), "decreasing", False),
    "stripes without a trend": (stripes(100, 0.0), "sparse", False),
    "one stripe": (rows(np.eye(40)[-1]), "sparse", False),
    "two late stripes over a rising ground": (
        rows(np.eye(40)[[-4, -9]].sum(axis=0) + np.linspace(0, 1e-3, 40)),
        "sparse",
        False,
    ),
    "a little trend": (rows(np.linspace(0.9, 1.1, 40)), "sparse", True),
    "permutation": (np.eye(100)[RANDOM.permutation(100)], "sparse", False),
    "few keys": (
        normalised(RANDOM.uniform(size=(100, 100)) ** 40),
        "sparse",
        False,
    ),
    "anti-diagonal": (np.eye(40)[::-1], "sparse", False),
    "uniform": (np.full((40, 40), 1 / 40), "sparse", True),
}


@pytest.mark.parametrize("case", CASES)
def test_kinds_of_maps_made_by_hand(case):
    weights, kind, uniform = CASES[case]
    found = analysis.sort_map(weights)
    assert (found.kind, found.uniform) == (kind, uniform), found
    mirrored = analysis.sort_map(weights[::-1, ::-1])
    other = {"increasing": "decreasing", "decreasing": "increasing"}
    assert mirrored.kind == other.get(kind, kind), mirrored
    assert mirrored.tilt == pytest.approx(-found.tilt, abs=1e-9)


@pytest.mark.parametrize("frames", [13, 52, 311])
@pytest.mark.parametrize("pattern_logits", ["log", "scaled"])
def test_the_crafted_heads_are_sorted_as_the_paper_names_them(
    pattern_logits, frames, rng
):
    logits = list(patterns.logits("crafted", pattern_logits, frames))
    logits += list(0.02 * rng.standard_normal((5, frames, frames)))
    found = [
        analysis.sort_map(np.stack([naive.softmax(row) for row in one]))
        for one in logits
    ]
    assert [one.kind for one in found] == (
        ["diagonal"] * 5 + ["increasing", "decreasing"] + ["sparse"] * 5
    )
    assert [one.offset for one in found[:5]] == [0, -1, -2, 1, 2]
    assert [one.uniform for one in found] == [False] * 7 + [True] * 5


def test_the_figures_behind_a_kind():
    frames = 40
    identity = analysis.sort_map(np.eye(frames))
    assert identity.diagonal == pytest.approx(1.0)
    assert identity.distance == pytest.approx(1.0 - 1.0 / frames)
    assert identity.tilt == pytest.approx(0.0, abs=1e-9)
    assert identity.stripes == pytest.approx(0.0, abs=1e-9)

    weights = np.arange(1.0, frames + 1) ** 3
    found = analysis.sort_map(rows(weights))
    share = weights / weights.sum()
    assert found.tilt == pytest.approx(
        sum(share[j] * (2 * j / (frames - 1) - 1) for j in range(frames))
    )
    assert found.distance == pytest.approx(
        sum(max(share[j] - 1 / frames, 0.0) for j in range(frames))
    )
    columns = np.sqrt(weights) - np.sqrt(weights).mean()
    times = np.arange(frames) - (frames - 1) / 2
    assert found.trend == pytest.approx(
        columns @ times / math.sqrt((columns @ columns) * (times @ times))
    )
    assert found.stripes == pytest.approx(1.0)

    uniform = analysis.sort_map(np.full((frames, frames), 0.025))
    assert uniform.diagonal == pytest.approx(0.0, abs=1e-9)
    assert (uniform.offset, uniform.trend, uniform.stripes) == (0, 0.0, 0.0)

    # A band of 3 frames holds both neighbours.
    neighbours = normalised(np.eye(frames, k=1) + np.eye(frames, k=-1))
    found = analysis.sort_map(neighbours)
    assert (found.diagonal, found.offset) == (pytest.approx(1.0), 0)

    # Half of the weight on the diagonal, half spread: a band of 3 holds
    # 1/2 + 3/80 in the middle, where a uniform map has 3/40.
    half = analysis.sort_map(0.5 * np.eye(frames) + 0.5 / frames)
    assert half.diagonal == pytest.approx(0.5)
    assert half.distance == pytest.approx(0.5 * (1.0 - 1.0 / frames))


def test_the_band_of_a_diagonal_grows_with_the_map():
    """A twentieth of 120 frames: 3 to each side, of weight 9 to each side."""
    later = np.arange(120) - np.arange(120)[:, None]
    weights = normalised((np.abs(later) <= 9).astype("float64"))
    band = np.abs(later) <= 3
    held, expected = (weights * band).sum() / 120, band.sum() / 120**2
    found = analysis.sort_map(weights)
    assert found.diagonal == pytest.approx((held - expected) / (1 - expected))
    assert found.offset == 0


def test_stripes_are_what_the_means_of_columns_explain(rng):
    """By loops, of a map in which the first frames are seen by most."""
    weights = normalised(np.tril(rng.uniform(size=(9, 9))))
    seen = [(row, key) for row in range(9) for key in range(row + 1)]
    ratio = {each: weights[each] * (each[0] + 1) for each in seen}
    centre = np.mean(list(ratio.values()))
    means = [np.mean([ratio[r, k] for r in range(k, 9)]) for k in range(9)]
    total = sum((ratio[each] - centre) ** 2 for each in seen)
    between = sum((means[key] - centre) ** 2 for _, key in seen)
    found = analysis.sort_map(weights, causal=True)
    assert found.stripes == pytest.approx(between / total)


def test_causal_maps_are_compared_with_what_they_can_see(rng):
    lower = np.tril(np.ones((40, 40)))
    found = analysis.sort_map(normalised(lower), causal=True)
    assert found.uniform and found.kind == "sparse"
    assert found.distance == pytest.approx(0.0, abs=1e-9)
    assert found.tilt == pytest.approx(0.0, abs=1e-9)
    assert found.diagonal == pytest.approx(0.0, abs=1e-9)
    seen_whole = analysis.sort_map(normalised(lower))
    assert not seen_whole.uniform and seen_whole.tilt < -0.3
    assert analysis.sort_map(np.eye(40), causal=True).kind == "diagonal"
    for weights, kind in (
        (np.arange(1.0, 41.0), "increasing"),
        (np.arange(40.0, 0.0, -1.0), "decreasing"),
    ):
        found = analysis.sort_map(normalised(lower * weights), causal=True)
        assert found.kind == kind


def test_padding_does_not_count(rng):
    for weights, *_ in CASES.values():
        padded = np.pad(weights, (0, 9))
        assert analysis.sort_map(padded) == analysis.sort_map(weights)
    # Queries without keys leave the others as they are.
    for weights in (np.eye(40, k=3), np.eye(40, k=-3), np.eye(40)):
        weights[17] = 0.0
        found = analysis.sort_map(weights)
        assert found.diagonal == pytest.approx(1.0) and found.frames == 40
    for short in (np.eye(7), np.zeros((40, 40)), np.pad(np.eye(3), (0, 30))):
        assert analysis.sort_map(short).kind == analysis.UNSORTED


def test_rows_need_not_sum_to_one(rng):
    weights = stripes(50, 1.0)
    scaled = weights * rng.uniform(0.1, 3.0, (50, 1))
    found, expected = analysis.sort_map(scaled), analysis.sort_map(weights)
    assert found.kind == expected.kind
    assert found.tilt == pytest.approx(expected.tilt)


def test_thresholds_are_arguments():
    weights = 0.2 * np.eye(40) + 0.8 / 40
    assert analysis.sort_map(weights).kind == "sparse"
    assert analysis.sort_map(weights, min_diagonal=0.15).kind == "diagonal"
    weights = rows(np.arange(1.0, 41.0))
    for name in ("min_trend", "min_tilt", "min_stripes"):
        assert analysis.sort_map(weights, **{name: 1.1}).kind == "sparse"
    assert analysis.sort_map(weights, max_uniform=0.5).uniform


@pytest.mark.parametrize(
    "weights, message",
    [
        (np.zeros((9, 8)), r"Received: shape=\(9, 8\)"),
        (np.full((9, 9), np.nan), "Received: nan"),
        (-np.eye(9), "Received: -1"),
        (np.diag([np.inf] * 9), "to inf"),
    ],
)
def test_what_is_no_map_is_refused(weights, message):
    with pytest.raises(ValueError, match=message):
        analysis.sort_map(weights)


def test_a_head_is_what_most_of_its_maps_are():
    votes = [np.eye(40, k=k) for k in (2, 2, -1)] + [CASES["few keys"][0]]
    found = [analysis.sort_map(one) for one in votes]
    head = analysis.sort_head(found)
    assert head["kind"] == "diagonal" and head["agreement"] == 0.75
    assert head["offset"] == found[0].offset and not head["uniform"]
    assert head["diagonal"] == pytest.approx(
        np.mean([one.diagonal for one in found[:3]])
    )
    assert head["frames"] == 40
    tie = analysis.sort_head([found[3], found[0]])
    assert tie["kind"] == "diagonal" and tie["agreement"] == 0.5
    short = analysis.sort_map(np.eye(4))
    assert analysis.sort_head([short])["kind"] == analysis.UNSORTED
    assert analysis.sort_head([short, found[3]])["kind"] == "sparse"


# === Projection ===


def groups(rng, count=7, frames=9):
    """Three kinds of maps, `count` of each, with noise."""
    centres = [np.eye(frames), np.eye(frames, k=3), np.full((9, 9), 1 / 9)]
    kinds = np.repeat(np.arange(3), count)
    made = np.stack([centres[kind] for kind in kinds])
    return made + 0.02 * rng.standard_normal(made.shape), kinds


def test_pca_is_scikit_learns(rng, monkeypatch):
    from sklearn import manifold

    given = {}

    def fit_transform(self, x):
        given["reduced"], given["perplexity"] = x, self.perplexity
        return x[:, :2]

    monkeypatch.setattr(manifold.TSNE, "fit_transform", fit_transform)
    made, _ = groups(rng)
    flat = made.reshape(21, 81)
    for wanted, kept in ((5, 5), (900, 20)):
        found = analysis.project(made, components=wanted)
        pca = PCA(kept, svd_solver="full")
        expected = pca.fit_transform(flat)
        assert (found.components, found.wanted) == (kept, wanted)
        assert given["reduced"].shape == (21, kept)
        np.testing.assert_allclose(
            np.abs(given["reduced"]), np.abs(expected), atol=1e-3
        )
        np.testing.assert_allclose(
            found.explained, pca.explained_variance_ratio_, atol=1e-4
        )
        np.testing.assert_array_equal(found.points, given["reduced"][:, :2])
    assert found.explained.sum() == pytest.approx(1.0, abs=1e-4)
    # Lowered for few maps.
    assert given["perplexity"] == pytest.approx(20 / 3)


def test_maps_of_a_kind_come_together(rng):
    made, kinds = groups(rng)
    found = analysis.project(made, perplexity=5.0, seed=3)
    assert found.points.shape == (21, 2) and found.perplexity == 5.0
    distances = np.linalg.norm(found.points[:, None] - found.points, axis=-1)
    np.fill_diagonal(distances, np.inf)
    assert (kinds[distances.argmin(axis=1)] == kinds).all()
    again = analysis.project(made, perplexity=5.0, seed=3)
    np.testing.assert_array_equal(found.points, again.points)


def test_equal_maps_are_one_point(rng):
    made, _ = groups(rng, count=2)
    found = analysis.project(np.concatenate([made, made[::-1]]))
    assert (len(found.points), found.distinct) == (12, 6)
    assert found.components == 5 and found.perplexity == pytest.approx(5 / 3)
    np.testing.assert_array_equal(found.points[:6], found.points[:5:-1])
    np.testing.assert_array_equal(
        found.points[:6], analysis.project(made).points
    )
    # There are no more components than weights in a map.
    assert analysis.project(rng.random((7, 2, 2))).components == 4
    with pytest.raises(ValueError, match="4 different maps. Received: 3"):
        analysis.project(np.concatenate([made[:3]] * 4))


# === Figures ===


@pytest.mark.costly
@needs_matplotlib
def test_figures_are_written_and_can_be_read(tmp_path, rng, monkeypatch):
    # Five heads fill one band of patterns and begin another.
    monkeypatch.setattr(figures, "COLUMNS", 4)
    maps_of_heads = rng.uniform(size=(5, 30, 30))
    made, kinds = groups(rng)
    drawn = {
        "patterns": analysis.draw_patterns(maps_of_heads, maps_of_heads, "a"),
        "kinds": analysis.draw_kinds({"sparse": (np.eye(9), "layer 1")}, "b"),
        "none": analysis.draw_kinds({}, "b"),
        "projection": analysis.draw_projection(
            analysis.project(made), kinds, "c", ["x", "y", "z"]
        ),
        "heads": analysis.draw_heads(maps_of_heads, ["head"] * 5, "d"),
        "one": analysis.draw_heads(maps_of_heads[:1], ["head"], "d"),
    }
    for name, figure in drawn.items():
        path = tmp_path / f"{name}.png"
        figures.save(figure, path)
        image = imread(path)
        assert image.shape[0] > 300 and image.shape[1] > 300
        assert image[..., :3].std() > 0.01
    texts = [
        text.get_text() for panel in drawn["kinds"].axes for text in panel.texts
    ]
    assert texts == ["none found"] * 3


@needs_matplotlib
@pytest.mark.parametrize(
    "heads, columns, rows", [(1, 1, 1), (5, 4, 2), (12, 4, 3), (13, 6, 3)]
)
def test_all_heads_have_a_panel(heads, columns, rows, rng):
    figure = analysis.draw_heads(
        rng.uniform(size=(heads, 9, 9)), ["head"] * heads, "title"
    )
    *panels, scale = figure.axes
    grid = panels[0].get_gridspec()
    assert (grid.ncols, grid.nrows) == (columns, rows)
    assert len(panels) == columns * rows
    assert [bool(panel.get_images()) for panel in panels] == [
        index < heads for index in range(columns * rows)
    ]
    assert scale.get_ylabel().startswith("weight")


def shown(figure, title):
    """The image below a panel's title, or in the panel of that place."""
    panels = [panel for panel in figure.axes if panel.get_images()]
    if isinstance(title, int):
        return np.asarray(panels[title].get_images()[0].get_array())
    for panel in panels:
        if panel.get_title().startswith(title):
            return np.asarray(panel.get_images()[0].get_array())
    raise AssertionError(title)


@needs_matplotlib
def test_each_panel_shows_its_map(rng):
    initial, learned = rng.uniform(size=(2, 3, 10, 10))
    figure = analysis.draw_patterns(initial, learned, "title")
    for head in range(3):
        for row, maps_of_heads in enumerate((initial, learned)):
            one = maps_of_heads[head]
            scale = np.median(one.max(axis=1))
            np.testing.assert_allclose(
                shown(figure, 3 * row + head), one / scale
            )
    figure = analysis.draw_kinds(
        {"decreasing": (initial[0], "x"), "sparse": (learned[1], "y")}, ""
    )
    scale = np.median(learned[1].max(axis=1))
    np.testing.assert_allclose(shown(figure, "sparse"), learned[1] / scale)


@needs_matplotlib
def test_points_are_of_their_heads(rng):
    made, kinds = groups(rng)
    found = analysis.project(made)
    heads = kinds[::-1]
    (panel,) = analysis.draw_projection(found, heads, "", ["x", "y", "z"]).axes
    for head, points in enumerate(panel.collections):
        np.testing.assert_allclose(
            points.get_offsets(), found.points[heads == head], rtol=1e-6
        )
        assert points.get_label() == f"head {head + 1}, {'xyz'[head]}"


@needs_matplotlib
def test_titles_are_no_formulas(rng):
    """A folder may be called what is one, or what is none and ends a run."""
    name, maps_of_heads = "$a_{$/preset", np.stack([np.eye(9)])
    projected = analysis.project(groups(rng, count=2)[0])
    for figure in (
        analysis.draw_patterns(maps_of_heads, maps_of_heads, name),
        analysis.draw_kinds({}, name),
        analysis.draw_heads(maps_of_heads, ["head"], name),
        analysis.draw_projection(projected, np.zeros(6, int), name),
    ):
        figure.draw_without_rendering()
        titles = [panel.get_title() for panel in figure.axes]
        assert any(name in each for each in [*titles, figure.get_suptitle()])


def test_a_thin_diagonal_of_a_large_map_is_not_lost():
    small = figures.shrink(np.eye(501), 100)
    assert small.shape == (84, 84)
    np.testing.assert_array_equal(small, np.eye(84))
    np.testing.assert_array_equal(figures.shrink(np.eye(7), 100), np.eye(7))
    assert figures.full_scale(np.zeros((3, 3))) == 1.0


def test_without_matplotlib_the_extra_is_named(monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib.figure", None)
    with pytest.raises(ImportError, match=r"audio_tf\[analysis\]"):
        figures.new_figure(1, 1)


def test_analysis_imports_figures_and_projections_late():
    for file in ANALYSIS.glob("*.py"):
        for node in ast.parse(file.read_text()).body:
            if isinstance(node, (ast.Import, ast.ImportFrom)):
                text = ast.unparse(node)
                assert "matplotlib" not in text and "sklearn" not in text


# === Command ===


@pytest.fixture(scope="module")
def presets(tmp_path_factory):
    top = tmp_path_factory.mktemp("inspected")
    keras.utils.set_random_seed(11)
    models = {
        "speech": speech_encoder(
            num_heads=8,
            num_layers=2,
            share_layers=False,
            attention="crafted_synthesizer",
            attention_kwargs={"max_length": 37},
        ),
        "waveform": tiny.backbone(
            num_layers=2, pool_every=1, sample_rate_hz=RATE_HZ
        ),
    }
    for name, model in models.items():
        model.save_to_preset(str(top / name))
    return top, models


@pytest.fixture
def small_figures(monkeypatch):
    """Figures of few points and no layout, which takes most of the time."""

    def save(figure, path):
        figure.set_layout_engine("none")
        figure.savefig(path, dpi=9)

    monkeypatch.setattr(figures, "save", save)


@pytest.fixture
def clips(tmp_path, rng):
    folder = tmp_path / "clips" / "deeper"
    folder.mkdir(parents=True)
    sizes = {"a.wav": 3_300, "deeper/b.wav": 2_900}
    for name, size in sizes.items():
        soundfile.write(
            tmp_path / "clips" / name, noise(rng, 1, size)[0], RATE_HZ
        )
    (folder / "bad.wav").write_text("no sound")
    return tmp_path / "clips"


@pytest.mark.costly
@needs_matplotlib
def test_inspect_of_a_speech_encoder(
    presets, clips, tmp_path, capsys, monkeypatch, texts_written
):
    top, models = presets
    model = models["speech"]
    drawn = {}

    def draw_patterns(initial, learned, *arguments, **kwargs):
        drawn.update(initial=initial, learned=learned, **kwargs)
        return figures.new_figure(1, 1)

    # Trained into something else.
    for block, heads in zip(model.encoder.blocks, (2, 1), strict=True):
        table = block.attention.table
        table.assign(np.roll(table, heads, axis=0))
    trained = str(tmp_path / "trained" / "preset")
    model.save_to_preset(trained)
    monkeypatch.setattr(figures, "draw_patterns", draw_patterns)

    out = tmp_path / "out"
    arguments = ["inspect", str(out), "--model", trained, str(clips)]
    assert cli.main(arguments) == 1
    output = capsys.readouterr()
    assert "1 file left out" in output.err and "bad.wav" in output.err
    head, *lines, last = output.out.splitlines()
    assert head.split()[:3] == ["layer", "head", "kind"]
    kinds = ["sparse"] + ["diagonal"] * 5 + ["increasing", "decreasing"]
    kinds = kinds[-1:] + kinds[:-1] + kinds
    assert [line.split()[:3] for line in lines] == [
        [str(place // 8 + 1), str(place % 8 + 1), kind]
        for place, kind in enumerate(kinds)
    ]
    assert "2 clips of 0.36 s" in last
    for name in ("patterns", "kinds", "heads", "projection"):
        assert imread(out / f"{name}.png").size
        assert f"{name}.png" in last
    # Else a run that is killed would leave half a file.
    assert texts_written[-1] == ".maps.json"
    content = json.loads((out / "maps.json").read_text())
    assert content["trained"] and content["layer"] == 2
    assert content["attention"] == "crafted_synthesizer"
    assert content["weights_sha256"] == weights_sha256(model.weights)
    assert content["seconds"] == 2_900 / RATE_HZ
    assert content["files"] == [
        str(clips / "a.wav"),
        str(clips / "deeper" / "b.wav"),
    ]
    assert [row["kind"] for row in content["heads"]] == kinds
    offsets = [row["offset"] for row in content["heads"]]
    assert offsets[2:7] == offsets[9:14] == [0, -1, -2, 1, 2]
    assert len(content["projection"]["points"]) == 16
    assert content["projection"]["distinct"] == 8

    waveforms, _ = soundfile.read(clips / "a.wav", dtype="float32")
    expected = analysis.attention_maps(model, waveforms[None, :2_900])
    np.testing.assert_allclose(drawn["learned"], expected[1][0], atol=1e-6)
    for head in range(7):
        np.testing.assert_allclose(
            drawn["initial"][head], expected[1][0][head + 1], atol=1e-6
        )
    assert drawn["names"] == ("initial", "learned")


@needs_matplotlib
@pytest.mark.long
def test_inspect_of_an_audio_transformer(
    small_figures, presets, clips, tmp_path, capsys, monkeypatch
):
    top, models = presets
    draw_patterns, names = figures.draw_patterns, []

    def draw(*arguments, **kwargs):
        names.extend(kwargs["names"])
        return draw_patterns(*arguments, **kwargs)

    monkeypatch.setattr(figures, "draw_patterns", draw)
    out = tmp_path / "out"
    arguments = ["inspect", str(out), "--model", str(top / "waveform")]
    arguments += [str(clips / "a.wav"), str(clips / "deeper" / "b.wav")]
    arguments += ["--layer", "1", "--seconds", "0.35", "--json"]
    assert cli.main(arguments) == 0
    output = capsys.readouterr().out
    found = [json.loads(line) for line in output.splitlines()]
    assert [(row["layer"], row["head"]) for row in found] == [
        (1, 1),
        (1, 2),
        (2, 1),
        (2, 2),
    ]
    # 0.35 s of patches of 10 ms; pooled by two.
    assert [row["frames"] for row in found] == [35, 35, 18, 18]
    content = json.loads((out / "maps.json").read_text())
    assert content["heads"] == found and content["layer"] == 1
    # Nobody has kept what the weights were.
    assert names == ["initial (drawn anew)", "learned"]
    assert len(content["projection"]["points"]) == 4
    for name in ("patterns", "kinds", "heads", "projection"):
        assert imread(out / f"{name}.png").size


def test_the_best_example_of_each_kind_is_kept():
    blocks = tiny.backbone(num_layers=2, causal=False)
    found = inspection.Findings(maps.transformer_blocks(blocks), 2)
    weak, strong = (blurred(100, 0, width) for width in (4.0, 2.0))
    uniform, few = CASES["uniform"][0], CASES["few keys"][0]
    found.add([np.stack([weak, strong]), np.stack([uniform, uniform])])
    short = np.pad(np.eye(5), (0, 35))
    found.add([np.stack([weak, weak]), np.stack([uniform, short])])
    found.add([np.stack([few, strong]), np.stack([uniform, uniform])])
    examples = found.examples()
    assert set(examples) == {"diagonal", "sparse"}
    for kind, expected, caption in (
        ("diagonal", strong, "layer 1, head 2"),
        ("sparse", few, "layer 1, head 1"),
    ):
        weights, place = examples[kind]
        np.testing.assert_array_equal(weights, expected)
        assert place == caption
    rows_found = found.rows()
    assert [row["kind"] for row in rows_found] == ["diagonal"] * 2 + [
        "sparse"
    ] * 2
    assert [row["agreement"] for row in rows_found] == [2 / 3, 1, 1, 2 / 3]
    assert found.of_layer(rows_found) == rows_found[2:]

    assert list(found.heads()) == [0, 1] * 3
    np.testing.assert_array_equal(
        found.maps(), [uniform, uniform, uniform, short, uniform, uniform]
    )

    # Of a causal block, the same is uniform.
    lower = normalised(np.tril(np.ones((40, 40))))
    for causal in (True, False):
        model = tiny.backbone(causal=causal)
        found = inspection.Findings(maps.transformer_blocks(model), 1)
        found.add([lower[None]])
        assert found.rows()[0]["uniform"] == causal


@pytest.mark.costly
@needs_matplotlib
def test_inspect_says_what_it_cannot_do(
    small_figures, presets, clips, tmp_path, capsys
):
    model = str(presets[0] / "waveform")
    clip = str(clips / "a.wav")
    out = str(tmp_path / "out")
    for options, message in (
        (
            ["--layer", "3"],
            "--layer must be one of the model's 2. Received: layer=3",
        ),
        (["--seconds", "9"], "1 shorter files"),
    ):
        arguments = ["inspect", out, "--model", model, clip, *options]
        assert cli.main(arguments) == 2
        assert message in capsys.readouterr().err
    empty = tmp_path / "empty"
    empty.mkdir()
    assert cli.main(["inspect", out, "--model", model, str(empty)]) == 2
    assert "no audio in this folder" in capsys.readouterr().err
    with pytest.raises(SystemExit):
        cli.main(["inspect", out, "--model", model, clip, "--seconds", "0"])
    assert "must be positive" in capsys.readouterr().err

    # Short clips: two maps of three frames.
    arguments = ["inspect", out, "--model", model, clip, "--seconds", "0.03"]
    assert cli.main(arguments) == 0
    output = capsys.readouterr()
    assert "No projection.png" in output.err and "not sorted" in output.err
    assert "unsorted" in output.out
    assert (
        json.loads(pathlib.Path(out, "maps.json").read_text())["projection"]
        is None
    )


@needs_matplotlib
@pytest.mark.parametrize("name", ["speech", "waveform"])
def test_clips_beyond_the_attentions_length_are_refused(
    name, clips, tmp_path, capsys
):
    options = {
        "attention": "random_synthesizer",
        "attention_kwargs": {"max_length": 23},
    }
    if name == "speech":
        model = speech_encoder(**options)
    else:
        model = tiny.backbone(sample_rate_hz=RATE_HZ, **options)
    model.save_to_preset(str(tmp_path / "preset"))
    arguments = ["inspect", str(tmp_path / "out"), str(clips / "a.wav")]
    arguments += ["--model", str(tmp_path / "preset"), "--seconds", "0.3"]
    assert cli.main(arguments) == 2
    message = capsys.readouterr().err
    assert message.startswith(
        "audio-tf inspect: Take shorter clips, by --seconds."
    )
    assert "at most 23 frames" in message and "1 clips of 0.3 s" in message
    assert message.count("\n") == 1


@pytest.mark.costly
@needs_matplotlib
def test_maps_that_fill_the_memory_are_refused(
    small_figures, presets, clips, tmp_path, capsys, monkeypatch
):
    # One clip of 2 heads, 35 frames, and 18 behind the pooling.
    monkeypatch.setattr(clips_of, "MAX_GB", 4e-9 * 2 * 35**2 - 1e-12)
    arguments = ["inspect", str(tmp_path / "out"), str(clips / "a.wav")]
    arguments += ["--model", str(presets[0] / "waveform"), "--seconds", "0.35"]
    assert cli.main(arguments) == 0
    capsys.readouterr()
    monkeypatch.setattr(maps, "iterate_maps", None)
    assert cli.main([*arguments, "--layer", "1"]) == 2
    message = capsys.readouterr().err
    assert "by --seconds, or fewer, by --clips" in message
    assert "Received: 1 clips of 0.35 s, each" in message
    assert "of 2 x 35 x 35 weights" in message


def test_the_paper_sized_default_is_taken_and_half_a_minute_is_not():
    model = AudioAlbertBackbone(
        **{**albert().get_config(), "num_heads": 12, "name": None}
    )
    model = SpeechEncoder(model, SpeechFeatures("s3prl"))
    for seconds, clips, taken in (
        (5, 16, True),
        (30, 16, False),
        (30, 4, True),
    ):
        waveforms = np.broadcast_to(np.float32(0), (clips, seconds * 16_000))
        if taken:
            clips_of.check_size(model, waveforms, 3)
            continue
        with pytest.raises(ValueError, match="take 6.9 GB, above 2 GB"):
            clips_of.check_size(model, waveforms, 3)


def test_recordings_are_not_kept_for_their_clips(tmp_path, rng, monkeypatch):
    whole = []

    def load(*arguments):
        # One is still in use.
        assert sum(each() is not None for each in whole) <= 1
        audio = np.array(load_audio(*arguments))
        whole.append(weakref.ref(audio))
        return audio

    monkeypatch.setattr("audio_tf.audio.load_audio", load)
    files = [tmp_path / f"{number}.wav" for number in range(4)]
    for file in files:
        soundfile.write(file, noise(rng, 1, 700)[0], RATE_HZ)
    for seconds in (None, 0.01):
        clips_of.read_clips(files, RATE_HZ, 4, seconds, 80, 0)
    assert len(whole) == 8


def test_clips_are_of_one_length(tmp_path, rng):
    files = []
    for number in range(7):
        files.append(tmp_path / f"{number}.wav")
        audio = noise(rng, 1, 100 * (number + 1))[0]
        soundfile.write(files[-1], audio, RATE_HZ, subtype="FLOAT")

    def read(count, seconds=None, longest=10**6, seed=0):
        waveforms, used, failures = clips_of.read_clips(
            files, RATE_HZ, count, seconds, longest, seed
        )
        assert not failures
        for waveform, file in zip(waveforms, used, strict=True):
            audio, _ = soundfile.read(file, dtype="float32")
            np.testing.assert_array_equal(waveform, audio[: len(waveform)])
        return waveforms.shape, used

    assert read(7) == ((7, 100), files)
    # The longest of as many as are read, cut to the shortest of them.
    assert read(2) == ((2, 600), files[5:])
    assert read(2, longest=50)[0] == (2, 50)
    assert read(2, seconds=0.05) == ((2, 400), read(2, seconds=0.05)[1])
    assert set(read(9, seconds=0.05)[1]) == set(files[3:])
    one = {str(read(1, seconds=0.01, seed=seed)[1]) for seed in range(9)}
    assert len(one) > 1


@pytest.mark.parametrize("limit", [29, None])
def test_no_clip_is_taken_beyond_what_the_model_takes(limit):
    options = {}
    if limit is not None:
        options["attention"] = "random_synthesizer"
        options["attention_kwargs"] = {"max_length": limit}
    for model in (speech_encoder(**options), tiny.backbone(**options)):
        samples = clips_of.longest_clip(model)
        found = analysis.attention_maps(model, np.zeros((1, samples)))
        frames = limit or 500
        assert found[0].shape[2:] == (frames, frames)
        assert samples + 1 >= frames * model.frame_size


@pytest.mark.costly
def test_checkpoints_of_every_sort(presets, tmp_path):
    top, models = presets
    backbone, trained = checkpoints.load(top / "speech")
    assert isinstance(backbone, SpeechEncoder) and trained
    np.testing.assert_array_equal(
        backbone.encoder.blocks[0].attention.value_dense.kernel,
        models["speech"].encoder.blocks[0].attention.value_dense.kernel,
    )
    backbone, trained = checkpoints.load("audio_transformer_small")
    assert backbone.num_layers == 3 and not trained

    classifier = AudioClassifier(models["waveform"], num_classes=3)
    classifier.save(tmp_path / "classifier.keras")
    classifier.save_to_preset(str(tmp_path / "task"))
    kernel = models["waveform"].get_layer("block_0").attention.value_dense
    for name in ("classifier.keras", "task"):
        backbone, trained = checkpoints.load(tmp_path / name)
        assert trained
        np.testing.assert_array_equal(
            backbone.get_layer("block_0").attention.value_dense.kernel,
            kernel.kernel,
        )


def test_checkpoints_without_waveforms_are_refused(tmp_path):
    encoder = albert(num_layers=1)
    encoder.save_to_preset(str(tmp_path / "features"))
    MaskedAcousticModel(encoder).save(tmp_path / "last.keras")
    encoder.save(tmp_path / "encoder.keras")
    keras.Sequential([keras.Input((3,))]).save(tmp_path / "other.keras")
    for name, message in (
        (tmp_path / "features", "takes features"),
        (tmp_path / "encoder.keras", "takes features"),
        ("audio_albert_6", "takes features"),
        (tmp_path / "last.keras", "takes features.* beside its checkpoints"),
        (tmp_path / "other.keras", "Received: Sequential"),
        ("nowhere", "nowhere"),
    ):
        with pytest.raises(ValueError, match=str(message)):
            checkpoints.load(name)
