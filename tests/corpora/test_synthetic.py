import csv
import functools
import itertools
import json
import pathlib

import numpy as np
import pytest
import soundfile
from scipy import signal

from audio_tf.corpora import sound_events, synthetic

RATE_HZ = 16_000
SMALL = {"num_clips": 23, "seed": 5, "max_duration_s": 0.9, "progress": False}
PAIRS = list(itertools.combinations(synthetic.EVENTS, 2))


def contents(directory):
    """Relative path to bytes, of every file below the directory."""
    return {
        path.relative_to(directory).as_posix(): path.read_bytes()
        for path in directory.rglob("*")
        if path.is_file()
    }


def read_rows(csv_path):
    with open(csv_path, newline="", encoding="utf-8") as file:
        return list(csv.DictReader(file))


def descriptor(name, seeds):
    """Mean spectrum and modulation of an event, `(features,)`.

    The last two are the variation of the level, and the share of it that is
    slower than 8 Hz.
    """
    parts = []
    for seed in seeds:
        rng = np.random.default_rng([7, seed])
        audio = synthetic.EVENTS[name](rng, RATE_HZ, RATE_HZ)
        _, _, bins = signal.stft(audio, RATE_HZ, nperseg=512, noverlap=352)
        power = np.abs(bins) ** 2
        bands = np.add.reduceat(
            power.mean(axis=1), [0, 4, 8, 12, 16, 24, 32, 48, 64, 96, 128]
        )
        level = np.sqrt(power.sum(axis=0))
        modulation = np.abs(np.fft.rfft(level - level.mean())) ** 2
        slow = modulation[:8].sum() / modulation.sum()
        variation = level.std() / level.mean()
        parts.append([*bands / bands.sum(), variation, slow])
    return np.mean(parts, axis=0)


@pytest.fixture(scope="module")
def descriptors():
    """Two of each event, from disjoint draws of its parameters."""
    return {
        name: (descriptor(name, range(30)), descriptor(name, range(30, 60)))
        for name in synthetic.EVENTS
    }


@pytest.fixture(scope="module")
def corpus(tmp_path_factory):
    directory = tmp_path_factory.mktemp("corpus")
    synthetic.write_synthetic_corpus(directory, **SMALL)
    return directory


def test_at_least_twelve_events_in_snake_case():
    assert len(synthetic.EVENTS) >= 12
    assert all(n.isidentifier() and n == n.lower() for n in synthetic.EVENTS)


@pytest.mark.parametrize("sample_rate_hz", [8_000, 16_000, 44_100])
@pytest.mark.parametrize("name", synthetic.EVENTS)
def test_event_is_normalized_and_random(name, sample_rate_hz):
    event = synthetic.EVENTS[name]
    first, second = (
        event(np.random.default_rng(seed), 7_919, sample_rate_hz)
        for seed in (0, 1)
    )
    assert first.shape == (7_919,)
    assert first.dtype == np.float32
    assert np.isfinite(first).all()
    assert np.abs(first).max() == pytest.approx(1.0, abs=1e-6)
    assert np.sqrt(np.mean(first**2)) > 0.01
    assert not np.array_equal(first, second)


@pytest.mark.parametrize("name", synthetic.EVENTS)
def test_event_is_present_in_each_half_second(name):
    for seed in range(10):
        rng = np.random.default_rng(seed)
        audio = synthetic.EVENTS[name](rng, 3 * RATE_HZ, RATE_HZ)
        halves = np.sum(audio.reshape(6, -1) ** 2, axis=1)
        assert halves.min() > 0.1 * halves.max()


@pytest.mark.costly
@pytest.mark.parametrize("name", synthetic.EVENTS)
def test_descriptor_is_stable_within_an_event(name, descriptors):
    """So that a large distance in the next test means another sound."""
    one, two = descriptors[name]
    assert np.linalg.norm(one - two) < 0.2


@pytest.mark.parametrize(("name", "other"), PAIRS)
def test_events_differ(name, other, descriptors):
    distance = np.linalg.norm(descriptors[name][0] - descriptors[other][1])
    assert distance > 0.4


def test_clip_holds_what_it_says():
    for seed in range(30):
        audio, names = synthetic.synthesize_clip(
            np.random.default_rng(seed), RATE_HZ, 0.7, max_events=2
        )
        assert audio.dtype == np.float32
        assert audio.shape == (11_200,)
        assert 0.2 < np.abs(audio).max() <= 1.0
        assert names == sorted(set(names))
        assert 1 <= len(names) <= 2
        assert set(names) <= set(synthetic.EVENTS)


@pytest.mark.parametrize("name", synthetic.EVENTS)
def test_shortest_clip_holds_its_event(name):
    for seed in range(20):
        audio, names = synthetic.synthesize_clip(
            np.random.default_rng(seed), 8_000, 0.1, 1, first_event=name
        )
        assert names == [name]
        assert np.isfinite(audio).all()
        assert np.abs(audio).max() > 0.2


def test_first_click_is_later_than_the_fade():
    for seed in range(10):
        rng = np.random.default_rng(seed)
        audio = synthetic.EVENTS["click_train"](rng, RATE_HZ, RATE_HZ)
        assert np.flatnonzero(audio)[0] > 0.005 * RATE_HZ


def test_number_of_events_varies_up_to_the_most():
    counts = {
        len(synthetic.synthesize_clip(np.random.default_rng(s), 8_000, 0.2)[1])
        for s in range(40)
    }
    assert counts == {1, 2, 3}


def test_every_label_is_heard(monkeypatch):
    """Each event named, and no other, contributes to the mix."""
    heard = []

    def spy(name, event):
        def wrapped(*args):
            heard.append(name)
            return event(*args)

        return wrapped

    spies = {n: spy(n, event) for n, event in synthetic.EVENTS.items()}
    monkeypatch.setattr(sound_events, "EVENTS", spies)
    for seed in range(20):
        heard.clear()
        rng = np.random.default_rng(seed)
        _, names = synthetic.synthesize_clip(rng, RATE_HZ, 0.5)
        assert names == sorted(heard)


def test_event_spans_the_clip_and_the_floor_is_weak():
    for seed in range(20):
        audio, _ = synthetic.synthesize_clip(
            np.random.default_rng(seed), RATE_HZ, 1.0, 1, first_event="rumble"
        )
        rms = np.sqrt(np.mean(audio.reshape(10, -1) ** 2, axis=1))
        assert rms[1:9].min() > 0.2 * rms.max()
        sections = signal.butter(4, 4_000, "highpass", fs=RATE_HZ, output="sos")
        floor = np.sqrt(2) * signal.sosfilt(sections, audio)[1_600:-1_600].std()
        assert 10 ** (-51 / 20) < floor < 10 ** (-34 / 20)


def test_same_seed_same_bytes(corpus, tmp_path):
    synthetic.write_synthetic_corpus(tmp_path, **SMALL)
    assert contents(tmp_path) == contents(corpus)


def test_clip_does_not_depend_on_those_before(corpus, tmp_path, monkeypatch):
    plan = synthetic._clip_plan
    monkeypatch.setattr(
        synthetic, "_clip_plan", lambda *args: plan(*args)[::-1]
    )
    synthetic.write_synthetic_corpus(tmp_path, **SMALL)
    backwards, forwards = contents(tmp_path), contents(corpus)
    backwards.pop("synthetic.csv")
    assert len(backwards) == 24
    assert all(forwards[name] == data for name, data in backwards.items())


def test_other_seed_differs(corpus, tmp_path):
    synthetic.write_synthetic_corpus(tmp_path, **{**SMALL, "seed": 6})
    first, other = contents(corpus), contents(tmp_path)
    wavs = {name for name in first if name.endswith(".wav")}
    assert wavs == {name for name in other if name.endswith(".wav")}
    assert all(first[name] != other[name] for name in wavs)


def test_csv_and_files_agree(corpus):
    rows = read_rows(corpus / "synthetic.csv")
    assert list(rows[0]) == ["filename", "labels", "split"]
    assert rows[0]["filename"] == "audio/train_00000.wav"
    written = {name for name in contents(corpus) if name.endswith(".wav")}
    assert [row["filename"] for row in rows] == sorted(
        written, key=lambda name: name[-9:]
    )
    durations_s = []
    for row in rows:
        assert row["filename"].startswith(f"audio/{row['split']}_")
        assert set(row["labels"].split(",")) <= set(synthetic.EVENTS)
        info = soundfile.info(corpus / row["filename"])
        assert (info.samplerate, info.channels) == (RATE_HZ, 1)
        assert info.subtype == "PCM_16"
        durations_s.append(info.duration)
    assert 0.5 <= min(durations_s) < 0.6
    assert 0.8 < max(durations_s) <= 0.9


def test_labels_are_those_of_the_audio(corpus):
    """A clip's labels come from the same draws as its samples."""
    for number, row in enumerate(read_rows(corpus / "synthetic.csv")):
        audio, rate_hz = soundfile.read(corpus / row["filename"])
        start = {"train": 0, "val": 16, "test": 18}[row["split"]]
        rng = np.random.default_rng([5, number])
        duration_s = rng.uniform(0.5, 0.9)
        assert len(audio) == round(duration_s * RATE_HZ)
        expected, names = synthetic.synthesize_clip(
            rng,
            rate_hz,
            duration_s,
            first_event=list(synthetic.EVENTS)[(number - start) % 14],
        )
        assert row["labels"] == ",".join(names)
        np.testing.assert_allclose(audio, expected, atol=1 / 2**15)


def test_splits_all_hold_all_events(tmp_path):
    csv_path = synthetic.write_synthetic_corpus(
        tmp_path,
        num_clips=56,
        max_duration_s=0.5,
        sample_rate_hz=8_000,
        splits={"train": 0.5, "val": 0.25, "test": 0.25},
        max_events=1,
        progress=False,
    )
    rows = read_rows(csv_path)
    for split, size in (("train", 28), ("val", 14), ("test", 14)):
        labels = [row["labels"] for row in rows if row["split"] == split]
        assert len(labels) == size
        assert set(labels) == set(synthetic.EVENTS)


def test_second_call_writes_nothing(corpus, monkeypatch):
    before = {path: path.stat().st_mtime_ns for path in corpus.rglob("*")}

    def refuse(*args):
        raise AssertionError("synthesised again")

    monkeypatch.setattr(synthetic, "synthesize_clip", refuse)
    path = synthetic.write_synthetic_corpus(corpus, **SMALL)
    assert path == corpus / "synthetic.csv"
    assert before == {path: path.stat().st_mtime_ns for path in before}


@pytest.mark.parametrize(
    "lost",
    [
        ["synthetic.json", "audio/train_00003.wav"],
        ["audio/train_00003.wav", "audio/test_00022.wav"],
        ["synthetic.csv"],
    ],
)
def test_lost_files_come_back_and_others_stay(corpus, tmp_path, lost):
    synthetic.write_synthetic_corpus(tmp_path, **SMALL)
    for name in lost:
        (tmp_path / name).unlink()
    kept = {p: p.stat().st_mtime_ns for p in tmp_path.rglob("*.wav")}
    synthetic.write_synthetic_corpus(tmp_path, **SMALL)
    assert contents(tmp_path) == contents(corpus)
    assert kept == {path: path.stat().st_mtime_ns for path in kept}


def test_interrupted_write_is_completed(corpus, tmp_path, monkeypatch):
    synthesize = synthetic.synthesize_clip
    calls = []

    def interrupted(*args):
        calls.append(args)
        if len(calls) == 8:
            raise KeyboardInterrupt
        return synthesize(*args)

    with monkeypatch.context() as patch:
        patch.setattr(synthetic, "synthesize_clip", interrupted)
        with pytest.raises(KeyboardInterrupt):
            synthetic.write_synthetic_corpus(tmp_path, **SMALL)
    assert len(contents(tmp_path)) == 7
    synthetic.write_synthetic_corpus(tmp_path, **SMALL)
    assert contents(tmp_path) == contents(corpus)


def test_a_corpus_of_others_is_not_written_into(tmp_path, monkeypatch):
    """As where the layout of one's own corpus was not named."""
    for name in ("rain/1.wav", "audio/1-100032-A.ogg", "clips.csv"):
        folder = tmp_path / name.replace("/", "_")
        file = folder / name
        file.parent.mkdir(parents=True)
        file.write_bytes(b"mine")
        for place in (folder, file):
            with pytest.raises(ValueError, match="`dataset`, such as 'folders"):
                synthetic.read_synthetic(place)
        assert [p for p in folder.rglob("*") if p.is_file()] == [file]
    # What a writing that was stopped has left is completed.
    synthetic.write_synthetic_corpus(tmp_path / "made", **SMALL)
    (tmp_path / "made" / "synthetic.json").unlink()
    (tmp_path / "made" / "audio" / ".train_00003.wav.0f").write_bytes(b"")
    monkeypatch.setattr(
        synthetic,
        "write_synthetic_corpus",
        functools.partial(
            synthetic.write_synthetic_corpus,
            **{name: SMALL[name] for name in SMALL if name != "seed"},
        ),
    )
    read = synthetic.read_synthetic(tmp_path / "made", SMALL["seed"])
    assert len(read["train"]) == 16
    assert (tmp_path / "made" / "synthetic.json").exists()


def test_another_process_may_make_it_at_the_same_time(
    corpus, tmp_path, monkeypatch
):
    """It is whole before the first has given its file a name."""
    write, others = pathlib.Path.write_bytes, []

    def write_and_wait(path, content):
        write(path, content)
        if not others:
            others.append(path)
            synthetic.write_synthetic_corpus(tmp_path, **SMALL)

    monkeypatch.setattr(pathlib.Path, "write_bytes", write_and_wait)
    synthetic.write_synthetic_corpus(tmp_path, **SMALL)
    assert others and contents(tmp_path) == contents(corpus)


def test_record_holds_the_arguments(corpus):
    record = json.loads((corpus / "synthetic.json").read_text())
    assert record["num_files"] == 23
    assert record["seed"] == 5
    assert record["max_duration_s"] == 0.9
    assert record["splits"] == [["train", 0.7], ["val", 0.1], ["test", 0.2]]


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("num_clips", 24),
        ("seed", 6),
        ("sample_rate_hz", 8_000),
        ("min_duration_s", 0.4),
        ("max_duration_s", 0.8),
        ("splits", {"train": 0.8, "test": 0.2}),
        ("splits", {"test": 0.2, "val": 0.1, "train": 0.7}),
        ("max_events", 2),
    ],
)
def test_other_arguments_are_refused(corpus, name, value):
    before = contents(corpus)
    with pytest.raises(ValueError, match=f"{name}=.*Received: {name}="):
        synthetic.write_synthetic_corpus(corpus, **{**SMALL, name: value})
    assert contents(corpus) == before


def test_other_recipe_is_refused(corpus, monkeypatch):
    monkeypatch.setattr(synthetic, "RECIPE", synthetic.RECIPE + 1)
    with pytest.raises(ValueError, match="recipe=.*Received: recipe="):
        synthetic.write_synthetic_corpus(corpus, **SMALL)


@pytest.mark.parametrize(
    "lost", [["synthetic.json"], ["synthetic.json", "synthetic.csv"]]
)
def test_files_without_a_record_are_not_overwritten(tmp_path, lost):
    synthetic.write_synthetic_corpus(tmp_path, **SMALL)
    for name in lost:
        (tmp_path / name).unlink()
    before = contents(tmp_path)
    with pytest.raises(ValueError, match="something else.*Received: path="):
        synthetic.write_synthetic_corpus(tmp_path, **{**SMALL, "seed": 6})
    assert contents(tmp_path) == before


@pytest.mark.parametrize(
    ("changed", "named"),
    [
        ({"num_clips": 0}, "num_clips"),
        ({"sample_rate_hz": 4_000}, "sample_rate_hz"),
        ({"min_duration_s": 1.0}, "min_duration_s"),
        ({"min_duration_s": 0.0}, "min_duration_s"),
        ({"seed": -1}, "seed"),
        ({"max_events": 0}, "max_events"),
        ({"max_events": 15}, "max_events"),
        ({"splits": {"train": 0.7}}, "splits"),
        ({"splits": {"../train": 1.0}}, "splits"),
        ({"splits": {"train": 1.5, "test": -0.5}}, "splits"),
        ({"splits": {}}, "splits"),
    ],
)
def test_bad_arguments_are_named(tmp_path, changed, named):
    with pytest.raises(ValueError, match=f"Received: .*{named}="):
        synthetic.write_synthetic_corpus(tmp_path, **{**SMALL, **changed})
    assert not list(tmp_path.iterdir())


def test_unknown_first_event():
    with pytest.raises(ValueError, match="Received: first_event='bark'"):
        synthetic.synthesize_clip(
            np.random.default_rng(0), RATE_HZ, 1.0, first_event="bark"
        )


def test_progress_bar_is_for_a_terminal_that_wants_it(tmp_path, monkeypatch):
    asked = []

    def bar(rows, disable, **kwargs):
        asked.append(disable)
        return rows

    monkeypatch.setattr("tqdm.auto.tqdm", bar)
    for progress in (False, True):
        arguments = {**SMALL, "num_clips": 2, "progress": progress}
        synthetic.write_synthetic_corpus(tmp_path, **arguments)
    # None: tqdm itself looks whether there is a terminal.
    assert asked == [True, None]
