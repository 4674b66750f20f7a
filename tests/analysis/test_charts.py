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
    check_readable(figure, [panel.title])


def test_of_many_classes_the_most_confused_are_drawn():
    counts = np.diag(np.full(200, 5))
    counts[[7, 150], [150, 9]] = 3
    labels = [f"${number}" for number in range(200)]
    figure = class_charts.draw_confusion(counts, labels, "title")
    panel = figure.axes[0]
    names = [label.get_text() for label in panel.get_yticklabels()]
    assert {"$7 (8)", "$9 (5)", "$150 (8)"} <= set(names)
    assert len(names) == 60 and "60 of 200" in panel.get_title()
    canvas(figure).draw_without_rendering()


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
