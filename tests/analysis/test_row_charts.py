"""Charts with a row for each attention, and the colours of all figures."""

import itertools
import json

import numpy as np
import pytest
import repository

pytest.importorskip("matplotlib")

from matplotlib.colors import to_rgb
from readable import check_labelled, check_legends_apart, check_readable

from audio_tf.analysis import palette, row_charts

# Machado, Oliveira and Fernandes (2009), severity 1, in linear RGB.
COLOUR_BLIND = {
    "protan": [
        [0.152286, 1.052583, -0.204868],
        [0.114503, 0.786281, 0.099216],
        [-0.003882, -0.048116, 1.051998],
    ],
    "deutan": [
        [0.367322, 0.860646, -0.227968],
        [0.280085, 0.672501, 0.047413],
        [-0.011820, 0.042940, 0.968881],
    ],
    "tritan": [
        [1.255528, -0.076749, -0.178779],
        [-0.078411, 0.930809, 0.147602],
        [0.004733, 0.691367, 0.303900],
    ],
}


def seen(colour, matrix):
    """Returns the encoded RGB that someone colour-blind sees."""
    encoded = np.asarray(to_rgb(colour))
    linear = np.where(
        encoded <= 0.04045, encoded / 12.92, ((encoded + 0.055) / 1.055) ** 2.4
    )
    linear = np.clip(np.asarray(matrix) @ linear, 0, 1)
    return np.where(
        linear <= 0.0031308,
        12.92 * linear,
        1.055 * linear ** (1 / 2.4) - 0.055,
    )


@pytest.mark.parametrize("kind", COLOUR_BLIND)
def test_the_colour_blind_tell_colours_apart(kind):
    """By more than a tenth of the range of a channel, and from white."""
    colours = [*palette.COLOURS, "white"]
    for one, other in itertools.combinations(colours, 2):
        a, b = (seen(each, COLOUR_BLIND[kind]) for each in (one, other))
        assert np.linalg.norm(a - b) > 0.1, (one, other)


def test_marks_differ_and_ordered_ones_grow_lighter():
    marks = [palette.mark(number) for number in range(56)]
    assert len(set(marks)) == 56
    shades = palette.ordered(5)
    light = [np.dot([0.299, 0.587, 0.114], to_rgb(of)) for of, _ in shades]
    assert light == sorted(light) and light[-1] < 0.85
    assert len({marker for _, marker in shades}) == 5


@pytest.fixture(scope="module")
def rows():
    rng = np.random.default_rng(3)
    return [
        {
            "attention": "full" if number == 1 else f"a_long_name_{number}",
            "causal": causal,
            "figure": "accuracy",
            "mean": 0.9 + (0.05 if number == 3 else 1e-4 * number),
            "low": None if number == 5 else 0.89,
            "high": None if number == 5 else 0.96,
            "inference_ratio": 1.0 + rng.random(),
            "multiply_adds": None
            if number == 7
            else 1e6 * 900.0 ** rng.random(),
        }
        for causal in ("no", "yes")
        for number in range(9)
    ]


@pytest.fixture(scope="module")
def figure(rows):
    baselines = [{"attention": "baseline: forest", "mean": 0.85}]
    return row_charts.draw_tradeoff(rows, baselines, "$title")


def points(panel):
    """The pairs of all marks of a panel, by the label of their line."""
    return {
        line.get_label(): set(zip(*line.get_data(), strict=True))
        for line in panel.lines
        if line.get_marker() != "None"
    }


def ticks_of(panel):
    """The labels of ticks within the limits of a panel's horizontal axis."""
    low, high = panel.get_xlim()
    return [
        label
        for place, label in zip(
            panel.get_xticks(), panel.get_xticklabels(), strict=True
        )
        if low <= place <= high
    ]


def test_a_tradeoff_has_a_row_for_each_attention(figure, rows):
    assert len(figure.axes) == 6
    group = sorted(rows[:9], key=lambda row: -row["mean"])
    reached, inference, adds = figure.axes[:3]
    assert reached.get_title() == "accuracy, not causal"
    assert figure.axes[3].get_title() == "accuracy, causal"
    names = [label.get_text().split() for label in reached.get_yticklabels()]
    assert names == [[row["attention"], f"{row['mean']:.3f}"] for row in group]
    means = points(reached)["mean over the seeds"]
    assert means == {(row["mean"], place) for place, row in enumerate(group)}
    (intervals,) = reached.collections
    assert len(intervals.get_segments()) == 8
    drawn = set().union(*points(adds).values())
    assert drawn == {
        (row["multiply_adds"] / 1e6, place)
        for place, row in enumerate(group)
        if row["multiply_adds"] is not None
    }
    assert adds.get_xscale() == "log" and "(millions)" in adds.get_xlabel()
    assert inference.get_xscale() == "linear"


def test_none_surpasses_a_filled_mark_at_less_cost(figure, rows):
    group = sorted(rows[:9], key=lambda row: -row["mean"])
    filled = points(figure.axes[1])["none is better at less cost"]
    expected = {
        (row["inference_ratio"], place)
        for place, row in enumerate(group)
        if not any(
            other["mean"] > row["mean"]
            and other["inference_ratio"] <= row["inference_ratio"]
            for other in group
        )
    }
    assert filled == expected and 0 < len(filled) < 9


def test_of_equal_means_none_surpasses_the_other():
    costs = {"full": (0.5, 1.0), "xbox": (0.5, 2.0), "shared_qk": (0.4, 2.0)}
    rows = [
        {
            "attention": name,
            "causal": "no",
            "figure": "accuracy",
            "mean": mean,
            "low": None,
            "high": None,
            "inference_ratio": ratio,
        }
        for name, (mean, ratio) in costs.items()
    ]
    marks = points(row_charts.draw_tradeoff(rows, [], "ties").axes[1])
    assert marks["none is better at less cost"] == {(1.0, 0), (2.0, 1)}
    assert marks["another is better at no more cost"] == {(2.0, 2)}


def test_a_tradeoff_is_readable(figure):
    check_labelled(figure)
    check_legends_apart(figure)
    labels = [panel.xaxis.label for panel in figure.axes]
    titles = [panel.title for panel in figure.axes]
    names = figure.axes[0].get_yticklabels()
    ticks = [label for panel in figure.axes for label in ticks_of(panel)]
    check_readable(figure, [*labels, *titles, *names, *ticks])


def test_rows_may_lack_an_interval(rows):
    """As those of one seed that were read from a leaderboard's CSV."""
    alone = [
        {name: row[name] for name in row if name not in ("low", "high")}
        for row in rows
    ]
    panel = row_charts.draw_tradeoff(alone, [], "one seed").axes[0]
    assert [len(each.get_segments()) for each in panel.collections] == [0]
    assert len(points(panel)["mean over the seeds"]) == 9


@pytest.fixture(scope="module")
def report():
    """benchmarks/attention_report.py, which is run from its folder."""
    with repository.benchmarks("attention_report") as (module,):
        yield module


def test_the_benchmark_may_be_of_others_than_full_alone(report):
    """Their ratios are there, and `full` itself has no row."""
    case = {"mechanism": "xbox", "length": 500, "round": 0}
    row = {"case": case, "encoder_s": 0.2, "encoder_ratio": 1.5}
    lines = report.report([row]).splitlines()
    assert lines[2] == "| `full`, itself | - | 0.147 s |"
    assert lines[3].startswith("| `xbox` | 1.50 |")


def test_the_benchmark_keeps_xla_apart(report, tmp_path):
    """Their rounds would have one median."""
    files = []
    for xla in (False, True):
        case = {"mechanism": "xbox", "length": 500, "round": 0, "xla": xla}
        files.append(tmp_path / f"{xla}.jsonl")
        files[-1].write_text(json.dumps({"case": case, "encoder_s": 0.2}))
        assert len(report.read_alike(files[-1:])) == 1
    with pytest.raises(ValueError, match="--xla.*of two tables"):
        report.read_alike(files)


def test_the_benchmark_is_drawn_at_all_lengths(report):
    """Points of a row are above each other, so that equal ones show too."""
    lengths, names = (250, 500, 1000, 2000, 4000), [*"abcde", "full"]
    rows = [
        {
            "case": {"mechanism": name, "length": length, "round": 0},
            "sublayer_s": 1.0,
            "sublayer_ratio": 1.0 if name == "full" else 0.02 * (place + 1),
            "training_s": 2.0,
            "training_ratio": 0.9,
            "training_mib": 100.0 if name == "full" else 70.0,
        }
        for place, name in enumerate(names)
        for length in lengths
        if (name, length) != ("a", 4000)
    ]
    figure = report.draw(rows)
    alone, training, memory = figure.axes
    assert [panel.get_title().replace("\n", " ") for panel in figure.axes] == [
        report.KEYS[key] for key in ("sublayer_s", "training_s", "training_mib")
    ]
    assert [label.get_text() for label in alone.get_yticklabels()] == names
    found = points(memory)
    assert list(found) == [f"{length} frames" for length in lengths]
    of_rows = [
        sorted(y for of in found.values() for _, y in of if round(y) == place)
        for place in range(6)
    ]
    assert [len(heights) for heights in of_rows] == [4, 5, 5, 5, 5, 5]
    for heights in of_rows:
        assert np.diff(heights).min() > 0.1
    assert {x for x, y in found["500 frames"] if y < 4.5} == {0.7}
    assert {x for x, y in found["500 frames"] if y > 4.5} == {1.0}
    assert alone.get_xscale() == "log" and training.get_xscale() == "linear"
    check_labelled(figure)
    check_legends_apart(figure)
    texts = [*alone.get_yticklabels()]
    for panel in figure.axes:
        texts += [*ticks_of(panel), panel.xaxis.label, panel.title]
    check_readable(figure, texts)


def test_the_benchmark_can_make_its_encoder(report):
    import attention

    block = attention.encoder("random_synthesizer", 24)
    assert block.made_for_frames == 24


def test_the_benchmark_goes_on_and_tries_again(tmp_path, report, monkeypatch):
    import types

    import attention

    asked = types.SimpleNamespace(
        out=tmp_path / "rows.jsonl",
        lengths=[250, 8000],
        mechanisms=["full", "xbox"],
        rounds=1,
        parts=["encoder", "training"],
        alone=False,
        xla=False,
        budget_s=1.0,
        repeats=3,
    )
    run = []

    def measured(case):
        run.append((case["mechanism"], case["length"], tuple(case["parts"])))
        if case["length"] == 8000 and "training" in case["parts"]:
            return {"failed": "no memory"}
        return {f"{part}_s": 1.0 for part in case["parts"]}

    monkeypatch.setattr(attention, "run_case", measured)
    attention.run_all(asked)
    both = ("encoder", "training")
    alone = [("encoder",), ("training",)]
    assert run == [
        ("full", 250, both),
        ("xbox", 250, both),
        *[("full", 8000, parts) for parts in (both, *alone)],
        *[("xbox", 8000, parts) for parts in (both, *alone)],
    ]
    rows = attention.read_rows(asked.out)
    assert rows[-1]["encoder_s"] == 1.0
    assert rows[-1]["failed"] == "training: no memory"
    run.clear()
    attention.run_all(asked)
    assert {length for _, length, _ in run} == {8000}
    # The later row of a case counts.
    assert len(attention.read_rows(asked.out)) == 4
