"""`data.load`: where a corpus is, what is left out, what is refused."""

import functools
import pathlib
import zipfile

import pytest
from corpus_files import write_audio, write_librispeech
from releases import write_esc, write_fsdd

from audio_tf import data
from audio_tf.corpora import synthetic
from audio_tf.runs.corpus_settings import DataSettings

SPLITS = {"train": [0, 12, 19], "test": [4, 5]}


@pytest.fixture
def load(tmp_path):
    """`data.load` with a cache of the test's own."""
    cache_dir = tmp_path / "cache"
    return functools.partial(data.load, cache_dir=cache_dir, progress=False)


def write_phones(folder, *names):
    """Writes phones of some of the recordings of `write_fsdd`."""
    lines = [f"{name} 0 1 1\n" for name in names]
    (folder / "converted_aligned_phones.txt").write_text("".join(lines))
    (folder / "phones.txt").write_text("SIL 0\nAH 1\n")


def test_the_synthetic_corpus_is_made_where_a_training_makes_it(
    load, tmp_path, monkeypatch
):
    monkeypatch.setattr(
        synthetic,
        "write_synthetic_corpus",
        functools.partial(
            synthetic.write_synthetic_corpus, num_clips=20, progress=False
        ),
    )
    monkeypatch.setenv("AUDIO_TF_CACHE", str(tmp_path / "default"))
    for seed, options in ((0, {}), (5, {"seed": 5})):
        _, clips = load("synthetic", with_info=True, **options)
        settings = DataSettings(
            dataset="synthetic",
            cache_dir=str(tmp_path / "cache"),
            corpus_seed=seed,
        )
        folder = pathlib.Path(clips.corpus.files[0]).parent.parent
        assert folder == settings.corpus_dir()
        assert folder == tmp_path / "cache" / f"synthetic-{seed}"
    assert not (tmp_path / "default").exists()


def test_a_folder_without_marks_is_read_by_the_layout_that_is_named(
    load, tmp_path
):
    for name in ("dog", "rain"):
        write_audio(tmp_path / "mine" / "train" / name / "a.wav")
    with pytest.raises(ValueError, match="name it as `dataset`"):
        load(tmp_path / "mine")
    elements, clips = load(tmp_path / "mine", dataset="folders", with_info=True)
    assert clips.corpus.labels == [["dog"], ["rain"]]
    assert [len(waveform) for waveform, _ in elements] == [149, 149]
    with zipfile.ZipFile(tmp_path / "packed.zip", "w") as archive:
        for file in clips.corpus.files:
            name = file.relative_to(tmp_path / "mine")
            archive.write(file, pathlib.Path("packed", name))
    assert len(load(tmp_path / "packed", dataset="folders")) == 2
    with pytest.raises(ValueError, match="did you mean 'folders'"):
        load(tmp_path / "mine", dataset="folder")
    with pytest.raises(ValueError, match="not both. Received: .*'folders'"):
        load("fsdd", data_dir=tmp_path, dataset="folders")
    with pytest.raises(FileNotFoundError, match="no such file or folder"):
        load(tmp_path / "no", dataset="folders")
    with pytest.raises(ValueError, match="with the name of a layout.*/mine, d"):
        load(tmp_path / "mine", data_dir=tmp_path / "mine")


def test_a_csv_file_is_its_own_layout(load, tmp_path):
    write_audio(tmp_path / "a.wav")
    path = tmp_path / "mine.csv"
    path.write_text("filename,labels,split\na.wav,dog,train\n")
    for options in ({}, {"dataset": "csv"}):
        [(waveform, targets)] = load(path, **options)
        assert len(waveform) == 149 and targets.numpy().tolist() == [1.0]
    with pytest.raises(ValueError, match="must be a folder.*Received: .*a.wav"):
        load(tmp_path / "a.wav")
    with pytest.raises(ValueError, match="must be a folder.*Received: .*csv"):
        load(path, task="speaker")


def test_a_corpus_of_other_tasks_is_told_with_these(load, tmp_path):
    speech = write_librispeech(tmp_path / "speech").parent
    sounds = write_esc(tmp_path / "esc")
    told = r"layout 'librispeech' is for task=\['speaker', 'phones', 'audio'\]"
    for arguments in (
        {"name_or_folder": speech},
        {"name_or_folder": speech, "dataset": "librispeech"},
        {"name_or_folder": "librispeech", "data_dir": speech},
        {"name_or_folder": "librispeech"},
    ):
        with pytest.raises((ValueError, FileNotFoundError), match=told):
            load(**arguments)
    told = r"layout 'esc50' is for task=\['labels', 'audio'\]"
    with pytest.raises(ValueError, match=told):
        load(sounds, task="speaker")


def test_audio_that_the_reader_leaves_out_is_told(load, tmp_path):
    root = write_librispeech(tmp_path)
    options = {"split": "dev-clean", "task": "speaker"}
    assert len(load(root, strict=True, **options)) == 2
    write_audio(root / "dev-clean" / "7" / "7-19-0009.flac")
    told = "1 files not named by their folders: dev-clean/7/7-19-0009.flac"
    with pytest.warns(RuntimeWarning, match=told):
        assert len(load(root, **options)) == 2
    with pytest.raises(ValueError, match=told):
        load(root, strict=True, **options)


def test_all_splits_of_a_corpus_have_one_rate(load, tmp_path):
    path = tmp_path / "mine.csv"
    path.write_text(
        "filename,labels,split\na.wav,dog,test\n"
        "no.wav,dog,train\nb.wav,dog,train\n"
    )
    write_audio(tmp_path / "a.wav", 600, 8_000)
    write_audio(tmp_path / "b.wav", 300, 4_000)
    [(waveform, _)] = load(path, split="test")
    assert len(waveform) == 300
    with pytest.warns(RuntimeWarning, match="1 of 2 clips"):
        elements, clips = load(path, with_info=True)
    assert [len(waveform) for waveform, _ in elements] == [300]
    assert clips.sample_rate_hz == 4_000


@pytest.mark.parametrize("rate_hz", [0, -5, "a", 8_000.5])
def test_a_rate_that_is_none_is_refused(load, tmp_path, rate_hz):
    write_fsdd(tmp_path / "fsdd")
    with pytest.raises(ValueError, match="`sample_rate_hz` must be a positive"):
        load(tmp_path / "fsdd", sample_rate_hz=rate_hz)


@pytest.mark.parametrize(
    "folds", [3, [1, 2], {"train": 3}, {"train": ["1"]}, {"train": "1"}, None]
)
def test_folds_that_are_no_dict_of_lists_are_refused(load, tmp_path, folds):
    write_esc(tmp_path / "esc")
    with pytest.raises(ValueError, match="`folds` must be a dict by split"):
        load(tmp_path / "esc", folds=folds)


@pytest.mark.parametrize("option", ["task", "split", "dataset"])
def test_a_list_is_not_taken_for_a_name(load, tmp_path, option):
    write_esc(tmp_path / "esc")
    options = {"folds": {"train": [1], "test": [4]}, option: ["train"]}
    with pytest.raises(ValueError, match=f"`{option}` must be one of") as error:
        load(tmp_path / "esc", **options)
    assert str(error.value).endswith(f"Received: {option}=['train']")


def test_clips_without_phones_are_left_out_and_counted(load, tmp_path):
    source = write_fsdd(tmp_path / "fsdd")
    write_phones(source, "0_jackson_0", "0_theo_19", "2_theo_4")
    message = (
        r"1 of 3 clips of train lack what task='phones' asks for, and are "
        r"left out: \S*1_jackson_12.wav$"
    )
    options = {"task": "phones", "splits": SPLITS}
    with pytest.warns(RuntimeWarning, match=message):
        elements, clips = load(source, with_info=True, **options)
    assert clips.corpus.utterances == ["0_jackson_0", "0_theo_19"]
    assert [phones.tolist() for _, phones in elements.as_numpy_iterator()] == [
        [0, 1, 1],
        [0, 1, 1],
    ]
    with pytest.raises(ValueError, match="1 of 3 clips .* Received: .*_12.wav"):
        load(source, strict=True, **options)
    write_phones(source, "2_theo_4")
    with pytest.raises(ValueError, match="3 of 3 clips of train lack"):
        load(source, **options)
