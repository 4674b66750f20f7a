"""Broken files, each between two good ones, in the C++ loader."""

import re

import keras
import pytest
import serving_cases
import wav_cases

if keras.backend.backend() != "tensorflow":
    pytest.skip("SavedModels are TensorFlow's", allow_module_level=True)


# Twenty of each mutation, or a thousand files.
@pytest.mark.costly
@pytest.mark.parametrize(
    "count", [320, pytest.param(1_000, marks=pytest.mark.slow)]
)
def test_no_file_crashes_or_touches_its_neighbours(
    count, shared_export, rng, tmp_path
):
    clip = 0.3 * rng.standard_normal(4409)
    good = serving_cases.wav_file(clip, 8000, "PCM_16")
    (tmp_path / "good.wav").write_bytes(good)
    (tmp_path / "bad").mkdir()
    written = 0
    for name, contents in wav_cases.mutations(seed=5, count=count):
        (tmp_path / "bad" / f"{written:04}_{name}").write_bytes(contents)
        written += 1
    assert written == count
    status, printed = serving_cases.run(
        "fuzz", shared_export.folder, tmp_path / "good.wav", tmp_path / "bad"
    )
    assert status == 0, printed
    assert f"{count} files, 0 violations" in printed
    found = dict(re.findall(r"error (\d+): (\d+) files", printed))
    # Some survive their mutation, and every kind of refusal is met.
    assert {int(code) for code in found} >= set(range(8)), printed
