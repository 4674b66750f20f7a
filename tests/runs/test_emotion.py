"""Decoders over cached embeddings: folds, arrays, runs and their guards."""

import dataclasses
import hashlib
import json
import pathlib
import shutil
import types

import keras
import numpy as np
import pytest
import soundfile

if keras.backend.backend() != "tensorflow":
    pytest.skip("audio is read through tf.data", allow_module_level=True)

from backbone_cases import RATE_HZ, speech_encoder

from audio_tf import data, models, released
from audio_tf.analysis import layer_embeddings
from audio_tf.analysis.layer_embeddings import LayerEmbeddings
from audio_tf.corpora import Corpus, leaks
from audio_tf.data.feature_cache import cache_of
from audio_tf.runs import (
    emotion,
    evaluate,
    fold_arrays,
    fold_decoders,
    folds,
    heard,
)

CHUNK_S = 0.2
TINY = ("--filters", 2, "--epochs", 2, "--chunk-s", CHUNK_S)


@pytest.fixture(scope="module")
def corpus(tmp_path_factory):
    """EmoDB's names: three speakers, two emotions, two clips of each."""
    folder = tmp_path_factory.mktemp("emodb")
    rng = np.random.default_rng(0)
    (folder / "wav").mkdir()
    for speaker in ("03", "08", "16"):
        for text in ("a01Wa", "a02Wb", "a01Na", "b01Nb"):
            # One is shorter than a chunk, the others longer.
            samples = 190 if text == "a01Wa" else 500
            audio = 0.1 * rng.standard_normal(samples)
            soundfile.write(
                folder / "wav" / f"{speaker}{text}.wav", audio, RATE_HZ
            )
    return folder


@pytest.fixture(scope="module")
def preset(tmp_path_factory):
    folder = tmp_path_factory.mktemp("encoder") / "preset"
    speech_encoder(num_layers=3).save_to_preset(str(folder))
    return folder


def embedded(groups=None, splits=None, count=8):
    return fold_arrays.Embedded(
        np.zeros((count, 3, 4), "float32"),
        np.arange(count),
        np.eye(2, dtype="float32")[np.arange(count) % 2],
        None if groups is None else np.array(groups),
        None if splits is None else np.array(splits),
        ["a", "b"],
        [1, 2, 3],
    )


def settings(**kwargs):
    return emotion.EmotionSettings(embeddings="x.npz", **kwargs)


def test_each_group_is_left_out_and_the_next_validates():
    found = folds.make(embedded(list("babccaab")), settings())
    assert list(found) == ["a", "b", "c"]
    names = {
        name: [
            "".join(np.array(list("babccaab"))[fold.rows[split]])
            for split in ("train", "val", "test")
        ]
        for name, fold in found.items()
    }
    assert names == {
        "a": ["cc", "bbb", "aaa"],
        "b": ["aaa", "cc", "bbb"],
        "c": ["bbb", "aaa", "cc"],
    }
    paper = folds.make(
        embedded(list("babccaab")),
        settings(validate_on="test", leave_out=["c"]),
    )
    assert list(paper) == ["c"]
    np.testing.assert_array_equal(
        paper["c"].rows["val"], paper["c"].rows["test"]
    )
    train, test = (paper["c"].rows[split] for split in ("train", "test"))
    assert not (train & test).any() and (train | test).all()


def test_where_a_test_is_held_back_the_validation_is_tested():
    asked, test = settings(protocol="splits"), ["test"] * 2
    for more, tested in (([], "val"), (test, "test")):
        names = ["train"] * 5 + ["val"] * (3 - len(more)) + more
        found = folds.make(embedded(splits=names), asked)
        (fold,) = found.values()
        assert (fold.validation, fold.tested) == ("val", tested)
        for split, chosen in (
            ("train", "train"),
            ("val", "val"),
            ("test", tested),
        ):
            expected = [name == chosen for name in names]
            assert fold.rows[split].tolist() == expected


def test_splits_are_put_together_with_what_all_of_them_know():
    """A split without clips knows nothing, and takes nothing away."""
    known = {"groups": ["1", "2"], "sources": ["jo", None]}
    one = Corpus(
        ["a", "b"], [["x"], ["y"]], ["x", "y"], **known, source_kind="speaker"
    )
    two, none = Corpus(["c"], [["x"]], ["x", "y"]), Corpus([], [], ["x", "y"])
    whole, names = folds.merged({"train": one, "val": none})
    assert whole == one and names == ["train"] * 2
    whole, names = folds.merged({"train": one, "val": none, "test": two})
    plain = Corpus(["a", "b", "c"], [["x"], ["y"], ["x"]], ["x", "y"])
    assert whole == plain and names == ["train", "train", "test"]
    several = Corpus(["d"], [["x", "y"]], ["x", "y"])
    with pytest.raises(ValueError, match=r"\['x', 'y'\] for d"):
        folds.merged({"train": two, "test": several})


def test_folds_that_cannot_be_are_refused():
    with pytest.raises(ValueError, match="without groups"):
        folds.make(embedded(), settings())
    with pytest.raises(ValueError, match="needs 3 groups"):
        folds.make(embedded(list("aabbaabb")), settings())
    with pytest.raises(ValueError, match="among.*Received: 'd'"):
        folds.make(embedded(list("babccaab")), settings(leave_out=["d"]))
    splits = ["train"] * 5 + ["test"] * 3
    with pytest.raises(ValueError, match="'val': 0"):
        folds.make(embedded(splits=splits), settings(protocol="splits"))
    with pytest.raises(ValueError, match="`groups` alone"):
        folds.make(embedded(list("babccaab")), settings(protocol="splits"))
    one_label = dataclasses.replace(
        embedded(list("babccaab")),
        targets=np.ones((8, 1), "float32"),
        vocabulary=["a"],
    )
    with pytest.raises(ValueError, match=r"Received: \['a'\] of 8 clips"):
        folds.make(one_label, settings())


def test_a_speaker_of_two_sessions_is_on_both_sides():
    """Whatever the splits of the corpus are, groups are what is left out."""
    corpus = Corpus(
        ["a.wav", "b.wav", "c.wav"],
        [["x"]] * 3,
        ["x"],
        sources=["jo", "ann", "jo"],
        source_kind="speaker",
    )
    numbers = np.arange(3)
    clips = data.Clips(
        corpus, ["a", "b", "c"], numbers, 100, {}, numbers, numbers
    )

    def leak(sides):
        parts = folds.by_side(clips, sides)
        return leaks.of_sources({key: parts[key].corpus for key in parts})

    (found,) = leak(["1", "1", "2"])
    assert found.splits == ("1", "2") and found.files == ("a.wav", "c.wav")
    assert leak(["1", "2", "1"]) == []
    assert leak(None) == []


def test_a_clip_may_have_several_chunks():
    whole = fold_arrays.Embedded(
        np.arange(5, dtype="float32")[:, None, None],
        np.array([0, 0, 1, 2, 2]),
        np.eye(3, dtype="float32"),
        None,
        None,
        list("abc"),
        [1],
    )
    x, y, clips = whole.part(np.array([True, False, True]))
    np.testing.assert_array_equal(x[:, 0, 0], [0, 1, 3, 4])
    np.testing.assert_array_equal(y.argmax(axis=1), [0, 0, 2, 2])
    np.testing.assert_array_equal(clips, [0, 0, 1, 1])


def test_every_class_counts_alike():
    targets = np.eye(3)[[0, 0, 0, 2]]
    scores = np.eye(3)[[0, 0, 1, 2]]
    assert fold_decoders.balanced_accuracy(targets, scores) == pytest.approx(
        5 / 6
    )


class Noted:
    """A stand-in of a decoder that keeps what it is trained with."""

    def compile(self, optimizer, loss, **options):
        self.optimizer, self.loss = optimizer, loss

    def fit(self, x, y, callbacks, **options):
        self.given = options
        self.hooks = {type(each): each for each in callbacks}
        self.hooks[keras.callbacks.EarlyStopping].best_epoch = 3
        return types.SimpleNamespace(history={"loss": [0.5]})


def test_a_decoder_is_trained_as_settings_say():
    asked = settings(
        epochs=7,
        batch_size=5,
        learning_rate=0.125,
        weight_decay=0.25,
        focal_gamma=1.5,
        plateau_factor=0.5,
        plateau_patience=3,
    )
    decoder, part = Noted(), ("x", "y", "clips")
    found = fold_decoders.fit_to_best(decoder, part, ("v", "w", "c"), asked)
    assert found == ({"loss": [0.5]}, 3)
    assert float(decoder.optimizer.learning_rate) == 0.125
    assert decoder.optimizer.weight_decay == 0.25
    assert decoder.loss.gamma == 1.5
    assert decoder.given["epochs"] == 7 and decoder.given["batch_size"] == 5
    assert decoder.given["validation_data"] == ("v", "w")
    lower = decoder.hooks[keras.callbacks.ReduceLROnPlateau]
    assert (lower.factor, lower.patience, lower.mode) == (0.5, 3, "max")
    best = decoder.hooks[keras.callbacks.EarlyStopping]
    assert best.restore_best_weights and best.patience == 7
    assert lower.monitor == best.monitor == "val_accuracy"


def test_groups_that_are_alike_have_no_interval():
    """That of their draws would be of no width."""
    fold = {
        **{"accuracy": 0.8, "balanced_accuracy": 0.7, "interval": None},
        **{"unit": "speaker", "units": 2, "clips": {"test": 9}},
        **{"val_accuracy": 0.9, "best_epoch": 1, "seconds": 0.5},
    }
    for done, of in (
        ({"jo": fold, "ann": fold}, "2 groups"),
        ({"splits": fold}, "2 speakers"),
    ):
        found = emotion.summed_up(done)
        assert "accuracy" not in found["intervals"]
        told = emotion.describe(found).splitlines()[-1]
        assert told.startswith("accuracy: no interval") and of in told


@pytest.mark.costly
def test_the_interval_of_a_split_is_over_its_speakers(tmp_path, monkeypatch):
    """Of two speakers, one known and one not: another two may be either."""
    sources = ["jo", "jo", "ann", "ann", *["bob"] * 4, *["eve"] * 4]
    labels = [["ab"[row % 2]] for row in range(12)]
    names = [f"{row}.wav" for row in range(12)]
    splits = ["train", "train", "val", "val", *["test"] * 8]
    whole = Corpus(
        names, labels, ["a", "b"], sources=sources, source_kind="speaker"
    )
    found = folds.described(
        whole, splits, np.zeros((12, 3, 4), "float32"), np.arange(12), [1, 2, 3]
    )
    asked = settings(protocol="splits", epochs=1, filters=2)
    # Of the second four, each is taken for the other class.
    scores = np.eye(2)[[0, 1, 0, 1, 1, 0, 1, 0]]
    monkeypatch.setattr(fold_decoders, "clip_scores", lambda *_: scores)
    (fold,) = folds.make(found, asked).values()
    report = fold_decoders.train_fold("splits", fold, found, asked, tmp_path)
    assert report["accuracy"] == 0.5
    assert emotion.interval_of({"splits": report}) == {
        "level": 0.95,
        "unit": "speaker",
        "units": 2,
        "accuracy": [0.0, 1.0],
    }
    # Arrays are of clips, of which nobody knows whose they are.
    found = dataclasses.replace(found, corpus=None)
    report = fold_decoders.train_fold("splits", fold, found, asked, tmp_path)
    low, high = report["interval"]
    assert 0.0 < low < high < 1.0
    assert (report["unit"], report["units"]) == ("clip", 8)


@pytest.mark.costly
def test_chunks_are_embedded_as_a_classifier_scores_them(rng, monkeypatch):
    # Of five chunks; long clips have more than are embedded at once.
    monkeypatch.setattr(layer_embeddings, "BATCH_SIZE", 3)
    encoder = speech_encoder()
    layer = LayerEmbeddings(encoder, CHUNK_S)
    size, lengths = 220, np.array([500, 130, 220], "int32")
    waveform = 0.2 * rng.standard_normal((3, 500)).astype("float32")
    found = layer(waveform, lengths)
    np.testing.assert_array_equal(layer.frame_lengths(lengths), [3, 1, 1])
    assert found.shape == (3, 3, 3 * 12) and layer.layers == 3
    assert (found[1:, 1:] == 0.0).all()
    chunks = {
        (0, 1): waveform[0, size : 2 * size],
        # What is left ends with the clip, and short clips are repeated.
        (0, 2): waveform[0, 280:500],
        (1, 0): np.resize(waveform[1, :130], size),
    }
    for (clip, chunk), audio in chunks.items():
        means = [
            np.asarray(state)[0][np.asarray(mask)[0]].mean(axis=0)
            for state, mask in encoder.hidden_states(audio[None])
        ]
        np.testing.assert_allclose(
            found[clip, chunk], np.concatenate(means), atol=1e-5
        )
    whole = LayerEmbeddings(encoder, None)
    np.testing.assert_allclose(
        whole(waveform, lengths)[2, 0], found[2, 0], atol=1e-5
    )
    np.testing.assert_array_equal(whole.frame_lengths(lengths), [1, 1, 1])
    again = LayerEmbeddings(encoder, CHUNK_S).get_config()
    assert json.dumps(layer.get_config(), default=str) == json.dumps(
        again, default=str
    )
    assert again != LayerEmbeddings(encoder, 0.1).get_config()


@pytest.mark.costly
def test_whole_clips_are_embedded_so_many_seconds_at_once(rng, monkeypatch):
    """However long they are; a batch of the cache has sixteen of them."""
    layer, seen = LayerEmbeddings(speech_encoder(), None), []
    embed = layer.embed

    def watched(waveform, lengths):
        seen.append(waveform.shape)
        return embed(waveform, lengths)

    monkeypatch.setattr(layer, "embed", watched)
    waveform = 0.2 * rng.standard_normal((5, 440)).astype("float32")
    lengths = np.array([440, 130, 220, 440, 90], "int32")
    at_once = layer(waveform, lengths)
    assert seen == [(5, 440)]
    for seconds, sizes in ((0.9, [2, 2, 1]), (0.1, [1] * 5)):
        monkeypatch.setattr(layer_embeddings, "BATCH_S", seconds)
        seen.clear()
        found = layer(waveform, lengths)
        assert [count for count, _ in seen] == sizes
        np.testing.assert_allclose(found, at_once, atol=1e-5)


def test_each_precision_has_a_cache_of_its_own(tmp_path):
    """Half precision had been taken for full where weights are the same."""
    found = []
    for dtype in ("float32", "mixed_bfloat16"):
        encoder = speech_encoder(dtype=dtype, name=f"of_{dtype}")
        for weight in encoder.weights:
            weight.assign(np.full(weight.shape, 0.1))
        layer = LayerEmbeddings(encoder, CHUNK_S)
        found.append(cache_of(layer, RATE_HZ, tmp_path).directory)
    assert found[0] != found[1]


@pytest.mark.parametrize(
    ("flags", "message"),
    [
        (("--leave-out", "99"), "--leave-out must be among ['03', '08', '16']"),
        (("--protocol", "splits"), "must have clips in all splits"),
        (("--num-heads", 2), "--num-heads must divide"),
        (
            ("--attention-kwargs", '{"epsilom": 1e-3}'),
            "did you mean 'epsilon'",
        ),
    ],
)
def test_what_cannot_be_trained_is_told_before_clips_are_decoded(
    flags, message, corpus, preset, tmp_path, main, monkeypatch, capsys
):
    monkeypatch.setattr(data, "prepare", None)
    run = ("--model", preset, "--data-dir", corpus, "--out", tmp_path / "run")
    with pytest.raises(SystemExit):
        main("emotion", *run, *TINY, *flags)
    assert message in capsys.readouterr().err


def test_clips_in_other_splits_are_another_corpus(
    corpus, tmp_path, main, monkeypatch
):
    """Rows of a table had been compared that were tested on other clips."""
    seen = []
    monkeypatch.setattr(
        folds.corpus_records,
        "check",
        lambda out, record: seen.append(folds.corpus_records.summary(record)),
    )
    file = tmp_path / "clips.csv"
    names = ("03a01Wa", "03a01Na", "08a01Wa", "08a01Na", "16a01Wa", "16a01Na")
    for splits in ("train val test", "train test val", "train val test"):
        rows = [
            f"{corpus / 'wav' / name}.wav,{name[5]},{splits.split()[n // 2]}"
            for n, name in enumerate(names)
        ]
        file.write_text("\n".join(["filename,labels,split", *rows]))
        run = ("--dataset", "csv", "--data-dir", file, "--protocol", "splits")
        with pytest.raises(SystemExit):
            main("emotion", "--model", "none", *run, "--out", tmp_path / "run")
    assert seen[0] == seen[2] != seen[1]
    assert list(seen[0]) == ["train", "val", "test"]


def test_a_decoder_that_cannot_be_leaves_no_run(tmp_path, main, capsys):
    file, out = arrays(tmp_path / "x.npz"), tmp_path / "run"
    with pytest.raises(SystemExit):
        main("emotion", "--embeddings", file, "--num-heads", 2, "--out", out)
    assert "--num-heads must divide" in capsys.readouterr().err
    assert not (out / "config.json").exists()


def test_whole_clips_are_no_longer_than_the_encoder_takes(
    corpus, tmp_path, main, capsys
):
    encoder = speech_encoder(
        num_layers=3, attention="random_synthesizer", made_for_frames=15
    )
    encoder.save_to_preset(str(tmp_path / "preset"))
    run = ("--model", tmp_path / "preset", "--data-dir", corpus)
    with pytest.raises(SystemExit):
        main("emotion", *run, "--chunk-s", 0, "--out", tmp_path / "run")
    seconds = encoder.max_samples / RATE_HZ
    assert 0.2 < seconds < 500 / RATE_HZ
    error = capsys.readouterr().err
    assert f"--chunk-s must cut clips into at most {seconds:g} s" in error


@pytest.mark.long
def test_a_run_from_audio_to_presets(
    corpus, preset, tmp_path, main, monkeypatch, capsys, eager_models
):
    out = tmp_path / "run"
    # The encoder has learned from a clip of elsewhere.
    encoder = shutil.copytree(preset, tmp_path / "encoder")
    np.save(encoder / heard.FILE, np.array([7], "uint64"))
    arguments = ["emotion", "--model", encoder, "--data-dir", corpus, *TINY]
    run = [*arguments, "--out", out]
    main(*run, "--presets", "--leave-out", "03", "16")
    report = json.loads((out / "emotion.json").read_text())
    assert list(report["folds"]) == ["03", "16"]
    for fold in report["folds"].values():
        assert fold["clips"] == {"train": 4, "val": 4, "test": 4}
        assert fold["heads"] == 1 and 0 <= fold["accuracy"] <= 1
    accuracies = [each["accuracy"] for each in report["folds"].values()]
    assert report["accuracy"] == pytest.approx(np.mean(accuracies))
    assert report["intervals"]["units"] == 2
    low, high = min(accuracies), max(accuracies)
    if low == high and low in (0.0, 1.0):  # Wilson's of 0 or 2 in 2.
        far = 1.96**2 / (2 + 1.96**2)
        low, high = (0.0, far) if low == 0.0 else (1.0 - far, 1.0)
    assert report["intervals"]["accuracy"] == pytest.approx(
        [low, high], abs=1e-3
    )
    assert report["layers"] == [1, 2, 3]
    stored = np.load(out / "importance.npz")
    maps = [np.load(out / f"fold_{name}" / "map.npy") for name in ("03", "16")]
    np.testing.assert_allclose(stored["map"], np.mean(maps, axis=0))
    assert stored["importance"].min() == 0 and stored["importance"].max() == 1
    assert stored["encoder"] == released.weights_mark(encoder)
    assert (out / "importance.png").is_file()

    # The preset scores a clip as the fold was tested.
    model = models.AudioClassifier.from_preset(str(out / "fold_03" / "preset"))
    decoder = keras.saving.load_model(out / "fold_03" / "decoder.keras")
    file = corpus / "wav" / "03a02Wb.wav"
    audio = soundfile.read(file, dtype="float32")[0]
    rows = LayerEmbeddings(model.backbone, CHUNK_S)(
        audio[None], np.array([len(audio)])
    )
    scores = np.asarray(decoder(rows[0].reshape(-1, 4, 12)[:, 1:]))
    found = model.classify(file, top=None)["scores"]
    assert model.labels == report["labels"]
    np.testing.assert_allclose(
        [found[label] for label in model.labels],
        scores.mean(axis=0),
        atol=1e-5,
    )

    # It is not scored on the speaker that it has learned from.
    trained = str(out / "fold_03" / "preset")
    place = {"dataset": "emodb", "data_dir": str(corpus), "model": trained}
    learned, told = heard.read(trained).learned, tmp_path / "told.json"
    assert len(learned) == 5 and 7 in learned
    for tested, val in (("03", "16"), ("08", "03"), ("16", "08")):
        speakers = {"test_speakers": [tested], "val_speakers": [val]}
        asked = evaluate.EvaluateSettings(**place, **speakers, report=str(told))
        if tested != "16":
            evaluate.run(asked)
            assert json.loads(told.read_text())["clips_trained_on"] == 0
            continue
        with pytest.raises(ValueError, match="4 of test, such as .*16a01Na"):
            evaluate.run(asked)

    # What is done is not done again, and embeddings are not computed twice.
    monkeypatch.setattr(LayerEmbeddings, "__call__", None)
    main(*run, "--resume", "--leave-out", "03", "08", "16")
    again = json.loads((out / "emotion.json").read_text())
    assert again["folds"]["03"] == report["folds"]["03"]
    assert set(again["folds"]) == {"03", "08", "16"}
    other = tmp_path / "mha"
    main(
        *arguments,
        "--module",
        "mha",
        "--leave-out",
        "08",
        "--out",
        other,
        "--layers",
        0,
        2,
        "--validate-on",
        "test",
    )
    assert not (other / "importance.npz").exists()
    report = json.loads((other / "emotion.json").read_text())
    assert report["layers"] == [0, 2]
    assert report["folds"]["08"]["clips"]["train"] == 8
    # Of one group nobody knows how others would do: clips are drawn.
    assert report["intervals"]["unit"] == "clip"
    assert report["intervals"]["units"] == 4
    output = capsys.readouterr().out
    assert "12 clips, 30 chunks of 2 layers x 12" in output
    assert output.splitlines()[-2].startswith("mean")
    assert output.splitlines()[-1].endswith("over 4 clips")


def arrays(path, **changes):
    rng = np.random.default_rng(3)
    np.savez(
        path,
        **{
            "embeddings": rng.standard_normal((12, 3, 4)).astype("float32"),
            "labels": np.array(list("ab") * 6),
            "groups": np.repeat([1, 2, 3], 4),
            **changes,
        },
    )
    return path


@pytest.mark.slow
def test_arrays_from_elsewhere(tmp_path, main, eager_models):
    file, out = arrays(tmp_path / "x.npz"), tmp_path / "run"
    main(
        *("emotion", "--embeddings", file, "--out", out, "--epochs", 1),
        *("--filters", 2, "--focal-gamma", 0, "--leave-out", "2"),
    )
    for layers in ([0, 1], [2, 1], [4]):
        with pytest.raises(ValueError, match=r"numbers of \[1, 2, 3\]"):
            folds.check_layers(layers, [1, 2, 3])
    report = json.loads((out / "emotion.json").read_text())
    assert report["labels"] == ["a", "b"] and report["model"] is None
    assert report["folds"]["2"]["clips"] == {"train": 4, "val": 4, "test": 4}


def test_arrays_are_held_once(tmp_path, monkeypatch):
    """They may fill half the memory, and the file is not read in one piece."""
    given = settings(layers=None)
    file = arrays(tmp_path / given.embeddings)
    stored = fold_arrays.stored_arrays(file)
    monkeypatch.setattr(fold_arrays, "stored_arrays", lambda path: stored)
    monkeypatch.setattr(pathlib.Path, "read_bytes", None)
    monkeypatch.chdir(tmp_path)
    loaded, _, record, *_ = emotion.load(given, tmp_path / "out")
    assert loaded.x is stored["embeddings"] and loaded.layers == [1, 2, 3]
    (size, digest) = record["splits"]["all"]["x.npz"]
    with open(file, "rb") as content:
        expected = content.read()
    assert size == len(expected)
    assert digest == hashlib.sha256(expected).hexdigest()
    some, *_ = emotion.load(settings(layers=[1, 3]), tmp_path / "out")
    np.testing.assert_array_equal(some.x, loaded.x[:, [0, 2]])


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"label": np.zeros(12)}, "Received.*'label'"),
        (
            {"labels": np.zeros(11)},
            r"each of 12 clips. Received: shape=\(11,\)",
        ),
        ({"embeddings": np.zeros((12, 3))}, "clips, layers, dim"),
        ({"embeddings": np.full((12, 3, 4), np.nan)}, "finite"),
        # They are decoded in float32, where this is infinite.
        ({"embeddings": np.full((12, 3, 4), 1e39)}, "finite in float32"),
        ({"splits": np.array(["train", "dev"] * 6)}, "Received: .'dev'"),
        (
            {"labels": np.array(list("ab") * 6, dtype=object)},
            "x.npz: `labels` must be .* of str",
        ),
        ({"labels": np.array([1.0, np.nan] * 6)}, "x.npz: `labels`.*nan"),
        ({"labels": np.zeros(12, "datetime64[s]")}, "Received: datetime64"),
        ({"groups": np.array([b"\xff", b"a"] * 6)}, "`groups` .* in UTF-8"),
    ],
)
def test_arrays_that_do_not_fit_are_refused(changes, message, tmp_path):
    with pytest.raises(ValueError, match=message):
        fold_arrays.read_arrays(arrays(tmp_path / "x.npz", **changes))


def test_names_may_be_bytes(tmp_path):
    """As HDF5 has them."""
    names = np.array(["Glück", "joy"] * 6)
    told = {
        "labels": np.char.encode(names, "utf-8"),
        "groups": np.char.encode(names, "utf-8"),
        "splits": np.array([b"train"] * 6 + [b"val"] * 6),
    }
    found = fold_arrays.read_arrays(arrays(tmp_path / "x.npz", **told))
    assert found.vocabulary == ["Glück", "joy"]
    assert found.groups.tolist() == names.tolist()
    assert found.splits.tolist() == ["train"] * 6 + ["val"] * 6


def test_a_file_that_is_no_npz_is_refused_by_its_name(tmp_path):
    whole = arrays(tmp_path / "x.npz").read_bytes()
    np.save(tmp_path / "one.npy", np.zeros((12, 3, 4)))
    (tmp_path / "cut.npz").write_bytes(whole[:-100])
    (tmp_path / "text.npz").write_text("hello")
    for name in ("one.npy", "cut.npz", "text.npz"):
        with pytest.raises(ValueError, match=f"{name}: must be a .npz"):
            fold_arrays.read_arrays(tmp_path / name)
    damaged = bytearray(whole)
    damaged[300] ^= 255
    (tmp_path / "bad.npz").write_bytes(damaged)
    with pytest.raises(ValueError, match="bad.npz: `embeddings` must be"):
        fold_arrays.read_arrays(tmp_path / "bad.npz")
    with pytest.raises(FileNotFoundError):
        fold_arrays.read_arrays(tmp_path / "none.npz")


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({}, "Either --model or --embeddings"),
        ({"model": "a", "embeddings": "b"}, "Either --model or --embeddings"),
        ({"embeddings": "b", "chunk_s": 1.0}, "--chunk-s does not apply"),
        ({"model": "a", "test_speakers": ["b"]}, "--protocol splits"),
        (
            {"model": "a", "protocol": "splits", "leave_out": ["b"]},
            "--protocol leave_one_out",
        ),
        ({"model": "a", "module": "gaam-v1"}, "did you mean 'gaam_v1'"),
        ({"model": "a", "focal_gamma": -1.0}, "at least 0"),
        # The corpus has splits of its own.
        ({"model": "a", "dataset": "fsdd"}, "Received: each group is left out"),
        ({"embeddings": "b", "other_splits": True}, "--other-splits does not"),
        ({"embeddings": "b", "strict": True}, "--strict does not"),
        ({"embeddings": "b", "decoder": "tfio"}, "--decoder does not"),
        ({"embeddings": "b", "cache_dir": "c"}, "--cache-dir does not"),
    ],
)
def test_settings_that_do_not_fit_are_refused(given, message):
    with pytest.raises(ValueError, match=message):
        emotion.EmotionSettings(**given)
