"""The model of a training: built, or taken from a preset."""

import json
import shutil

import keras
import numpy as np
import pytest

if keras.backend.backend() != "tensorflow":
    pytest.skip("training reads through tf.data", allow_module_level=True)

import tiny
from training_cases import (
    COMMON,
    TINY,
    TINY_MEL,
    built,
    equal_weights,
)

from audio_tf import layers, metrics, models, optimizers
from audio_tf.corpora import Corpus
from audio_tf.models import AudioClassifier
from audio_tf.runs import (
    optimizing,
    train,
    train_data,
    train_model,
)
from audio_tf.runs.train_settings import TrainSettings


@pytest.mark.parametrize("several", [False, True])
def test_the_loss_is_that_of_the_head_whatever_bad_files_leave(
    several, corpus, tmp_path
):
    """The only clip of several labels may be no sound at all."""
    own = tmp_path / "own"
    shutil.copytree(corpus.parent, own)
    if several:
        text = (own / "list.csv").read_text()
        text = text.replace("bad.wav,low", 'bad.wav,"low,high"')
        (own / "list.csv").write_text(text)
    settings = train.TrainSettings(
        dataset="csv",
        data_dir=str(own / "list.csv"),
        cache_dir=str(tmp_path / "cache"),
        model="audio_transformer_small",
        model_kwargs=json.loads(TINY),
        chunk_s=0.1,
    )
    corpora = settings.load()
    classifier = train_model.build(settings, corpora["train"])
    chunks, _ = train_data.load_chunks(settings, corpora, classifier)
    targets = train.known_targets(settings, chunks)
    one_label = metrics.one_label_each(targets)
    assert one_label
    train.compile(classifier, settings, 1, one_label)
    softmax = classifier.activation is keras.activations.softmax
    assert softmax == (not several)
    kind = "Categorical" if softmax else "Binary"
    assert type(classifier.loss).__name__ == f"{kind}Crossentropy"


def test_a_head_may_learn_faster_than_its_backbone(corpus, tmp_path):
    settings, classifier, _ = built(corpus, tmp_path, head_rate=10.0)
    train.compile(classifier, settings, 1, True)
    classifier.optimizer.build(classifier.trainable_variables)
    heads = {"predictions/kernel": 10.0, "predictions/bias": 10.0}
    assert classifier.optimizer.rate_factors == heads
    assert sorted(classifier.optimizer.factors)[-3:] == [1.0, 10.0, 10.0]
    # Without decay it is the Adam that the recipe has.
    assert classifier.optimizer.weight_decay == 0.0
    train.compile(classifier, settings.replace(head_rate=1.0), 1, True)
    assert type(classifier.optimizer) is keras.optimizers.Adam
    # But for weights in half, of whose precision its moments would be.
    half = settings.replace(head_rate=1.0, precision="float16")
    optimizer = optimizing.make_optimizer(half, 1)
    assert type(optimizer) is optimizers.Lamb
    assert optimizer.weight_decay == 0.0 and not optimizer.use_ema
    with pytest.raises(ValueError, match="--head-rate.*--trainable all alone"):
        settings.replace(trainable="head")


@pytest.mark.parametrize("module", ["audio_tf_config", __name__])
def test_a_class_that_could_not_be_loaded_is_refused_before_training(
    module, refusal, corpus, tmp_path, monkeypatch
):
    class Unregistered(models.AudioTransformerBackbone):
        __module__ = module

    made = AudioClassifier(
        Unregistered(**tiny.SIZES, sample_rate_hz=8_000), labels=["low", "high"]
    )
    monkeypatch.setattr(AudioClassifier, "from_preset", lambda *_, **__: made)
    out = tmp_path / "run"
    line = refusal(
        *["train", "--dataset", "csv", "--data-dir", corpus, "--out", out]
    )
    assert "register_keras_serializable(). Received: Unregistered" in line
    assert not out.exists()


def backbone_config(preset):
    config = models.AudioBackbone.from_preset(str(preset)).get_config()
    return {name: config[name] for name in config if name != "name"}


@pytest.mark.long
def test_a_preset_stays_what_it_is(
    untrained, main, refusal, corpus, tmp_path, capsys
):
    """Fine-tuning changes what is given, and nothing else."""
    kwargs = {**json.loads(TINY), "dropout": 0.3, "filterbank": "mel"}
    backbone = models.AudioTransformerBackbone(
        **kwargs,
        attention="sparse_strided",
        attention_kwargs={"stride": 2},
        causal=False,
        made_for_frames=9,
    )
    preset = tmp_path / "preset"
    AudioClassifier(
        backbone, num_classes=7, chunk_s=0.125, silence_db=-50.0
    ).save_to_preset(str(preset))
    before = backbone_config(preset)
    tuning = ["train", "--dataset", "csv", "--data-dir", corpus]
    tuning += ["--model", preset, "--epochs", 1]
    main(*tuning, "--out", tmp_path / "same")
    assert backbone_config(tmp_path / "same" / "preset") == before
    model = AudioClassifier.from_preset(str(tmp_path / "same" / "preset"))
    assert model.chunk_s == 0.125 and model.silence_db == -50.0
    config = json.loads((tmp_path / "same" / "config.json").read_text())
    assert config["model"]["causal"] is False
    assert config["model"]["attention"] == "sparse_strided"

    main(*tuning, "--dropout", 0.5, "--silence-db", 0, "--out", tmp_path / "o")
    after = backbone_config(tmp_path / "o" / "preset")
    assert after == {**before, "dropout": 0.5}
    model = AudioClassifier.from_preset(str(tmp_path / "o" / "preset"))
    assert model.silence_db is None and model.chunk_s == 0.125

    # The same labels have their head again.
    again = ["--model", tmp_path / "o" / "preset", "--learning-rate", 1e-30]
    capsys.readouterr()
    main(*tuning, *again, "--out", tmp_path / "again")
    assert "the preset's head for" in capsys.readouterr().out
    tuned = AudioClassifier.from_preset(str(tmp_path / "again" / "preset"))
    np.testing.assert_allclose(
        tuned.output_dense.kernel, model.output_dense.kernel, atol=1e-6
    )

    # A mechanism that its weights are not those of.
    line = refusal(*tuning, "--attention", "random_synthesizer", "--out", "x")
    assert "--attention: " in line and "'stride'" in line
    line = refusal(*tuning, "--model-kwargs", '{"key_dim": 5}', "--out", "x")
    assert "do not fit" in line


@pytest.mark.long
def test_the_head_alone_is_trained(
    main, refusal, corpus, tmp_path, eager_models, no_pictures
):
    """And the preset that comes of it is not frozen."""
    kwargs = {**json.loads(TINY_MEL), "filterbank": "log_mel", "dropout": 0.5}
    backbone = models.AudioTransformerBackbone(
        **kwargs,
        norm_first=True,
        causal=False,
        augmentation=[layers.RandomGain(), layers.TimeMasking(2)],
    )
    preset, out = tmp_path / "preset", tmp_path / "run"
    AudioClassifier(backbone, num_classes=7, chunk_s=0.1).save_to_preset(
        str(preset)
    )
    tuning = ["train", "--dataset", "csv", "--data-dir", corpus]
    tuning += ["--trainable", "head", "--epochs", 1, "--batch-size", 99]
    main(*tuning, "--model", preset, "--out", out)
    last = keras.saving.load_model(out / "last.keras")
    assert equal_weights(last.backbone, backbone)
    assert len(last.trainable_weights) == 2
    # An epoch is a step, with two moments and an average of either weight.
    assert int(last.optimizer.iterations) == 1
    moved = [np.abs(each).max() for each in last.output_dense.get_weights()]
    assert moved[1] > 0.0
    tuned = AudioClassifier.from_preset(str(out / "preset"))
    assert len(tuned.trainable_weights) == 2 + len(backbone.trainable_weights)
    assert tuned.backbone.dropout == 0.5

    # What the weights would not feel.
    line = refusal(*tuning, "--model", preset, "--dropout", 0.1, "--out", "x")
    assert "--dropout" in line and "--trainable head" in line
    line = refusal(*tuning, *COMMON[:-2], "--out", "x")
    assert "--trainable head needs a preset" in line


@pytest.mark.costly
def test_what_a_backbone_does_not_take_is_named_by_its_flag(
    untrained, refusal, main, corpus, tmp_path
):
    encoder = models.SpeechEncoder(
        tiny.albert(),
        layers.SpeechFeatures(
            "s3prl", 8_000, {"num_mel_bins": 13, "fft_length": 256}
        ),
    )
    preset = tmp_path / "encoder"
    encoder.save_to_preset(str(preset))
    tuning = ["train", "--dataset", "csv", "--data-dir", corpus]
    tuning += ["--epochs", 1, "--out", tmp_path / "run"]
    for flags, blamed, said in (
        (["--model", preset, "--filterbank", "mel"], "--filterbank: ", ""),
        (
            ["--model", preset, "--augmentation", "voice"],
            "--augmentation: ",
            "VocalTractPerturbation augments the spectrum",
        ),
        (
            ["--model", "audio_albert_3", "--augmentation", "sound"],
            "--augmentation must be none for AudioAlbertBackbone",
            "augmentation='sound'",
        ),
        (
            ["--model-kwargs", '{"num_layer": 1}'],
            "--model-kwargs: ",
            "did you mean 'num_layers'",
        ),
        (
            [
                *("--attention", "xbox"),
                *("--attention-kwargs", '{"num_candidate": 1}'),
            ],
            "--attention-kwargs: ",
            "did you mean 'num_candidates'",
        ),
    ):
        line = refusal(*tuning, *flags)
        assert blamed in line and said in line, line
    assert not (tmp_path / "run").exists()
    # What the encoder within it takes reaches it.
    sound = ["--augmentation", "sound"]
    main(*tuning, "--model", preset, "--dropout", 0.25, *sound)
    tuned = models.AudioBackbone.from_preset(str(tmp_path / "run" / "preset"))
    assert tuned.encoder.dropout == 0.25
    assert len(tuned.augmentation) == 3


def test_one_label_alone_is_nothing_to_learn(refusal, tmp_path):
    """Softmax of one class says 1 whatever it hears, and is always right."""
    listed = tmp_path / "list.csv"
    source = ["--dataset", "csv", "--data-dir", listed]
    rows = "filename,labels\n" + "".join(f"{n}.wav,bark\n" for n in range(12))
    listed.write_text(rows)
    line = refusal("train", *source, "--out", tmp_path / "run")
    assert "two labels" in line and "'bark' of all 10 clips of training" in line
    assert not (tmp_path / "run").exists()
    # Nor do labels that no clip has make a difference.
    order = tmp_path / "labels.csv"
    order.write_text("bark\nmeow\n")
    line = refusal("train", *source, "--vocabulary", order)
    assert "'bark' of all 10 clips of training" in line
    for split, clips in (("test", 0), ("train", 2)):
        listed.write_text(
            f"filename,labels,split\na.wav,,{split}\nb.wav,,{split}\n"
        )
        line = refusal("train", *source, "--vocabulary", order)
        assert f"Received: {clips} clips, none with a label" in line
    # Where a clip lacks it, it can be told.
    corpus = Corpus(["a.wav", "b.wav"], [["bark"], []], ["bark"])
    settings = TrainSettings(model_kwargs=json.loads(TINY_MEL))
    assert train_model.build(settings, corpus).labels == ["bark"]


@pytest.mark.parametrize("rests", ["backbone", "classifier", "encoder"])
def test_what_rests_in_a_preset_is_trained_where_it_is_asked_for(
    rests, tmp_path
):
    """Such as one that a script has saved after it has trained a new head."""
    backbone = tiny.backbone(trainable=rests != "backbone")
    if rests == "encoder":
        backbone = models.SpeechEncoder(
            tiny.albert(trainable=False),
            layers.SpeechFeatures("s3prl", 4_000, {"num_mel_bins": 13}),
        )
    AudioClassifier(
        backbone,
        labels=["low", "high"],
        chunk_s=0.1,
        trainable=rests != "classifier",
    ).save_to_preset(str(tmp_path / "preset"))
    corpus = Corpus(["a.wav", "b.wav"], [["low"], ["high"]], ["low", "high"])
    for trainable in ("all", "head"):
        settings = TrainSettings(
            model=str(tmp_path / "preset"), trainable=trainable
        )
        built = train_model.build(settings, corpus)
        trained = {"all": built.weights, "head": built.weights[-2:]}[trainable]
        assert [w.path for w in built.trainable_weights] == [
            w.path for w in trained
        ]


def test_a_decoder_of_a_frozen_model_is_trained_by_another_command(tmp_path):
    models.GaussianAdaptiveTransformer(
        tiny.backbone(), labels=["low", "high"], filters=4
    ).save_to_preset(str(tmp_path / "preset"))
    corpus = Corpus(["a.wav", "b.wav"], [["low"], ["high"]], ["low", "high"])
    settings = TrainSettings(model=str(tmp_path / "preset"))
    with pytest.raises(ValueError, match="^--model must not be a Gaussian"):
        train_model.build(settings, corpus)


@pytest.mark.parametrize("labels", [["low", "high"], []])
def test_several_labels_are_not_trained_on_as_shares(labels):
    """Of a clip with two, a softmax reaches none."""
    corpus = Corpus(
        ["a.wav", "b.wav", "c.wav"],
        [["low"], labels, ["high"]],
        ["low", "high"],
    )
    tiny_mel = json.loads(TINY_MEL)
    for loss in ("categorical_crossentropy", "categorical_focal_crossentropy"):
        settings = TrainSettings(loss=loss, model_kwargs=tiny_mel)
        message = f"{len(labels)} labels for clip 1"
        with pytest.raises(ValueError, match=message):
            train_model.build(settings, corpus)
    settings = TrainSettings(model_kwargs=tiny_mel)
    assert train_model.build(settings, corpus).activation.__name__ == "sigmoid"


@pytest.mark.parametrize("warmup_steps", [0, 4])
def test_the_rate_rises_and_falls_as_a_cosine(warmup_steps):
    """From its warm-up to a thousandth behind the last step, by hand."""
    settings = TrainSettings(
        learning_rate=0.3, epochs=4, warmup_share=warmup_steps / 20
    )
    rate = optimizing.make_optimizer(settings, 5)._learning_rate
    found = [float(rate(step)) for step in range(21)]
    # A quarter at first; all of it comes behind the steps of the rise.
    rise = 0.3 * (0.25 + 0.75 * np.arange(warmup_steps) / 4)
    angles = np.linspace(0, np.pi, 21 - warmup_steps)
    fall = 0.3 * (0.001 + 0.999 * (1 + np.cos(angles)) / 2)
    np.testing.assert_allclose(found, [*rise, *fall], rtol=1e-4, atol=1e-7)


@pytest.mark.parametrize("filterbank", ["log_mel", "pcen_mel"])
def test_kernels_alone_decay(filterbank):
    """Neither biases nor scales, nor what a compression learns of a band."""
    model = AudioClassifier(
        models.AudioTransformerBackbone(
            **json.loads(TINY_MEL), filterbank=filterbank
        ),
        labels=["low", "high"],
        pooling="attention",
    )
    optimizer = optimizing.make_optimizer(TrainSettings(weight_decay=0.25), 1)
    optimizer.build(model.trainable_variables)
    for variable, decay in zip(
        model.trainable_variables, optimizer.weight_decays, strict=True
    ):
        is_kernel = variable.name == "kernel" and len(variable.shape) == 2
        assert is_kernel == (len(variable.shape) > 1), variable.path
        assert decay == 0.25 * is_kernel, variable.path


def test_the_optimizer_has_what_settings_say():
    """A tenth of 4 epochs of 50 steps are 20: the average forgets as fast."""
    given = {"epochs": 4, "clip_norm": 2.5, "schedule": "constant"}
    for more, momentum in (
        ({"average_share": 0.1}, 0.95),
        ({"average_share": 0.001}, 0.0),
        ({"average_share": 0.0, "weight_decay": 0.5}, None),
        ({"average_share": 0.0, "weight_decay": 0.0}, None),
    ):
        settings = TrainSettings(**given, learning_rate=0.125, **more)
        optimizer = optimizing.make_optimizer(settings, 50)
        assert optimizer.global_clipnorm == 2.5
        assert float(optimizer.learning_rate) == 0.125
        assert optimizer.use_ema == (momentum is not None)
        if momentum is not None:
            assert optimizer.ema_momentum == pytest.approx(momentum)
    assert type(optimizer) is keras.optimizers.Adam
    # Without a limit there is none.
    given["clip_norm"] = None
    settings = TrainSettings(**{**given, "recipe": "paper"})
    assert optimizing.make_optimizer(settings, 50).global_clipnorm is None


def test_smoothing_is_the_share_that_settings_say():
    """Each of three classes has a third of it; of two values, a half."""
    settings = TrainSettings(label_smoothing=0.3)
    scores = np.array([[0.5, 0.2, 0.3]], "float32")
    targets = np.array([[0.0, 1.0, 0.0]], "float32")
    for one_label, shares in (
        (True, [0.1, 0.8, 0.1]),
        (False, [0.15, 0.85, 0.15]),
    ):
        wanted = np.array(shares) * np.log(scores[0])
        if not one_label:
            wanted += (1 - np.array(shares)) * np.log(1 - scores[0])
        loss = settings.loss_function(one_label)(targets, scores)
        expected = -np.sum(wanted) / (1 if one_label else 3)
        assert float(loss) == pytest.approx(expected, rel=1e-5)
    plain = settings.replace(label_smoothing=0.0)
    assert plain.loss_function(True) == "categorical_crossentropy"


def test_a_rate_that_never_falls_is_named_as_it_was_given():
    """Keras has a step of the fall at least."""
    settings = TrainSettings(warmup_share=0.99, epochs=2)
    message = "^--warmup-share must leave.*Received: 0.99 of 10 steps"
    with pytest.raises(ValueError, match=message):
        optimizing.make_optimizer(settings, 5)
    rate = optimizing.make_optimizer(settings, 50)._learning_rate
    assert float(rate(99)) == pytest.approx(settings.learning_rate)
