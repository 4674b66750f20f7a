"""Tables of what attentions reached, and their picture."""

import csv
import json

import pytest

from audio_tf import attention, cli
from audio_tf.analysis import attention_results as results

COLUMNS = (
    "attention",
    "causal",
    "figure",
    "mean",
    "low",
    "high",
    "multiply_adds",
    "inference_ratio",
    "training_ratio",
)
ROWS = [
    ("raganato_synthesizer", "no", "accuracy", 0.9, 0.85, 0.95, 5e6, 0.8, 0.7),
    ("full", "no", "accuracy", 0.8, 0.75, 0.85, 9e6, 1.0, 1.0),
    ("xbox", "no", "accuracy", 0.7, "", "", "", "", ""),
    ("hybrid_local", "no", "accuracy", 0.65, "", "", "", "", ""),
    ("baseline: forest", "", "accuracy", 0.6, 0.5, 0.7, "", "", ""),
]


@pytest.fixture
def leaderboard(tmp_path):
    def write(rows=ROWS, columns=COLUMNS):
        path = tmp_path / "leaderboard.csv"
        with open(path, "w", newline="") as file:
            csv.writer(file).writerows([columns, *rows])
        return path

    return write


def test_a_leaderboard_is_read(leaderboard):
    rows, baselines = results.read_results(leaderboard())
    assert [row["attention"] for row in rows] == [row[0] for row in ROWS[:4]]
    assert rows[0]["mean"] == 0.9 and rows[0]["low"] == 0.85
    assert rows[0]["multiply_adds"] == 5e6 and rows[0]["causal"] == "no"
    assert rows[2]["low"] is None and rows[2]["inference_ratio"] is None
    assert [row["attention"] for row in baselines] == ["baseline: forest"]


def test_the_table_of_the_papers_is_read(tmp_path):
    table = {
        name: {
            "by_seed": {"speaker": [0.5, 0.7], "frame_speaker": [0.1]},
            "causal": causal,
            "inference_s": seconds,
        }
        for name, causal, seconds in (
            ("features", None, None),
            ("full", True, 0.04),
            ("xbox", False, 0.06),
        )
    }
    path = tmp_path / "table2.json"
    path.write_text(json.dumps(table))
    rows, baselines = results.read_results(path)
    assert [row["attention"] for row in rows] == ["full", "xbox"]
    assert [row["causal"] for row in rows] == ["yes", "no"]
    assert rows[1]["inference_ratio"] == pytest.approx(1.5)
    assert rows[1]["mean"] == pytest.approx(0.6)
    assert [row["attention"] for row in baselines] == ["features"]
    path.write_text(json.dumps({"full": {"by_seed": {}}}))
    with pytest.raises(ValueError, match="no table of audio-tf reproduce"):
        results.read_results(path)


@pytest.mark.parametrize(
    ("rows", "columns", "message"),
    [
        (ROWS, ("attention", "x"), "'figure' is missing"),
        (ROWS[4:], COLUMNS, "no row of an attention"),
        (
            [(*ROWS[1][:3], "many", *ROWS[1][4:])],
            COLUMNS,
            "line 2: mean is no number. Received: 'many'",
        ),
        ([("xbix", *ROWS[1][1:])], COLUMNS, "did you mean 'xbox'"),
    ],
)
def test_wrong_tables_are_named(rows, columns, message, leaderboard, capsys):
    path = leaderboard(rows, columns)
    assert cli.main(["attentions", "--results", str(path)]) == 2
    assert message in capsys.readouterr().err


def test_other_files_are_no_results(tmp_path):
    with pytest.raises(ValueError, match="must be leaderboard.csv"):
        results.read_results(tmp_path / "table2.md")


def test_the_command_line_joins_costs_and_results(
    leaderboard, tmp_path, capsys, monkeypatch
):
    charts = pytest.importorskip("audio_tf.analysis.row_charts")
    figures = pytest.importorskip("audio_tf.analysis.figures")
    drawn = []

    def draw(*arguments):
        drawn.append((*arguments, charts_draw(*arguments)))
        return drawn[-1][-1]

    charts_draw = charts.draw_tradeoff
    monkeypatch.setattr(charts, "draw_tradeoff", draw)
    monkeypatch.setattr(figures, "save", lambda figure, path: None)
    command = ["attentions", "--length", "500", "--results"]
    command += [str(leaderboard()), "--plot", str(tmp_path / "a.png")]
    assert cli.main(command) == 0
    head, *lines = capsys.readouterr().out.splitlines()
    assert head.split()[-2:] == ["paper", "reached"]
    assert [line.split()[0] for line in lines] == [row[0] for row in ROWS[:4]]
    # By hand from Table 1 of arXiv 2006.05174, in millions.
    paper = [line.split()[-2:] for line in lines]
    assert paper == [
        ["0.000", "0.9000"],
        ["3.768", "0.8000"],
        ["3.483", "0.7000"],
        ["-", "0.6500"],
    ]
    ((points, baselines, title, figure),) = drawn
    # All are of the sizes that are given, since the results, which count the
    # multiplications of some other model, do not have its theory.
    table, xbox, local, full = (
        attention.create(
            name, num_heads=12, key_dim=64, causal=False, **options
        )
        .cost(500, 768)
        .multiply_adds
        for name, options in (
            ("raganato_synthesizer", {"max_length": 500, "folded": True}),
            ("xbox", {}),
            ("local_dense_synthesizer", {}),
            ("full", {}),
        )
    )
    counts = [table, full, xbox, (local + full) / 2]
    assert [point["multiply_adds"] for point in points] == counts
    assert [point["paper_cost"] for point in points] == [
        0.0,
        3.768e6,
        3.483e6,
        None,
    ]
    assert title.endswith("theory: one layer, 500 frames of 768, 12 heads")
    titles = [panel.get_title() for panel in figure.axes]
    assert titles == [
        "accuracy, not causal",
        "inference",
        "training",
        "multiplications",
        "theory",
    ]
    drawn = [
        [
            cost
            for line in panel.lines
            if line.get_marker() == "D"
            for cost in line.get_xdata()
        ]
        for panel in figure.axes[1:]
    ]
    assert sorted(drawn[2]) == [count / 1e6 for count in sorted(counts)]
    assert [len(costs) for costs in drawn] == [2, 2, 4, 3]


def test_counts_of_the_trained_model_are_not_mixed_with_others(
    leaderboard, tmp_path, monkeypatch
):
    charts = pytest.importorskip("audio_tf.analysis.row_charts")
    figures = pytest.importorskip("audio_tf.analysis.figures")
    drawn = []
    monkeypatch.setattr(charts, "draw_tradeoff", lambda *all: drawn.append(all))
    monkeypatch.setattr(figures, "save", lambda figure, path: None)
    path = leaderboard(
        [(*row, cost) for row, cost in zip(ROWS, (0, 11_400, "", "", ""))],
        (*COLUMNS, "paper_cost"),
    )
    command = ["attentions", "--results", str(path), "--plot"]
    assert cli.main([*command, str(tmp_path / "a.png")]) == 0
    ((points, _, title),) = drawn
    assert [point["multiply_adds"] for point in points] == [
        5e6,
        9e6,
        None,
        None,
    ]
    # Nothing of 1000 frames for what the model was not counted of.
    found = [point["paper_cost"] for point in points]
    assert found == [0.0, 11_400.0, None, None]
    assert title.endswith(
        "theory: the attentions of the trained model, one input"
    )


def test_a_picture_needs_results(tmp_path, capsys):
    assert cli.main(["attentions", "--plot", "a.png"]) == 2
    assert "--plot means nothing without --results" in capsys.readouterr().err
