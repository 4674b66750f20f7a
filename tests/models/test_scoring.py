"""Clips to labels in one call, over time, and as vectors."""

import functools
import json

import keras
import numpy as np
import pytest
import soundfile
import tiny

from audio_tf.audio import AudioError, chunking, scoring, sources
from audio_tf.models import AudioClassifier, timeline

# Files are read and chunks are averaged on the host.
pytestmark = pytest.mark.one_backend

RATE_HZ = 1_100
SIZES = [1_511, 7, 2_213, 331, 1_100, 550]


@pytest.fixture(scope="module")
def clips(tmp_path_factory):
    """Files of several lengths, one of them no audio, and one that is loud."""
    folder = tmp_path_factory.mktemp("clips")
    rng = np.random.default_rng(5)
    files = [folder / f"{number}.wav" for number in range(len(SIZES))]
    for file, size in zip(files, SIZES, strict=True):
        audio = rng.uniform(-0.5, 0.5, size)
        audio[size // 2 :] *= 1e-4
        soundfile.write(file, audio, RATE_HZ, subtype="FLOAT")
    bad = folder / "bad.wav"
    bad.write_text("no audio")
    return files, bad


@pytest.fixture(scope="module")
def backbone():
    return tiny.backbone()


def by_hand(classifier, audio):
    """Scores `(classes,)` of a clip, chunk after chunk."""
    if classifier.chunk_s is None:
        return np.asarray(classifier(audio[None]))[0]
    size, places = round(classifier.chunk_s * RATE_HZ), []
    hop = round((classifier.chunk_hop_s or classifier.chunk_s) * RATE_HZ)
    if len(audio) <= size:
        audio = np.tile(audio, -(-size // len(audio)))[:size]
    while len(places) * hop + size <= len(audio):
        places.append(len(places) * hop)
    if places[-1] + size < len(audio):
        places.append(len(audio) - size)
    chunks = [audio[place : place + size] for place in places]
    if classifier.silence_db is not None:
        loud = [np.abs(chunk).max() for chunk in chunks]
        least = min(max(loud), 10 ** (classifier.silence_db / 20))
        chunks = [c for c, peak in zip(chunks, loud) if peak >= least]
    return np.mean([np.asarray(classifier(c[None]))[0] for c in chunks], axis=0)


@pytest.mark.parametrize(
    "options",
    [
        {"chunk_s": 0.25, "silence_db": -30.0},
        pytest.param(
            {"chunk_s": 0.25, "chunk_hop_s": 0.11}, marks=pytest.mark.costly
        ),
        pytest.param({"chunk_s": None}, marks=pytest.mark.costly),
    ],
)
def test_scores_are_the_mean_over_chunks(options, clips, backbone, monkeypatch):
    """In one group and in many, bad files among them, in their order."""
    files, bad = clips
    classifier = AudioClassifier(backbone, num_classes=3, **options)
    expected = [
        by_hand(classifier, soundfile.read(file, dtype="float32")[0])
        for file in files
    ]
    given = [*files[:2], bad, *files[2:], bad]
    # The second has groups that fill several batches, and one in part.
    for at_once, samples, at_most in (
        (10**6, 2**24, 64),
        (10**6, 3_000, 3),
        (1_000, 3_000, 64),
        (1, 2**24, 64),
    ):
        monkeypatch.setattr(scoring, "samples_at_once", lambda _: at_once)
        monkeypatch.setattr(scoring, "MAX_SAMPLES", samples)
        monkeypatch.setattr(scoring, "BATCH_SIZE", at_most)
        found = classifier.classify(given, top=None)
        assert [each["file"] for each in found] == list(map(str, given))
        rows = [
            [each["scores"][name] for name in "012"]
            for each in found
            if "scores" in each
        ]
        np.testing.assert_allclose(rows, expected, rtol=0, atol=1e-5)
        for each in found:
            assert each.keys() == (
                {"file", "error"}
                if each["file"] == str(bad)
                else {"file", "scores"}
            )


@pytest.mark.costly
def test_groups_of_any_length_share_a_graph(clips, backbone, monkeypatch):
    """TensorFlow warns where five calls in a row are five graphs."""
    if keras.backend.backend() != "tensorflow":
        pytest.skip("it is TensorFlow that warns")
    monkeypatch.setattr(scoring, "samples_at_once", lambda _: 1)
    for chunk_s in (None, 0.25):
        classifier = AudioClassifier(backbone, num_classes=3, chunk_s=chunk_s)
        step, traced = classifier.predict_step, []

        def predict_step(batch, step=step, traced=traced):
            traced.append(batch)
            return step(batch)

        monkeypatch.setattr(classifier, "predict_step", predict_step)
        assert len(classifier.classify(clips[0])) == len(SIZES)
        assert 1 <= len(traced) < 4, chunk_s


def test_strict_scores_what_comes_before_the_bad_file(clips, backbone):
    files, bad = clips
    classifier = AudioClassifier(backbone, num_classes=3, chunk_s=0.25)
    named, _ = sources.find_sources([files[3], bad, files[4]])
    scored = classifier.classify_sources(named, strict=True)
    assert next(scored)["file"] == str(files[3])
    with pytest.raises(AudioError, match=str(bad)):
        next(scored)
    for call in (classifier.classify, classifier.embed, classifier.timeline):
        with pytest.raises(AudioError, match=str(bad)):
            call(bad, strict=True)
        found = call(bad)
        assert found["file"] == str(bad) and "not readable" in found["error"]


@pytest.mark.costly
def test_a_clip_that_is_too_long_leaves_the_others_alone(rng):
    """Tables of an attention are made for so many frames, here 110 samples."""
    model = AudioClassifier(
        tiny.backbone(attention="random_synthesizer", made_for_frames=10),
        labels=["dog", "rain"],
        chunk_s=None,
    )
    audio = rng.uniform(-0.5, 0.5, 111).astype("float32")
    pair = [(audio, RATE_HZ), (audio[:110], RATE_HZ)]
    explain = functools.partial(model.explain, method="occlusion", bands=2)
    for call in (model.classify, model.embed, model.timeline, explain):
        long, good = call(pair)
        assert long["error"] == "longer than the 0.1 s that the model takes"
        assert "error" not in good
        with pytest.raises(AudioError, match="clip 0: longer than"):
            call(pair, strict=True)
    expected = np.asarray(model(audio[None, :110]))[0]
    (_, good) = model.classify(pair)
    found = [good["scores"][name] for name in model.labels]
    np.testing.assert_allclose(found, expected, atol=1e-5)
    # A chunk is never longer than that.
    chunked = AudioClassifier(model.backbone, num_classes=2, chunk_s=0.1)
    assert "error" not in chunked.classify(pair[0])


@pytest.mark.costly
@pytest.mark.parametrize("chunk_s", [None, 0.1])
def test_few_shapes_are_compiled_on_jax(chunk_s, rng, backbone, monkeypatch):
    """Rows and samples that fill a batch up change nothing."""
    model = AudioClassifier(backbone, labels=["dog", "rain"], chunk_s=chunk_s)
    clips = [
        (rng.uniform(-0.5, 0.5, size).astype("float32"), RATE_HZ)
        for size in (513, 700, 1_111, 530, 601, 640, 513, 999, 1_200)
    ]

    def answers():
        for method in (model.classify, model.embed, model.timeline):
            yield [method(clip) for clip in clips]
            # Files that are scored together.
            yield method(clips)

    expected = list(answers())
    shapes, predict = set(), keras.Model.predict_on_batch

    def noted(model, x):
        waveform = x["waveform"] if isinstance(x, dict) else x
        shapes.add((model.name, *waveform.shape))
        return predict(model, x)

    monkeypatch.setattr(keras.Model, "predict_on_batch", noted)
    monkeypatch.setattr(keras.backend, "backend", lambda: "jax")
    for one, other in zip(answers(), expected, strict=True):
        assert_close(one, other)
    found = {shape[1:] for shape in shapes}
    if chunk_s is None:
        # Alone, and the rows of all together.
        assert found == {
            *((1, width) for width in (640, 768, 1_024, 1_280)),
            (16, 1_280),
        }
    else:
        assert all(rows.bit_count() == 1 for rows, _ in found), found


def assert_close(one, other):
    """Compares answers of whatever structure to 1e-5."""
    if isinstance(one, dict):
        assert set(one) == set(other)
        one, other = (
            [each[key] for key in sorted(one)] for each in (one, other)
        )
    if isinstance(one, list):
        assert len(one) == len(other)
        for pair in zip(one, other):
            assert_close(*pair)
    elif isinstance(one, str):
        assert one == other
    else:
        np.testing.assert_allclose(one, other, atol=1e-5)


def test_files_are_decoded_a_few_ahead(monkeypatch):
    """However many there are, few are in memory."""
    asked = []

    def load(file, sample_rate_hz, content):
        asked.append(file)
        return np.zeros(100, "float32")

    monkeypatch.setattr(sources, "load_audio", load)
    monkeypatch.setattr(sources.os, "cpu_count", lambda: 3)
    named = (sources.Source(number) for number in range(1_000))
    decoded = sources.load_ahead(named, RATE_HZ)
    for number in range(5):
        assert next(decoded)[0].name == number
    decoded.close()
    assert len(asked) <= 5 + 3


@pytest.fixture(scope="module")
def classifier(backbone):
    return AudioClassifier(
        backbone, labels=["dog", "rain", "siren"], chunk_s=0.25
    )


def test_a_clip_is_a_path_bytes_or_samples(clips, classifier, tmp_path):
    """One clip gives a dict; a list, a folder and a pattern a list."""
    file = clips[0][2]
    audio, _ = soundfile.read(file)
    found = classifier.classify(file)
    assert found["file"] == str(file)
    assert list(found["scores"].values()) == sorted(
        found["scores"].values(), reverse=True
    )
    assert json.loads(json.dumps(found)) == found
    for given in (
        str(file),
        file.read_bytes(),
        bytearray(file.read_bytes()),
        (audio, RATE_HZ),
        (audio.astype("float32"), float(RATE_HZ)),
        (keras.ops.convert_to_tensor(audio.astype("float32")), RATE_HZ),
        (keras.Variable(audio.astype("float32")).value, RATE_HZ),
    ):
        one = classifier.classify(given)
        assert one["scores"] == pytest.approx(found["scores"], abs=1e-6)
        assert one["file"] == (str(file) if given == str(file) else "clip")
    several = classifier.classify([(audio, RATE_HZ), file, b""], top=1)
    assert [each["file"] for each in several] == ["clip 0", str(file), "clip 2"]
    assert len(several[0]["scores"]) == 1
    assert several[2]["error"] == "empty file"
    assert len(classifier.classify(file.parent)) == 7
    assert len(classifier.classify(f"{file.parent}/[12].wav")) == 2
    assert classifier.classify([]) == []
    # Another rate is resampled as it is for a file.
    soundfile.write(tmp_path / "fast.wav", audio, 1_337, subtype="DOUBLE")
    assert classifier.classify((audio, 1_337))["scores"] == pytest.approx(
        classifier.classify(tmp_path / "fast.wav")["scores"], abs=1e-6
    )


@pytest.mark.parametrize(
    "samples, rate_hz, message",
    [
        (np.zeros(9, "int16"), 8_000, "full scale 1, as .*/ 32768` is.*int16"),
        (np.zeros(9, "uint8"), 8_000, "full scale 1. Received.*uint8"),
        (np.zeros(9, bool), 8_000, "floating.*dtype=bool"),
        (np.zeros((9, 2)), 8_000, r"shape \(samples,\).*shape=\(9, 2\)"),
        (np.float64(0), 8_000, r"shape=\(\)"),
        (np.zeros(9), 8_000.5, "whole Hz.*8000.5"),
        (np.zeros(9), 0, "whole Hz from 1000.*Received: 0"),
        (np.zeros(9), "8000", "whole Hz.*'8000'"),
        (np.zeros(9), True, "whole Hz.*True"),
        (np.zeros(9), np.nan, "whole Hz.*nan"),
    ],
)
def test_samples_that_could_mean_something_else(
    samples, rate_hz, message, classifier
):
    for call in (classifier.classify, classifier.embed, classifier.timeline):
        with pytest.raises(ValueError, match=message):
            call((samples, rate_hz))
        with pytest.raises(ValueError, match="clip 1"):
            call([(np.ones(9), 8_000), (samples, rate_hz)])


@pytest.mark.parametrize("pair", [("a.wav", "b.wav"), (8_000, np.zeros(9))])
def test_what_is_no_pair_of_samples_and_rate(pair, classifier):
    with pytest.raises(TypeError, match=r"\(samples, rate_hz\).*tuple"):
        classifier.classify(pair)


@pytest.mark.parametrize(
    "given, message",
    [
        (np.zeros(9), "samples need their rate beside them.*ndarray"),
        (("a.wav", "b.wav", "c.wav"), "or a list of these. Received: tuple"),
        (None, "Received: NoneType"),
        ({"waveform": 1}, "Received: dict"),
    ],
)
def test_a_clip_that_is_none(given, message, classifier):
    with pytest.raises(TypeError, match=message):
        classifier.classify(given)


def test_samples_are_checked_as_files_are(classifier):
    found = classifier.classify(
        [
            (np.full(9, np.nan), 8_000),
            (np.zeros(0), 8_000),
            (np.full(9, 1e30), 8_000),
        ]
    )
    for each, reason in zip(found, ("NaN", "no samples", "so large")):
        assert reason in each["error"]


@pytest.mark.parametrize("dtype", ["float16", "float32", "float64", ">f4"])
@pytest.mark.filterwarnings("error")
def test_samples_of_every_width_score_alike(dtype, classifier):
    # Multiples of 1/128, which half precision holds exactly.
    audio = np.sin(np.arange(1_511)).round(2) // (1 / 128) / 128
    found = classifier.classify((audio.astype(dtype), RATE_HZ), top=None)
    known = classifier.classify((audio, RATE_HZ), top=None)
    assert found["scores"] == known["scores"]


@pytest.mark.parametrize("top", [0, -1, 2.0, True])
def test_top_is_a_count(top, classifier):
    for call in (classifier.classify, classifier.timeline):
        with pytest.raises(ValueError, match="`top` must be a positive"):
            call([], top=top)


def test_an_embedding_is_what_the_head_scores(clips, classifier):
    file = clips[0][0]
    found = classifier.embed(file)
    audio, _ = soundfile.read(file, dtype="float32")
    chunks, _ = chunking.Cutting(275, 275).cut(audio)
    frames = classifier.backbone(chunks)
    pooled = classifier.pooler(
        frames["sequence_output"], mask=frames["frame_mask"]
    )
    expected = np.asarray(pooled).mean(axis=0)
    np.testing.assert_allclose(found["embedding"], expected, atol=1e-5)
    assert found["embedding"].dtype == np.float32
    several = classifier.embed([file, (audio, RATE_HZ)])
    for each in several:
        np.testing.assert_allclose(each["embedding"], expected, atol=1e-5)


def with_lora(classifier):
    classifier.backbone.enable_lora(2)
    rng = np.random.default_rng(0)
    for block in classifier.backbone.blocks:
        for dense in (block.attention.query_dense, block.attention.value_dense):
            dense.lora_kernel_b.assign(rng.normal(size=(2, 10)))


@pytest.mark.costly
@pytest.mark.parametrize(
    "change",
    [
        lambda classifier: classifier.quantize("int8"),
        lambda classifier: classifier.backbone.quantize("int8"),
        with_lora,
    ],
    ids=["quantized", "backbone_quantized", "lora"],
)
def test_answers_are_those_of_the_weights_that_layers_have_got(change, rng):
    """Keras traces the model anew that it changes, not those beside it."""
    keras.utils.set_random_seed(1)
    classifier = AudioClassifier(tiny.backbone(), num_classes=3, chunk_s=None)
    audio = rng.uniform(-0.5, 0.5, 700).astype("float32")

    def answers():
        embedding = classifier.embed((audio, RATE_HZ))["embedding"]
        scores = classifier.classify((audio, RATE_HZ), top=None)["scores"]
        scores = [scores[str(index)] for index in range(3)]
        return embedding, classifier.predict(audio[None], verbose=0)[0], scores

    before = answers()
    classifier.evaluate(audio[None], np.eye(3)[:1], verbose=0)
    change(classifier)
    after = answers()
    frames = classifier.backbone(audio[None])
    pooled = classifier.pooler(
        frames["sequence_output"], mask=frames["frame_mask"]
    )
    called = keras.ops.convert_to_numpy(classifier(audio[None]))
    expected = keras.ops.convert_to_numpy(pooled)[0], called[0], called[0]
    for old, new, found in zip(before, after, expected, strict=True):
        np.testing.assert_allclose(new, found, atol=1e-5)
        assert np.abs(np.subtract(new, old)).max() > 1e-4
    loss = classifier.evaluate(audio[None], np.eye(3)[:1], verbose=0)
    error = np.abs(called - np.eye(3)[:1])
    assert loss == pytest.approx(np.mean(error**2) / 2, rel=1e-4)  # Huber's


@pytest.mark.parametrize(
    "chunk_s, hop_s", [(0.25, None), (0.25, 0.1), (None, None)]
)
@pytest.mark.parametrize("samples", [1_511, 1_100, 7])
def test_a_timeline_is_the_frames_scores(
    chunk_s, hop_s, samples, backbone, rng, monkeypatch
):
    """Frames span the clip without gap and overlap, and score as they do.

    A long recording has more chunks than are scored at once.
    """
    monkeypatch.setattr(timeline, "BATCH_SIZE", 4)
    classifier = AudioClassifier(
        backbone, num_classes=3, chunk_s=chunk_s, chunk_hop_s=hop_s
    )
    audio = rng.uniform(-0.5, 0.5, samples).astype("float32")
    found = classifier.timeline((audio, RATE_HZ), top=None)["timeline"]
    bounds = [0.0, *(frame["end_s"] for frame in found)]
    assert [frame["start_s"] for frame in found] == bounds[:-1]
    assert bounds[-1] == samples / RATE_HZ
    step = backbone.output_frame_size
    size = samples if chunk_s is None else 275
    hop = size if hop_s is None else 110

    @functools.cache
    def frame_scores(start):
        chunk = np.resize(audio[start : start + size], (1, size))
        frames = backbone(chunk)["sequence_output"]
        return np.asarray(classifier.score_frames(frames))[0]

    for frame in found:
        begin = round(frame["start_s"] * RATE_HZ)
        # The first chunk that the sample is in.
        start = max(0, -(-(begin - size + 1) // hop)) * hop
        if samples > size:
            start = min(start, samples - size)
        row = frame_scores(start)[(begin - start) // step]
        values = [frame["scores"][name] for name in "012"]
        np.testing.assert_allclose(values, row, atol=1e-5)


def test_a_timeline_leaves_out_what_scores_leave_out(backbone, rng):
    classifier = AudioClassifier(
        backbone, num_classes=3, chunk_s=0.25, silence_db=-40.0
    )
    audio = rng.uniform(-0.5, 0.5, 3 * 275)
    audio[275:550] = 0.0
    found = classifier.timeline((audio, RATE_HZ), top=1)["timeline"]
    assert all(len(frame["scores"]) == 1 for frame in found)
    starts = np.array([round(frame["start_s"] * RATE_HZ) for frame in found])
    assert not np.any((starts >= 275) & (starts < 550))
    assert (starts < 275).sum() == (starts >= 550).sum() == len(starts) / 2
