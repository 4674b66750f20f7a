"""The simulation of docs/scale.md, and the figures that it begins with."""

import re

import pytest
import repository


@pytest.fixture(scope="module")
def scale():
    """benchmarks/scale.py and what it imports, which lie in one folder."""
    names = "scale", "scale_check", "scale_workers"
    with repository.benchmarks(*names) as modules:
        yield dict(zip(names, modules, strict=True))


def test_the_simulation_against_what_is_known_exactly(scale):
    """Who waits, is lost or comes too late is paid as was found by hand."""
    scale["scale_check"].check(scale["scale_workers"].Assumptions())


@pytest.mark.parametrize(
    ("kind", "section", "row", "rate"),
    [
        (
            "score archives",
            "Archives on Beam",
            r"`audio-tf score` with the recordings: .+? \| (\d+) \(",
            lambda seconds: (20_000 * 2 + 10 * 3_600) / seconds,
        ),
        (
            "score 44.1 kHz stereo",
            "Serving",
            r"Batch 32:[\s\S]+?decoded in Python, 44.1 kHz .+? \| ([\d.]+)",
            lambda milliseconds: 32_000 / milliseconds,
        ),
        (
            "prepare Ogg Vorbis",
            "Input pipeline",
            r"\| Ogg Vorbis .+\n\| \| 2 \| [^|]+\| (\d+) \|",
            float,
        ),
        (
            "prepare FLAC",
            "Input pipeline",
            r"\| FLAC .+\n\| \| 2 \| [^|]+\| (\d+) \|",
            float,
        ),
        (
            "train small",
            "Input pipeline",
            r"step of `audio_transformer_small` takes (\d+)",
            float,
        ),
        (
            "pretrain paper",
            "Pre-training: throughput, input, memory",
            r"paper's size \| `full` \| ([\d,]+)",
            lambda frames: frames / 80,
        ),
    ],
)
def test_rates_are_those_of_the_results(scale, kind, section, row, rate):
    text = (repository.ROOT / "benchmarks" / "RESULTS.md").read_text()
    text = re.search(rf"\n## {section}\n([\s\S]+?)\n## ", text)[1]
    figure = float(re.search(row, text)[1].replace(",", ""))
    rates = scale["scale_workers"].RATES
    assert rates[kind] == pytest.approx(rate(figure))
    shown = f"{rates[kind]:,.0f}" if rates[kind] > 100 else f"{rates[kind]:.1f}"
    page = (repository.ROOT / "docs" / "scale.md").read_text()
    assert f" | {shown} | {section.split(':')[0]}" in page
