"""Probes of frozen features, and the script that runs them."""

import json
import shutil

import keras
import numpy as np
import pytest
import soundfile
import tiny

if keras.backend.backend() != "tensorflow":
    pytest.skip("probes read through tf.data", allow_module_level=True)

import tensorflow as tf
from scripts import end_at, kill_at

from audio_tf import data, models
from audio_tf.analysis import probes
from audio_tf.corpora import SpeechCorpus, read_speech_folder
from audio_tf.data import PADDING_LABEL, cache
from audio_tf.layers import SpeechFeatures
from audio_tf.runs import heard, probe
from audio_tf.runs.probe_splits import load_splits

pytestmark = pytest.mark.costly

DIM, CLASSES, HIDDEN = 7, 5, 3
RATE_HZ, OPTIONS = 4_000, {"num_mel_bins": 13, "fft_length": 128}
FEATURES = ["--features", "s3prl", "--features-options", json.dumps(OPTIONS)]
FEATURES += ["--sample-rate-hz", str(RATE_HZ)]


def utterances(folder, features, kind, speakers=None, labels=None):
    """`Utterances` of arrays `(frames, dim)`."""
    folder.mkdir(exist_ok=True)
    entries = []
    for number, each in enumerate(features):
        entries.append(folder / f"{number}.f32")
        cache.write_entry(entries[-1], each.astype("float32"))
    speakers = [0] * len(features) if speakers is None else speakers
    corpus = SpeechCorpus(
        entries,
        [[str(speaker)] for speaker in speakers],
        [str(speaker) for speaker in range(CLASSES)],
        [str(number) for number in range(len(features))],
        labels,
        100.0,
    )
    lengths = np.array([len(each) for each in features])
    frames = data.Frames(16_000, 160)
    dim = features[0].shape[1]
    none = np.zeros(len(features), "int64")
    clips = data.Clips(
        corpus, entries, lengths, 16_000, {}, none, none, dim, frames
    )
    return data.Utterances(clips, kind)


@pytest.mark.parametrize("split", ["val", "test"])
def test_a_split_that_is_there_is_not_drawn(split, tmp_path, monkeypatch):
    lists = {}
    for name in ("train", "val", "test"):
        found = utterances(tmp_path / name, [np.zeros((2, 3))] * 8, "speaker")
        lists[name] = found.clips.corpus
    asked = probe.ProbeSettings(data_dir=str(tmp_path))
    monkeypatch.setattr(probe.ProbeSettings, "load", lambda self: dict(lists))
    assert load_splits(asked) == lists
    with pytest.raises(
        ValueError, match=f"--{split}-share draws.*8 utterances"
    ):
        load_splits(asked.replace(**{f"{split}_share": 0.25}))
    # To draw none of train is what is done.
    assert load_splits(asked.replace(**{f"{split}_share": 0.0})) == lists


def ragged(rng, count, low=2, high=23):
    return [
        rng.standard_normal((rng.integers(low, high), DIM))
        for _ in range(count)
    ]


def of_each_kind(folder, rng, name, count=17):
    """Random features with random targets for a probe."""
    features = ragged(rng, count)
    return utterances(
        folder,
        features,
        probes.PROBES[name].targets,
        rng.integers(0, CLASSES, count),
        [rng.integers(0, CLASSES, len(each)) for each in features],
    )


def naive_logits(probe, features):
    """One utterance by a loop over frames, `(frames, classes)`, or the
    speaker's `(classes,)`."""
    layers = [
        layer.get_weights()
        for layer in probe.layers
        if isinstance(layer, keras.layers.Dense)
    ]
    if probe.name == "speaker":
        features = [sum(features) / len(features)]
    rows = []
    for x in features:
        for kernel, bias in layers[:-1]:
            x = np.maximum(x @ kernel + bias, 0.0)
        rows.append(x @ layers[-1][0] + layers[-1][1])
    return rows[0] if probe.name == "speaker" else np.array(rows)


# Heads


def test_parameters():
    hidden = 7 * 3 + 3
    for name, parameters in {
        "speaker": 7 * 5 + 5,
        "frame_speaker": 7 * 5 + 5,
        "phoneme_linear": 7 * 5 + 5,
        "phoneme_1hidden": hidden + 3 * 5 + 5,
        "phoneme_2hidden": hidden + 3 * 3 + 3 + 3 * 5 + 5,
    }.items():
        probe = probes.create(name, DIM, CLASSES, HIDDEN)
        assert probe.count_params() == parameters, name


def test_the_papers_width_and_every_probe():
    probe = probes.create("phoneme_1hidden", DIM, CLASSES)
    assert probe.get_layer("hidden_0").units == 768
    assert set(probes.PROBES) - set(probes.PAPER_PROBES) == {"phoneme_linear"}
    with pytest.raises(ValueError, match="speaker.*Received: 'phones'"):
        probes.create("phones", DIM, CLASSES)


def test_dropout_is_in_the_hidden_layers():
    probe = probes.create("phoneme_2hidden", DIM, CLASSES, dropout=0.25)
    rates = [
        layer.rate
        for layer in probe.layers
        if isinstance(layer, keras.layers.Dropout)
    ]
    assert rates == [0.25, 0.25]


def test_probes_are_the_loop_and_padding_changes_nothing(rng):
    features = ragged(rng, 3)
    lengths = np.array([len(each) for each in features], "int32")
    padded = 100.0 * rng.standard_normal((3, 29, DIM)).astype("float32")
    for row, each in enumerate(features):
        padded[row, : len(each)] = each
    for name in probes.PROBES:
        probe = probes.create(name, DIM, CLASSES, HIDDEN)
        found = probe({"features": padded, "lengths": lengths}).numpy()
        for row, each in enumerate(features):
            expected = naive_logits(probe, each)
            logits = found[row]
            if name != "speaker":
                logits = logits[: len(each)]
            np.testing.assert_allclose(
                logits, expected, atol=1e-5, err_msg=name
            )
            alone = probe(each[None].astype("float32")).numpy()[0]
            np.testing.assert_allclose(logits, alone, atol=1e-5, err_msg=name)


# Accuracy and loss


# One probe for each kind of targets.
@pytest.mark.parametrize(
    "name", ["speaker", "frame_speaker", "phoneme_2hidden"]
)
def test_loss_and_accuracy_are_those_of_real_frames(
    name, rng, tmp_path, eager_models
):
    """Over batches of unequal size and padding, against a loop."""
    split = of_each_kind(tmp_path / "a", rng, name)
    probe = probes.create(name, DIM, CLASSES, HIDDEN)
    splits = {"train": split, "val": split, "test": split}
    report = probes.train(probe, splits, 1, 4, learning_rate=0.0, verbose=0)
    right, losses, frames = 0, [], 0
    for row, targets in enumerate(split.targets):
        targets = np.atleast_1d(targets)
        logits = naive_logits(probe, split.read(row)).reshape(-1, CLASSES)
        assert len(logits) == len(targets)
        right += np.sum(logits.argmax(-1) == targets)
        frames += len(targets)
        shifted = logits - logits.max(-1, keepdims=True)
        log_shares = shifted - np.log(np.exp(shifted).sum(-1, keepdims=True))
        losses += list(-log_shares[np.arange(len(targets)), targets])
    assert report["test_accuracy"] == pytest.approx(right / frames, abs=1e-12)
    for batch_size in (1, 17):
        metric = probes.RealAccuracy()
        for inputs, targets in split.dataset(batch_size):
            metric.update_state(targets, probe(inputs))
        assert float(metric.result()) == right / frames
    # Keras averages the losses of batches; one batch has but one.
    features, lengths, targets = split.read_batch(np.arange(17), np.zeros(17))
    loss = probe.test_on_batch(
        {"features": features, "lengths": lengths}, targets
    )[0]
    assert loss == pytest.approx(np.mean(losses), rel=1e-5)


def test_accuracy_counts_beyond_float32():
    metric = probes.RealAccuracy()
    metric.right.assign(2**24)
    metric.real.assign(2**24 + 1)
    logits = np.eye(CLASSES, dtype="float32")[[1, 2, 3]]
    metric.update_state(np.array([1, 4, PADDING_LABEL]), logits)
    assert int(metric.right) == 2**24 + 1 and int(metric.real) == 2**24 + 3
    assert float(metric.result()) == (2**24 + 1) / (2**24 + 3)
    metric.reset_state()
    assert float(metric.result()) == 0.0
    with pytest.raises(ValueError, match="no weights"):
        metric.update_state(np.array([1]), logits[:1], np.array([1.0]))


# Training


@pytest.mark.long
def test_the_best_epoch_is_tested_once(rng, tmp_path, monkeypatch):
    """Labels are noise and steps too long: dev goes up and down."""
    name = "frame_speaker"
    splits = {
        split: of_each_kind(tmp_path / split, rng, name)
        for split in ("train", "val", "test")
    }
    asked = []
    original = data.Utterances.dataset

    def counted(self, *args, **kwargs):
        asked.extend(split for split in splits if splits[split] is self)
        return original(self, *args, **kwargs)

    monkeypatch.setattr(data.Utterances, "dataset", counted)
    probe = probes.create(name, DIM, CLASSES)
    report = probes.train(probe, splits, 9, 4, 0.3, verbose=0)
    assert asked.count("test") == 1
    curve = report["history"]["val_accuracy"]
    assert len(curve) == report["epochs"] == 9
    assert report["best_epoch"] == 1 + int(np.argmax(curve)) < 9
    assert report["val_accuracy"] == max(curve) > curve[-1]
    for split in ("val", "test"):
        figures = probe.evaluate(
            splits[split].dataset(4), verbose=0, return_dict=True
        )
        assert figures["accuracy"] == report[f"{split}_accuracy"]


def test_of_equal_epochs_the_earliest_is_best(rng, tmp_path, eager_models):
    split = of_each_kind(tmp_path / "a", rng, "speaker")
    probe = probes.create("speaker", DIM, CLASSES)
    splits = {"train": split, "val": split, "test": split}
    report = probes.train(probe, splits, 3, 4, learning_rate=0.0, verbose=0)
    assert len(set(report["history"]["val_accuracy"])) == 1
    assert report["best_epoch"] == 1


@pytest.mark.parametrize(
    "name", ["speaker", "frame_speaker", "phoneme_2hidden"]
)
def test_an_epoch_of_one_batch_is_a_step_of_adam(
    name, rng, tmp_path, eager_models
):
    """Of the mean cross entropy over real frames, clipped to a norm of 10."""
    split = of_each_kind(tmp_path / "a", rng, name, 5)
    split = data.Utterances(split.clips, probes.PROBES[name].targets, buckets=1)
    probe = probes.create(name, DIM, CLASSES, HIDDEN)
    for weight in probe.weights:
        # So that the gradient's norm is beyond 10.
        weight.assign(30.0 * weight)
    ((inputs, targets),) = split.dataset(5)
    real = tf.constant(targets.numpy() != PADDING_LABEL)
    with tf.GradientTape() as tape:
        shares = tf.nn.log_softmax(probe(inputs))
        picked = tf.gather(
            shares, tf.where(real, targets, 0), batch_dims=len(real.shape)
        )
        loss = -tf.reduce_mean(tf.boolean_mask(picked, real))
    before = probe.get_weights()
    gradients = [
        each.numpy() for each in tape.gradient(loss, probe.trainable_weights)
    ]
    norm = np.sqrt(sum(np.sum(each**2.0) for each in gradients))
    scale = min(1.0, 10.0 / norm)
    splits = {"train": split, "val": split, "test": split}
    report = probes.train(probe, splits, 1, 5, learning_rate=0.01, verbose=0)
    assert report["history"]["loss"] == [pytest.approx(float(loss), rel=1e-4)]
    for old, new, gradient in zip(
        before, probe.get_weights(), gradients, strict=True
    ):
        # Where float32's rounding cannot turn the sign.
        clear = np.abs(gradient) > 1e-3
        # Means of one gradient, beta 0.9 and 0.999, both unbiased.
        root = np.sqrt(0.001) * np.abs(scale * gradient[clear])
        step = np.sqrt(0.001) * scale * gradient[clear] / (root + 1e-7)
        np.testing.assert_allclose(
            (new - old)[clear], -0.01 * step, rtol=0.01, atol=1e-5
        )


def test_a_loss_that_is_not_finite_is_an_error(rng, tmp_path, eager_models):
    features = ragged(rng, 3)
    features[1][0, 0] = np.nan
    split = utterances(tmp_path / "a", features, "speaker")
    probe = probes.create("speaker", DIM, CLASSES)
    with pytest.raises(ValueError, match="speaker must be finite"):
        probes.train(
            probe, {"train": split, "val": split, "test": split}, 1, verbose=0
        )


# Frozen features


def new_encoder(seed=3, **kwargs):
    keras.utils.set_random_seed(seed)
    backbone = models.AudioAlbertBackbone(
        **{
            "num_layers": 2,
            "num_heads": 2,
            "key_dim": 4,
            "hidden_dim": 12,
            "intermediate_dims": (16,),
            "feature_dim": 13,
            # Else positions drown the little there is to be seen.
            "initializer_range": 1.0,
            "dropout": 0.3,
            **kwargs,
        }
    )
    return models.SpeechEncoder(
        backbone, SpeechFeatures("s3prl", RATE_HZ, OPTIONS)
    )


@pytest.fixture(scope="module")
def speech(tmp_path_factory):
    """Three speakers, who are on for different shares of the time.

    Features are normalised over the clip, so that their mean tells nothing.
    """
    folder = tmp_path_factory.mktemp("speech")
    rng = np.random.default_rng(5)
    for speaker, share in {"ann": 0.15, "bob": 0.5, "cy": 0.85}.items():
        (folder / speaker).mkdir()
        for number in range(14):
            samples = int(rng.integers(6_000, 8_000))
            turns = np.arange(samples) / RATE_HZ / 0.2 + rng.uniform()
            level = np.where(turns % 1.0 < share, 0.1, 0.001)
            audio = level * rng.standard_normal(samples)
            soundfile.write(folder / speaker / f"{number}.wav", audio, RATE_HZ)
    (folder / "ann" / "bad.wav").write_text("no sound at all")
    return folder


@pytest.fixture(scope="module")
def clips(speech, tmp_path_factory):
    splits = read_speech_folder(speech)
    return data.prepare(
        splits["train"].select(range(12)),
        RATE_HZ,
        tmp_path_factory.mktemp("cache"),
        progress=False,
    )


def test_cached_states_are_the_encoders(clips, tmp_path, eager_models):
    encoder = new_encoder()
    before = encoder.get_weights()
    chosen = clips.select([0, 5, 11])
    for layer in (None, 0, 2):
        frozen = probes.FrozenFeatures(encoder, layer)
        found = data.cache_features(chosen, frozen, tmp_path, progress=False)
        assert found.dim == 12 and found.frames.rate_hz == 100.0
        for row in range(3):
            waveform = cache.read_entry(chosen.entries[row])[None]
            if layer is None:
                expected = encoder(waveform)["sequence_output"][0]
            else:
                x = encoder.features(waveform)
                state, _ = encoder.encoder.hidden_states(x)[layer]
                expected = state[0]
            stored = cache.read_entry(found.entries[row]).reshape(-1, 12)
            np.testing.assert_allclose(
                stored, expected, atol=2e-3, err_msg=f"layer {layer}"
            )
    for one, other in zip(before, encoder.get_weights(), strict=True):
        np.testing.assert_array_equal(one, other)


@pytest.mark.long
def test_states_are_compiled_once(clips, tmp_path, monkeypatch):
    frozen = probes.FrozenFeatures(new_encoder())
    calls = []
    original = SpeechFeatures.call

    def counted(self, waveform, *args, **kwargs):
        calls.append(waveform.shape)
        return original(self, waveform, *args, **kwargs)

    monkeypatch.setattr(SpeechFeatures, "call", counted)
    data.cache_features(clips, frozen, tmp_path, batch_size=3, progress=False)
    # One length, any length, any batch.
    assert 0 < len(calls) <= 3


def test_states_are_cached_by_weights_and_layer(
    clips, tmp_path, monkeypatch, eager_models
):
    def entries(encoder, layer=None):
        frozen = probes.FrozenFeatures(encoder, layer)
        return data.cache_features(
            clips.select([0, 1]), frozen, tmp_path, progress=False
        ).entries

    first = entries(new_encoder())
    others = [
        entries(new_encoder(seed=4)),
        entries(new_encoder(), layer=1),
        # The same weights, put to another use.
        entries(new_encoder(num_layers=3)),
    ]
    names = [first, *others]
    assert len({each[0] for each in names}) == len(names)

    def never(*args):
        raise RuntimeError("computed again")

    monkeypatch.setattr(probes.FrozenFeatures, "__call__", never)
    same = new_encoder()
    same.trainable = False
    assert entries(same) == first


def test_a_layer_that_is_not_there():
    for layer in (-1, 3):
        with pytest.raises(ValueError, match=f"2. Received: layer={layer}"):
            probes.FrozenFeatures(new_encoder(), layer)


# The script


@pytest.fixture(scope="module")
def preset(tmp_path_factory):
    folder = tmp_path_factory.mktemp("preset")
    new_encoder().save_to_preset(str(folder))
    (folder / "provenance.json").write_text('{"date": "then"}')
    return folder


def figures(out):
    tasks = json.loads((out / "probes.json").read_text())["tasks"]
    for report in tasks.values():
        del report["seconds"]
    return tasks


@pytest.mark.long
@pytest.mark.parametrize(
    "killed", [False, pytest.param(True, marks=pytest.mark.slow)]
)
def test_killed_and_resumed_equals_unbroken(
    killed, speech, preset, main, tmp_path, capsys, request
):
    if not killed:
        request.getfixturevalue("eager_models")
    common = ["--dataset", "folder", "--data-dir", speech, "--model", preset]
    common += ["--learning-rate", 0.05, "--batch-size", 5, "--epochs", 2]
    common += ["--layer", 0, "--tasks", "speaker", "frame_speaker"]
    whole, broken = tmp_path / "whole", tmp_path / "broken"
    main("probe", *common, "--out", whole)
    output = capsys.readouterr().out
    assert "1 file left out" in output and "bad.wav" in output
    assert "features of the model: s3prl, 4000 Hz" in output
    report = json.loads((whole / "probes.json").read_text())
    assert report["model"]["provenance"] == {"date": "then"}
    assert len(report["model"]["weights_sha256"]) == 64
    assert report["settings"]["features"] == "s3prl"
    assert report["settings"]["sample_rate_hz"] == RATE_HZ
    assert report["versions"]["keras"] == keras.__version__
    task = report["tasks"]["speaker"]
    assert task["num_classes"] == 3
    assert sum(task["utterances"].values()) == 42
    assert task["utterances_of_unseen_speakers"] == {"val": 0, "test": 0}
    assert 1 / 3 <= task["chance"] < 1.0

    end = ("audio_tf.runs.probe:run_task", 2)
    run = ("probe", *common, "--out", broken)
    if killed:
        kill_at(*end, *run, cache=tmp_path / "cache")
    else:
        end_at(*end, main, *run)
    assert list(figures(broken)) == ["speaker"]
    capsys.readouterr()
    main("probe", "--out", broken, "--resume")
    output = capsys.readouterr().out
    assert "\nspeaker\n" not in output and "\nframe_speaker\n" in output
    assert figures(broken) == figures(whole)


@pytest.mark.long
def test_the_mean_of_normalised_features_tells_nothing(
    speech, preset, main, refusal, tmp_path, capsys, eager_models
):
    """The papers' mel baseline; and what a run refuses."""
    common = ["--dataset", "folder", "--data-dir", speech, "--epochs", 1]
    common += ["--tasks", "speaker"]
    mel, same = tmp_path / "mel", tmp_path / "same"
    main("probe", *common, *FEATURES, "--out", mel)
    report = figures(mel)["speaker"]
    assert report["test_accuracy"] <= report["chance"]
    assert report["parameters"] == 13 * 3 + 3
    assert "test" in capsys.readouterr().out.splitlines()[-2]
    main(
        *("probe", *common, "--model", preset, "--layer", "features"),
        *("--out", same),
    )
    assert figures(same) == figures(mel)

    of_model = [*common, "--model", preset]
    for arguments, message in (
        ([*common, "--out", mel], "holds a run"),
        (["--out", mel, "--resume", "--epochs", 4], "epochs=4 in place of 1"),
        ([*common, "--layer", 1, "--out", "x"], "needs --model"),
        (
            [*of_model, "--layer", "last", "--out", "x"],
            "a number or `features`",
        ),
        (
            [*of_model, "--sample-rate-hz", 8_000],
            "sample_rate_hz=4000. Received: --sample-rate-hz 8000",
        ),
        (
            [*of_model, "--features-options", '{"num_mel_bins": 5}'],
            "Received: --features-options",
        ),
        (["--tasks", "phones"], "must be one of"),
    ):
        line = refusal("probe", *arguments)
        assert message in line, line

    # Another task joins; the model must be the one it was.
    resume = ["probe", "--out", same, "--resume"]
    main(*resume, "--tasks", "speaker", "frame_speaker")
    assert list(figures(same)) == ["speaker", "frame_speaker"]
    report = json.loads((same / "probes.json").read_text())
    report["model"]["weights_sha256"] = "0"
    (same / "probes.json").write_text(json.dumps(report))
    assert "The model is not that of" in refusal(*resume)
    record = json.loads((mel / "corpus.json").read_text())
    name = next(iter(record["splits"]["test"]))
    record["splits"]["test"][name][0] += 1
    (mel / "corpus.json").write_text(json.dumps(record))
    line = refusal("probe", "--out", mel, "--resume")
    assert "The corpus is not the one" in line


def test_nothing_that_is_probed_was_heard_before(
    speech, preset, refusal, tmp_path, monkeypatch
):
    """Not in the training split under another name, nor by the encoder."""
    folder = tmp_path / "speech"
    names = [f"{who}/{number}" for who in ("ann", "bob") for number in range(3)]
    for name in names:
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(speech / f"{name}.wav", folder / f"{name}.wav")
    asked = ["probe", "--dataset", "folder", "--data-dir", folder]
    asked += ["--tasks", "speaker", "--out", tmp_path / "run"]
    for row, split in enumerate(("train", "val", "test")):
        listed = tmp_path / split
        listed.write_text("\n".join(names[row::3]) + "\n")
        asked += [f"--{split}-list", listed]
    encoder = tmp_path / "preset"
    shutil.copytree(preset, encoder)
    splits = read_speech_folder(
        folder, lists={split: tmp_path / split for split in ("train", "test")}
    )
    clips = data.prepare(
        splits["test"], RATE_HZ, tmp_path / "c", progress=False
    )
    heard.write(encoder, [heard.Heard(clips.marks[[1]])])
    line = refusal(*asked, "--model", encoder)
    assert f"--model {encoder} must not have learned from clips" in line
    assert "1 of test, such as" in line and "bob" in line

    shutil.copy(folder / "ann" / "0.wav", folder / "ann" / "2.wav")
    line = refusal(*asked, *FEATURES)
    assert "0.wav in train and" in line and "2.wav in test have the" in line
    assert "--other-splits allows that" in line
    # Allowed, it goes on to the features.
    monkeypatch.setattr(data, "cache_features", None)
    assert "not callable" in refusal(*asked, *FEATURES, "--other-splits")


def test_a_model_must_compute_features(speech, refusal, tmp_path):
    tiny.backbone(sample_rate_hz=RATE_HZ).save_to_preset(str(tmp_path / "raw"))
    line = refusal(
        *("probe", "--dataset", "folder", "--data-dir", speech),
        *("--model", tmp_path / "raw", "--out", tmp_path / "run"),
    )
    assert "--model must compute features" in line
    assert "an AudioTransformerBackbone" in line


def test_a_clip_that_a_table_is_too_short_for(speech, refusal, tmp_path):
    """Known before hours of features."""
    new_encoder(
        attention="random_synthesizer", attention_kwargs={"max_length": 9}
    ).save_to_preset(str(tmp_path / "short"))
    line = refusal(
        *("probe", "--dataset", "folder", "--data-dir", speech),
        *("--model", tmp_path / "short", "--tasks", "speaker"),
        *("--out", tmp_path / "run"),
    )
    assert "takes 9 frames; --max-s" in line


def phones_of(files, root, every=1, rate_hz=100):
    """Lines of a phone file: 0 or 1 in turns of 50 ms."""
    lines = []
    for file in files[::every]:
        seconds = soundfile.info(file).duration
        labels = np.arange(int(seconds * rate_hz)) // 5 % 2
        name = file.relative_to(root).with_suffix("").as_posix()
        lines.append(" ".join(map(str, [name, *labels])))
    return "\n".join(lines)


@pytest.mark.long
def test_phones_of_some_utterances(
    speech, main, refusal, tmp_path, capsys, eager_models
):
    files = sorted(speech.glob("*/[0-9]*.wav"))
    phones = tmp_path / "phones.txt"
    phones.write_text(phones_of(files, speech, every=2))
    common = ["--dataset", "folder", "--data-dir", speech, "--epochs", 1]
    common += ["--alignment", phones, "--hidden-dim", 8]
    tasks = ["--tasks", "phoneme_linear", "phoneme_1hidden", "speaker"]
    out = tmp_path / "out"
    main("probe", *common, *FEATURES, *tasks, "--out", out)
    output = capsys.readouterr().out
    assert "phoneme_linear: utterances without phones: {'train':" in output
    for task, report in figures(out).items():
        count = sum(report["utterances"].values())
        if task == "speaker":
            assert count == 42
            continue
        assert count == 21 and report["num_classes"] == 2
        assert sum(report["utterances_without_phones"].values()) == 21
        assert 0.4 < report["chance"] < 0.6
    # 12.5 ms over labels of 10 ms.
    options = json.dumps({**OPTIONS, "hop_s": 0.0125})
    features = [*FEATURES, "--features-options", options]
    by_time = [*common, *features, "--tasks", "phoneme_linear"]
    line = refusal("probe", *by_time, "--out", tmp_path / "other")
    for part in ("100 Hz", "80 Hz", "--by-time takes the label"):
        assert part in line
    assert not (tmp_path / "other").exists()
    main("probe", *by_time, "--by-time", "--out", tmp_path / "other")
    report = figures(tmp_path / "other")["phoneme_linear"]
    assert sum(report["utterances"].values()) == 21
    assert sum(report["utterances_without_phones"].values()) == 21
    # No features of what no task sees.
    folders = (tmp_path / "cache").glob("features-*")
    counts = [len(list(folder.rglob("*.f32"))) for folder in folders]
    assert sorted(counts) == [21, 42]
    phones.write_text(phones_of(files[:1], speech))
    line = refusal(
        "probe", *common, *FEATURES, *tasks, "--out", tmp_path / "third"
    )
    assert "has phones, see --alignment" in line


def test_speakers_that_train_lacks(
    speech, main, refusal, tmp_path, capsys, eager_models
):
    lists = {
        "train": ["ann/0", "ann/1", "bob/0", "bob/1"],
        "val": ["ann/2", "bob/2"],
        "test": ["ann/3", "cy/1", "cy/2"],
    }
    common = ["--dataset", "folder", "--data-dir", speech, "--epochs", 1]
    common += [*FEATURES, "--tasks", "speaker"]
    for split, names in lists.items():
        (tmp_path / split).write_text("\n".join(names))
        common += [f"--{split}-list", tmp_path / split]
    main("probe", *common, "--out", tmp_path / "out")
    report = figures(tmp_path / "out")["speaker"]
    assert report["utterances_of_unseen_speakers"] == {"val": 0, "test": 2}
    assert report["num_classes"] == 3 and report["chance"] == 2 / 3
    assert (
        "of unseen speakers: {'val': 0, 'test': 2}" in capsys.readouterr().out
    )
    (tmp_path / "test").write_text("cy/1\ncy/2")
    line = refusal("probe", *common, "--out", tmp_path / "other")
    assert "No speaker of the split 'test'" in line


@pytest.mark.long
def test_the_librispeech_sample(shared_data, main, refusal, tmp_path):
    """The path alone, from FLAC through the paper's features: six utterances
    are no corpus, and these phones are made up."""
    files = sorted((shared_data / "LibriSpeech").rglob("*.flac"))
    phones = tmp_path / "phones.txt"
    phones.write_text(
        "\n".join(phones_of([file], file.parent) for file in files)
    )
    common = ["--data-dir", shared_data, "--train-subsets", "train-clean-100"]
    common += ["--test-subsets", "dev-clean", "--alignment", phones]
    line = refusal("probe", *common, "--out", tmp_path / "no")
    assert "dev-clean is of dev, not of test (--train-subsets" in line
    common += ["--other-splits"]
    common += ["--by-time", "--epochs", 1, "--hidden-dim", 16]
    out = tmp_path / "out"
    line = refusal("probe", *common, "--val-share", 0, "--out", out)
    assert "no split 'val'; --val-share" in line
    common += ["--val-share", 0.25, "--out", out]
    line = refusal("probe", *common, "--tasks", "speaker")
    assert "No speaker of the split 'val'" in line
    main("probe", *common, "--tasks", "phoneme_1hidden")
    report = figures(out)["phoneme_1hidden"]
    assert report["utterances"] == {"train": 3, "val": 1, "test": 2}
    assert report["parameters"] == 480 * 16 + 16 + 16 * 2 + 2
