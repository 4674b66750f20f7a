"""LibriSpeech that TFDS has prepared."""

import re
import shutil

import numpy as np
import pytest
import soundfile

from audio_tf import data
from audio_tf.corpora import (
    load_speech,
    read_tfds_librispeech,
    tfds_librispeech,
)
from audio_tf.data import folders
from audio_tf.runs.corpus_settings import SpeechSettings


@pytest.fixture(scope="module")
def prepared(tmp_path_factory):
    """A folder that TFDS prepared, without Beam, and its samples."""
    tfds = pytest.importorskip(
        "tensorflow_datasets", reason="THE TFDS ROAD IS NOT TESTED: no TFDS"
    )
    folder = tmp_path_factory.mktemp("tfds")
    rng = np.random.default_rng(5)
    samples = {
        f"{speaker}-11-{n:04d}": rng.integers(
            -(2**15), 2**15, 331 + n, np.int16
        )
        for speaker in (5, 13)
        for n in range(3)
    }

    class Small(tfds.core.GeneratorBasedBuilder):
        # TFDS looks for the file of a module in a package, and needs more
        # packages for that.
        __module__ = "small"
        name = "librispeech"
        VERSION = tfds.core.Version("2.1.1")

        def _info(self):
            features = {
                "speech": tfds.features.Audio(
                    sample_rate=16_000, dtype=np.int16
                ),
                "text": tfds.features.Text(),
                "speaker_id": np.int64,
                "chapter_id": np.int64,
                "id": np.str_,
            }
            return tfds.core.DatasetInfo(
                builder=self, features=tfds.features.FeaturesDict(features)
            )

        def _split_generators(self, dl_manager):
            return {"train_clean100": self._generate_examples()}

        def _generate_examples(self):
            for key, audio in samples.items():
                speaker, chapter, _ = key.split("-")
                yield (
                    key,
                    {
                        "speech": audio,
                        "text": "A",
                        "speaker_id": int(speaker),
                        "chapter_id": int(chapter),
                        "id": key,
                    },
                )

    builder = Small(data_dir=folder)
    builder.download_and_prepare()
    return folder, samples


def test_load_writes_its_files_where_a_training_does(prepared, tmp_path):
    folder, samples = prepared
    elements, clips = data.load(
        "tfds_librispeech",
        "train-clean-100",
        "speaker",
        data_dir=folder,
        cache_dir=tmp_path,
        progress=False,
        with_info=True,
    )
    assert [int(who) for _, who in elements] == [0] * 3 + [1] * 3
    settings = SpeechSettings(
        dataset="tfds_librispeech",
        data_dir=str(folder),
        cache_dir=str(tmp_path),
        train_subsets=["train-clean-100"],
    )
    written = settings.file_root() / "LibriSpeech" / "train-clean-100"
    assert all(file.is_relative_to(written) for file in clips.corpus.files)
    assert settings.read()["train"].files == clips.corpus.files
    assert {found.kind for found in folders.folders(tmp_path)} == {
        "audio",
        "corpus",
    }
    assert sorted(clips.lengths) == sorted(map(len, samples.values()))


def test_other_records_are_written_to_another_folder(prepared, tmp_path):
    """They may have the names of utterances, and other samples."""
    found = tfds_librispeech.export_dir(prepared[0], tmp_path)
    again = shutil.copytree(prepared[0], tmp_path / "moved")
    assert tfds_librispeech.export_dir(again, tmp_path) == found
    about = tfds_librispeech.prepared_folder(again) / "dataset_info.json"
    text = about.read_text()
    changed = re.sub(r'"numBytes": "\d+"', '"numBytes": "7"', text)
    assert changed != text
    about.write_text(changed)
    assert tfds_librispeech.export_dir(again, tmp_path) != found


def test_tfds_loses_no_sample_and_goes_on(prepared, tmp_path):
    folder, samples = prepared
    splits = load_speech("tfds_librispeech", folder, out_dir=tmp_path)
    assert list(splits) == ["train-clean-100"]
    corpus = splits["train-clean-100"]
    assert corpus.utterances == sorted(samples)
    assert corpus.vocabulary == ["13", "5"]
    for file, name in zip(corpus.files, corpus.utterances, strict=True):
        audio, rate_hz = soundfile.read(file, dtype="int16")
        np.testing.assert_array_equal(audio, samples[name])
        assert rate_hz == 16_000
    times = [file.stat().st_mtime_ns for file in corpus.files]
    corpus.files[2].unlink()
    read_tfds_librispeech(folder, tmp_path, ["train-clean-100"])
    after = [file.stat().st_mtime_ns for file in corpus.files]
    assert times[:2] + times[3:] == after[:2] + after[3:]
    left = [path for path in tmp_path.rglob("*") if path.is_file()]
    assert sorted(left) == sorted(corpus.files)


def test_tfds_that_is_not_prepared(prepared, tmp_path):
    with pytest.raises(FileNotFoundError, match="has not prepared"):
        read_tfds_librispeech(tmp_path, tmp_path)
    with pytest.raises(ValueError, match="train-clean-100.*'dev-clean'"):
        read_tfds_librispeech(prepared[0], tmp_path, ["dev-clean"])


def test_tfds_newest_version_and_raw_bytes(tmp_path):
    for version in ("2.1.9", "2.1.10", "1.9.0"):
        folder = tmp_path / "librispeech" / "default" / version
        folder.mkdir(parents=True)
        (folder / "dataset_info.json").touch()
    assert tfds_librispeech.prepared_folder(tmp_path).name == "2.1.10"
    example = {"id": b"5-11-0003", "speech": b"fLaC"}
    tfds_librispeech.write_utterance(tmp_path, example, 16_000)
    path = tmp_path / "5" / "11" / "5-11-0003.flac"
    assert path.read_bytes() == b"fLaC"
    example = {"id": b"5-11-0004", "speech": np.zeros(3, np.int64)}
    with pytest.raises(ValueError, match="5-11-0004: .*int16.*int64"):
        tfds_librispeech.write_utterance(tmp_path, example, 16_000)
    assert len(list(path.parent.iterdir())) == 1


def test_processes_of_one_number_write_the_same_utterance(
    tmp_path, monkeypatch
):
    """As hosts of a training do, each the first process of its container."""
    write, begun = soundfile.write, []
    samples = np.arange(-100, 100, dtype=np.int16)
    example = {"id": b"5-11-0003", "speech": samples}

    def while_another_writes(file, *args, **kwargs):
        begun.append(file)
        write(file, *args, **kwargs)
        if len(begun) == 1:
            tfds_librispeech.write_utterance(tmp_path, example, 16_000)

    monkeypatch.setattr(soundfile, "write", while_another_writes)
    tfds_librispeech.write_utterance(tmp_path, example, 16_000)
    assert len(begun) == 2
    (path,) = [path for path in tmp_path.rglob("*") if path.is_file()]
    assert path.name == "5-11-0003.flac"
    found, _ = soundfile.read(path, dtype="int16")
    np.testing.assert_array_equal(found, samples)
