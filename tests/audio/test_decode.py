"""Files that must be refused, files that must be read, and the resampler."""

import io
import math
import os
import pickle
import re
import struct
import tracemalloc
import wave

import numpy as np
import pytest
import scipy.signal
import soundfile
import tensorflow as tf

from audio_tf.audio import containers, decode, graph_wav, wav
from audio_tf.data import preparing

COUNT = 1_009


def noise(*shape, seed=3):
    return np.random.default_rng(seed).uniform(-0.9, 0.9, shape)


def write(path, audio=None, rate_hz=8_000, **kwargs):
    audio = noise(COUNT) if audio is None else audio
    soundfile.write(path, audio, rate_hz, **kwargs)
    return path


def cut(path, num_bytes):
    """Keeps the first `num_bytes`; a negative number goes from the end."""
    path.write_bytes(path.read_bytes()[:num_bytes])
    return path


def riff_chunk(marker, content):
    padding = b"\0" * (len(content) % 2)
    return marker + struct.pack("<I", len(content)) + content + padding


def pcm_16_wav(samples, rate_hz=8_000, extra=b""):
    """Bytes of a mono WAV, put together by hand."""
    header = struct.pack("<HHIIHH", 1, 1, rate_hz, 2 * rate_hz, 2, 16)
    body = b"WAVE" + riff_chunk(b"fmt ", header) + extra
    body += riff_chunk(b"data", np.asarray(samples, "<i2").tobytes())
    return riff_chunk(b"RIFF", body)


def assert_refused(path, reason):
    """The error names the file and matches the reason, both functions."""
    for read in (
        lambda: decode.read_audio(path),
        lambda: decode.load_audio(path, 16_000),
    ):
        with pytest.raises(decode.AudioError, match=reason) as caught:
            read()
        assert caught.value.path == str(path)
        assert str(caught.value) == f"{path}: {caught.value.reason}"


def test_audio_error_is_a_value_error():
    assert issubclass(decode.AudioError, ValueError)


@pytest.mark.parametrize("kind", [decode.AudioError, decode.TooLongError])
def test_an_error_of_audio_leaves_a_process_as_it_is(kind):
    """As a pool of processes pickles it."""
    for path in ("a.wav", ""):
        error = kind(path, "empty file")
        same = pickle.loads(pickle.dumps(error))
        assert type(same) is kind and str(same) == str(error)
        assert (same.path, same.reason) == (path, "empty file")


def test_missing_file(tmp_path):
    assert_refused(tmp_path / "none.wav", "no such file")


def test_an_empty_path_is_seen_in_the_error():
    with pytest.raises(decode.AudioError, match="^'': no such file") as caught:
        decode.read_audio("")
    assert caught.value.path == ""


def test_directory(tmp_path):
    folder = tmp_path / "folder.wav"
    folder.mkdir()
    assert_refused(folder, "a folder, not a file")


def test_empty_file(tmp_path):
    path = tmp_path / "empty.wav"
    path.touch()
    assert_refused(path, "empty file")


@pytest.mark.parametrize("name", ["a.wav", "a.flac", "a.ogg", "a.mp3"])
def test_text_with_the_suffix_of_audio(tmp_path, name):
    path = tmp_path / name
    path.write_text("fname,labels,mids,split\n" * 53)
    assert_refused(path, "not readable as audio")


def test_wav_without_samples(tmp_path):
    path = write(tmp_path / "a.wav", np.zeros(0))
    assert_refused(path, "holds no samples")


@pytest.mark.parametrize("share", [0.01, 0.31, 0.61, 0.97])
def test_truncated_flac(tmp_path, share):
    path = write(tmp_path / "a.flac", noise(20_011))
    cut(path, int(share * path.stat().st_size))
    assert_refused(path, "cut off|not readable as audio")


@pytest.mark.parametrize("kept", [0, 1, 503, COUNT - 1])
@pytest.mark.parametrize(
    "subtype, width", [("PCM_16", 2), ("PCM_24", 3), ("FLOAT", 4)]
)
def test_truncated_wav(tmp_path, kept, subtype, width):
    path = write(tmp_path / "a.wav", subtype=subtype)
    cut(path, (kept - COUNT) * width)
    assert_refused(path, f"cut off after {kept} samples")


def test_truncated_wav_by_one_byte(tmp_path):
    path = cut(write(tmp_path / "a.wav", subtype="PCM_16"), -1)
    assert_refused(path, f"cut off after {COUNT - 1} samples")


def test_truncated_extensible_stereo_wav(tmp_path):
    path = write(tmp_path / "a.wav", noise(COUNT, 2), format="WAVEX")
    cut(path, -503 * 4)
    assert_refused(path, f"cut off after {COUNT - 503} samples")


@pytest.mark.parametrize("suffix", ["aif", "aiff"])
@pytest.mark.parametrize(
    "subtype, width", [("PCM_16", 2), ("PCM_24", 3), ("FLOAT", 4)]
)
def test_truncated_aiff(tmp_path, suffix, subtype, width):
    path = write(tmp_path / f"a.{suffix}", format="AIFF", subtype=subtype)
    content = path.read_bytes()
    assert len(decode.read_audio(path)[0]) == COUNT
    # Samples are the last that it has, but for a byte that fills up.
    end = content.rindex(b"SSND") + 16 + COUNT * width
    cut(path, end - 503 * width)
    assert_refused(path, f"cut off after {COUNT - 503} samples")
    path.write_bytes(content[: end - 1])
    assert_refused(path, f"cut off after {COUNT - 1} samples")


def test_truncated_wav_of_the_other_order_of_bytes(tmp_path):
    path = tmp_path / "a.wav"
    soundfile.write(path, noise(COUNT), 8_000, subtype="PCM_16", endian="BIG")
    assert path.read_bytes()[:4] == b"RIFX"
    assert len(decode.read_audio(path)[0]) == COUNT
    cut(path, -503 * 2)
    assert_refused(path, f"cut off after {COUNT - 503} samples")


@pytest.mark.parametrize("suffix", ["wav", "aiff"])
def test_more_than_a_header_can_say_is_not_read_in_part(tmp_path, suffix):
    """A recorder that goes on for hours counts bytes from 0 again."""
    path = write(tmp_path / f"a.{suffix}", subtype="PCM_16")
    os.truncate(path, path.stat().st_size + 2**32)
    assert_refused(path, "longer than the header of its format can say")


@pytest.mark.parametrize(
    "kind, subtype, endian, width",
    [
        ("AU", "PCM_16", "BIG", 2),
        ("AU", "ULAW", "LITTLE", 1),
        ("W64", "PCM_24", None, 3),
        ("NIST", "PCM_16", "LITTLE", 2),
        ("NIST", "PCM_16", "BIG", 2),
        ("NIST", "ULAW", None, 1),
    ],
)
def test_truncated_files_of_other_headers(
    tmp_path, kind, subtype, endian, width
):
    audio = noise(COUNT, 2)
    path = write(
        tmp_path / "a", audio, format=kind, subtype=subtype, endian=endian
    )
    assert len(decode.read_audio(path)[0]) == COUNT
    cut(path, -2)
    assert_refused(path, f"cut off after {COUNT - 1} samples")
    cut(path, 2 - 2 * width * 503)
    assert_refused(path, f"cut off after {COUNT - 503} samples")


@pytest.mark.parametrize(
    "kind, subtype, width, end",
    [("SVX", "PCM_S8", 1, 0), ("SVX", "PCM_16", 2, 0), ("VOC", "PCM_16", 2, 1)],
)
def test_truncated_files_of_one_channel(tmp_path, kind, subtype, width, end):
    """A VOC has a byte behind its samples, and is one without it, too."""
    path = write(tmp_path / "a", format=kind, subtype=subtype)
    content = path.read_bytes()
    size = len(content) - end
    for kept in {size, len(content)}:
        path.write_bytes(content[:kept])
        assert len(decode.read_audio(path)[0]) == COUNT
    for lost in (1, 503 * width):
        path.write_bytes(content[: size - lost])
        assert_refused(path, "cut off after")


@pytest.mark.parametrize("kind, place, size", [("AU", 8, 4), ("W64", 16, 8)])
def test_streamed_files_of_other_headers_are_read_whole(
    tmp_path, kind, place, size
):
    path = write(tmp_path / "a", format=kind, subtype="PCM_16")
    content = bytearray(path.read_bytes())
    content[place : place + size] = b"\xff" * size
    path.write_bytes(content)
    assert len(decode.read_audio(path)[0]) == COUNT


@pytest.mark.parametrize("lost", [1, 3 * 503])
def test_truncated_caf(tmp_path, lost):
    path = write(tmp_path / "a", format="CAF", subtype="PCM_24")
    content = path.read_bytes()
    assert len(decode.read_audio(path)[0]) == COUNT
    # Zeros that fill up may stand behind them.
    cut(path, content.rindex(b"data") + 16 + 3 * COUNT - lost)
    assert_refused(path, "cut off after")


def test_streamed_aiff_is_read_whole(tmp_path):
    path = write(tmp_path / "a.aiff", format="AIFF", subtype="PCM_16")
    content = bytearray(path.read_bytes())
    start = content.rindex(b"SSND") + 4
    content[start : start + 4] = b"\xff" * 4
    path.write_bytes(content)
    assert len(decode.read_audio(path)[0]) == COUNT


def test_wav_cut_off_in_its_header(tmp_path):
    path = cut(write(tmp_path / "a.wav"), 23)
    assert_refused(path, "not readable as audio")


def test_a_text_called_mp3_is_there(tmp_path):
    path = tmp_path / "a.mp3"
    path.write_text("no sound in here\n" * 200)
    assert_refused(path, "not readable as audio .No audio found in it")


def test_a_flac_of_no_length_is_told_so(tmp_path):
    """Encoders that write to a pipe cannot go back and say it."""
    path = write(tmp_path / "a.flac", noise(40_000))
    content = bytearray(path.read_bytes())
    content[21] &= 0xF0
    content[22:26] = bytes(4)
    path.write_bytes(content)
    assert_refused(path, "does not say how long it is; `ffmpeg -i`")
    # No plan keeps room for what it claims to hold.
    assert preparing.samples_of(path, 8_000) == 0
    assert preparing.samples_of(path, 48_000) == 0


@pytest.mark.parametrize("num_tags", [3, 211])
def test_truncated_wav_with_tags(tmp_path, num_tags):
    comment = riff_chunk(b"ICMT", b"recorded in the field")
    tags = riff_chunk(b"LIST", b"INFO" + num_tags * comment)
    path = tmp_path / "a.wav"
    path.write_bytes(pcm_16_wav(np.arange(COUNT), extra=tags))
    assert len(decode.read_audio(path)[0]) == COUNT
    cut(path, -1_000)
    assert_refused(path, f"cut off after {COUNT - 500} samples")


# Taggers of MP3 put them before files of any kind.
ID3 = b"ID3\x03\0\0\0\0\1\x7f" + bytes(255)


@pytest.mark.parametrize("kind", ["WAV", "RF64", "AIFF", "FLAC", "OGG"])
@pytest.mark.parametrize("tags", [ID3, 2 * ID3])
def test_tags_before_a_file_that_has_none(tmp_path, kind, tags):
    path = write(tmp_path / "a", noise(9_001), 16_000, format=kind)
    content = path.read_bytes()
    expected, _ = decode.read_audio(path)
    for given in (None, tags + content):
        path.write_bytes(tags + content)
        found, rate_hz = decode.read_audio(path, given)
        np.testing.assert_array_equal(found, expected)
        assert len(found) == 9_001 and rate_hz == 16_000
    cut(path, -len(content) // 2)
    assert_refused(path, "cut off|not readable as audio")


def test_truncated_ogg(tmp_path):
    path = write(tmp_path / "a.ogg", noise(90_001), rate_hz=44_100)
    assert len(decode.read_audio(path)[0]) == 90_001
    cut(path, int(0.6 * path.stat().st_size))
    assert_refused(path, "cut off|not readable as audio")


@pytest.mark.parametrize("kept", [0, 4, 5, 6, 27, 211, -1])
def test_ogg_cut_in_its_last_page(tmp_path, kept):
    path = write(tmp_path / "a.ogg", noise(90_001), rate_hz=44_100)
    start = path.read_bytes().rindex(b"OggS")
    cut(path, kept if kept < 0 else start + kept)
    assert_refused(path, "cut off|not readable as audio")


@pytest.mark.parametrize("kept", [4, 5, 53])
def test_ogg_cut_in_its_first_page(tmp_path, kept):
    path = cut(write(tmp_path / "a.ogg", rate_hz=44_100), kept)
    assert_refused(path, "cut off|not readable as audio")


@pytest.mark.parametrize("subtype", ["VORBIS", "OPUS"])
def test_an_ogg_of_several_recordings_is_refused(tmp_path, subtype):
    """As of a radio; libsndfile reads the first, and says nothing."""
    whole = [
        write(tmp_path / f"{n}.ogg", noise(9_001), 16_000, subtype=subtype)
        for n in "ab"
    ]
    for path in whole:
        assert len(decode.read_audio(path)[0]) == 9_001
    joined = tmp_path / "joined.ogg"
    joined.write_bytes(b"".join(path.read_bytes() for path in whole))
    assert_refused(joined, "several recordings joined as one Ogg")
    # The first pages of streams side by side, of which one is read or none.
    (first, second) = (path.read_bytes() for path in whole)
    size = first.index(b"OggS", 4)
    side_by_side = first[:size] + second[:size] + first[size:]
    assert not containers.ogg_begins_again(io.BytesIO(side_by_side))


# Where its blocks of 2^20 bytes meet, too.
@pytest.mark.parametrize("before", [0, 2**20 - 3])
def test_a_flac_of_several_recordings_is_refused(tmp_path, before):
    path = write(tmp_path / "a.flac")
    whole = path.read_bytes()
    place = max(len(whole), before)
    path.write_bytes(whole.ljust(place, b"\0"))
    assert len(decode.read_audio(path)[0]) == COUNT
    path.write_bytes(whole.ljust(place, b"\0") + whole)
    assert_refused(path, "several recordings joined as one FLAC")


@pytest.mark.parametrize("subtype", ["VORBIS", "OPUS"])
@pytest.mark.parametrize("page", [0, 1, 2, 3, -1])
def test_a_damaged_page_of_an_ogg_is_told(tmp_path, subtype, page):
    """libogg leaves it out; of the first with sound no count tells that."""
    path = tmp_path / "a.ogg"
    write(path, noise(90_001), 16_000, subtype=subtype)
    whole = path.read_bytes()
    starts = [each.start() for each in re.finditer(b"OggS", whole)]
    damaged = bytearray(whole)
    damaged[starts[page] + 22] ^= 1
    path.write_bytes(damaged)
    assert_refused(path, f"damaged: its Ogg page at byte {starts[page]}$")
    # Bytes that belong to no page.
    place = starts[page] or starts[1]
    path.write_bytes(whole[:place] + b"Riff" + whole[place:])
    assert_refused(path, f"damaged: its Ogg page at byte {place}$")


# No page begins in the last 128 KiB.
def test_ogg_with_zeros_behind_it_is_no_crash(tmp_path):
    path = write(tmp_path / "a.ogg", noise(20_011), rate_hz=44_100)
    path.write_bytes(path.read_bytes() + bytes(200_003))
    try:
        assert len(decode.read_audio(path)[0]) == 20_011
    except decode.AudioError as error:
        assert error.path == str(path)


# macOS puts such a file beside each on disks of other systems.
@pytest.mark.parametrize("suffix", ["mp3", "wav", "flac", "ogg"])
def test_what_macos_puts_beside_a_file_says_nothing_of_it(tmp_path, suffix):
    path = write(tmp_path / f"a.{suffix}", noise(20_011), rate_hz=16_000)
    alone, _ = decode.read_audio(path)
    head = b"\0\5\x16\7\0\2\0\0Mac OS X        \0\2"
    path.with_name(f"._a.{suffix}").write_bytes(head.ljust(4096, b"\0"))
    np.testing.assert_array_equal(decode.read_audio(path)[0], alone)
    assert preparing.samples_of(path, 8_000) == math.ceil(len(alone) / 2)


@pytest.mark.parametrize("suffix", ["raw", "RAW", "vox", "gsm", "au"])
def test_a_name_does_not_make_sound_of_bytes(tmp_path, suffix):
    path = tmp_path / f"a.{suffix}"
    path.write_bytes(b"It is a text and no audio.\n" * 211)
    assert_refused(path, "Format not recognised")
    write(path, format="WAV", subtype="FLOAT")
    np.testing.assert_array_equal(
        decode.read_audio(path)[0], noise(COUNT).astype("float32")
    )
    assert preparing.samples_of(path, 8_000) == COUNT


def test_an_mp3_may_begin_amid_a_frame(tmp_path):
    """As one that was recorded from a stream."""
    path = write(tmp_path / "a.mp3", noise(20_011), rate_hz=16_000)
    whole, _ = decode.read_audio(path)
    later = tmp_path / "later.MP3"
    later.write_bytes(path.read_bytes()[300:])
    found, rate_hz = decode.read_audio(later)
    assert rate_hz == 16_000 and 0 < len(found) < len(whole)
    # Behind the frames that lean on what was cut off.
    places = np.lib.stride_tricks.sliding_window_view(whole, 500)
    assert np.abs(places - found[5_000:5_500]).max(axis=1).min() < 1e-6
    assert preparing.samples_of(later, 16_000) > 0


def test_truncated_mp3(tmp_path):
    path = write(tmp_path / "a.mp3", noise(20_011), rate_hz=16_000)
    cut(path, int(0.6 * path.stat().st_size))
    assert_refused(path, "cut off after")


@pytest.mark.parametrize(
    "size", [0xFFFFFFFF, 0, 0x7FFFFFFF, 0xFFFFF000, 0x7FFFF000]
)
def test_streamed_wav_is_read_whole(tmp_path, size):
    """A writer that cannot seek back leaves a placeholder as the size."""
    samples = np.arange(-503, 506)
    content = bytearray(pcm_16_wav(samples))
    content[4:8] = struct.pack("<I", min(size + 36, 0xFFFFFFFF))
    content[40:44] = struct.pack("<I", size)
    path = tmp_path / "a.wav"
    path.write_bytes(content)
    audio, rate_hz = decode.read_audio(path)
    np.testing.assert_array_equal(audio, (samples / 2**15).astype("float32"))
    assert rate_hz == 8_000


def test_bytes_after_the_wav_data_are_not_samples(tmp_path):
    path = tmp_path / "a.wav"
    content = pcm_16_wav(np.arange(COUNT)) + riff_chunk(b"junk", b"abcd" * 7)
    path.write_bytes(content)
    assert len(decode.read_audio(path)[0]) == COUNT


@pytest.mark.parametrize("subtype", ["FLOAT", "DOUBLE"])
def test_nan_samples(tmp_path, subtype):
    audio = noise(COUNT)
    audio[[0, 7, COUNT - 1]] = np.nan
    path = write(tmp_path / "a.wav", audio, subtype=subtype)
    assert_refused(path, r"^.*: 3 samples are NaN or infinite$")


def test_infinite_samples(tmp_path):
    audio = noise(COUNT)
    audio[[11, 13]] = np.inf, -np.inf
    path = write(tmp_path / "a.wav", audio, subtype="FLOAT")
    assert_refused(path, r"^.*: 2 samples are NaN or infinite$")


def test_nan_in_one_channel(tmp_path):
    audio = noise(COUNT, 3)
    audio[17, 2] = np.nan
    path = write(tmp_path / "a.wav", audio, subtype="FLOAT")
    assert_refused(path, ": 1 samples are NaN or infinite")


@pytest.mark.parametrize("channels", [1, 2])
def test_samples_that_are_too_large(tmp_path, channels):
    """The bound is one constant, on the host and in the graph."""
    in_graph = tf.function(
        graph_wav.decode_wav, input_signature=[tf.TensorSpec((), tf.string)]
    )
    audio = noise(COUNT, channels)
    path = tmp_path / "a.wav"
    above = np.nextafter(np.float32(decode.MAX_PEAK), np.float32(np.inf))
    for peak, code in (
        (decode.MAX_PEAK, wav.WavError.NONE),
        (-above, wav.WavError.OVERFLOW),
        (1e30, wav.WavError.OVERFLOW),
        # The sum of two such channels is infinite.
        (3e38, wav.WavError.OVERFLOW),
        (np.inf, wav.WavError.NOT_FINITE),
        (np.nan, wav.WavError.NOT_FINITE),
    ):
        audio[7] = peak
        write(path, audio, subtype="FLOAT")
        assert in_graph(path.read_bytes())[2] == code
        if code == wav.WavError.NONE:
            assert np.isfinite(decode.load_audio(path, 16_000)).all()
        elif code == wav.WavError.OVERFLOW:
            assert_refused(path, wav.ERRORS[code])
        else:
            assert_refused(path, f": {channels} samples are NaN or infinite")
    for peak in (1e30, 1e300):
        audio[7] = peak
        write(path, audio, subtype="DOUBLE")
        assert_refused(path, "so large|NaN or infinite")
    with pytest.raises(decode.AudioError, match=r"2\.15e\+09"):
        decode.check_samples(path, np.float32([0, 1e12]))


def test_integers_have_no_full_scale():
    for dtype in ("int16", "int32", "uint8", "bool"):
        for rate_hz in (8_000, 16_000):
            with pytest.raises(TypeError, match=f"floats. Received: {dtype}"):
                decode.resample(np.ones(7, dtype), rate_hz, 16_000)


@pytest.mark.parametrize("promised", [0, 1_013, 2**31, 2**36 - 1])
def test_flac_that_promises_too_much(tmp_path, promised):
    """Memory grows with what is there: a header is no reason for terabytes."""
    path = write(tmp_path / "a.flac")
    content = bytearray(path.read_bytes())
    start = int.from_bytes(content[18:26], "big") >> 36 << 36
    content[18:26] = (start + promised).to_bytes(8, "big")
    path.write_bytes(content)
    tracemalloc.start()
    assert_refused(path, "cut off|not readable")
    assert tracemalloc.get_traced_memory()[1] < 2**26
    tracemalloc.stop()


@pytest.mark.parametrize("suffix", [".flac", ".wav"])
def test_audio_is_read_some_at_a_time(tmp_path, monkeypatch, suffix):
    path = write(tmp_path / f"a{suffix}", noise(COUNT, 3))
    whole, _ = decode.read_audio(path)
    for values in (1, 3 * COUNT, 3 * 101, 3 * 53 + 1):
        monkeypatch.setattr(decode, "READ_AT_ONCE", values)
        np.testing.assert_array_equal(decode.read_audio(path)[0], whole)
    monkeypatch.setattr(decode, "MAX_SAMPLES", 2 * COUNT)
    assert len(decode.load_audio(path, 16_000)) == 2 * COUNT
    with pytest.raises(decode.AudioError, match="longer than .* at 16001 Hz"):
        decode.load_audio(path, 16_001)
    monkeypatch.setattr(decode, "MAX_SAMPLES", COUNT - 1)
    assert_refused(path, f"longer than {COUNT - 1} samples")


def test_pipe_is_not_waited_for(tmp_path):
    path = tmp_path / "a.wav"
    os.mkfifo(path)
    assert_refused(path, "not a regular file")


def test_an_error_of_the_disk_is_an_error_of_the_file(tmp_path, monkeypatch):
    path = write(tmp_path / "a.wav")

    def fail(file):
        raise OSError(5, "Input/output error")

    monkeypatch.setattr(containers, "inspect", fail)
    assert_refused(path, "not readable as audio .*Input/output error")


def test_impossible_rate(tmp_path):
    path = tmp_path / "a.wav"
    content = bytearray(pcm_16_wav(np.arange(COUNT)))
    content[24:28] = struct.pack("<I", 2**31 - 1)
    path.write_bytes(content)
    with pytest.raises(decode.AudioError, match="2147483647"):
        decode.load_audio(path, 16_000)


@pytest.mark.parametrize("bits", [8, 16, 24, 32])
def test_integer_wav_values(tmp_path, bits):
    """Against integers that the standard library's writer was given."""
    full = 2 ** (bits - 1)
    integers = np.random.default_rng(bits).integers(-full, full, COUNT)
    integers[:3] = -full, full - 1, 0
    offset = 128 if bits == 8 else 0
    width = bits // 8
    frames = b"".join(
        int(value + offset).to_bytes(width, "little", signed=bits != 8)
        for value in integers
    )
    path = tmp_path / "a.wav"
    with wave.open(str(path), "wb") as file:
        file.setparams((1, width, 11_025, 0, "NONE", ""))
        file.writeframes(frames)
    audio, rate_hz = decode.read_audio(path)
    assert (audio.dtype, audio.shape, rate_hz) == ("float32", (COUNT,), 11_025)
    np.testing.assert_array_equal(audio, (integers / full).astype("float32"))


@pytest.mark.parametrize("subtype", ["FLOAT", "DOUBLE"])
@pytest.mark.parametrize("format", ["WAV", "WAVEX"])
def test_float_wav_values(tmp_path, format, subtype):
    written = noise(COUNT)
    written[:2] = 1.75, -2.5  # Beyond full scale, and not clipped.
    path = write(tmp_path / "a.wav", written, format=format, subtype=subtype)
    audio, rate_hz = decode.read_audio(path)
    assert (audio.dtype, rate_hz) == ("float32", 8_000)
    np.testing.assert_array_equal(audio, written.astype("float32"))


@pytest.mark.parametrize(
    "suffix, format",
    [(".flac", "FLAC"), (".wav", "WAVEX"), (".wav", "RF64")],
)
@pytest.mark.parametrize("bits", [16, 24])
def test_other_integer_formats(tmp_path, suffix, format, bits):
    full = 2 ** (bits - 1)
    integers = np.random.default_rng(bits).integers(-full, full, COUNT)
    integers[:2] = -full, full - 1
    path = write(
        tmp_path / f"a{suffix}",
        (integers << (32 - bits)).astype("int32"),
        rate_hz=44_100,
        format=format,
        subtype=f"PCM_{bits}",
    )
    audio, rate_hz = decode.read_audio(path)
    assert (audio.dtype, rate_hz) == ("float32", 44_100)
    np.testing.assert_array_equal(audio, (integers / full).astype("float32"))


@pytest.mark.parametrize("rate_hz", [8_000, 16_000, 22_050, 44_100, 48_000])
def test_rate_is_the_files(tmp_path, rate_hz):
    path = write(tmp_path / "a.wav", rate_hz=rate_hz)
    audio, found_hz = decode.read_audio(path)
    assert found_hz == rate_hz
    assert audio.shape == (COUNT,)


@pytest.mark.parametrize("channels", [2, 3, 5])
@pytest.mark.parametrize("suffix", [".wav", ".flac"])
def test_channels_are_averaged(tmp_path, suffix, channels):
    integers = np.random.default_rng(5).integers(
        -(2**15), 2**15, (COUNT, channels)
    )
    path = write(tmp_path / f"a{suffix}", integers.astype("int16"))
    audio, _ = decode.read_audio(str(path))
    assert (audio.dtype, audio.shape) == ("float32", (COUNT,))
    for sample, frame in zip(audio, integers, strict=True):
        mean = sum(int(value) for value in frame) / channels / 2**15
        assert sample == pytest.approx(mean, abs=2e-7)


@pytest.mark.parametrize(
    "suffix, count, rate_hz",
    [
        (".ogg", 20_011, 44_100),
        (".ogg", 8_009, 8_000),
        (".mp3", 20_011, 44_100),
        (".mp3", 8_009, 16_000),
    ],
)
def test_lossy_formats_are_close(tmp_path, suffix, count, rate_hz):
    time_s = np.arange(count) / rate_hz
    written = 0.5 * np.sin(2 * np.pi * 440 * time_s)
    written += 0.2 * np.sin(2 * np.pi * 1_330 * time_s)
    path = write(tmp_path / f"a{suffix}", written, rate_hz)
    audio, found_hz = decode.read_audio(path)
    assert (audio.dtype, audio.shape) == ("float32", (count,))
    assert found_hz == rate_hz
    # The same samples at the same places, so no codec's delay is left.
    middle = slice(2_003, -2_003)
    error = np.sqrt(np.mean((audio - written)[middle] ** 2))
    assert error < 0.02


def naive_resample(audio, rate_hz, target_hz):
    """Stuffs with zeros, filters by a windowed sinc, takes every so many.

    The sinc has 67 zero crossings in 70 samples of the lower rate to each
    side; the window is Kaiser's for 90 dB.
    """
    divisor = math.gcd(rate_hz, target_hz)
    up, down = target_hz // divisor, rate_hz // divisor
    widest = max(up, down)
    half = 70 * widest
    taps = np.sinc(np.arange(-half, half + 1) * 67 / half)
    taps *= np.kaiser(2 * half + 1, 0.1102 * (90 - 8.7))
    taps *= up / taps.sum()
    stuffed = np.zeros(len(audio) * up)
    stuffed[::up] = audio
    filtered = scipy.signal.fftconvolve(stuffed, taps)
    result = []
    for index in range(math.ceil(len(audio) * up / down)):
        result.append(filtered[half + index * down])
    return np.array(result)


@pytest.mark.parametrize(
    "rate_hz, target_hz, count",
    [
        (8_000, 16_000, 997),
        (16_000, 8_000, 997),
        (48_000, 16_000, 1_009),
        (24_000, 16_000, 1_009),
        (44_100, 16_000, 211),
        (22_050, 16_000, 101),
        (11_025, 16_000, 17),
    ],
)
def test_resampler_equals_its_definition(rate_hz, target_hz, count):
    audio = noise(count).astype("float32")
    expected = naive_resample(audio, rate_hz, target_hz)
    # Twice: the filter is shared between calls, and scaled inside of one.
    for _ in range(2):
        resampled = decode.resample(audio, rate_hz, target_hz)
        assert resampled.dtype == "float32"
        assert resampled.shape == expected.shape
        np.testing.assert_allclose(resampled, expected, atol=3e-6)


@pytest.mark.parametrize("count", [1, 2, 3, 7, 1_009, 44_101])
@pytest.mark.parametrize(
    "rate_hz, target_hz",
    [(44_100, 16_000), (8_000, 16_000), (48_000, 16_000), (16_000, 44_100)],
)
def test_resampled_length(rate_hz, target_hz, count):
    audio = noise(count).astype("float32")
    resampled = decode.resample(audio, rate_hz, target_hz)
    expected, rest = divmod(count * target_hz, rate_hz)
    assert resampled.shape == (expected + (rest > 0),)
    assert np.isfinite(resampled).all()


def sine(frequency_hz, rate_hz, count):
    time_s = np.arange(count) / rate_hz
    return 0.7 * np.sin(2 * np.pi * frequency_hz * time_s + 0.3)


@pytest.mark.parametrize(
    "rate_hz, target_hz, frequency_hz",
    [
        (44_100, 16_000, 1_000),
        (44_100, 16_000, 6_000),
        (48_000, 16_000, 6_000),
        (8_000, 16_000, 3_000),
        (16_000, 8_000, 3_000),
    ],
)
def test_sine_in_the_pass_band_stays(rate_hz, target_hz, frequency_hz):
    """Amplitude, frequency and phase: the sine sampled at the new rate."""
    audio = sine(frequency_hz, rate_hz, rate_hz // 4)
    resampled = decode.resample(audio.astype("float32"), rate_hz, target_hz)
    expected = sine(frequency_hz, target_hz, target_hz // 4)
    middle = slice(501, -501)
    np.testing.assert_allclose(resampled[middle], expected[middle], atol=1e-4)


@pytest.mark.parametrize(
    "rate_hz, target_hz, frequency_hz",
    [
        (44_100, 16_000, 10_000),
        (44_100, 16_000, 20_000),
        (48_000, 16_000, 10_000),
        (16_000, 8_000, 5_000),
    ],
)
def test_sine_above_the_new_nyquist_is_gone(rate_hz, target_hz, frequency_hz):
    audio = sine(frequency_hz, rate_hz, rate_hz // 4).astype("float32")
    resampled = decode.resample(audio, rate_hz, target_hz)
    assert np.abs(resampled[501:-501]).max() < 1e-4


@pytest.mark.parametrize("rate_hz", [8_000, 16_000, 44_100])
def test_same_rate_changes_nothing(tmp_path, rate_hz):
    audio = noise(COUNT).astype("float32")
    np.testing.assert_array_equal(
        decode.resample(audio, rate_hz, rate_hz), audio
    )
    path = write(tmp_path / "a.wav", audio, rate_hz, subtype="FLOAT")
    np.testing.assert_array_equal(decode.load_audio(path, rate_hz), audio)


def test_load_reads_averages_and_resamples(tmp_path):
    stereo = noise(COUNT, 2).astype("float32")
    path = write(tmp_path / "a.wav", stereo, 24_000, subtype="FLOAT")
    audio = decode.load_audio(path, 16_000)
    mean = (stereo[:, 0].astype("float64") + stereo[:, 1]) / 2
    expected = naive_resample(mean, 24_000, 16_000)
    assert (audio.dtype, audio.shape) == ("float32", expected.shape)
    np.testing.assert_allclose(audio, expected, atol=3e-6)


@pytest.mark.parametrize(
    "pattern, rate_hz",
    [
        ("esc10/audio/*.ogg", 44_100),
        ("fsdd/recordings/*.wav", 8_000),
        ("LibriSpeech/*/*/*/*.flac", 16_000),
    ],
)
def test_real_clips(shared_data, pattern, rate_hz):
    paths = sorted(shared_data.glob(pattern))
    assert len(paths) > 5
    for path in paths[:: len(paths) // 5]:
        info = soundfile.info(os.fspath(path))
        audio, found_hz = decode.read_audio(path)
        assert found_hz == info.samplerate == rate_hz
        assert audio.shape == (info.frames,)
        assert np.isfinite(audio).all()
        assert 1e-3 < np.abs(audio).max() <= 1.1
        loaded = decode.load_audio(path, 16_000)
        assert len(loaded) == math.ceil(info.frames * 16_000 / rate_hz)
        assert np.isfinite(loaded).all()
