"""Utterances of speech, decoded once for all tests of this folder."""

import numpy as np
import pytest
from corpus_files import FRAME_SIZE, RATE_HZ, write_audio
from utterance_cases import LENGTHS

from audio_tf import data
from audio_tf.corpora import (
    read_speech_folder,
)


@pytest.fixture(scope="session")
def speech(tmp_path_factory):
    """Seven utterances of three speakers with labels, and their clips."""
    folder = tmp_path_factory.mktemp("speech")
    labels = {}
    for number, samples in enumerate(LENGTHS):
        name = f"{'abc'[number % 3]}/{number}"
        write_audio(folder / f"{name}.wav", samples, seed=number)
        labels[name] = (1 + np.arange(1 + samples // FRAME_SIZE)) % 41
    corpus = read_speech_folder(folder, lists={"train": list(labels)})
    corpus = corpus["train"].with_frame_labels(labels)
    clips = data.prepare(corpus, RATE_HZ, folder / "cache", progress=False)
    return corpus, labels, clips
