"""Answers as HTML: pictures that are right, and names that do nothing."""

import base64
import html.parser
import io
import json
import shlex

import numpy as np
import pytest
import soundfile
from PIL import Image

from audio_tf.app import answering, drawing, pictures, samples, texts

HOSTILE = "<script>alert(1)</script>\"'&${alert(2)}{{7*7}}`\x1b[31m.wav"
RATE_HZ = 16_000


class Reader(html.parser.HTMLParser):
    """Tags, attributes and text of a page."""

    def __init__(self, text):
        super().__init__()
        self.tags, self.attributes, self.text = [], [], ""
        self.feed(text)

    def handle_starttag(self, tag, attributes):
        self.tags.append(tag)
        self.attributes += attributes

    def handle_data(self, data):
        self.text += data


@pytest.fixture(scope="module")
def clip():
    audio = np.sin(np.arange(3 * RATE_HZ) * 2 * np.pi * 440 / RATE_HZ)
    return answering.Clip(HOSTILE, audio.astype("float32"), RATE_HZ)


@pytest.fixture(scope="module")
def answer(clip):
    labels = ["rain", f"dog {HOSTILE}"]
    return answering.Answer(
        {"file": clip.name, "scores": {labels[1]: 0.75, labels[0]: 0.25}},
        clip.samples,
        RATE_HZ,
        np.array([[0.0, 1.0], [1.0, 3.0]]),
        np.array([[0.1, 0.9], [0.8, 0.6]]),
        labels,
    )


def test_names_are_text_and_nothing_else(clip, answer):
    drawn = drawing.whole(clip, {f"a/{HOSTILE}": answer}, {HOSTILE: HOSTILE})
    read = Reader(drawn)
    shown = HOSTILE.replace("\x1b", "\\x1b")
    assert read.text.count(shown) == 6
    known = "audio button code details div figcaption figure h2 img li ol p"
    known += " path pre rect section span strong summary svg g"
    assert set(read.tags) <= set(known.split())
    assert not [name for name, _ in read.attributes if name.startswith("on")]
    for template in ("${", "{{", "`"):
        assert template not in drawn
    problem = Reader(drawing.problem(HOSTILE, HOSTILE))
    assert problem.text == f"{shown}: {shown}" and problem.tags == ["p"]


@pytest.mark.parametrize("order", [["short", "long"], ["long", "short"]])
def test_a_model_that_refuses_a_clip_stands_beside_the_other(
    clip, answer, order
):
    refused = answering.Answer({"file": clip.name, "error": "longer than 2 s"})
    answers = {"short": refused, "long": answer}
    answers = {name: answers[name] for name in order}
    read = Reader(drawing.whole(clip, answers, {"a": "b"}))
    assert "longer than 2 s" in read.text and "0.750" in read.text
    assert read.tags.count("h2") == 2 and "audio" in read.tags
    alone = Reader(drawing.whole(clip, {"short": refused}, {"a": "b"}))
    assert "longer than 2 s" in alone.text and "short" in alone.text
    assert "audio" not in alone.tags


def test_nothing_drawn_names_another_host(clip, answer):
    read = Reader(drawing.whole(clip, {"model": answer}, {"a": "b"}))
    sources = [value for name, value in read.attributes if name == "src"]
    assert sources and all(value.startswith("data:") for value in sources)
    assert not [name for name, _ in read.attributes if name == "href"]


def test_bars_are_as_long_as_scores_and_have_their_digits(answer):
    drawn = drawing.bars(answer.found["scores"])
    assert Reader(drawn).text.count("0.750") == 1
    assert "width:75.00%" in drawn and "width:25.00%" in drawn


def test_the_sound_that_is_played_is_the_clip(clip, answer):
    read = Reader(drawing.heard(clip, answer))
    (source,) = [value for name, value in read.attributes if name == "src"]
    content = base64.b64decode(source.partition("base64,")[2])
    audio, rate_hz = soundfile.read(io.BytesIO(content))
    assert rate_hz == RATE_HZ
    np.testing.assert_allclose(audio, clip.samples, atol=2**-14)


def test_patches_are_where_they_sound_in_the_colour_of_their_sign(clip):
    found = {
        "label": HOSTILE,
        "score": 0.75,
        "silence_score": 0.125,
        "time_s": np.array([0.0, 1.0, 2.0, 3.0]),
        "frequency_hz": np.array([0.0, 1_000.0, 8_000.0]),
        "weights": np.array([[0.5, 0.0], [0.0, -1.0], [0.0, 0.0]]),
    }
    read = Reader(drawing.explained(clip, found, "model"))
    assert HOSTILE.replace("\x1b", "\\x1b") in read.text
    assert "script" not in read.tags and "0.750" in read.text
    (source,) = [value for name, value in read.attributes if name == "src"]
    content = base64.b64decode(source.partition("base64,")[2])
    pixels = np.asarray(Image.open(io.BytesIO(content)))
    assert pixels[..., 3].tolist() == [[0, 255, 0], [128, 0, 0]]
    assert tuple(pixels[1, 0, :3]) == drawing.RAISES
    assert tuple(pixels[0, 1, :3]) == drawing.LOWERS
    refused = {"file": "a", "error": HOSTILE}
    # With the name of the model, which may stand beside another.
    refused = Reader(drawing.explained(clip, refused, "model"))
    assert refused.tags == ["section", "h2", "p"] and "model" in refused.text


def test_leading_labels_colour_the_waveform():
    leads = np.array([-1, 2, 2, 0, -1, 1])
    assert drawing.runs_of(leads) == [
        (1 / 6, 3 / 6, 2),
        (3 / 6, 4 / 6, 0),
        (5 / 6, 1.0, 1),
    ]
    assert drawing.runs_of(np.array([-1, -1])) == []


@pytest.mark.parametrize("count", [1, 7, 799, 800, 801, 20_011])
def test_columns_hold_every_sample(count, rng):
    audio = rng.standard_normal(count)
    lowest, highest = pictures.envelope(audio)
    width = min(count, pictures.COLUMNS)
    assert len(lowest) == len(highest) == width
    edges = [column * count // width for column in range(width + 1)]
    for column, (begin, end) in enumerate(zip(edges, edges[1:])):
        assert lowest[column] == min(audio[begin:end])
        assert highest[column] == max(audio[begin:end])


@pytest.mark.parametrize("frequency_hz", [300, 1_000, 3_000, 6_500])
def test_a_tone_is_where_its_frequency_is(frequency_hz):
    audio = np.sin(np.arange(RATE_HZ) * 2 * np.pi * frequency_hz / RATE_HZ)
    picture = pictures.log_mel(audio, RATE_HZ)
    rows = len(picture)
    found = picture[:, picture.shape[1] // 2].argmax()
    expected = (1.0 - pictures.height_of(frequency_hz, RATE_HZ)) * rows
    assert abs(found + 0.5 - expected) <= 1.5
    assert picture.max() == 0.0 and picture.min() >= pictures.FLOOR_DB


def test_spectra_of_clicks_silence_and_single_samples():
    audio = np.zeros(2 * RATE_HZ)
    assert (pictures.log_mel(audio, RATE_HZ) == pictures.FLOOR_DB).all()
    audio[3 * RATE_HZ // 2] = 1.0
    picture = pictures.log_mel(audio, RATE_HZ)
    column = picture.sum(axis=0).argmax() / picture.shape[1]
    assert column == pytest.approx(0.75, abs=0.02)
    assert pictures.log_mel(np.ones(1), 8_000).shape == (pictures.BANDS, 1)


@pytest.mark.parametrize("frames", [1, 5, 2_503])
def test_frames_are_where_they_sound(frames, rng):
    """Naively: each column shows the frames that its middle lies in."""
    edges = np.linspace(0.0, 3.0, frames + 1)
    spans_s = np.stack([edges[:-1], edges[1:]], axis=1)
    values = rng.random((frames, 2))
    spread = pictures.over_time(spans_s, values, 4.0)
    columns = len(spread)
    assert columns <= pictures.COLUMNS
    for column in range(columns):
        middle = (column + 0.5) * 4.0 / columns
        if middle >= 3.0:
            assert np.isnan(spread[column]).all()
            continue
        frame = next(i for i in range(frames) if middle < edges[i + 1])
        near = slice(max(0, frame - 4), frame + 5)
        if frames <= pictures.COLUMNS:
            near = slice(frame, frame + 1)
        assert (spread[column] >= values[frame]).all()
        assert all(spread[column, k] in values[near, k] for k in range(2))


def test_images_hold_their_pixels(rng):
    pixels = rng.integers(0, 256, (3, 5, 4), np.uint8)
    address = pictures.png_address(pixels)
    content = base64.b64decode(address.partition("base64,")[2])
    read = np.asarray(Image.open(io.BytesIO(content)))
    np.testing.assert_array_equal(read, pixels)
    veil = pictures.veil(np.array([[0.0, 1.0, 2.0]]), (1, 2, 3))
    assert veil.tolist() == [[[1, 2, 3, 0], [1, 2, 3, 255], [1, 2, 3, 255]]]


def test_json_is_the_line_of_classify(capsys):
    from audio_tf.cli.output import print_scores

    scores = {str(number): 1.0 / (number + 1) for number in range(7)}
    found = {"file": HOSTILE, "scores": scores}
    print_scores({**found, "scores": dict([*scores.items()][:5])}, True)
    assert texts.as_json(found) + "\n" == capsys.readouterr().out
    refused = {"file": "a", "error": "b"}
    assert json.loads(texts.as_json(refused)) == refused


@pytest.mark.parametrize(
    "file, quoted",
    [
        ("dog bark.wav", "dog bark.wav"),
        ("it's $HOME.wav", "it's $HOME.wav"),
        ('a;b,"c"\\.wav', '"a;b,\\"c\\"\\\\.wav"'),
    ],
)
def test_commands_name_the_file_and_no_more(file, quoted):
    words = shlex.split(texts.command("http://here:1", file, "a b&c"))
    url = "http://here:1/classify?model=a+b%26c"
    assert words == ["curl", "-F", f"file=@{quoted}", url]


def test_commands_for_samples_fetch_them_first():
    (file, *_) = samples.FILES
    words = shlex.split(texts.command("http://here:1", file, "m"))
    assert words[:4] == ["curl", "-s", f"http://here:1/samples/{file}", "|"]
    assert words[6] == f"file=@-;filename={file}"
