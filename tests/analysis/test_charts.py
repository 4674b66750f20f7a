"""Pictures of runs and of what they reach: what is drawn, and readable."""

import numpy as np
import pytest

pytest.importorskip("matplotlib")

from readable import canvas, check_readable

from audio_tf.analysis import charts, class_charts, figures


def test_learning_curves_mark_the_best_epoch(tmp_path):
    history = {
        "epoch": [0.0, 1.0, 2.0],
        "loss": [3.0, 2.0, 0.1],
        "accuracy": [0.2, np.nan, 0.9],
        "val_accuracy": [0.1, 0.6, 0.5],
    }
    figure = charts.draw_learning_curves(history, "accuracy", 1, "$run_$")
    loss, accuracy = figure.axes
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
    for panel in panels:
        check_readable(figure, [*panel.get_yticklabels()])
    (legend,) = figure.legends
    labels = [text.get_text() for text in legend.texts]
    assert f"mean recall {np.nanmean(values):.3f}" in labels


def test_names_of_a_tradeoff_never_overlap(rng):
    """Even where twenty attentions reach almost the same."""
    rows = [
        {
            "attention": f"a_rather_long_name_{number}",
            "causal": causal,
            "figure": "accuracy",
            "mean": 0.9 + (0.05 if number == 3 else 1e-4 * number),
            "low": None if number == 5 else 0.89,
            "high": None if number == 5 else 0.96,
            "inference_ratio": 1.0 + rng.random(),
            "training_ratio": 9.0 ** rng.random(),
        }
        for causal in ("no", "yes")
        for number in range(20)
    ]
    baselines = [{"attention": "baseline: forest", "mean": 0.85}]
    figure = charts.draw_tradeoff(rows, baselines, "title")
    assert len(figure.axes) == 4
    canvas(figure).draw_without_rendering()
    renderer = figure.canvas.get_renderer()
    width, height = figure.canvas.get_width_height()
    for panel in figure.axes:
        names = [text for text in panel.texts if text.get_text()]
        means = [float(text.get_text().split()[0]) for text in names]
        assert means == sorted(means) and len(means) == 20
        found = [text.get_window_extent(renderer) for text in names]
        for lower, upper in zip(found, found[1:], strict=False):
            assert lower.y1 <= upper.y0
        assert found[0].y0 >= 0 and found[-1].y1 <= height
        assert max(box.x1 for box in found) <= width
        assert min(box.x0 for box in found) >= panel.bbox.x1


def test_places_move_apart_as_little_as_may_be():
    """Those that are far enough apart stay."""
    places = [0.1, 0.5, 0.5, 0.5, 0.9]
    np.testing.assert_allclose(
        charts.spread(places), [0.1, 0.4375, 0.5, 0.5625, 0.9]
    )
    np.testing.assert_allclose(charts.spread([0.0, 0.0]), [0.0, 1 / 16])
    np.testing.assert_allclose(charts.spread([1.0, 1.0]), [15 / 16, 1.0])
    np.testing.assert_allclose(charts.spread([0.5]), [0.5])
    crowd = charts.spread([0.3] * 33)
    np.testing.assert_allclose(crowd, np.linspace(0.0, 1.0, 33))
