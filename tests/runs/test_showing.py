"""What shows a run: curves while it trains, errors and pictures of splits."""

import csv
import sys
import warnings

import numpy as np
import pytest

pytest.importorskip("tensorflow")
pytest.importorskip("matplotlib")

from audio_tf.analysis import figures, fonts
from audio_tf.corpora import Corpus
from audio_tf.runs import history, showing


@pytest.fixture(autouse=True)
def asked_anew():
    showing.can_draw.cache_clear()
    yield
    showing.can_draw.cache_clear()


@pytest.fixture
def no_matplotlib(monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib", None)


def split(labels):
    corpus = Corpus(
        [f"{number}.wav" for number in range(4)], labels, ["a", "b", "c"]
    )
    scores = np.array([[8, 1, 1], [1, 1, 8], [2, 6, 2], [1, 2, 7]]) / 10
    return corpus, corpus.targets(), scores


def test_a_split_of_one_label_a_clip(tmp_path):
    folder = tmp_path / "run" / "val"
    showing.show_split(folder, "run", *split([["a"], ["b"], ["b"], ["b"]]))
    names = {path.name for path in folder.iterdir()}
    assert names == {"errors.csv", "classes.png", "confusion.png"}
    with open(folder / "errors.csv", newline="") as file:
        rows = list(csv.DictReader(file))
    assert [row["file"] for row in rows] == ["1.wav", "3.wav"]


def test_a_split_of_several_labels_a_clip_has_no_confusion(tmp_path):
    showing.show_split(tmp_path, "", *split([["a", "b"], ["c"], [], ["b"]]))
    names = {path.name for path in tmp_path.iterdir()}
    assert names == {"errors.csv", "classes.png"}


def test_without_matplotlib_a_run_says_so_once(tmp_path, no_matplotlib, capsys):
    rows = [{"epoch": 0, "loss": 1.0}]
    history.write(tmp_path / "history.csv", ["epoch", "loss"], rows)
    for _ in range(2):
        showing.draw_curves(tmp_path, "mAP", "val_mAP")
        showing.show_split(tmp_path, "", *split([["a"], ["b"], ["b"], ["b"]]))
    (line,) = capsys.readouterr().out.splitlines()
    assert line.startswith("no pictures: ") and "audio_tf[analysis]" in line
    names = {path.name for path in tmp_path.iterdir()}
    assert names == {"history.csv", "errors.csv"}


def test_labels_that_no_font_has_are_told_once(tmp_path, capfd):
    fonts.say_boxes.cache_clear()
    with warnings.catch_warnings():
        warnings.simplefilter("default")
        for name in "ab":
            figure = figures.new_figure(2, 2)
            # Of the plane for private use: no font has them.
            figure.text(0.1, 0.5, "\U000f1234\U000f1235")
            figures.save(figure, tmp_path / f"{name}.png")
    (line,) = capfd.readouterr().err.splitlines()
    assert "boxes" in line and "font.family" in line


def test_other_warnings_of_a_picture_are_told(tmp_path, monkeypatch):
    figure = figures.new_figure(2, 2)
    draw = figure.savefig

    def warn(*args, **kwargs):
        warnings.warn("mind the gap", stacklevel=1)
        draw(*args, **kwargs)

    monkeypatch.setattr(figure, "savefig", warn)
    with pytest.warns(UserWarning, match="mind the gap"):
        figures.save(figure, tmp_path / "a.png")


def test_curves_of_short_epochs_are_drawn_now_and_then(tmp_path, monkeypatch):
    """Each takes a second here, and so may stand every 20 s; the last does."""
    now, drawn = [0.0], []

    def draw(out, figure, monitor, training):
        drawn.append(now[0])
        now[0] += 1.0

    monkeypatch.setattr(showing, "draw_curves", draw)
    curves = showing.LearningCurves(
        tmp_path, "accuracy", "val_mAP", clock=lambda: now[0]
    )
    for epoch, at in enumerate((5.0, 15.0, 25.9, 26.1, 30.0)):
        now[0] = at
        curves.on_epoch_end(epoch)
    curves.on_train_end()
    assert drawn == [5.0, 26.1, 30.0]
    now[0] = 60.0
    curves.on_epoch_end(5)
    curves.on_train_end()
    assert drawn == [5.0, 26.1, 30.0, 60.0]
