"""Every signature of an exported model against the model itself."""

import json
import subprocess
import sys

import attention_cases
import keras
import numpy as np
import pytest

if keras.backend.backend() != "tensorflow":
    pytest.skip("SavedModels are TensorFlow's", allow_module_level=True)

import serving_cases
import tensorflow as tf
from serving_cases import (
    Export,
    assert_scored,
    assert_served,
    classifier,
    wav_file,
)
from tensorflow.core.protobuf import saved_model_pb2
from tensorflow_serving.apis import prediction_log_pb2

from audio_tf import attention, data
from audio_tf import export as audio_export
from audio_tf.audio import RESAMPLER
from audio_tf.audio.wav import ERRORS, WavError
from audio_tf.corpora import Corpus
from audio_tf.export import (
    copies,
    gate,
    signatures,
    streaming,
    verify,
    warmup,
)
from audio_tf.models import AudioClassifier, AudioTransformerBackbone

pytestmark = pytest.mark.costly

# One of each family of operations; a slow test exports all twenty.
KINDS_OF_ATTENTION = [
    "full",
    "sparse_fixed",
    "simple_alsh",
    "random_synthesizer",
    "local_dense_synthesizer",
    "grouped_query_gaussian_adaptive",
    "bi_skewed_gaussian",
]
# Sizes of each structure but the plainest, which other exports here have, with
# as few blocks as show it; slow tests take all sizes as they are.
STRUCTURES = {
    "audio_transformer_large_pooled": {"num_layers": 2},
    "audio_transformer_large_multiscale": {"num_layers": 1},
}
SIGNATURES = {"serving_default", "serving_audio_bytes", "embed", "frames"}
RATE_HZ = 1100
# Past so many seconds, the exports of this file refuse a clip.
MAX_CLIP_S = 3.0
# Samples of a frame.
FRAME = 11


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    """Takes clips whole, and has no signature `stream`."""
    path = tmp_path_factory.mktemp("whole") / "zoo"
    return Export(classifier(None), path, max_clip_s=MAX_CLIP_S)


@pytest.fixture(scope="module")
def table(tmp_path_factory):
    """An export with a table for 13 frames, and the paths of its weights."""
    model = classifier(
        None,
        attention="random_synthesizer",
        attention_kwargs={"max_length": 13},
        num_layers=2,
        pool_every=1,
    )
    before = [weight.path for weight in model.weights]
    return Export(model, tmp_path_factory.mktemp("table")), before


@pytest.fixture(scope="module")
def hushed():
    """A model that leaves silence out, and its scorer of bytes."""
    model = classifier(silence_db=-20.0)
    return model, scorer(model)


def scorer(model):
    """The signature `serving_audio_bytes` as a graph that is not written."""
    function, specs = signatures.endpoints(model, MAX_CLIP_S)[
        "serving_audio_bytes"
    ]
    graph = tf.function(function, input_signature=specs, autograph=False)
    return lambda files: graph(tf.constant(files, tf.string, (len(files),)))


def noise(rng, samples, *shape):
    return 0.3 * rng.standard_normal((*shape, samples)).astype("float32")


def pipeline_scores(model, files, tmp_path):
    """Scores of WAV contents by the Python pipeline, from files on disk."""
    paths = []
    for index, contents in enumerate(files):
        paths.append(tmp_path / f"{index}.wav")
        paths[-1].write_bytes(contents)
    corpus = Corpus(paths, [[] for _ in paths], model.labels)
    clips = data.prepare(
        corpus, model.sample_rate_hz, tmp_path / "cache", progress=False
    )
    chunks = data.Chunks.for_model(clips, model)
    return data.score_clips(model, chunks, verbose=0)


def padded(x, lengths):
    return {"waveform": x, "lengths": np.array(lengths, "int32")}


def odd_clips(x):
    """WAV files of other rates, formats and channels."""
    return [
        wav_file(x[0, :97]),
        wav_file(x[1, :281], 1_200, "PCM_24"),
        wav_file(x.T, 22_050, "ULAW"),
    ]


@pytest.mark.long
def test_each_kind_of_attention_is_served(rng, tmp_path):
    """Scores and mask of every frame, of many attentions in one SavedModel.

    The other signatures call the same graph of the backbone. A slow test below
    exports each attention for itself and runs all signatures.
    """
    written, weights, cases = {}, [], {}
    inputs = padded(noise(rng, 283, 3), [283, 97, 1])
    for mechanism in KINDS_OF_ATTENTION:
        model = classifier(attention=mechanism, made_for_frames=41)
        # Fresh tables are alike, as if a signature had a copy of another's.
        attention_cases.shaken(model, rng, by=0.1)
        folded = copies.folded(model)
        weights += folded.weights
        endpoints = signatures.endpoints(folded, MAX_CLIP_S)
        written[mechanism] = endpoints["frames"]
        cases[mechanism] = serving_cases.waveform_cases(model, inputs)["frames"]
        mask = cases[mechanism][1]["mask"]
        np.testing.assert_array_equal(mask.sum(axis=1), [26, 9, 1])
    folder = tmp_path / "model"
    signatures.write(written, weights, folder)
    served = tf.saved_model.load(str(folder)).signatures
    assert_served(folder, cases, served, tmp_path)
    assert gate.problems(folder) == []


@pytest.mark.slow
@pytest.mark.parametrize("mechanism", attention.ATTENTIONS)
def test_every_attention_is_served(mechanism, rng, tmp_path):
    """By `export`, all signatures, one model after the other."""
    model = classifier(attention=mechanism, made_for_frames=41)
    x = noise(rng, 283, 3)
    cases = serving_cases.waveform_cases(model, padded(x, [283, 97, 1]))
    cases["serving_audio_bytes"] = serving_cases.bytes_case(model, odd_clips(x))
    assert set(cases) == SIGNATURES
    export = Export(model, tmp_path / "model")
    assert_served(export.folder, cases, export.loaded.signatures, tmp_path)


def test_every_signature_is_served(shared_export, rng, tmp_path):
    """Of a model that streams and explains; the stream's second step."""
    model, x = shared_export.model, noise(rng, 283, 3)
    cases = serving_cases.waveform_cases(model, padded(x, [283, 97, 1]))
    cases["serving_audio_bytes"] = serving_cases.bytes_case(model, odd_clips(x))
    step, _ = streaming.endpoint(model)
    last, start = np.array([False]), 125
    begun = step(x[:, :start], last, tf.zeros((1, 0)))["state"].numpy()
    over_time = model.score_frames(model.backbone(x)["sequence_output"])
    cases["stream"] = (
        {"waveform": x[:, start:], "last": last, "state": begun},
        {
            # The last frame is not whole.
            "scores": over_time[:, start // FRAME : 283 // FRAME],
            "state": step(x[:, start:], last, begun)["state"].numpy(),
        },
    )
    clips = [x[0], x[1, :97]]
    cases["explain"] = serving_cases.explain_case(model, clips, [-1, 2])
    assert set(cases) == {*SIGNATURES, "stream", "explain"}
    served = shared_export.loaded.signatures
    assert_served(shared_export.folder, cases, served, tmp_path)


# Loads exports where audio_tf cannot be imported.
STRANGER = """
import json, sys
sys.modules["audio_tf"] = None
import numpy as np
import tensorflow as tf

found = []
for folder in sys.argv[2:]:
    serve = tf.saved_model.load(folder).signatures["serving_default"]
    with np.load(sys.argv[1]) as inputs:
        for key in sorted(inputs):
            waveform, lengths = tf.constant(inputs[key]), tf.constant([-1])
            scores = serve(waveform=waveform, lengths=lengths)["scores"]
            found.append(scores.numpy().tolist())
print(json.dumps(found))
"""


def exported_sizes(top, sizes):
    """The export of each size, and the model before it was saved, by name.

    Args:
        top: folder for the exports.
        sizes: dict by name of the arguments that replace those of the size.
    """
    found = {}
    for size, kwargs in sizes.items():
        model = AudioClassifier.from_preset(size, labels=list("abc"), **kwargs)
        model.save(top / f"{size}.keras")
        reloaded = keras.saving.load_model(top / f"{size}.keras")
        found[size] = model, Export(reloaded, top / size)
    return found


@pytest.fixture(scope="module")
def structures(tmp_path_factory):
    return exported_sizes(tmp_path_factory.mktemp("structures"), STRUCTURES)


@pytest.fixture(scope="module")
def sizes(tmp_path_factory):
    whole = dict.fromkeys(AudioTransformerBackbone.sizes, {})
    return exported_sizes(tmp_path_factory.mktemp("sizes"), whole)


def cases_of_sizes(sizes, rng):
    """Yields names of sizes, their exports and cases of all signatures."""
    x = noise(rng, 16_001, 2)
    clips = [
        wav_file(x[0, :7919], 8_000, "PCM_U8"),
        wav_file(x.T, 44_100, "PCM_16"),
        wav_file(x[1, :16_000], 16_000, "DOUBLE"),
    ]
    inputs = padded(x, [16_001, 5_003])
    for size, (model, export) in sizes.items():
        cases = serving_cases.waveform_cases(model, inputs)
        cases["serving_audio_bytes"] = serving_cases.bytes_case(model, clips)
        yield size, export, cases


@pytest.mark.long
def test_each_structure_is_served(structures, rng):
    """From Python; the gate of exports has seen that servers know each op."""
    for _, export, cases in cases_of_sizes(structures, rng):
        assert_scored(cases, export.loaded.signatures)


@pytest.mark.slow
def test_every_size_is_served(sizes, rng, tmp_path):
    for size, export, cases in cases_of_sizes(sizes, rng):
        served = export.loaded.signatures
        assert_served(export.folder, cases, served, tmp_path / size)


def assert_scores_equal(found, sizes, inputs):
    """Compares lists of scores, of each size for each of the inputs."""
    expected = [
        (f"{size} of shape {x.shape}", model(x))
        for size, (model, _) in sizes.items()
        for _, x in sorted(inputs.items())
    ]
    for scores, (case, known) in zip(found, expected, strict=True):
        np.testing.assert_allclose(scores, known, atol=1e-5, err_msg=case)


def inputs_of_shapes(rng, shapes):
    return {
        f"{number}": noise(rng, frames * 97, batch)
        for number, (frames, batch) in enumerate(shapes)
    }


def test_a_structure_takes_any_batch_and_length(structures, rng):
    """Saved, reloaded, exported and loaded."""
    inputs = inputs_of_shapes(rng, [(131, 3), (40, 5), (7, 3)])
    found = [
        export.loaded.signatures["serving_default"](
            waveform=tf.constant(x), lengths=tf.constant([-1])
        )["scores"]
        for _, export in structures.values()
        for _, x in sorted(inputs.items())
    ]
    assert_scores_equal(found, structures, inputs)


@pytest.mark.slow
def test_every_size_is_equal_in_another_process(sizes, rng, tmp_path):
    """Where audio_tf cannot be imported."""
    shapes = [(131, 3), (40, 5), (7, 3), (131, 5), (40, 3), (7, 5)]
    inputs = inputs_of_shapes(rng, shapes)
    np.savez(tmp_path / "inputs.npz", **inputs)
    folders = [export.folder for _, export in sizes.values()]
    done = subprocess.run(
        [sys.executable, "-c", STRANGER, tmp_path / "inputs.npz", *folders],
        capture_output=True,
        text=True,
        cwd="/",
        env={"TF_CPP_MIN_LOG_LEVEL": "3", "PATH": ""},
    )
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout.splitlines()[-1])
    assert_scores_equal(found, sizes, inputs)


def test_weights_are_all_there_is(structures):
    """In the variables and once; the graph has no copy of any as constant."""
    model, export = structures["audio_transformer_large_multiscale"]
    variables = sum(
        file.stat().st_size for file in (export.folder / "variables").iterdir()
    )
    weights = sum(int(np.prod(w.shape)) for w in model.weights) * 4
    assert weights < variables < 1.02 * weights
    contents = (export.folder / "saved_model.pb").read_bytes()
    proto = saved_model_pb2.SavedModel.FromString(contents)
    graph = proto.meta_graphs[0].graph_def
    functions = [node for f in graph.library.function for node in f.node_def]
    constants = sum(
        node.attr["value"].tensor.ByteSize()
        for node in (*graph.node, *functions)
        if node.op == "Const"
    )
    assert 0 < constants < 0.02 * weights


@pytest.mark.parametrize("kind", ["chunks", "without silence", "whole"])
def test_bytes_score_as_the_pipeline(
    kind, shared_export, hushed, whole, rng, tmp_path
):
    """Long, short, odd, stereo, silent in part, of several rates."""
    model, score_bytes = {
        "chunks": (shared_export.model, shared_export.loaded.score_bytes),
        "without silence": hushed,
        "whole": (whole.model, whole.loaded.score_bytes),
    }[kind]
    fades = noise(rng, 1801) * (np.arange(1801) // 275 % 3 == 1)
    quiet = 0.001 * noise(rng, 700)
    files = [
        wav_file(noise(rng, 3001)),
        wav_file(noise(rng, 275)),
        wav_file(noise(rng, 276)),
        wav_file(noise(rng, 7)),
        wav_file(noise(rng, 5003), 8000, "PCM_16"),
        wav_file(noise(rng, 4409, 2).T, 44_100, "PCM_24"),
        wav_file(fades),
        wav_file(quiet),
    ]
    found = score_bytes(files)
    expected = pipeline_scores(model, files, tmp_path)
    assert found["valid"].numpy().all() and not found["error"].numpy().any()
    np.testing.assert_allclose(found["scores"], expected, atol=1e-5)
    assert np.ptp(expected, axis=0).max() > 1e-3
    for row, contents in enumerate(files):
        alone = score_bytes([contents])["scores"]
        np.testing.assert_allclose(alone[0], expected[row], atol=1e-5)


def test_silence_is_left_out(hushed, rng):
    """A clip of noise and silence scores as the noise does."""
    clip = noise(rng, 275)
    longer = np.concatenate([clip, np.zeros(550, "float32")])
    scores = hushed[1]([wav_file(clip), wav_file(longer)])["scores"]
    np.testing.assert_allclose(scores[0], scores[1], atol=1e-6)


def test_many_chunks_are_scored_in_blocks(rng, tmp_path):
    model = classifier(chunk_s=0.02, chunk_hop_s=0.013)
    files = [wav_file(noise(rng, n)) for n in (2003, 11, 1409, 22)]
    found = scorer(model)(files)["scores"]
    expected = pipeline_scores(model, files, tmp_path)
    np.testing.assert_allclose(found, expected, atol=1e-5)


@pytest.mark.parametrize("kind", ["chunks", "whole"])
def test_a_bad_clip_leaves_the_others_alone(kind, shared_export, whole, rng):
    served = {"chunks": shared_export, "whole": whole}[kind].loaded
    good = wav_file(noise(rng, 500))
    bad = {
        b"": WavError.NOT_WAVE,
        good[:11]: WavError.NOT_WAVE,
        good[:300]: WavError.CUT_OFF,
        wav_file(np.zeros(3301, "float32")): WavError.TOO_LONG,
        wav_file(np.full(9, np.nan, "float32")): WavError.NOT_FINITE,
        wav_file(np.full(9, 3e38, "float32")): WavError.OVERFLOW,
    }
    alone = served.score_bytes([good])["scores"].numpy()[0]
    together = served.score_bytes([good, *bad, good])
    errors = [WavError.NONE, *bad.values(), WavError.NONE]
    np.testing.assert_array_equal(together["error"], errors)
    np.testing.assert_array_equal(
        together["valid"], np.array(errors) == WavError.NONE
    )
    scores = together["scores"].numpy()
    np.testing.assert_allclose(scores[[0, -1]], [alone, alone], atol=1e-6)
    assert not scores[1:-1].any()
    nothing = served.score_bytes(list(bad))
    assert not nothing["valid"].numpy().any()
    assert not nothing["scores"].numpy().any()
    assert served.score_bytes([])["scores"].shape == (0, 3)


def test_whole_clips_longer_than_a_table_are_refused(table, rng):
    files = [wav_file(noise(rng, n)) for n in (13 * FRAME, 13 * FRAME + 1)]
    found = table[0].loaded.score_bytes(files)
    np.testing.assert_array_equal(found["error"], [0, WavError.TOO_LONG])
    clips = [(noise(rng, n), RATE_HZ) for n in (13 * FRAME, 13 * FRAME + 1)]
    good, long = table[0].loaded.classify(clips)
    assert "scores" in good and "longer than the 0.13 s" in long["error"]


def test_noise_that_formats_are_compared_on_is_as_short_as_a_table(table):
    export = table[0]
    files = {"savedmodel": export.folder.parent}
    rows = verify.verify(export.model, files, verify.noise(RATE_HZ), rounds=0)
    assert [row.passed for row in rows] == [True, True]


def test_tables_are_folded_in_the_export_alone(table):
    export, before = table
    assert [weight.path for weight in export.model.weights] == before
    graph = export.loaded.signatures["serving_default"].graph
    operations = {
        node.op
        for function in graph.as_graph_def().library.function
        for node in function.node_def
    }
    assert "MatMul" in operations or "BatchMatMulV2" in operations
    assert not operations & {"Softmax", "Exp"}


def test_provenance_and_errors_travel_along(shared_export):
    described = shared_export.loaded.metadata
    assert described["provenance"] == {"seed": 3}
    assert described["resampler"] == RESAMPLER
    assert described["errors"][WavError.CUT_OFF] == ERRORS[WavError.CUT_OFF]


@pytest.mark.parametrize("kind", ["whole", "chunks", "table"])
def test_warm_up_replays_every_signature(kind, shared_export, whole, table):
    """A server does not load a model whose table is shorter than a request."""
    exports = {"whole": whole, "chunks": shared_export, "table": table[0]}
    export, more = exports[kind], ()
    if kind == "chunks":
        more = ("stream", "explain")
    served = export.loaded.signatures
    replayed = []
    for record in tf.data.TFRecordDataset(str(export.folder / warmup.REQUESTS)):
        log = prediction_log_pb2.PredictionLog.FromString(record.numpy())
        request = log.predict_log.request
        assert request.model_spec.name == export.folder.parent.name
        name = request.model_spec.signature_name
        inputs = {
            key: tf.constant(tf.make_ndarray(value))
            for key, value in request.inputs.items()
        }
        batch = len(next(iter(inputs.values())))
        outputs = served[name](**inputs)
        assert all(len(output) == batch for output in outputs.values())
        if "valid" in outputs:
            assert outputs["valid"].numpy().all()
        replayed.append((name, batch))
    names = SIGNATURES.union(more)
    expected = [(name, 1) for name in names] + [("serving_audio_bytes", 8)]
    assert sorted(replayed) == sorted(expected)


def test_streams_and_explanations_have_to_be_asked_for(whole):
    with pytest.raises(ValueError, match="stream=True"):
        whole.loaded.stream()
    with pytest.raises(ValueError, match="explain=True.*'embed'"):
        whole.loaded.explain(np.zeros((1, 30), "float32"))


@pytest.mark.parametrize(
    "inputs, message",
    [
        (np.zeros((2, 30), "int16"), "`waveform` must be floating.*: int16"),
        (np.zeros(30, "float32"), r"\(batch, samples\). Received: shape=\(30,"),
        ({"lengths": [1]}, r"a dict of `waveform`.*keys=\['lengths'\]"),
        ({"waveform": np.zeros((2, 30)), "mask": 1}, r"'mask', 'waveform'\]"),
        (
            {"waveform": np.zeros((2, 30)), "lengths": [7, 8, 9]},
            r"`lengths` for each clip.*\(3,\), 2 clips",
        ),
        (
            {"waveform": np.zeros((2, 30)), "lengths": [7.0, 8.0]},
            "`lengths` must be integers.*float64",
        ),
    ],
)
def test_what_is_no_batch_of_waveforms_is_refused(
    inputs, message, shared_export
):
    served = shared_export.loaded
    for call in (served, served.embed, served.frames, served.explain):
        with pytest.raises(ValueError, match=message):
            call(inputs)


def test_any_integers_are_lengths(shared_export, rng):
    served, x = shared_export.loaded, noise(rng, 283, 3)
    expected = shared_export.model(padded(x, [283, 97, 1]))
    for lengths in (
        np.array([2**63, 97, 1], "uint64"),
        np.array([-1, 97, 1], "int8"),
        tf.constant([2**40, 97, 1], tf.int64),
        [283, 97, 1],
    ):
        found = served({"waveform": tf.constant(x), "lengths": lengths})
        np.testing.assert_allclose(found, expected, atol=1e-5)
    alone = {"waveform": x.astype("float64"), "lengths": 97}
    np.testing.assert_allclose(served(alone)[1], expected[1], atol=1e-5)


def test_labels_and_pieces_are_as_many_as_clips(shared_export, rng):
    served, x = shared_export.loaded, noise(rng, 97, 3)
    with pytest.raises(ValueError, match="2 labels, 3 clips"):
        served.explain(x, label=served.label_names[:2])
    stream = served.stream()
    stream(x)
    with pytest.raises(ValueError, match="2 rows after 3"):
        stream(x[:2])
    with pytest.raises(ValueError, match="floating"):
        stream(x.astype("int16"))


def test_what_a_server_would_refuse_is_not_exported(
    head_alone, tmp_path, monkeypatch
):
    monkeypatch.setattr(gate, "problems", lambda folder: ["a fault"])
    with pytest.raises(ValueError, match="a fault"):
        audio_export.export(classifier(), tmp_path)
    assert list(tmp_path.iterdir()) == []
    assert audio_export.export(classifier(), tmp_path, check=False).is_dir()
