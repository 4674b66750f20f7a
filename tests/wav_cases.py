"""WAV files by hand: odd ones, lying ones, and mutations by the thousand.

Plain Python, so that a fuzzer outside of the tests can use it too.
"""

import math
import random
import struct

PCM, FLOAT, A_LAW, MU_LAW, EXTENSIBLE = 1, 3, 6, 7, 0xFFFE
GUID_TAIL = bytes.fromhex("000000001000800000aa00389b71")
AMBISONIC_TAIL = bytes.fromhex("00002107d3118644c8c1ca000000")

ENCODINGS = [
    *((PCM, bits) for bits in (8, 16, 24, 32)),
    *((FLOAT, bits) for bits in (32, 64)),
    (A_LAW, 8),
    (MU_LAW, 8),
]

# Where a field begins and how many bytes it has, in `simple`'s files.
FIELDS = {
    "riff_size": (4, 4),
    "fmt_size": (16, 4),
    "tag": (20, 2),
    "channels": (22, 2),
    "rate": (24, 4),
    "byte_rate": (28, 4),
    "align": (32, 2),
    "bits": (34, 2),
    "data_size": (40, 4),
}
LIES = [0, 1, 2, 3, 7, 8, 15, 17, 24, 255, 1024, 2**15, 2**16 - 1, 2**16]
LIES += [2**24, 2**31 - 1, 2**31, 2**32 - 4096, 2**32 - 2, 2**32 - 1]


def chunk(name, content, size=None):
    """A RIFF chunk, padded; `size` is what it claims."""
    size = len(content) if size is None else size
    return name + struct.pack("<I", size) + content + b"\0" * (len(content) % 2)


def fmt(tag=PCM, channels=1, rate_hz=8_000, bits=16, align=None, tail=None):
    """Content of a fmt chunk; EXTENSIBLE if there is the `tail` of a GUID."""
    if align is None:
        align = channels * ((bits + 7) // 8) % 2**16
    content = struct.pack(
        "<HHIIHH",
        tag if tail is None else EXTENSIBLE,
        channels,
        rate_hz,
        rate_hz * align % 2**32,
        align,
        bits,
    )
    if tail is None:
        return content
    return content + struct.pack("<HHIH", 22, bits, 0, tag) + tail


def riff(*chunks, size=None):
    return chunk(b"RIFF", b"WAVE" + b"".join(chunks), size)


def simple(data=b"\1\2" * 7, data_size=None, riff_size=None, **kwargs):
    """A fmt and a data chunk, nothing else; 44 bytes come before the data."""
    return riff(
        chunk(b"fmt ", fmt(**kwargs)),
        chunk(b"data", data, data_size),
        size=riff_size,
    )


# Seven samples of 16 bits.
SAMPLES = struct.pack("<7h", 1, -2, 300, -32_768, 32_767, 0, 17)
FLOATS = struct.pack("<3f", 0.5, float("nan"), 0.25)
# Files with one fault and the code of `audio_tf.audio.wav` for it.
BAD = {
    "empty": (b"", 1),
    "short": (b"RIFF", 1),
    "text": (b"fname,labels,mids,split\n" * 53, 1),
    "not_wave": (b"RIFF\x24\0\0\0AVI " + simple()[12:], 1),
    "rifx": (b"RIFX" + simple()[4:], 1),
    "header": (simple()[:43], 2),
    "no_fmt": (riff(chunk(b"data", SAMPLES)), 2),
    "no_data": (riff(chunk(b"fmt ", fmt())), 2),
    "late_fmt": (
        riff(chunk(b"data", SAMPLES), chunk(b"fmt ", fmt())),
        2,
    ),
    "beyond_the_end": (
        riff(chunk(b"junk", b"", 2**32 - 1)) + simple()[12:],
        2,
    ),
    "no_chunk": (
        riff(b"ju\0k\0\0\0\0", simple()[12:]),
        2,
    ),
    "adpcm": (simple(tag=2, bits=4), 3),
    "mp3": (simple(tag=85, bits=0), 3),
    "0_bits": (simple(bits=0), 3),
    "33_bits": (simple(bits=33), 3),
    "half_floats": (simple(bytes(12), tag=3, bits=16), 3),
    "64_bits": (simple(bits=64), 3),
    "0_channels": (simple(channels=0), 3),
    "1025_channels": (
        simple(bytes(2_050), channels=1_025),
        3,
    ),
    # The last byte is there, but as padding.
    "short_fmt": (
        riff(chunk(b"fmt ", fmt(), 15), chunk(b"data", SAMPLES)),
        3,
    ),
    "short_extensible": (
        riff(
            chunk(b"fmt ", fmt(tail=GUID_TAIL), 39),
            chunk(b"data", SAMPLES),
        ),
        3,
    ),
    "other_guid": (simple(tail=b"\1" * 14), 3),
    "wavpack": (simple(b"wvpk" + SAMPLES), 3),
    "ogg": (simple(b"OggS" + SAMPLES), 3),
    "0_hz": (simple(rate_hz=0), 4),
    "too_low": (simple(rate_hz=999), 4),
    "too_high": (simple(rate_hz=1_000_001), 4),
    "negative": (simple(rate_hz=2**32 - 8_000), 4),
    "no_samples": (simple(b""), 5),
    "half_a_frame": (simple(SAMPLES[:3], channels=2), 5),
    "nan": (simple(FLOATS, tag=3, bits=32), 6),
    "inf": (
        simple(struct.pack("<2d", 1e39, 0.5), tag=3, bits=64),
        6,
    ),
    "nan_in_one_channel": (
        simple(FLOATS, tag=3, bits=32, channels=3),
        6,
    ),
    "cut_off": (simple(SAMPLES)[:-1], 7),
    "all_cut_off": (simple(SAMPLES)[:44], 7),
    "cut_off_and_0_hz": (simple(SAMPLES, rate_hz=9)[:-1], 7),
    "nan_and_too_high": (
        simple(FLOATS, tag=3, bits=32, rate_hz=2**31),
        4,
    ),
}


def noise(rng, tag, bits, count):
    """Bytes of `count` random samples."""
    if tag == FLOAT:
        code = "f" if bits == 32 else "d"
        values = [rng.uniform(-1, 1) for _ in range(count)]
        return struct.pack(f"<{count}{code}", *values)
    return rng.randbytes(count * bits // 8)


def sound_file(rng):
    """A good file of any encoding, with or without chunks nobody needs."""
    tag, bits = rng.choice(ENCODINGS)
    channels = rng.choice((1, 1, 2, 3, 6))
    tail = GUID_TAIL if rng.random() < 0.3 else None
    chunks = [
        chunk(
            b"fmt ",
            fmt(tag, channels, rng.choice((8_000, 44_100)), bits, tail=tail),
        ),
        chunk(b"data", noise(rng, tag, bits, channels * rng.choice((53, 211)))),
    ]
    if rng.random() < 0.3:
        # Of odd size, so that it is padded.
        chunks.insert(1, chunk(b"junk", rng.randbytes(rng.choice((5, 31)))))
    if rng.random() < 0.2:
        chunks.append(chunk(b"LIST", b"INFO" + chunk(b"ICMT", b"a comment")))
    return riff(*chunks)


def cut(rng, content):
    return content[: rng.randrange(len(content))]


def flip_bits(rng, content):
    content = bytearray(content)
    for _ in range(rng.choice((1, 1, 2, 5, 31))):
        # Mostly in the header: elsewhere a bit is only another sample.
        end = len(content) if rng.random() < 0.2 else 64
        content[rng.randrange(min(end, len(content)))] ^= 1 << rng.randrange(8)
    return bytes(content)


def zero_bytes(rng, content):
    start = rng.randrange(min(64, len(content)))
    count = rng.choice((1, 2, 4, 8, 20))
    return content[:start] + bytes(count) + content[start + count :]


def insert_bytes(rng, content):
    start = rng.randrange(len(content))
    return (
        content[:start] + rng.randbytes(rng.randrange(1, 9)) + content[start:]
    )


def remove_bytes(rng, content):
    start = rng.randrange(len(content))
    return content[:start] + content[start + rng.randrange(1, 9) :]


def append_bytes(rng, content):
    return content + rng.choice((rng.randbytes, bytes))(rng.randrange(1, 999))


def shuffle_tail(rng, content):
    tail = bytearray(content[12:])
    rng.shuffle(tail)
    return content[:12] + bytes(tail)


def garbage(rng, content):
    del content
    start = rng.choice((b"", b"RIFF", b"RIFF\0\0\0\0WAVE", b"RIFX\0\0\0\0WAVE"))
    return start + rng.randbytes(rng.randrange(99))


def lie(rng, content):
    """One or two fields of a plain header say something else."""
    del content
    tag, bits = rng.choice(ENCODINGS)
    channels = rng.choice((1, 2))
    data = noise(rng, tag, bits, channels * 211)
    content = bytearray(simple(data, tag=tag, channels=channels, bits=bits))
    for _ in range(rng.choice((1, 1, 2))):
        start, width = FIELDS[rng.choice(list(FIELDS))]
        value = rng.choice(LIES) % 256**width
        content[start : start + width] = value.to_bytes(width, "little")
    return bytes(content)


def lie_about_size(rng, content):
    """Some chunk claims another size."""
    places = [content.find(name) for name in (b"fmt ", b"data", b"junk")]
    place = rng.choice([place for place in places if place >= 0]) + 4
    size = struct.pack("<I", rng.choice(LIES))
    return content[:place] + size + content[place + 4 :]


def chunk_bomb(rng, content):
    """Thousands of empty chunks before the data, or behind data of size 0."""
    bomb = chunk(rng.choice((b"junk", b"LIST", b"fmt ")), b"")
    bomb *= rng.choice((100, 1_000, 20_000))
    if rng.random() < 0.5:
        return content[:12] + bomb + content[12:]
    return riff(chunk(b"fmt ", fmt()), chunk(b"data", b""), bomb)


def many_channels(rng, content):
    del content
    channels = rng.choice((0, 8, 255, 1023, 1024, 4096, 65_535))
    data = rng.randbytes(2 * channels * rng.choice((0, 1, 7)))
    return simple(data, channels=channels)


def rate(rng, content):
    del content
    rates = (0, 1, 2, 999, 1_000, 1_001, 10**6, 10**6 + 1, 2**31, 2**32 - 1)
    return simple(rng.randbytes(422), rate_hz=rng.choice(rates))


def not_numbers(rng, content):
    del content
    bits = rng.choice((32, 64))
    values = [rng.choice((math.nan, math.inf, -math.inf, 1e39, 1e-42, 0.5))]
    values += [0.25] * 52
    if bits == 32 and values[0] == 1e39:
        values[0] = 3e38
    rng.shuffle(values)
    code = "f" if bits == 32 else "d"
    return simple(struct.pack(f"<53{code}", *values), tag=FLOAT, bits=bits)


def foreign(rng, content):
    """Files of other encodings, and other containers."""
    content = bytearray(content)
    kind = rng.randrange(3)
    if kind == 0:
        content[:4] = rng.choice((b"RIFX", b"RF64", b"OggS", b"fLaC", b"ID3\3"))
    elif kind == 1:
        return simple(rng.randbytes(512), tag=rng.choice((2, 17, 49, 80, 85)))
    else:
        data = rng.choice((b"wvpk", b"OggS")) + rng.randbytes(418)
        return simple(data)
    return bytes(content)


def other_order(rng, content):
    """The chunks that matter twice, or the wrong way round."""
    del content
    head = chunk(b"fmt ", fmt())
    data = chunk(b"data", rng.randbytes(106))
    second = chunk(b"fmt ", fmt(channels=2, bits=8, rate_hz=44_100))
    orders = [[data, head], [head, second, data], [head, data, second]]
    return riff(*rng.choice(orders))


MUTATORS = [
    cut,
    flip_bits,
    zero_bytes,
    insert_bytes,
    remove_bytes,
    append_bytes,
    shuffle_tail,
    garbage,
    lie,
    lie_about_size,
    chunk_bomb,
    many_channels,
    rate,
    not_numbers,
    foreign,
    other_order,
]


def mutations(seed, count):
    """Yields pairs of a name and the bytes of a file that may be broken.

    Args:
        seed: int; the same files for the same seed.
        count: int, how many.
    """
    rng = random.Random(seed)
    for index in range(count):
        mutate = MUTATORS[index % len(MUTATORS)]
        content = mutate(rng, sound_file(rng))
        if rng.random() < 0.1 and content:
            content = flip_bits(rng, content)
        yield f"{index}_{mutate.__name__}", content
