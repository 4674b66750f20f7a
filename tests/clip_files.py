"""Clips of noise as files, and the corpus of them."""

import numpy as np
import soundfile

from audio_tf import data
from audio_tf.corpora import Corpus

RATE_HZ = 1_009


# 0.01 s, half a second, one second exactly, and longer ones.
LENGTHS = (11, 503, 1_009, 2_017, 3_539, 1_511, 4_036)


CLASSES = ["a", "b", "c"]


def noise(count, seed):
    rng = np.random.default_rng([count, seed])
    return rng.uniform(-0.9, 0.9, count).astype("float32")


def write_clip(path, count=503, seed=0, rate_hz=RATE_HZ):
    """Float samples, so that what is read equals what was written."""
    audio = noise(count, seed)
    soundfile.write(path, audio, rate_hz, subtype="FLOAT")
    return audio


def make_corpus(folder, lengths=LENGTHS):
    """A corpus, a clip of each length, and the samples of its clips."""
    folder.mkdir(exist_ok=True)
    files = [folder / f"{row}.wav" for row in range(len(lengths))]
    audio = [
        write_clip(file, count, seed)
        for seed, (file, count) in enumerate(zip(files, lengths))
    ]
    labels = [
        [name for bit, name in enumerate(CLASSES) if (row + 1) >> bit & 1]
        for row in range(len(lengths))
    ]
    return Corpus(files, labels, CLASSES), audio


def prepare(corpus, cache_dir, rate_hz=RATE_HZ, **kwargs):
    return data.prepare(corpus, rate_hz, cache_dir, progress=False, **kwargs)


def files_below(folder):
    return sorted(path for path in folder.rglob("*") if path.is_file())


def write_bad_files(folder):
    """Dict of the reason by the path of each."""
    cut = folder / "cut.wav"
    write_clip(cut)
    cut.write_bytes(cut.read_bytes()[:-101])
    not_finite = folder / "not_finite.wav"
    soundfile.write(not_finite, np.full(7, np.nan), RATE_HZ, subtype="FLOAT")
    text = folder / "text.wav"
    text.write_text("fname,labels,mids\n" * 23)
    empty = folder / "empty.wav"
    empty.touch()
    return {
        cut: "cut off after",
        not_finite: "NaN",
        text: "not readable as audio",
        empty: "empty file",
    }
