"""WAV decoded in the graph, against libsndfile; files that may be broken."""

import itertools
import shutil
import struct
import subprocess

import numpy as np
import pytest
import soundfile
import tensorflow as tf
import wav_cases
from wav_cases import BAD, SAMPLES, chunk, fmt, riff, simple

from audio_tf.audio import containers, decode, graph_wav, wav
from audio_tf.audio.graph_resampling import resample_in_graph
from audio_tf.audio.wav import WavError

TARGET_HZ = 16_000
RATES_HZ = [8_000, 11_025, 16_000, 22_050, 24_000, 32_000]
RATES_HZ += [44_100, 48_000, 96_000, 17_389]
SUBTYPES = ["PCM_U8", "PCM_16", "PCM_24", "PCM_32"]
SUBTYPES += ["FLOAT", "DOUBLE", "ULAW", "ALAW"]
# As ffmpeg and as sox name the eight encodings.
CODECS = "u8 s16le s24le s32le f32le f64le alaw mulaw".split()
SOX_ENCODINGS = [
    *(
        f"-b {bits} -e {kind}".split()
        for bits, kind in (
            (8, "unsigned"),
            (16, "signed"),
            (24, "signed"),
            (32, "signed"),
            (32, "float"),
            (64, "float"),
        )
    ),
    ["-e", "a-law"],
    ["-e", "mu-law"],
]


@tf.function(input_signature=[tf.TensorSpec((), tf.string)])
def decode_wav(contents):
    return graph_wav.decode_wav(contents)


@tf.function(input_signature=[tf.TensorSpec((), tf.string)])
def load_wav(contents):
    audio, rate_hz, error = graph_wav.decode_wav(contents)
    return resample_in_graph(audio, rate_hz, TARGET_HZ), error


def decoded(content):
    """Audio, rate and error, after a check of what an error implies."""
    audio, rate_hz, error = (value.numpy() for value in decode_wav(content))
    assert (audio.dtype, audio.ndim) == ("float32", 1)
    assert (rate_hz.dtype, error.dtype) == ("int32", "int32")
    assert error in wav.ERRORS
    assert (len(audio) == 0) == (rate_hz == 0) == (error != 0)
    return audio, rate_hz, error


def read(content, folder):
    """What `read_audio` makes of the bytes: audio and rate, or `None`."""
    path = folder / "case.wav"
    path.write_bytes(content)
    try:
        return decode.read_audio(path)
    except decode.AudioError:
        return None


def assert_equal_to_file(paths):
    for path in paths:
        audio, error = load_wav(path.read_bytes())
        assert error == WavError.NONE, path
        expected = decode.load_audio(path, TARGET_HZ)
        assert audio.shape == expected.shape, path
        np.testing.assert_allclose(
            audio, expected, rtol=0, atol=1e-5, err_msg=str(path)
        )
        samples, rate_hz, _ = decoded(path.read_bytes())
        expected, expected_rate_hz = decode.read_audio(path)
        assert rate_hz == expected_rate_hz, path
        # The sum of three channels may be rounded in another order.
        np.testing.assert_allclose(
            samples, expected, rtol=0, atol=2e-7, err_msg=str(path)
        )


@pytest.mark.costly
@pytest.mark.parametrize("channels", [1, 2, 3, 6])
def test_files_of_libsndfile(channels, rng, tmp_path):
    paths = []
    for number, (subtype, rate_hz) in enumerate(
        itertools.product(SUBTYPES, RATES_HZ)
    ):
        path = tmp_path / f"{subtype}_{rate_hz}.wav"
        audio = rng.uniform(-0.9, 0.9, (797 + number, channels))
        container = ("WAV", "WAVEX")[(number + rate_hz // 1_000) % 2]
        soundfile.write(path, audio, rate_hz, format=container, subtype=subtype)
        paths.append(path)
    assert len(paths) == 80
    assert_equal_to_file(paths)


@pytest.mark.parametrize("subtype", SUBTYPES)
def test_files_of_64_bit_sizes(subtype, rng, tmp_path):
    path = tmp_path / "long.wav"
    audio = rng.uniform(-0.9, 0.9, (797, 2))
    soundfile.write(path, audio, 11_025, format="RF64", subtype=subtype)
    assert_equal_to_file([path])
    content = path.read_bytes()
    expected, _, _ = decoded(content)
    # What follows the samples is none of them.
    path.write_bytes(content + chunk(b"LIST", bytes(range(64))))
    assert_equal_to_file([path])
    np.testing.assert_array_equal(decoded(path.read_bytes())[0], expected)


def test_broken_files_of_64_bit_sizes(rng, tmp_path):
    path = tmp_path / "long.wav"
    soundfile.write(path, rng.uniform(-0.9, 0.9, 797), 11_025, format="RF64")
    content = path.read_bytes()

    def with_size(size):
        return content[:28] + struct.pack("<Q", size) + content[36:]

    for broken, code in (
        (content[:-2], WavError.CUT_OFF),
        (with_size(1596), WavError.CUT_OFF),
        (with_size(2**31 - 1), WavError.CUT_OFF),
        (with_size(2**63 - 1), WavError.CUT_OFF),
        (with_size(2**64 - 1), WavError.NO_SAMPLES),
        (with_size(0), WavError.NO_SAMPLES),
        (content[:34], WavError.NO_CHUNKS),
    ):
        assert decoded(broken)[2] == code
        assert read(broken, tmp_path) is None
    audio, _, _ = decoded(with_size(12))
    np.testing.assert_array_equal(audio, read(with_size(12), tmp_path)[0])


@pytest.mark.parametrize("subtype", ["MS_ADPCM", "IMA_ADPCM", "GSM610"])
def test_the_error_names_the_encodings_that_are_taken(subtype, rng, tmp_path):
    path = tmp_path / "packed.wav"
    soundfile.write(path, rng.uniform(-0.9, 0.9, 797), 8_000, subtype=subtype)
    error = decoded(path.read_bytes())[2]
    said = wav.ERRORS[WavError(error)]
    for name in ("8 to 32 bits", "float", "A-law", "mu-law", "ADPCM"):
        assert name in said


@pytest.mark.skipif(not shutil.which("ffmpeg"), reason="NO ffmpeg: NOT TESTED")
def test_files_of_ffmpeg(tmp_path):
    source = ["-f", "lavfi", "-i", "anoisesrc=d=0.05:r=48000:a=0.8:s=7"]
    command = ["ffmpeg", "-v", "error", *source]
    paths = []
    for codec, (channels, rate_hz) in itertools.product(
        CODECS, [(1, 8_000), (2, 44_100), (6, 96_000), (3, 17_389)]
    ):
        path = tmp_path / f"{codec}_{channels}_{rate_hz}.wav"
        command += ["-c:a", f"pcm_{codec}", "-ac", str(channels)]
        command += ["-ar", str(rate_hz), str(path)]
        paths.append(path)
    subprocess.run(command, check=True, stdin=subprocess.DEVNULL)
    for codec in CODECS:
        # A pipe cannot be rewound to write the size of the data.
        path = tmp_path / f"{codec}_pipe.wav"
        piped = subprocess.run(
            ["ffmpeg", "-v", "error", *source]
            + ["-c:a", f"pcm_{codec}", "-ac", "2", "-f", "wav", "-"],
            check=True,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
        )
        assert b"data\xff\xff\xff\xff" in piped.stdout
        path.write_bytes(piped.stdout)
        paths.append(path)
    assert_equal_to_file(paths)


@pytest.mark.skipif(not shutil.which("sox"), reason="NO sox: NOT TESTED")
def test_files_of_sox(tmp_path):
    paths = []
    for number, encoding in enumerate(SOX_ENCODINGS):
        for channels in (1, 2, 6):
            path = tmp_path / f"{number}_{channels}.wav"
            rate_hz = RATES_HZ[(number + channels) % len(RATES_HZ)]
            subprocess.run(
                ["sox", "-R", "-n", "-r", str(rate_hz), "-c", str(channels)]
                + [*encoding, str(path), "synth", "0.05", "whitenoise"],
                check=True,
            )
            paths.append(path)
    piped = subprocess.run(
        ["sox", "-R", "-n", "-r", "22050", "-b", "16", "-t", "wav", "-"]
        + ["synth", "0.05", "whitenoise"],
        check=True,
        capture_output=True,
    )
    path = tmp_path / "pipe.wav"
    path.write_bytes(piped.stdout)
    assert_equal_to_file([*paths, path])


@pytest.mark.parametrize("tag", [wav_cases.A_LAW, wav_cases.MU_LAW])
@pytest.mark.parametrize("bits", [0, 8, 16])
def test_every_code_of_the_laws(tag, bits, tmp_path):
    content = simple(bytes(range(256)), tag=tag, bits=bits)
    expected, _ = read(content, tmp_path)
    assert len(set(expected)) >= 255
    np.testing.assert_array_equal(decoded(content)[0], expected)


@pytest.mark.parametrize("bits", [1, 7, 8, 9, 12, 16, 20, 24, 31, 32])
def test_bits_need_not_fill_their_bytes(bits, tmp_path):
    content = simple(bytes(range(211)) + b"\xff" * 5, bits=bits)
    expected, _ = read(content, tmp_path)
    assert len(expected) == 216 // ((bits + 7) // 8)
    np.testing.assert_array_equal(decoded(content)[0], expected)


@pytest.mark.parametrize("align", [0, 1, 3, 4, 65_535])
def test_block_align_is_not_looked_at(align, tmp_path):
    content = simple(SAMPLES, align=align)
    np.testing.assert_array_equal(
        decoded(content)[0], read(content, tmp_path)[0]
    )


def test_mean_of_the_channels():
    content = simple(SAMPLES[:12], channels=3)
    first = (1 - 2 + 300) / 3 / 2**15
    second = (-32_768 + 32_767) / 3 / 2**15
    np.testing.assert_allclose(decoded(content)[0], [first, second], rtol=1e-6)


@pytest.mark.parametrize("size", sorted(containers.STREAMING_SIZES))
def test_streamed(size, tmp_path):
    content = simple(SAMPLES, data_size=size)
    audio, _, _ = decoded(content)
    np.testing.assert_array_equal(
        audio, (np.frombuffer(SAMPLES, "<i2") / 2**15).astype("float32")
    )
    np.testing.assert_array_equal(audio, read(content, tmp_path)[0])


@pytest.mark.parametrize("extra", [b"", b"abc"])
def test_chunks_behind_no_data_are_not_samples(extra, tmp_path):
    content = riff(
        chunk(b"fmt ", fmt()),
        chunk(b"data", b""),
        chunk(b"junk", b"abcd" + extra),
        chunk(b"LIST", b"INFO"),
    )
    assert decoded(content)[2] == WavError.NO_SAMPLES
    assert read(content, tmp_path) is None
    # Neither is a chunk that ends elsewhere than the file.
    content = simple(b"junk\x08\0\0\0abcd", data_size=0)
    assert len(decoded(content)[0]) == len(read(content, tmp_path)[0]) == 6
    content = simple(b"j\xffnk\x04\0\0\0abcd", data_size=0)
    assert len(decoded(content)[0]) == len(read(content, tmp_path)[0]) == 6


@pytest.mark.parametrize("name", BAD)
def test_bad(name, tmp_path):
    content, expected = BAD[name]
    assert decoded(content)[2] == expected
    assert load_wav(content)[0].shape == (0,)
    if name not in ("rifx", "adpcm"):  # libsndfile reads these.
        assert read(content, tmp_path) is None


def test_every_code_has_a_test_and_a_text():
    codes = {code for _, code in BAD.values()}
    others = {WavError.NONE, WavError.TOO_LONG, WavError.OVERFLOW}
    assert codes == set(WavError) - others  # The server gives the last two.
    assert list(wav.ERRORS) == list(WavError) == list(range(len(WavError)))
    assert wav.ERRORS[0] == ""
    assert len(set(wav.ERRORS.values())) == len(WavError)


@pytest.mark.parametrize("rate_hz", [1_000, 1_000_000])
def test_extreme_rates_are_read(rate_hz, tmp_path):
    content = simple(SAMPLES, rate_hz=rate_hz)
    assert decoded(content)[1:] == (rate_hz, WavError.NONE)
    audio, error = load_wav(content)
    expected = decode.resample(read(content, tmp_path)[0], rate_hz, TARGET_HZ)
    np.testing.assert_allclose(audio, expected, rtol=0, atol=1e-6)


@pytest.mark.parametrize("rate_hz", [999, 1_000_001])
def test_the_host_refuses_these_rates_too(rate_hz, tmp_path):
    path = tmp_path / "a.wav"
    path.write_bytes(simple(SAMPLES, rate_hz=rate_hz))
    with pytest.raises(decode.AudioError, match=f"a rate of {rate_hz} Hz"):
        decode.read_audio(path)


def test_a_bad_clip_does_not_harm_its_batch():
    contents = [content for content, _ in BAD.values()]
    contents[5:5] = [simple(SAMPLES)]
    errors, sizes = tf.function(
        lambda contents: tf.map_fn(
            lambda content: (
                load_wav(content)[1],
                tf.size(load_wav(content)[0]),
            ),
            contents,
            fn_output_signature=(tf.int32, tf.int32),
        )
    )(tf.constant(contents))
    expected = [code for _, code in BAD.values()]
    expected[5:5] = [WavError.NONE]
    assert errors.numpy().tolist() == expected
    assert sizes.numpy().tolist() == [14 if e == 0 else 0 for e in expected]


def test_only_plain_ops():
    graph = load_wav.get_concrete_function().graph.as_graph_def()
    nodes = [*graph.node]
    for function in graph.library.function:
        nodes += function.node_def
    ops = {node.op for node in nodes}
    assert {"DecodePaddedRaw", "BatchMatMulV2"} <= ops
    for banned in ("PyFunc", "Assert", "Random", "Xla", "Print", "CheckNum"):
        assert not [op for op in ops if banned.lower() in op.lower()]
    assert not [node for node in nodes if "_XlaMustCompile" in node.attr]
    # TensorFlow's own, for which a server needs nothing installed.
    core = tf.raw_ops
    assert not [op for op in ops if not hasattr(core, op)]


def has_many_chunks(content):
    return any(
        chunk(name, b"") * graph_wav.MAX_CHUNKS in content
        for name in (b"junk", b"LIST", b"fmt ")
    )


def is_24_bit_in_4_bytes(content):
    fields = struct.unpack_from("<HHIIHH", content.ljust(36, b"\0"), 20)
    return fields[0] == 1 and fields[5] == 24 and fields[4] == 4 * fields[1]


# Which files only one of the two accepts: a code of ours, and the reason.
DIFFERENCES = {
    # Without the chunk that makes RF64 of RIFF; the highest byte first.
    WavError.NOT_WAVE: lambda content: content[:4] in (b"RF64", b"RIFX"),
    WavError.NO_CHUNKS: has_many_chunks,
    WavError.NO_SAMPLES: has_many_chunks,
    # libsndfile guesses from the samples what they are.
    WavError.ENCODING: is_24_bit_in_4_bytes,
    # It mistakes the content of a second fmt chunk for chunks.
    WavError.NONE: lambda content: content.count(b"fmt ") > 1,
}


@pytest.mark.parametrize(
    "count", [400, pytest.param(1_200, marks=pytest.mark.slow)]
)
def test_broken_files(count, tmp_path):
    accepted, refused, differ = 0, 0, 0
    for name, content in wav_cases.mutations(20_261_121, count):
        audio, rate_hz, error = decoded(content)
        expected = read(content, tmp_path)
        if (expected is None) == (error != WavError.NONE):
            accepted += expected is not None
            refused += expected is None
        else:
            assert DIFFERENCES[WavError(error)](content), (name, error)
            differ += 1
            continue
        if expected is not None:
            assert rate_hz == expected[1], name
            # Half the scale of huge floats is lost by another order.
            scale = max(1.0, np.abs(expected[0]).max())
            np.testing.assert_allclose(
                audio / scale,
                expected[0] / scale,
                rtol=0,
                atol=1e-6,
                err_msg=name,
            )
    assert accepted > count / 5
    assert refused > count / 2
    assert differ < count / 20


def test_known_differences(tmp_path):
    ours, theirs = [], []
    data = chunk(b"data", SAMPLES)
    for content in (
        b"RF64" + simple(SAMPLES)[4:],
        simple(SAMPLES, tail=wav_cases.AMBISONIC_TAIL),
        simple(SAMPLES[:12], bits=24, align=4),
        riff(chunk(b"junk", b"") * 255, chunk(b"fmt ", fmt()), data),
        riff(chunk(b"fmt ", fmt()), chunk(b"fmt ", fmt()), data),
        riff(chunk(b"fmt ", fmt()), chunk(b"PEAK", b"lies"), data),
    ):
        ours.append(decoded(content)[2])
        theirs.append(read(content, tmp_path) is not None)
    assert ours == [1, 3, 3, 2, 0, 0]
    assert theirs == [True] * 4 + [False] * 2


def test_chunks_are_not_counted_without_end():
    """Millions of empty ones, before the samples or behind, take no minutes.

    Behind data of size 0 so many are taken for chunks, whatever follows them;
    of fewer, it shows that they are samples.
    """
    few, many = (
        riff(
            chunk(b"fmt ", fmt()),
            chunk(b"data", b""),
            chunk(b"junk", b"") * count + b"jun",
        )
        for count in (containers.MAX_CHUNKS, containers.MAX_CHUNKS + 1)
    )
    assert decoded(few)[2] == WavError.NONE
    assert decoded(many)[2] == WavError.NO_SAMPLES


def test_of_two_data_chunks_the_first_counts():
    content = riff(
        chunk(b"fmt ", fmt()),
        chunk(b"data", SAMPLES[:6]),
        chunk(b"data", SAMPLES),
    )
    assert len(decoded(content)[0]) == 3


def test_of_two_fmt_chunks_the_first_counts():
    second = chunk(b"fmt ", fmt(channels=2, bits=8, rate_hz=44_100))
    content = riff(chunk(b"fmt ", fmt()), second, chunk(b"data", SAMPLES))
    audio, rate_hz, _ = decoded(content)
    assert (len(audio), rate_hz) == (7, 8_000)


def test_254_chunks_may_come_before():
    content = riff(
        chunk(b"junk", b"abc") * 254,
        chunk(b"fmt ", fmt()),
        chunk(b"data", SAMPLES),
    )
    assert len(decoded(content)[0]) == 7
