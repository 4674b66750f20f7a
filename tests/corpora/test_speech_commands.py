"""Google Speech Commands by its official lists."""

import pytest
from corpus_files import names, touch

from audio_tf import corpora

CLIPS = (
    "yes/0a7c2a8d_nohash_0.wav",
    "yes/0a7c2a8d_nohash_1.wav",
    "yes/1b4c9b89_nohash_0.wav",
    "no/0a7c2a8d_nohash_0.wav",
    "no/3cfc6b3a_nohash_2.wav",
    "backward/ffa76c4a_nohash_0.wav",
    "_background_noise_/running_tap.wav",
    "_background_noise_/README.md",
    "LICENSE",
)
LISTS = {
    "validation_list.txt": "yes/1b4c9b89_nohash_0.wav\n",
    "testing_list.txt": "no/0a7c2a8d_nohash_0.wav\nyes/0a7c2a8d_nohash_1.wav\n",
}


def write_release(folder):
    touch(*(folder / name for name in CLIPS))
    for name, text in LISTS.items():
        (folder / name).write_text(text)
    return folder


def test_speech_commands_as_released(tmp_path):
    splits = corpora.load_corpus("speech_commands", write_release(tmp_path))
    assert list(splits) == ["train", "val", "test"]
    train = splits["train"]
    assert train.vocabulary == ["backward", "no", "yes"]
    assert train.files == [
        tmp_path / "backward/ffa76c4a_nohash_0.wav",
        tmp_path / "no/3cfc6b3a_nohash_2.wav",
        tmp_path / "yes/0a7c2a8d_nohash_0.wav",
    ]
    assert train.labels == [["backward"], ["no"], ["yes"]]
    assert names(splits["val"]) == ["1b4c9b89_nohash_0.wav"]
    assert splits["val"].targets().tolist() == [[0, 0, 1]]
    assert names(splits["test"]) == [
        "0a7c2a8d_nohash_0.wav",
        "0a7c2a8d_nohash_1.wav",
    ]
    assert splits["test"].labels == [["no"], ["yes"]]


@pytest.mark.parametrize("name", LISTS)
def test_a_list_that_is_missing(tmp_path, name):
    write_release(tmp_path)
    (tmp_path / name).unlink()
    with pytest.raises(FileNotFoundError, match=f"{name}: no such file"):
        corpora.read_speech_commands(tmp_path)


@pytest.mark.parametrize(
    "listed, message",
    [
        # It would be trained on, and the clip that was meant too.
        ("yes/1b4c9b89_nohash_9.wav", "row 3: .*mean '1b4c9b89_nohash_0.wav'"),
        ("yse/1b4c9b89_nohash_0.wav", "row 3: .*did you mean 'yes'"),
        ("1b4c9b89_nohash_0.wav", "row 3: no such clip"),
        ("yes", "row 3: no such clip"),
        ("no/3cfc6b3a_nohash_2.wav test", "row 3: .*_2.wav test'"),
        ("_background_noise_/running_tap.wav", "row 3: no such clip"),
        ("yes/0a7c2a8d_nohash_1.wav", "row 3: .*in testing_list.txt, row 2,"),
        ("yes/1b4c9b89_nohash_0.wav", "row 3: .*in validation_list.txt, row 1"),
    ],
)
def test_lines_that_do_not_fit(tmp_path, listed, message):
    write_release(tmp_path)
    path = tmp_path / "testing_list.txt"
    path.write_text(f"{LISTS[path.name]}{listed}\n")
    with pytest.raises(ValueError, match=message) as caught:
        corpora.read_speech_commands(tmp_path)
    assert str(path) in str(caught.value)


@pytest.mark.parametrize("name", LISTS)
def test_a_list_without_clips(tmp_path, name):
    path = write_release(tmp_path) / name
    path.write_text("\n")
    with pytest.raises(ValueError, match="list.txt: no clips") as caught:
        corpora.read_speech_commands(tmp_path)
    assert str(path) in str(caught.value)


@pytest.mark.parametrize(
    "extra, message",
    [
        ("yess/1b4c9b89_nohash_0.wav", "35 words; did you mean 'yes'"),
        ("yes/more/1b4c9b89_nohash_0.wav", "'yes/more/1b4"),
        ("noise.wav", "Received: 'noise.wav'"),
    ],
)
def test_audio_in_no_folder_of_a_word(tmp_path, extra, message):
    touch(write_release(tmp_path) / extra)
    with pytest.raises(ValueError, match=message) as caught:
        corpora.read_speech_commands(tmp_path)
    assert str(tmp_path / extra) in str(caught.value)


def test_one_clip_under_two_names(tmp_path):
    write_release(tmp_path)
    link = tmp_path / "yes" / "1b4c9b89_nohash_5.wav"
    link.symlink_to(tmp_path / "yes" / "1b4c9b89_nohash_0.wav")
    with pytest.raises(ValueError, match="_5.wav and .*_0.wav are one file"):
        corpora.read_speech_commands(tmp_path)
