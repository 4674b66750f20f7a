"""`audio-tf inspect` of front ends: what is drawn, and what is refused."""

import json
import shutil

import keras
import numpy as np
import pytest
import tiny

pytest.importorskip("matplotlib")
if keras.backend.backend() != "tensorflow":
    pytest.skip("presets are of the command line", allow_module_level=True)

from readable import check_readable

from audio_tf import cli
from audio_tf.analysis import clips, filter_figures, filters, frontends
from audio_tf.layers import SpeechFeatures
from audio_tf.models import SpeechEncoder

pytestmark = pytest.mark.costly

NAMES = frontends.FILES


@pytest.fixture(scope="module")
def presets(tmp_path_factory):
    """Models whose filters are not those that they began with."""
    top = tmp_path_factory.mktemp("frontends")
    rng = np.random.default_rng(0)
    models = {
        "random": tiny.backbone(),
        "mel": tiny.backbone(filterbank="mel"),
        "bands": tiny.backbone(filterbank="log_mel", frontend_filters=6),
        "wider": tiny.backbone(frontend_filters=24),
        "slower": tiny.backbone(
            filterbank="log_mel", frontend_filters=6, sample_rate_hz=900
        ),
        "speech": SpeechEncoder(
            tiny.albert(feature_dim=80), SpeechFeatures("s3prl")
        ),
    }
    for name, model in models.items():
        if name != "speech":
            for weight in model.frontend.trainable_weights:
                weight.assign_add(0.1 * rng.standard_normal(weight.shape))
        model.save_to_preset(str(top / name))
    return top, models


@pytest.fixture
def drawn(monkeypatch):
    """Figures by the names of their files, which are left empty."""
    kept = {}

    def save(figure, path):
        kept[path.name] = figure
        path.touch()

    monkeypatch.setattr(frontends.figures, "save", save)
    return kept


def inspect(*arguments):
    return cli.main(["inspect", "--only", "frontend", *arguments])


def labels(figure):
    (legend,) = figure.legends
    return [text.get_text() for text in legend.texts]


@pytest.mark.parametrize(
    ("name", "before", "files"),
    [
        ("random", "untrained (drawn anew)", NAMES[:2]),
        ("mel", "before training", NAMES[:2]),
        ("bands", "untrained (drawn anew)", NAMES),
    ],
)
def test_figures_say_what_is_known_of_the_beginning(
    name, before, files, presets, drawn, tmp_path, capsys
):
    top, models = presets
    (tmp_path / "compression.png").write_text("of an earlier run")
    assert inspect(str(tmp_path), "--model", str(top / name)) == 0
    assert set(drawn) == set(files)
    assert (tmp_path / "compression.png").is_file() == (len(files) == 3)
    assert all(file in capsys.readouterr().out for file in files[:1])
    both = [before, "after training"]
    assert labels(drawn["filters.png"]) == [*both, "evenly spaced in mel"]
    found = json.loads((tmp_path / "frontend.json").read_text())
    assert list(found["filters"]) == both and found["trained"]
    learned = models[name].frontend.learned().filters
    expected = filters.responses(learned, tiny.RATE_HZ)
    after = found["filters"]["after training"]
    np.testing.assert_allclose(after["centres_hz"], expected.centres_hz)
    if name == "bands":
        # What each band begins with is no matter of chance.
        both = ["before training", "after training"]
        assert labels(drawn["compression.png"]) == both
        assert list(found["bands"]) == both
    in_time = drawn["filters_in_time.png"]
    if name == "random":
        # Filters that are drawn anew are none of these filters.
        assert labels(in_time) == ["after training"]
    elif name == "mel":
        assert labels(in_time) == both
        assert len(in_time.axes) == 12
        line = in_time.axes[0].lines[-1]
        np.testing.assert_allclose(line.get_xdata()[1], 1_000 / tiny.RATE_HZ)


def test_the_sorted_image_has_each_filter_in_its_column(presets):
    _, models = presets
    learned = models["mel"].frontend.learned().filters
    found = filters.responses(learned, tiny.RATE_HZ)
    figure = filter_figures.draw_responses(
        {"after training": found}, tiny.RATE_HZ, False, "$title"
    )
    image = figure.axes[0].collections[0].get_array()
    heights = found.frequencies_hz / 1_000
    peaks = np.linspace(heights[0], heights[-1], len(image))[
        np.argmax(image, axis=0)
    ]
    centres = found.centres_hz[found.order] / 1_000
    np.testing.assert_allclose(peaks, centres, atol=2 * peaks.max() / 400)
    assert list(found.centres_hz[found.order]) == sorted(found.centres_hz)
    (mel, *_) = figure.axes[0].lines
    np.testing.assert_allclose(
        mel.get_ydata(), filters.mel_spaced(16, tiny.RATE_HZ) / 1_000
    )


@pytest.mark.parametrize("name", ["mel", "bands"])
def test_figures_are_readable(name, presets, drawn, tmp_path):
    """No text lies over another one, and none leaves the picture."""
    top, _ = presets
    again = str(top / name)
    inspect(str(tmp_path), "--model", again, "--before", again)
    for figure in drawn.values():
        texts = []
        for panel in figure.axes:
            texts += [panel.title, panel.xaxis.label, panel.yaxis.label]
        texts += [text for legend in figure.legends for text in legend.texts]
        check_readable(figure, [each for each in texts if each.get_text()])


def test_another_model_before(presets, drawn, tmp_path, capsys, texts_written):
    top, _ = presets
    arguments = [str(tmp_path), "--model", str(top / "random"), "--before"]
    assert inspect(*arguments, str(top / "mel")) == 0
    name, after = labels(drawn["filters_in_time.png"])
    assert name.startswith("before: ") and name.endswith("/mel")
    assert after == "after training"
    # Else a run that is killed would leave half a file.
    assert texts_written[-1] == ".frontend.json"
    assert inspect(*arguments, str(top / "wider")) == 2
    error = capsys.readouterr().err
    assert "the same front end" in error and "(24, 11, 1)" in error
    # As many bands and filters, whose frequencies are others.
    arguments[2] = str(top / "bands")
    assert inspect(*arguments, str(top / "slower")) == 2
    error = capsys.readouterr().err
    assert "'sample_rate_hz': 900" in error


def test_a_folder_with_an_underscore_is_in_the_legend(presets, drawn, tmp_path):
    top, _ = presets
    first = tmp_path / "_first" / "preset"
    shutil.copytree(top / "mel", first)
    arguments = ["--model", str(top / "mel"), "--before", str(first)]
    assert inspect(str(tmp_path / "out"), *arguments) == 0
    for figure in drawn.values():
        assert "before: _first/preset" in labels(figure)


def test_names_of_states_are_no_formulas():
    """That of a folder may be none, which ended all when it was drawn."""
    states = {
        name: {"gain (dB)": np.arange(3.0)}
        for name in ("$a_{$/mel", frontends.AFTER)
    }
    figure = filter_figures.draw_curves(states, np.arange(3.0), "title")
    figure.draw_without_rendering()
    (legend,) = figure.legends
    assert [text.get_text() for text in legend.get_texts()] == [*states]


def test_a_front_end_without_filters_says_so(presets, tmp_path, capsys):
    top, _ = presets
    assert inspect(str(tmp_path), "--model", str(top / "speech")) == 2
    error = capsys.readouterr().err
    assert error.startswith("audio-tf inspect: The front end has no learned")
    assert "SpeechFeatures of SpeechEncoder" in error
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(
    ("flags", "message"),
    [
        (["--layer", "1"], "--layer means nothing without attention maps"),
        (["--json"], "--json means nothing without attention maps"),
    ],
)
def test_flags_of_maps_are_refused(flags, message, tmp_path, capsys):
    assert inspect(str(tmp_path), "--model", "m", *flags) == 2
    assert message in capsys.readouterr().err


@pytest.mark.parametrize("last", [True, False])
def test_a_front_end_needs_no_files(last, tmp_path, capsys):
    only = ["--only", "frontend"]
    flags = [str(tmp_path), "a.wav", "--model", "m"]
    flags = [*flags, *only] if last else [*only, *flags]
    assert cli.main(["inspect", *flags]) == 2
    assert "FILE means nothing without att" in capsys.readouterr().err


def test_maps_need_files(tmp_path, capsys):
    with pytest.raises(SystemExit):
        cli.main(["inspect", str(tmp_path), "--model", "m"])
    assert "required: FILE" in capsys.readouterr().err
    flags = ["a.wav", "--only", "maps", "--before", "m"]
    assert cli.main(["inspect", str(tmp_path), "--model", "m", *flags]) == 2
    assert "--before means nothing" in capsys.readouterr().err


class Pieces(keras.layers.Layer):
    """A front end that is a layer and nothing more."""

    def call(self, waveform, lengths=None):
        return keras.ops.reshape(waveform, (len(waveform), -1, 12))

    def compute_output_spec(self, waveform, lengths=None):
        return keras.KerasTensor((waveform.shape[0], None, 12), "float32")


def test_a_front_end_of_ones_own_is_named():
    """What it lacks of the contract, not the attribute that was missed."""
    model = tiny.backbone()
    model.frontend = Pieces()
    received = "Received: Pieces of AudioTransformerBackbone"
    with pytest.raises(
        frontends.NothingLearned, match=f"a `layers.filters.Front.*{received}"
    ):
        frontends.check_learns(model)
    model.embed = lambda inputs: (model.frontend(inputs["waveform"]), None)
    with pytest.raises(
        ValueError, match=f"must say how many frames.*{received}"
    ):
        clips.check_size(model, np.zeros((2, 120), "float32"), 1)
