"""A thousand broken files, each between two good ones, in the C++ loader."""

import io
import re

import keras
import pytest
import serving_cases
import soundfile
import tiny
import wav_cases

if keras.backend.backend() != "tensorflow":
    pytest.skip("SavedModels are TensorFlow's", allow_module_level=True)

from audio_tf import export as audio_export
from audio_tf.models import AudioClassifier

COUNT = 1000


def test_no_file_crashes_or_touches_its_neighbours(rng, tmp_path):
    model = AudioClassifier(tiny.backbone(), labels=list("abc"), chunk_s=0.25)
    folder = audio_export.export(model, tmp_path / "model")
    good = io.BytesIO()
    sound = 0.3 * rng.standard_normal(4409)
    soundfile.write(good, sound, 8000, "PCM_16", format="WAV")
    (tmp_path / "good.wav").write_bytes(good.getvalue())
    (tmp_path / "bad").mkdir()
    written = 0
    for name, contents in wav_cases.mutations(seed=5, count=COUNT):
        (tmp_path / "bad" / f"{written:04}_{name}").write_bytes(contents)
        written += 1
    assert written == COUNT
    status, printed = serving_cases.run(
        "fuzz",
        folder,
        tmp_path / "good.wav",
        tmp_path / "bad",
        timeout_s=300,
    )
    assert status == 0, printed
    assert f"{COUNT} files, 0 violations" in printed
    found = dict(re.findall(r"error (\d+): (\d+) files", printed))
    # Some survive their mutation, and every kind of refusal is met.
    assert {int(code) for code in found} >= set(range(8)), printed
