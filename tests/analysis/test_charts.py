"""Pictures of runs and of what they reach: what is drawn, and readable."""

import numpy as np
import pytest

pytest.importorskip("matplotlib")

from readable import (
    canvas,
    check_labelled,
    check_legends_apart,
    check_readable,
)

from audio_tf.analysis import charts, class_charts, figures

pytestmark = pytest.mark.costly


def test_learning_curves_mark_the_best_epoch(tmp_path):
    history = {
        "epoch": [0.0, 1.0, 2.0],
        "loss": [3.0, 2.0, 0.1],
        "accuracy": [0.2, np.nan, 0.9],
        "val_accuracy": [0.1, 0.6, 0.5],
    }
    figure = charts.draw_learning_curves(
        history, "accuracy", 1, "$run_$", meaning="share of clips"
    )
    loss, accuracy = figure.axes
    assert [panel.get_xlabel() for panel in figure.axes] == ["epoch"] * 2
    assert loss.get_ylabel() == "loss"
    assert accuracy.get_ylabel() == "share of clips"
    check_legends_apart(figure)
    # In grey, they differ by their lines.
    styles = {line.get_label(): line.get_linestyle() for line in accuracy.lines}
    assert styles["training"] != styles["validation"]
    assert loss.get_yscale() == "log"
    (curve,) = (line for line in loss.lines if line.get_label() == "training")
    assert list(curve.get_xdata()) == [1, 2, 3]
    assert list(curve.get_ydata()) == [3.0, 2.0, 0.1]
    labels = [text.get_text() for text in accuracy.get_legend().texts]
    assert labels == ["training", "validation", "best epoch, 2: 0.6"]
    figures.save(figure, tmp_path / "curves.png")
    assert (tmp_path / "curves.png").read_bytes().startswith(b"\x89PNG")


@pytest.mark.parametrize("classes", [2, 10, 50])
def test_a_confusion_matrix_is_readable(classes, rng):
    counts = rng.integers(0, 9, (classes, classes))
    counts[0] = 0
    labels = [f"a long name of class {number}" for number in range(classes)]
    figure = class_charts.draw_confusion(counts, labels, "title")
    panel = figure.axes[0]
    shares = np.array(panel.images[0].get_array())
    np.testing.assert_allclose(shares[1], counts[1] / counts[1].sum())
    assert not shares[0].any()
    assert len(panel.texts) == (
        np.count_nonzero(counts) if classes <= 10 else 0
    )
    for axis in (panel.xaxis, panel.yaxis):
        assert len(axis.get_ticklabels()) == classes
        check_readable(figure, [*axis.get_ticklabels(), axis.label])
    check_readable(figure, figure.texts)


@pytest.mark.parametrize("classes", [2, 120])
def test_a_title_is_broken_where_there_is_no_room(classes, rng):
    """The end of it, which has the accuracy, was cut off with its beginning."""
    folder = "runs/sound_events_from_the_forest_and_the_town_of_2026/fold_3"
    title = f"{folder}, val: 1234 clips, accuracy 0.8765"
    counts = rng.integers(1, 9, (classes, classes))
    labels = [f"class {number}" for number in range(classes)]
    for figure in (
        class_charts.draw_confusion(counts, labels, title),
        class_charts.draw_classes(
            {"recall": rng.random(classes)}, labels, counts.sum(axis=1), title
        ),
    ):
        (text,) = figure.texts
        drawn = "".join(text.get_text().split())
        assert drawn.startswith(title.replace(" ", ""))
        check_readable(figure, [text])


def test_of_many_classes_the_most_confused_are_drawn():
    counts = np.diag(np.full(200, 5))
    counts[[7, 150], [150, 9]] = 3
    labels = [f"${number}" for number in range(200)]
    figure = class_charts.draw_confusion(counts, labels, "title")
    panel = figure.axes[0]
    names = [label.get_text() for label in panel.get_yticklabels()]
    assert {"$7 (8)", "$9 (5)", "$150 (8)"} <= set(names)
    assert len(names) == 60 and "60 of 200" in figure.get_suptitle()
    canvas(figure).draw_without_rendering()


@pytest.mark.parametrize("known", [900, 400, 0])
def test_of_thousands_of_classes_both_ends_have_bars(known, rng):
    """A picture of all would be wider than may be written, and end a run."""
    values = np.full(1000, np.nan)
    chosen = rng.permutation(1000)[:known]
    values[chosen] = rng.random(known)
    labels = [f"class {number}" for number in range(1000)]
    figure = class_charts.draw_classes(
        {"recall": values}, labels, np.ones(1000, int), "title"
    )
    assert "best and the worst 300 of 1000 classes" in figure.get_suptitle()
    widths = [bar.get_width() for each in figure.axes for bar in each.patches]
    ranked = sorted(values[chosen], reverse=True)
    ends = ranked[:300] + ranked[max(300, known - 300) :]
    ends += [0.0] * (300 - len(ends))
    assert widths == ends


def test_one_epoch_has_one_tick():
    history = {"epoch": [0.0], "loss": [2.0], "accuracy": [0.5]}
    figure = charts.draw_learning_curves(history, "accuracy")
    canvas(figure).draw_without_rendering()
    for panel in figure.axes:
        low, high = panel.get_xlim()
        ticks = panel.get_xticks()
        assert ticks[(ticks >= low) & (ticks <= high)].tolist() == [1.0]


@pytest.mark.parametrize("classes", [3, 50, 120])
def test_bars_are_sorted_and_readable(classes, rng):
    values = rng.random(classes)
    values[1] = np.nan
    figure = class_charts.draw_classes(
        {"recall": values, "precision": rng.random(classes)},
        [f"class {number}" for number in range(classes)],
        np.arange(classes),
        "title",
    )
    panels = figure.axes
    widths = [bar.get_width() for panel in panels for bar in panel.patches]
    assert widths == sorted(np.nan_to_num(values), reverse=True)
    names = [
        label.get_text()
        for panel in panels
        for label in panel.get_yticklabels()
    ]
    assert len(names) == classes and names[-1] == "class 1 (1)"
    assert names[0] == f"class {np.nanargmax(values)} ({np.nanargmax(values)})"
    check_labelled(figure)
    check_legends_apart(figure)
    for panel in panels:
        assert panel.get_xlabel() == "recall and precision"
        check_readable(figure, [*panel.get_yticklabels(), panel.xaxis.label])
    (legend,) = figure.legends
    labels = [text.get_text() for text in legend.texts]
    assert f"mean recall {np.nanmean(values):.3f}" in labels
