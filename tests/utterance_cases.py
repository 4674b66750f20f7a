"""Utterances of noise, features of them, and batches."""

from corpus_files import RATE_HZ

from audio_tf.layers import SpeechFeatures

LENGTHS = (211, 1_499, 367, 823, 1_009, 257, 1_301)


def batches(utterances, **kwargs):
    return list(utterances.dataset(2, **kwargs).as_numpy_iterator())


def small_features(stack=3, **options):
    return SpeechFeatures(
        "paper",
        RATE_HZ,
        {
            "window_s": 41 / RATE_HZ,
            "hop_s": 23 / RATE_HZ,
            "fft_length": 64,
            "num_mel_bins": 5,
            "stack_size": stack,
            **options,
        },
    )
