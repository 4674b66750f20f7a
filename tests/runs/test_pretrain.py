"""Pre-training, on corpora of seconds."""

import csv
import json
import shutil

import keras
import numpy as np
import pytest
import soundfile
import tiny
from scripts import end_at, kill_at

if keras.backend.backend() != "tensorflow":
    pytest.skip("training reads through tf.data", allow_module_level=True)

from audio_tf import layers, models, optimizers
from audio_tf.models import preset_backbones
from audio_tf.runs import (
    checkpoints,
    heard,
    pretrain,
    pretrain_batches,
    pretrain_model,
)

TINY = {**tiny.SIZES, "dropout": 0.1}
SMALL_WAVLM = {"num_layers": 1, "num_heads": 2, "hidden_dim": 32}
COMMON = [
    *("--dataset", "folder", "--sample-rate-hz", 8000),
    *("--features", "s3prl", "--target", "input", "--masking", "s3prl"),
    *(
        "--features-options",
        json.dumps({"num_mel_bins": 13, "fft_length": 256}),
    ),
    *("--model", "audio_albert_3", "--model-kwargs", json.dumps(TINY)),
    *(
        "--feature-cache",
        "--batch-size",
        6,
        "--buckets",
        2,
        "--learning-rate",
        0.1,
    ),
]


@pytest.fixture(scope="module")
def corpus(tmp_path_factory):
    """Chirps in noise of unequal length, and a file that is not audio."""
    folder = tmp_path_factory.mktemp("speech")
    rng = np.random.default_rng(5)
    for number in range(30):
        speaker = folder / f"speaker{number % 3}"
        speaker.mkdir(exist_ok=True)
        time_s = np.arange(rng.integers(3_000, 7_000)) / 8_000
        rate_hz = rng.uniform(200, 1_000)
        chirp = np.sin(2 * np.pi * rate_hz * time_s * (1 + time_s))
        # Without it, quiet bands would hold what rounding leaves.
        noise = 0.01 * rng.standard_normal(len(chirp))
        audio = 0.3 * chirp + noise
        soundfile.write(speaker / f"{number}.wav", audio, 8_000)
    (folder / "speaker2" / "bad.wav").write_text("no sound at all")
    return folder


def trained(out):
    model = keras.saving.load_model(out / "last.keras")
    assert isinstance(model.optimizer, optimizers.Lamb)
    return model


def assert_equal_weights(one, other):
    for a, b in zip(one.get_weights(), other.get_weights(), strict=True):
        np.testing.assert_array_equal(a, b)


def losses(out, column="loss"):
    with open(out / "history.csv") as file:
        return [float(row[column]) for row in csv.DictReader(file)]


@pytest.mark.long
@pytest.mark.parametrize(
    "killed", [False, pytest.param(True, marks=pytest.mark.slow)]
)
def test_killed_and_resumed_equals_unbroken(
    killed, corpus, main, refusal, tmp_path, capsys, request
):
    """Killed after an epoch's row of the history, before its checkpoint.

    Checkpoints are not at the end of a pass, masks and dropout random.
    """
    if not killed:
        request.getfixturevalue("eager_models")
    arguments = ["--data-dir", corpus, *COMMON, "--attention", "xbox"]
    arguments += ["--steps", 6, "--save-every", 2, "--accumulate", 2]
    whole, broken = tmp_path / "whole", tmp_path / "broken"
    main("pretrain", *arguments, "--out", whole)
    output = capsys.readouterr().out
    assert "1 file left out" in output and "bad.wav" in output
    # No update was left out.
    assert int(trained(whole).optimizer.iterations) == 6
    assert len(losses(whole)) == 3

    end = ("audio_tf.runs.checkpoints:LastCheckpoint.on_epoch_end", 2)
    run = ("pretrain", *arguments, "--out", broken)
    if killed:
        kill_at(*end, *run, cache=tmp_path / "cache")
    else:
        end_at(*end, main, *run)
    assert int(trained(broken).optimizer.iterations) == 2
    assert len(losses(broken)) == 2
    assert "--resume" in refusal("pretrain", *arguments, "--out", broken)
    main("pretrain", "--out", broken, "--resume")
    assert_equal_weights(trained(whole), trained(broken))
    assert losses(broken) == losses(whole)
    assert losses(broken, "val_loss") == losses(whole, "val_loss")

    # What is left behind: an encoder, how it came to be, and pictures.
    encoder = models.AudioBackbone.from_preset(str(broken / "preset"))
    assert_equal_weights(encoder.encoder, trained(broken).backbone)
    origin = json.loads((broken / "preset" / "provenance.json").read_text())
    assert origin["settings"]["attention"] == "xbox"
    assert list((broken / "logs" / "pictures").glob("events.out.tfevents.*"))


@pytest.mark.long
def test_killed_before_its_last_preset(corpus, main, tmp_path, eager_models):
    """The last checkpoint is there, the preset beside it is of an earlier."""
    out = tmp_path / "run"
    end_at(
        *("audio_tf.runs.pretrain:write_preset", 2, main, "pretrain"),
        *("--data-dir", corpus, *COMMON, "--steps", 2, "--save-every", 1),
        *("--picture-every", 1, "--out", out),
    )
    origin = out / "preset" / "provenance.json"
    assert json.loads(origin.read_text())["steps_done"] == 1
    assert int(trained(out).optimizer.iterations) == 2
    main("pretrain", "--out", out, "--resume")
    assert json.loads(origin.read_text())["steps_done"] == 2
    encoder = models.AudioBackbone.from_preset(str(out / "preset"))
    assert_equal_weights(encoder.encoder, trained(out).backbone)


def settings_of(corpus, tmp_path, **options):
    return pretrain.PretrainSettings(
        **{
            "dataset": "folder",
            "data_dir": str(corpus),
            "cache_dir": str(tmp_path / "cache"),
            "sample_rate_hz": 8_000,
            "features": "s3prl",
            "features_options": {"num_mel_bins": 13, "fft_length": 256},
            "target": "input",
            "masking": "s3prl",
            "model": "audio_albert_3",
            "model_kwargs": TINY,
            "batch_size": 6,
            "buckets": 2,
            "feature_cache": True,
            **options,
        }
    )


@pytest.mark.costly
def test_features_in_the_pipeline_equal_cached_ones(corpus, tmp_path):
    """With the paper's target, which has other features than the input."""
    batches = []
    for cached in (True, False):
        settings = settings_of(
            corpus, tmp_path, target="spectrogram", feature_cache=cached
        )
        clips = settings.prepare(settings.load()["train"], "train")
        each = pretrain_batches.Batches(clips, settings)
        # One more than a pass.
        batches.append(list(each.training(2).take(len(each) + 1)))
    assert len(batches[0]) == len(batches[1])
    for one, other in zip(*batches, strict=True):
        np.testing.assert_array_equal(one[0]["lengths"], other[0]["lengths"])
        frames = one[0]["lengths"].numpy()
        width = one[0]["features"].shape[1]
        real = np.arange(width) < frames[:, None]
        # A graph rounds otherwise than single operations.
        for a, b in (
            (one[0]["features"], other[0]["features"]),
            (one[1], other[1]),
        ):
            np.testing.assert_allclose(
                a.numpy()[real], b.numpy()[:, :width][real], atol=1e-3
            )
    model = pretrain.build(settings)
    assert model.target_dim == batches[0][0][1].shape[-1] == 129


@pytest.mark.costly
def test_an_encoder_that_was_pretrained_goes_on(corpus, tmp_path):
    first = settings_of(corpus, tmp_path)
    model, preset = pretrain.build(first), tmp_path / "preset"
    # Fresh biases are alike.
    rng = np.random.default_rng(7)
    for weight in model.backbone.weights:
        weight.assign(rng.standard_normal(weight.shape))
    # A script may have saved it as it has probed it, at rest.
    model.backbone.trainable = False
    models.SpeechEncoder(model.backbone, first.feature_layer()).save_to_preset(
        str(preset)
    )
    again = {"model": str(preset), "model_kwargs": {}}
    going_on = pretrain.build(settings_of(corpus, tmp_path, **again))
    assert_equal_weights(going_on.backbone, model.backbone)
    assert going_on.backbone.trainable_weights
    dropped = {**again, "model_kwargs": {"dropout": 0.5}}
    found = pretrain.build(settings_of(corpus, tmp_path, **dropped))
    assert found.backbone.dropout == 0.5
    other = {"num_mel_bins": 13, "fft_length": 512}
    differs = "from, {'fft_length': 256}. Received: {'fft_length': 512}$"
    with pytest.raises(ValueError, match=f"--features, .*{differs}"):
        pretrain.build(
            settings_of(corpus, tmp_path, **again, features_options=other)
        )
    # Its spectrum has no bands.
    plain = settings_of(corpus, tmp_path, **again, features_options={})
    plain.features = "paper_target"
    differs = "'num_mel_bins': .* Received: {'preset': 'paper_target',"
    with pytest.raises(ValueError, match=differs):
        pretrain_model.load_backbone(plain, plain.feature_layer())
    with pytest.raises(ValueError, match="^--model.*WavLMBackbone"):
        pretrain.build(
            settings_of(
                corpus, tmp_path, model="wavlm_base", model_kwargs=SMALL_WAVLM
            )
        )


@pytest.mark.costly
def test_a_pretraining_leaves_marks(corpus, main, tmp_path, monkeypatch):
    """Of what it has heard without a label, and of what its model had."""

    def fit(settings, model, batches, out, facts, hears, share):
        last = checkpoints.LastCheckpoint(out / "last.keras")
        last.set_model(model)
        last.on_epoch_end(0)
        pretrain.write_preset(model, settings, out, facts, 1, hears)

    monkeypatch.setattr(pretrain, "fit", fit)
    first, second = tmp_path / "first", tmp_path / "second"
    few, common = tmp_path / "few", list(COMMON)
    common += ["--steps", 1, "--min-s", 0.4]
    shutil.copytree(corpus / "speaker1", few / "speaker1")
    main("pretrain", "--data-dir", few, *common, "--out", first)
    known = heard.read(first / "preset")
    assert known.learned is None and known.listed == {}
    settings = settings_of(corpus, tmp_path, min_s=0.4)
    marks = {}
    for folder in (few, corpus):
        settings = settings.replace(data_dir=str(folder))
        clips = settings.prepare(settings.load()["train"], "train")
        marks[folder] = np.unique(clips.marks)
    assert len(marks[few]) < 10
    np.testing.assert_array_equal(known.pretrained, marks[few])

    # It had learned from others with their labels, before that.
    more = heard.Heard(np.array([7], "uint64"), np.array([8], "uint64"))
    heard.write(first / "preset", [known, more])
    at = common.index("--model")
    begun = [*common[:at], "--model", first / "preset", *common[at + 4 :]]
    main("pretrain", "--data-dir", corpus, *begun, "--out", second)
    shutil.rmtree(first)
    # Splits are drawn anew.
    both = np.union1d(more.pretrained, np.union1d(*marks.values()))
    assert len(both) > 1 + len(marks[corpus])
    for _ in range(2):
        found = heard.read(second / "preset")
        assert found.learned.tolist() == [7]
        np.testing.assert_array_equal(found.pretrained, both)
        shutil.rmtree(second / "preset")
        main("pretrain", "--out", second, "--resume")


def test_features_of_ones_own_are_not_replaced(corpus, tmp_path, monkeypatch):
    """Those of the run are plain ones, and its preset would have them."""

    class Louder(layers.SpeechFeatures):
        pass

    first = settings_of(corpus, tmp_path)
    own = first.feature_layer()
    louder = Louder(own.preset, own.sample_rate_hz, own.options)
    made = models.SpeechEncoder(pretrain.build(first).backbone, louder)
    monkeypatch.setattr(
        models.AudioBackbone, "from_preset", lambda *_, **__: made
    )
    monkeypatch.setattr(
        preset_backbones, "describe", lambda _: (models.SpeechEncoder, {})
    )
    with pytest.raises(ValueError, match="--model must hear .* of Louder"):
        pretrain.build(settings_of(corpus, tmp_path))


def test_an_encoder_that_could_not_be_loaded_is_refused_before_training(
    corpus, tmp_path, monkeypatch
):
    class Unregistered(models.AudioAlbertBackbone):
        __module__ = "audio_tf_config"

    made = Unregistered(**TINY, feature_dim=13)
    monkeypatch.setattr(
        models.AudioBackbone, "from_preset", lambda *_, **__: made
    )
    with pytest.raises(ValueError, match="Received: Unregistered without it"):
        pretrain.build(settings_of(corpus, tmp_path))


def test_the_schedule_ends_with_the_steps(corpus, tmp_path):
    """The parts that a batch is computed in have one rate."""
    settings = settings_of(
        corpus,
        tmp_path,
        steps=20,
        save_every=20,
        accumulate=3,
        warmup=0.25,
        clip_norm=2.5,
    )
    optimizer = pretrain.build(settings).optimizer
    rate = optimizer._learning_rate
    assert optimizer.global_clipnorm == 2.5
    assert optimizer.gradient_accumulation_steps == 3
    for part in (15, 16, 17):
        assert float(rate(part)) == pytest.approx(settings.learning_rate)
    assert float(rate(14)) < settings.learning_rate > float(rate(18))
    assert float(rate(0)) == float(rate(2)) == 0
    assert float(rate(59)) > 0 and float(rate(60)) == 0


@pytest.mark.long
@pytest.mark.parametrize(
    "precision",
    [
        pytest.param("mixed_bfloat16", marks=pytest.mark.slow),
        "mixed_float16",
    ],
)
def test_mixed_precision_resumes(
    precision, corpus, main, refusal, tmp_path, monkeypatch, eager_models
):
    arguments = ["--data-dir", corpus, *COMMON, "--precision", precision]
    arguments += ["--save-every", 2, "--steps", 4]
    out = tmp_path / "run"
    original = checkpoints.LastCheckpoint.on_epoch_end

    def interrupted(self, epoch, logs=None):
        original(self, epoch, logs)
        if epoch == 0:
            raise RuntimeError("no current")

    monkeypatch.setattr(checkpoints.LastCheckpoint, "on_epoch_end", interrupted)
    line = refusal("pretrain", *arguments, "--out", out)
    assert "no current" in line and "after epoch 1" in line
    model = keras.saving.load_model(out / "last.keras")
    assert model.backbone.blocks[0].compute_dtype == precision[6:]
    main("pretrain", *arguments, "--out", out, "--resume")
    assert len(losses(out)) == 2 and np.isfinite(losses(out)).all()
    # An epoch counts although float16 leaves out updates that overflow.
    assert checkpoints.epochs_done(out / "last.keras") == 2


@pytest.mark.long
def test_librispeech_from_its_released_layout(
    shared_data, main, tmp_path, capsys, eager_models
):
    """Six utterances prove the path alone."""
    out = tmp_path / "run"
    small = {**TINY, "hidden_dim": 32, "dropout": 0.0}
    main(
        *("pretrain", "--dataset", "librispeech", "--optimizer", "adamw"),
        *("--data-dir", shared_data / "LibriSpeech"),
        *("--train-subsets", "train-clean-100", "--val-subsets", "dev-clean"),
        *("--model-kwargs", json.dumps(small), "--learning-rate", 0.01),
        *("--steps", 1, "--save-every", 1, "--batch-size", 2),
        # Without it, each dataset traces the features anew.
        *("--feature-cache", "--out", out),
    )
    output = capsys.readouterr().out
    assert "train: 4 utterances" in output and "val: 2 utterances" in output
    model = keras.saving.load_model(out / "last.keras")
    assert int(model.optimizer.iterations) == 1
    for column in ("loss", "val_loss"):
        assert np.isfinite(losses(out, column)).all()
    encoder = models.AudioBackbone.from_preset(str(out / "preset"))
    assert encoder.features.frame_size == 600


@pytest.mark.costly
def test_what_diverges_is_not_kept(corpus, refusal, tmp_path, eager_models):
    arguments = ["--data-dir", corpus, *COMMON, "--optimizer", "adamw"]
    out = tmp_path / "run"
    line = refusal(
        *("pretrain", *arguments, "--learning-rate", 1e30),
        *("--steps", 40, "--save-every", 20, "--out", out),
    )
    assert "NaN" in line
    assert not (out / "last.keras").exists() and not (out / "preset").exists()


@pytest.mark.long
def test_ended_before_its_first_checkpoint(
    corpus, main, refusal, tmp_path, monkeypatch, eager_models
):
    arguments = ["--data-dir", corpus, *COMMON, "--steps", 2]
    out = tmp_path / "run"

    def interrupted(*arguments):
        raise RuntimeError("no current")

    with monkeypatch.context() as patched:
        patched.setattr(pretrain, "fit", interrupted)
        line = refusal("pretrain", *arguments, "--out", out)
    assert "no current" in line and "--resume" not in line
    assert not (out / "last.keras").exists()
    # As Keras leaves it that was killed before its first row.
    (out / "history.csv").write_text("")
    main("pretrain", "--out", out, "--resume")
    assert len(losses(out)) == 1 and (out / "preset").is_dir()

    # With other settings, or other data, it would be another run.
    resume = ["pretrain", "--out", out, "--resume"]
    for flags in (["--steps", 4], ["--attention", "xbox"]):
        line = refusal(*resume, *flags)
        assert "goes on with the settings" in line, flags
    other = tmp_path / "other"
    other.mkdir()
    for number in range(9):
        soundfile.write(other / f"{number}.wav", np.ones(3_000) / 9, 8_000)
    line = refusal(*resume, "--data-dir", other)
    assert "The corpus is not the one" in line and "removed" in line


def test_mistakes_are_named(corpus, refusal, tmp_path):
    table = ["--attention", "random_synthesizer", "--made-for-frames", 20]
    source, out = ["--data-dir", corpus, *COMMON], tmp_path / "run"
    for flags, named in (
        (["--steps", 7, "--save-every", 3], "--save-every must divide"),
        (["--steps", 12, "--save-every", 5], "as --save-every 4 does"),
        (["--steps", 1500], "as --save-every 750 does"),
        (["--batch-size", 5, "--accumulate", 2], "--accumulate must divide"),
        (["--resume"], "nothing to resume"),
        ([*source, "--min-s", 2, "--max-s", 1.5], "must be at most --max-s"),
        (
            [*("--accumulate", 2), *("--distribution", "data_parallel")],
            "one device only",
        ),
        ([], "--data-dir is needed"),
        ([*source, *table], "The longest utterance has"),
        ([*source, "--attention", "half"], "--attention must be one of"),
        (
            [*source, "--attention", "gaussian_adaptive", "--causal"],
            "--causal",
        ),
        (
            [*source, "--attention-kwargs", '{"strid": 3}'],
            "--attention-kwargs: ",
        ),
        (
            [*source, "--masking-kwargs", '{"mask": 3}'],
            "--masking-kwargs: ",
        ),
        (
            [*source, "--features-options", '{"hops": 3}'],
            "--features-options: ",
        ),
        (
            [
                *(*source, "--batch-size", 40, "--steps", 1000),
                *("--distribution", "data_parallel"),
            ],
            "No batch of 40 is full",
        ),
    ):
        line = refusal("pretrain", *flags, "--out", out)
        assert named in line, line
    assert not out.exists()


@pytest.mark.long
def test_attentions_are_compared_with_equal_causality(
    corpus, main, tmp_path, monkeypatch
):
    """`--causal` reaches the blocks, and each record says what came out."""

    def fit(settings, model, batches, out, facts, hears, share):
        last = checkpoints.LastCheckpoint(out / "last.keras")
        last.set_model(model)
        last.on_epoch_end(0)
        steps = settings.steps
        pretrain.write_preset(model, settings, out, facts, steps, hears)

    monkeypatch.setattr(pretrain, "fit", fit)
    for flags, causal in (([], False), (["--causal"], True)):
        out = tmp_path / f"{causal}"
        arguments = ["--data-dir", corpus, *COMMON, *flags]
        arguments += ["--attention", "sparse_strided", "--steps", 1]
        arguments += ["--save-every", 1, "--made-for-frames", 81]
        main("pretrain", *arguments, "--out", out)
        for file in ("config.json", "preset/provenance.json"):
            model = json.loads((out / file).read_text())["model"]
            assert model["causal"] is causal
            assert model["made_for_frames"] == 81
        backbone = trained(out).backbone
        assert backbone.causal is causal
        assert backbone.blocks[0].attention.stride == 9


def test_hosts_are_compared_before_they_decode_in_parts(
    corpus, tmp_path, monkeypatch, refusal
):
    def check_alike(facts, share):
        assert facts["corpus"]["train"]["files"] == 25
        raise ValueError("hosts differ")

    monkeypatch.setattr(pretrain.hosts, "check_alike", check_alike)
    monkeypatch.setattr(pretrain, "load_batches", None)
    run = ["--data-dir", corpus, "--steps", 4, "--out", tmp_path / "run"]
    assert "hosts differ" in refusal("pretrain", *COMMON, *run)
