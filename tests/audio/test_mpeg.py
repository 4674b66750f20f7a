"""MP3 files without a header that tells their length, and joined ones."""

import io

import numpy as np
import pytest
import soundfile

from audio_tf.audio import decode, mpeg

# The sampling rate, the samples of a frame, and the channels.
KINDS = [
    (rate_hz, 576 if rate_hz < 32_000 else 1152, channels)
    for rate_hz in (8_000, 16_000, 22_050, 32_000, 44_100)
    for channels in (1, 2)
]
# Of the encoder, in samples: the header tells of it.
DELAY = 576


def encode(rate_hz, channels, mode="CONSTANT", seconds=1.5):
    """Encodes silence, noise and silence, whose frames differ in size."""
    noise = np.random.default_rng(0).normal(0, 0.2, int(rate_hz * seconds))
    noise[: len(noise) // 3] = noise[-len(noise) // 3 :] = 0
    file = io.BytesIO()
    soundfile.write(
        file,
        np.stack([noise] * channels, axis=1),
        rate_hz,
        format="MP3",
        bitrate_mode=mode,
        compression_level=0.5,
    )
    return file.getvalue()


def sound_of(content):
    """Takes off the first frame, which has the header and no sound."""
    return content[mpeg.frame_size(content, 0) :]


def read(content):
    return decode.read_audio("a.mp3", content)[0]


@pytest.mark.parametrize("mode", ["CONSTANT", "VARIABLE"])
@pytest.mark.parametrize("rate_hz, frame, channels", KINDS)
def test_a_file_without_a_header_is_read_whole(rate_hz, frame, channels, mode):
    content = encode(rate_hz, channels, mode)
    told = read(content)
    found = read(sound_of(content))
    # Whole frames, without the delay of the decoder.
    assert (len(found) + 529) % frame == 0
    assert 0 <= len(found) - DELAY - len(told) < 2 * frame
    np.testing.assert_allclose(
        found[DELAY : DELAY + len(told)], told, atol=1e-6
    )


@pytest.mark.parametrize("rate_hz, frame, channels", KINDS[::3])
def test_joined_files_are_read_to_the_end(rate_hz, frame, channels):
    content = encode(rate_hz, channels)
    told = read(content)
    found = read(content + content)
    np.testing.assert_allclose(found[: len(told)], told, atol=1e-6)
    # The second header is a frame of silence, and delays are there anew.
    frames = (len(read(sound_of(content))) + 529) // frame
    second = found[(frames + 1) * frame :]
    np.testing.assert_allclose(second, told, atol=1e-6)


@pytest.mark.parametrize("between", [b"", b"TAG" + bytes(125)])
def test_a_short_file_that_was_joined_is_read(between):
    """A file of fewer bytes than tags may have."""
    content, short = encode(16_000, 1), encode(16_000, 1, seconds=0.2)
    assert len(between + short) < mpeg.TAGS_SIZE
    told, more = read(content), read(short)
    found = read(content + between + short)
    np.testing.assert_allclose(found[: len(told)], told, atol=1e-6)
    frames = (len(read(sound_of(content))) + 529) // 576
    second = found[(frames + 1) * 576 :]
    np.testing.assert_allclose(second[: len(more)], more, atol=1e-6)
    # Tags alone are looked through, and nothing is made of them.
    for tags in b"TAG" + bytes(125), b"APETAGEX" + b"\xff\xfb\x90d" * 9:
        assert mpeg.mend(io.BytesIO(content + tags)) is None


def tag(size):
    return b"ID3\4\0\0" + bytes([0, 0, size >> 7, size & 127]) + bytes(size)


@pytest.mark.parametrize(
    "around",
    [
        lambda a, b: tag(300) + a + b,
        lambda a, b: tag(10) + tag(200) + a + b,
        lambda a, b: a + b + b"TAG" + bytes(125),
        lambda a, b: a + b + b"APETAGEX" + b"\xff\xfb\x90d" * 9 + bytes(999),
        lambda a, b: b"\xff\xfb\x90" + a + b,
        lambda a, b: a + b + b[:100],
    ],
)
def test_what_is_no_sound_is_passed_over(around):
    content = sound_of(encode(44_100, 1, "VARIABLE"))
    place = mpeg.find_frame(content, len(content) // 2)
    given = around(content[:place], content[place:])
    mended = mpeg.mend(io.BytesIO(given))
    plain = mpeg.mend(io.BytesIO(content))
    size = mpeg.frame_size(plain, 0)
    assert mended[:size] == plain[:size]
    np.testing.assert_array_equal(read(given), read(content))


def test_a_tag_between_frames_is_passed_over():
    content = sound_of(encode(44_100, 1, "VARIABLE"))
    place = mpeg.find_frame(content, len(content) // 2)
    found = read(content[:place] + tag(500) + content[place:])
    told = read(content)
    assert len(found) == len(told)
    # The decoder has lost what the frame before had room for.
    assert np.count_nonzero(found != told) <= 2 * 1152


def test_files_that_tell_all_stay_as_they_are(monkeypatch):
    content = encode(16_000, 1)
    assert mpeg.mend(io.BytesIO(content)) is None
    assert mpeg.mend(io.BytesIO(content + b"TAG" + bytes(125))) is None
    # All but its first bytes are not looked at.
    monkeypatch.setattr(mpeg, "find_frame", None)
    assert mpeg.mend(io.BytesIO(tag(99) + content)) is None


def test_a_header_of_other_things_is_none():
    """Its flags say which of its fields are there."""
    content = encode(44_100, 2)
    place = content.index(b"Info")
    other = bytearray(content)
    other[place + 7] &= ~1
    found = read(bytes(other))
    np.testing.assert_allclose(
        found[1152 + DELAY :][: len(read(content))], read(content), atol=1e-6
    )


def test_a_file_of_a_header_that_is_cut_stays_cut_off():
    content = encode(44_100, 2)
    with pytest.raises(decode.AudioError, match="cut off after"):
        read(content[: len(content) // 2])


@pytest.mark.parametrize(
    "content",
    [
        b"ID3",
        b"ID3\4\0\0\x7f\x7f\x7f\x7f" + bytes(30),
        b"\xff\xfb\x90\x64",
        b"\xff\xfb\x90\x64" * 5,
        b"\xff\xfb\x90\x64" + bytes(5_000),
        b"\xff" * 5_000,
    ],
)
def test_what_is_no_mp3_is_refused(content):
    assert mpeg.mend(io.BytesIO(content)) is None
    with pytest.raises(decode.AudioError):
        read(content)


def test_a_search_ends(monkeypatch):
    content = sound_of(encode(44_100, 1))
    place = mpeg.find_frame(content, len(content) // 2)
    junk = b"\xff\xfb\xa4\x00" * 20
    given = content[:place] + junk + content[place:]
    assert mpeg.mend(io.BytesIO(given))[mpeg.frame_size(content, 0) :]
    monkeypatch.setattr(mpeg, "MOST_PLACES", 10)
    assert mpeg.mend(io.BytesIO(given)) is None
