"""The classical baseline: its features, and what its script writes."""

import csv
import json

import keras
import naive
import numpy as np
import pytest
import soundfile
from scipy import fft, stats

from audio_tf import data, intervals, layers, metrics
from audio_tf.audio import load_audio
from audio_tf.corpora import Corpus
from audio_tf.runs import baseline


@pytest.fixture(scope="module")
def corpus(tmp_path_factory):
    """A CSV corpus of hisses and hums of several lengths."""
    folder = tmp_path_factory.mktemp("corpus")
    rows, rng = [["filename", "labels", "split"]], np.random.default_rng(3)
    for number in range(24):
        x = 0.1 * rng.standard_normal(rng.integers(800, 2_400))
        kind = number % 2
        x = np.cumsum(x) / 20 if kind else x
        soundfile.write(folder / f"{number}.wav", np.clip(x, -1, 1), 8_000)
        split = "val" if number >= 16 else "train"
        rows.append([f"{number}.wav", ("hiss", "hum")[kind], split])
    with open(folder / "list.csv", "w", newline="") as file:
        csv.writer(file).writerows(rows)
    return folder / "list.csv"


def test_mfcc_is_the_cosine_transform_of_log_mel(rng):
    x = 0.1 * rng.standard_normal((2, 1_201)).astype("float32")
    lengths = np.array([1_201, 700], "int32")
    options = {
        "num_mel_bins": 23,
        "fft_length": 512,
        "window_s": 0.02,
        "hop_s": 0.01,
    }
    layer = layers.MFCC(7, **options)
    assert naive.missing_from_config(layer) == []
    found = np.asarray(layer(x, lengths))
    mel = np.asarray(layers.LogMel(**options)(x, lengths))
    expected = fft.dct(mel, type=2, norm="ortho", axis=-1)[:, :, :7]
    np.testing.assert_allclose(found, expected, atol=2e-4)
    assert layer(keras.KerasTensor((None, None))).shape == (None, None, 7)
    with pytest.raises(ValueError, match="coefficients"):
        layers.MFCC(41)


def test_moments_are_those_of_each_clip_alone(corpus, tmp_path):
    settings = baseline.BaselineSettings(
        dataset="csv",
        data_dir=str(corpus),
        cache_dir=str(tmp_path),
        split="val",
        coefficients=3,
        sample_rate_hz=8_000,
        statistics="moments",
    )
    three = settings.load()["train"].select([5, 0, 2])
    clips = data.prepare(three, 8_000, **settings.prepare_arguments())
    found = baseline.features(clips, settings)
    assert found.shape == (3, 18)
    for row, file in enumerate(three.files):
        samples = load_audio(file, 8_000)[None]
        x = layers.MFCC(
            3, sample_rate_hz=8_000, window_s=0.025, hop_s=0.01, fft_length=256
        )(samples)
        slopes = layers.Deltas()(x)
        expected = [
            figure
            for each in (x, slopes, layers.Deltas()(slopes))
            for figure in (
                np.asarray(each)[0].mean(axis=0),
                np.asarray(each)[0].std(axis=0),
            )
        ]
        np.testing.assert_allclose(
            found[row], np.concatenate(expected), rtol=1e-3, atol=1e-3
        )


def test_quantiles_are_over_the_frames_that_are_no_silence(tmp_path):
    """A clip that ends in silence has the features of what was heard.

    Silence is relative: the clip is soft, and what is 80 dB below it is none
    of it.
    """
    rng = np.random.default_rng(8)
    heard = rng.uniform(-4e-4, 4e-4, 4_000)
    still = rng.uniform(-4e-8, 4e-8, 4_000)
    both = np.append(heard, still)
    soundfile.write(tmp_path / "a.wav", both, 8_000, subtype="FLOAT")
    soundfile.write(tmp_path / "still.wav", np.zeros(4_000), 8_000)
    settings = baseline.BaselineSettings(
        cache_dir=str(tmp_path / "cache"),
        coefficients=3,
        sample_rate_hz=8_000,
    )
    files = [str(tmp_path / name) for name in ("a.wav", "still.wav")]
    listed = Corpus(files, [["a"], ["a"]], ["a"])
    clips = data.prepare(listed, 8_000, **settings.prepare_arguments())
    found = baseline.features(clips, settings)
    assert found.shape == (2, 63) and np.isfinite(found).all()
    mfcc = layers.MFCC(
        3, sample_rate_hz=8_000, window_s=0.025, hop_s=0.01, fft_length=256
    )
    x = mfcc(clips.read(0).astype("float32")[None])
    first = layers.Deltas()(x)
    second = layers.Deltas()(first)
    # The last that has heard anything is frame 51, about sample 4,080.
    three = [np.asarray(each)[0, :52] for each in (x, first, second)]
    expected = [
        figure
        for each in three
        for figure in (each.mean(axis=0), each.std(axis=0))
    ]
    for share in (5, 25, 50, 75, 95):
        expected += [np.percentile(each, share, axis=0) for each in three]
    np.testing.assert_allclose(
        found[0], np.concatenate(expected), rtol=1e-3, atol=1e-3
    )
    # By moments, silence counts as it did.
    found = baseline.features(clips, settings.replace(statistics="moments"))
    means = np.asarray(x)[0].mean(axis=0)
    np.testing.assert_allclose(found[0, :3], means, rtol=1e-3, atol=1e-3)


def test_the_regression_sees_quantiles(rng):
    """What tells the classes apart is behind the means and deviations."""
    x = rng.standard_normal((80, 21))
    classes = (x[:, 20] > 0).astype(int)
    for statistics, right in (("quantiles", True), ("moments", False)):
        settings = baseline.BaselineSettings(
            coefficients=1, statistics=statistics
        )
        model = baseline.logistic(settings, 0, True).fit(x, classes)
        assert (model.score(x, classes) > 0.9) == right


@pytest.mark.parametrize("name", ["forest", "logistic"])
def test_scores_take_one_label_a_clip_or_several(name, rng):
    settings = baseline.BaselineSettings(trees=20)

    def make(one_label):
        return baseline.BASELINES[name].make(settings, 0, one_label)

    # Class 1 has no clip; what is left is told by the sign of a feature.
    x = np.where(np.arange(40) % 2, 2.0, -2.0)[:, None]
    x = x + 0.1 * rng.standard_normal((40, 120))
    targets = np.zeros((40, 3), "float32")
    targets[np.arange(40), np.where(x[:, 0] > 0, 2, 0)] = 1.0
    scores = baseline.fit_and_score(make, (x, targets), x)
    np.testing.assert_array_equal(scores.argmax(axis=1), targets.argmax(axis=1))
    assert (scores[:, 1] == 0.0).all()

    # Class 1 is in all clips now: it has its share, the others are learned.
    targets[:, 1] = 1.0
    scores = baseline.fit_and_score(make, (x, targets), x)
    assert (scores[:, 1] == 1.0).all()
    np.testing.assert_array_equal(scores[:, [0, 2]] > 0.5, targets[:, [0, 2]])
    one = targets.copy()
    one[:, 0] = 0.0
    scores = baseline.fit_and_score(make, (x, one), x)
    np.testing.assert_array_equal(scores[:, 2] > 0.5, one[:, 2])


def test_one_label_alone_is_nothing_to_learn(refusal, tmp_path):
    """Whoever says that label is right about every clip."""
    listed = tmp_path / "list.csv"
    rows = "".join(f"{n}.wav,bark\n" for n in range(12))
    listed.write_text("filename,labels\n" + rows)
    line = refusal("baseline", "--dataset", "csv", "--data-dir", listed)
    assert "'bark' of all 10 clips of training" in line


@pytest.mark.parametrize("command", ["baseline", "train"])
def test_one_label_of_all_that_can_be_decoded(
    command, corpus, refusal, tmp_path
):
    """The other label is that of files without sound."""
    bad = tmp_path / "bad.wav"
    bad.write_bytes(b"no audio")
    good = corpus.parent / "0.wav"
    listed = tmp_path / "list.csv"
    listed.write_text(
        "filename,labels,split\n"
        f"{good},hiss,train\n{bad},hum,train\n"
        f"{corpus.parent / '1.wav'},hum,test\n"
    )
    own = {
        "baseline": ("--sample-rate-hz", 8_000),
        "train": ("--model", "vgg_like", "--out", tmp_path / "run"),
    }
    line = refusal(
        *(command, "--dataset", "csv", "--data-dir", listed, *own[command]),
        *("--cache-dir", tmp_path / "cache"),
    )
    assert "'hiss' of all 1 clips of training" in line
    assert "1 file left out" in line and "bad.wav" in line


def test_figures_that_clips_leave_undefined_are_told_so(
    corpus, tmp_path, capsys
):
    listed = tmp_path / "list.csv"
    rows = [
        f"{corpus.parent / f'{n}.wav'},{'ab'[n % 2]},train" for n in range(4)
    ]
    rows.append(f"{corpus.parent / '4.wav'},,test")
    listed.write_text("\n".join(["filename,labels,split", *rows]))
    baseline.run(
        baseline.BaselineSettings(
            dataset="csv",
            data_dir=str(listed),
            cache_dir=str(tmp_path / "cache"),
            sample_rate_hz=8_000,
            trees=2,
            seeds=[0],
        )
    )
    lines = capsys.readouterr().out.splitlines()
    assert "forest     mAP            n/a" in lines


def test_a_report_holds_while_corpus_and_settings_are_as_they_were(
    corpus, tmp_path
):
    """A file that could not be used is none that has changed."""
    (tmp_path / "bad.wav").write_bytes(b"no audio")
    listed = tmp_path / "list.csv"
    names = [*(corpus.parent / f"{n}.wav" for n in range(4)), "bad.wav"]
    lines = [f"{name},{'ab'[n % 2]},train" for n, name in enumerate(names)]
    lines.append(f"{corpus.parent / '4.wav'},a,test")
    listed.write_text("\n".join(["filename,labels,split", *lines, ""]))
    asked = baseline.BaselineSettings(
        dataset="csv",
        data_dir=str(listed),
        cache_dir=str(tmp_path / "cache"),
        report=str(tmp_path / "baseline.json"),
        sample_rate_hz=8_000,
        trees=2,
        seeds=[0],
    )
    baseline.run(asked)
    content = json.loads((tmp_path / "baseline.json").read_text())
    assert list(content["left_out"]) == ["bad.wav"]
    assert content["corpus"]["train"]["files"] == 4
    assert baseline.still_holds(content, asked)
    assert baseline.still_holds(content, asked.replace(seeds=[1], report=None))
    # As where a default is another by now.
    for change in ({"trees": 3}, {"statistics": "moments"}):
        assert not baseline.still_holds(content, asked.replace(**change))
    older = dict(content["settings"])
    del older["statistics"]
    assert not baseline.still_holds({**content, "settings": older}, asked)
    with open(listed, "a") as file:
        file.write("new.wav,a,train\n")
    assert not baseline.still_holds(content, asked)


def test_what_some_seeds_leave_undefined_has_the_others_values():
    """The separation of classes is infinite where all ranks are right."""
    targets = np.array([[1, 0], [0, 1], [1, 0], [0, 1]])
    wrong = np.where(targets == 1, 0.8, 0.2)
    wrong[0] = [0.3, 0.1]
    wrong[1] = [0.6, 0.4]
    reports = [
        metrics.evaluate(targets, scores, ["a", "b"])
        for scores in (targets.astype("float64"), wrong)
    ]
    found = baseline.summary(reports)
    # One of four pairs is ranked wrongly by the first class, none by the other.
    d_prime = 2**0.5 * stats.norm.ppf(7 / 8)
    assert found["d_prime"]["values"][0] is None
    assert found["d_prime"]["values"][1] == pytest.approx(d_prime)
    assert found["d_prime"]["mean"] is found["d_prime"]["deviation"] is None
    assert found["roc_auc"]["mean"] == pytest.approx(15 / 16)
    shown = baseline.describe(found["d_prime"])
    assert shown == "n/a, undefined by 1 of 2 seeds"
    assert baseline.describe(found["roc_auc"]) == "0.9375 +- 0.0625"
    assert "d_prime" not in baseline.summary(reports[:1])


def test_the_regression_does_not_see_the_scale_of_a_feature(rng):
    x = rng.standard_normal((60, 21))
    classes = (x[:, 3] + x[:, 8] + 0.5 * rng.standard_normal(60) > 0).astype(
        int
    )
    settings = baseline.BaselineSettings(coefficients=1)
    shares = []
    for scale in (np.ones(21), 10.0 ** rng.uniform(-3, 3, 21)):
        model = baseline.logistic(settings, 0, True).fit(x * scale, classes)
        shares.append(model.predict_proba(x * scale))
    np.testing.assert_allclose(*shares, atol=1e-3)


class SaysTheOther:
    """A stand-in of a classifier that is wrong on as many clips as its seed.

    Every other clip is of the second class.
    """

    classes_ = np.arange(2)

    def __init__(self, seed):
        self.seed = seed

    def fit(self, x, classes):
        return self

    def predict_proba(self, x):
        said = np.arange(len(x)) % 2
        said[: self.seed] = 1 - said[: self.seed]
        return np.eye(2)[said]


def test_figures_are_of_each_seed_and_the_interval_is_of_the_first(
    corpus, tmp_path, monkeypatch
):
    forests = [
        baseline.forest(baseline.BaselineSettings(trees=2), seed, True)
        for seed in (0, 7)
    ]
    assert [each.random_state for each in forests] == [0, 7]
    drawn = baseline.Baseline(
        lambda settings, seed, one_label: SaysTheOther(seed), draws=True
    )
    monkeypatch.setattr(baseline, "BASELINES", {"drawn": drawn})
    settings = baseline.BaselineSettings(
        dataset="csv",
        data_dir=str(corpus),
        cache_dir=str(tmp_path),
        sample_rate_hz=8_000,
        split="val",
        seeds=[1, 3],
        report=str(tmp_path / "baseline.json"),
    )
    found = baseline.run(settings)["drawn"]["accuracy"]
    assert found["values"] == [7 / 8, 5 / 8] and found["mean"] == 6 / 8
    report = json.loads((tmp_path / "baseline.json").read_text())
    targets = np.eye(2, dtype="int64")[np.arange(8) % 2]
    first = intervals.bootstrap(
        metrics.METRICS["accuracy"],
        targets,
        SaysTheOther(1).predict_proba(targets),
    )
    assert report["intervals"]["drawn"]["accuracy"] == list(first)


def test_the_script_writes_figures_over_seeds(corpus, tmp_path, capsys):
    out = tmp_path / "baseline.json"
    arguments = [
        *("--dataset", "csv", "--data-dir", corpus, "--split", "val"),
        *("--sample-rate-hz", 8_000, "--trees", 30, "--seeds", 4, 5),
        *("--report", out, "--cache-dir", tmp_path),
    ]
    baseline.main([str(argument) for argument in arguments])
    printed = capsys.readouterr().out
    report = json.loads(out.read_text())
    assert report["left_out"] == {}
    assert set(report["figures"]) == {"forest", "logistic"}
    forest = report["figures"]["forest"]["mAP"]
    assert len(forest["values"]) == 2
    assert forest["mean"] == pytest.approx(np.mean(forest["values"]))
    assert forest["deviation"] == pytest.approx(np.std(forest["values"]))
    assert len(report["figures"]["logistic"]["mAP"]["values"]) == 1
    assert report["settings"]["trees"] == 30
    assert set(report["corpus"]) == {"train", "val"}
    for figures in report["figures"].values():
        assert figures["accuracy"]["mean"] == 1.0
    assert f"{forest['mean']:.4f}" in printed
    # All of eight independent clips are right: Wilson's interval.
    for found in report["intervals"].values():
        assert found["unit"] == "clip" and found["units"] == 8
        assert found["accuracy"] == pytest.approx([1 / (1 + 1.96**2 / 8), 1])
    # The mean over seeds need not lie within it.
    assert "1.0000] over 8 clips, seed 4 alone\n" in printed
    assert "1.0000] over 8 clips\n" in printed
    # Any other clip could change mean average precision, by how much ever.
    assert printed.count("mAP: no interval, as it is the same") == 2
