"""ZIP archives in parts, and files that are read out of them by their path."""

import io
import shutil
import struct
import subprocess
import zipfile

import numpy as np
import pytest
import soundfile
from zip_parts import write_parts

from audio_tf.audio import packed, split_zip
from audio_tf.audio.audio_files import audio_below
from audio_tf.audio.decode import AudioError, read_audio

PART = 700


def contents():
    """Members that compress and that do not, longer than a part and shorter."""
    rng = np.random.default_rng(0)
    noise = rng.integers(-(2**15), 2**15, 911, np.int16)
    wav = io.BytesIO()
    soundfile.write(wav, noise, 8_000, format="WAV")
    return {
        "FSD50K.dev_audio/13.wav": wav.getvalue(),
        "FSD50K.dev_audio/5.wav": wav.getvalue()[:-2] + b"\0\1",
        "FSD50K.dev_audio/list.csv": b"fname,labels\n" * 211,
    }


@pytest.fixture
def parts(tmp_path):
    return write_parts(tmp_path, "FSD50K.dev_audio", PART, contents())


def test_members_run_over_parts(parts):
    assert len(parts) > 4
    archive = split_zip.SplitZip(parts[-1])
    assert set(archive.members) == set(contents())
    for name, content in contents().items():
        assert archive.read(name) == content
    assert len({member.part for member in archive.members.values()}) > 1


def test_one_file_is_an_archive_too(tmp_path):
    [path] = write_parts(tmp_path, "a", 2**20, contents())
    for name, content in contents().items():
        assert split_zip.SplitZip(path).read(name) == content


@pytest.mark.skipif(shutil.which("zip") is None, reason="no zip")
def test_the_parts_of_info_zip(tmp_path):
    rng = np.random.default_rng(1)
    (tmp_path / "a").mkdir()
    for number in range(3):
        (tmp_path / "a" / f"{number}.raw").write_bytes(rng.bytes(90_001))
    subprocess.run(
        ["zip", "-q", "-r", "-s", "64k", "a.zip", "a"], cwd=tmp_path, check=True
    )
    assert (tmp_path / "a.z04").is_file()
    archive = split_zip.SplitZip(tmp_path / "a.zip")
    assert len(archive.members) == 3
    for name in archive.members:
        assert archive.read(name) == (tmp_path / name).read_bytes()


@pytest.mark.parametrize(
    ("raw", "name"),
    [
        ("Ka\u0308se.wav".encode(), "Ka\u0308se.wav"),  # As macOS packs it.
        (b"K\x84se.wav", "K\u00e4se.wav"),  # As DOS did.
    ],
)
def test_names_without_a_flag(tmp_path, raw, name):
    path, stand_in = tmp_path / "x.zip", b"x" * len(raw)
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr(stand_in.decode(), b"sound")
    path.write_bytes(path.read_bytes().replace(stand_in, raw))
    found = split_zip.SplitZip(path)
    assert list(found.members) == [name] and found.read(name) == b"sound"


def test_a_large_archive_has_wide_numbers(tmp_path):
    """Python writes them for a member of unknown size; the record at the end
    is made here."""
    whole = io.BytesIO()
    with zipfile.ZipFile(whole, "w") as archive:
        with archive.open("a/b", "w", force_zip64=True) as file:
            file.write(b"what it holds")
    content = whole.getvalue()
    end = content.index(b"PK\5\6")
    entries, size, begin = struct.unpack_from("<HII", content, end + 10)
    wide = struct.pack(
        "<4sQHHIIQQQQ", b"PK\6\6", 44, 45, 45, 0, 0, 1, entries, size, begin
    )
    place = struct.pack("<4sIQI", b"PK\6\7", 0, end, 1)
    last = struct.pack(
        "<4sHHHHIIH", b"PK\5\6", *[0xFFFF] * 4, 2**32 - 1, 2**32 - 1, 0
    )
    (tmp_path / "a.zip").write_bytes(content[:end] + wide + place + last)
    archive = split_zip.SplitZip(tmp_path / "a.zip")
    assert archive.read("a/b") == b"what it holds"


def test_faults_are_named(parts, tmp_path):
    def broken(number, change):
        kept = parts[number].read_bytes()
        change(parts[number])
        with pytest.raises((FileNotFoundError, split_zip.ZipError)) as error:
            archive = split_zip.SplitZip(parts[-1])
            for name in archive.members:
                archive.read(name)
        parts[number].write_bytes(kept)
        return str(error.value)

    def cut(path):
        path.write_bytes(path.read_bytes()[:-5])

    def flip(path):
        content = bytearray(path.read_bytes())
        content[len(content) // 2] ^= 1
        path.write_bytes(content)

    message = broken(1, lambda path: path.unlink())
    assert f"{parts[1]}: this part" in message and "is missing" in message
    message = broken(2, cut)
    assert f"{parts[2]}: this part is cut off" in message
    assert f"{PART - 5} bytes of {PART}" in message
    assert "cut off, or no ZIP" in broken(-1, lambda path: cut_to(path, 9))
    message = broken(1, flip)
    assert "FSD50K.dev_audio/13.wav" in message and "damaged" in message
    # All parts whole again.
    assert split_zip.SplitZip(parts[-1]).read("FSD50K.dev_audio/13.wav")


def cut_to(path, size):
    path.write_bytes(path.read_bytes()[:size])


def test_a_path_goes_on_within_an_archive(parts, tmp_path):
    folder = tmp_path / "FSD50K.dev_audio"
    assert audio_below(folder) == [folder / "13.wav", folder / "5.wav"]
    audio, rate_hz = read_audio(folder / "13.wav")
    wav = contents()["FSD50K.dev_audio/13.wav"]
    wanted, _ = soundfile.read(io.BytesIO(wav), dtype="float32")
    np.testing.assert_array_equal(audio, wanted)
    assert rate_hz == 8_000
    size, modified_ns = packed.status(folder / "13.wav")
    assert size == len(wav) and modified_ns == parts[-1].stat().st_mtime_ns
    with pytest.raises(AudioError, match="no such file"):
        read_audio(folder / "7.wav")
    parts[0].unlink()
    with pytest.raises(AudioError, match="FSD50K.dev_audio.z01"):
        read_audio(folder / "13.wav")
    # A folder comes first.
    folder.mkdir()
    (folder / "13.wav").write_bytes(wav)
    np.testing.assert_array_equal(read_audio(folder / "13.wav")[0], wanted)
