"""Both decoders agree; run where tensorflow-io is installed (extra tfio)."""

import keras
import numpy as np
import pytest
import soundfile

if keras.backend.backend() != "tensorflow":
    pytest.skip("tensorflow-io needs TensorFlow", allow_module_level=True)
pytest.importorskip("tensorflow_io", reason="THE tfio DECODER IS NOT TESTED")

import tensorflow as tf

from audio_tf import data
from audio_tf.audio import AudioError, graph_tfio, read_audio
from audio_tf.corpora import Corpus

LOSSLESS = [
    *(("WAV", f"PCM_{bits}") for bits in ("U8", "16", "24", "32")),
    *(("WAV", kind) for kind in ("FLOAT", "DOUBLE")),
    *(("WAVEX", kind) for kind in ("PCM_16", "PCM_24", "FLOAT")),
    *(("FLAC", f"PCM_{bits}") for bits in ("S8", "16", "24")),
]


def decoded(files):
    dataset = tf.data.Dataset.from_tensor_slices([str(f) for f in files])
    dataset = dataset.map(
        lambda path: graph_tfio.decode_bytes(tf.io.read_file(path)), 2
    )
    return list(dataset.as_numpy_iterator())


def compare(files, atol):
    for file, (audio, rate_hz) in zip(files, decoded(files), strict=True):
        expected, expected_rate_hz = read_audio(file)
        assert rate_hz == expected_rate_hz, file
        assert audio.shape == expected.shape, file
        np.testing.assert_allclose(audio, expected, rtol=0, atol=atol)


@pytest.mark.parametrize("channels", [1, 2, 5])
def test_lossless_formats_agree_sample_for_sample(channels, rng, tmp_path):
    files = []
    for container, subtype in LOSSLESS:
        file = tmp_path / f"{container}_{subtype}"
        audio = rng.uniform(-0.9, 0.9, (4001, channels))
        soundfile.write(file, audio, 22_050, format=container, subtype=subtype)
        files.append(file)
    # The mean of five float32 may round in another order.
    compare(files, atol=0 if channels < 3 else 1e-7)


def test_lossy_formats_agree_closely(rng, tmp_path):
    files = []
    for container, subtype in (
        ("OGG", "VORBIS"),
        ("MP3", "MPEG_LAYER_III"),
    ):
        for rate_hz in (8_000, 16_000, 22_050, 44_100, 48_000):
            file = tmp_path / f"{container}_{rate_hz}"
            audio = 0.3 * rng.standard_normal((rate_hz // 2, 2))
            soundfile.write(
                file, audio, rate_hz, format=container, subtype=subtype
            )
            files.append(file)
    compare(files, atol=5e-6)


def test_real_clips_agree(shared_data):
    compare(sorted(shared_data.glob("LibriSpeech/**/*.flac")), atol=0)
    compare(sorted(shared_data.glob("fsdd/recordings/*.wav"))[::100], atol=0)
    compare(sorted(shared_data.glob("esc10/audio/*.ogg"))[::20], atol=5e-6)


def test_a_bad_file_is_left_out_and_named(rng, tmp_path):
    files = []
    for number in range(7):
        file = tmp_path / f"{number}.flac"
        soundfile.write(file, rng.uniform(-0.5, 0.5, 16_007), 16_000)
        files.append(file)
    files[2].write_bytes(b"")
    files[3].write_bytes(b"not audio, whatever its name may say" * 9)
    files[5].write_bytes(files[5].read_bytes()[:9_000])
    corpus = Corpus(files, [["a"]] * 7, ["a"])
    clips = data.prepare(
        corpus, 16_000, tmp_path / "cache", decoder="tfio", progress=False
    )
    assert len(clips) == 4
    assert sorted(clips.failures) == [str(files[i]) for i in (2, 3, 5)]
    with pytest.raises(AudioError, match="2.flac.*tfio"):
        data.prepare(
            corpus,
            16_000,
            tmp_path / "other",
            decoder="tfio",
            strict=True,
            progress=False,
        )
