"""Attention by dot products of queries and keys."""

import keras

from audio_tf.attention import functional
from audio_tf.attention.base import SelfAttention


@keras.saving.register_keras_serializable("audio_tf")
class FullAttention(SelfAttention):
    """Full attention: every frame attends to every frame.

    `softmax(Q K^T / sqrt(D)) V` with `D` the size of a head; equation 1 of
    "Input-independent Attention Weights Are Expressive Enough"
    (arXiv 2006.05174), where it is "Baseline (QK)". Takes time and memory
    `O(time^2)`.

    Arguments, call arguments and errors are those of `SelfAttention`.
    """

    def scores(self, query, key):
        return functional.dot_product_scores(query, key)
