# %% [markdown]
# # Which attention for long recordings
#
# Full attention compares each frame with each other: twice the length takes
# four times the work, and the map of one head over ten minutes is a table of
# 576 million numbers. This is how to choose another: by what it costs, by the
# time it takes here, and by what it sees. About a minute on 2 cores.

# %%
import os
import time

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")

import keras
import numpy as np

from audio_tf import attention
from audio_tf.models import AudioClassifier

keras.utils.set_random_seed(0)
FRAMES_PER_S = 40  # of `audio_transformer_mel_small`
DIM, HEADS = 64, 4
NAMES = [
    "full",
    "sparse_strided",
    "sparse_fixed",
    "xbox",
    "local_dense_synthesizer",
    "gaussian_adaptive",
]


def create(name, frames):
    """Makes one attention, sized for so many frames."""
    return attention.create(
        name,
        num_heads=HEADS,
        key_dim=DIM // HEADS,
        causal=False,
        max_length=frames,
    )


# %% [markdown]
# ## What it costs
#
# Counted, not timed: multiply-adds and the attention weights that are formed,
# for one clip in one layer, relative to full attention. Below a minute there is
# little to gain, from there on everything. `audio-tf attentions --length 24000`
# prints all 21.

# %%
print(f"{'':26s}" + "".join(f"{s:>7d} s" for s in (10, 60, 600)))
for name in NAMES:
    line = f"{name:26s}"
    for seconds in (10, 60, 600):
        frames = seconds * FRAMES_PER_S
        full = create("full", frames).cost(frames, DIM)
        cost = create(name, frames).cost(frames, DIM)
        line += f"{cost.multiply_adds / full.multiply_adds:9.3f}"
    print(line)

# %% [markdown]
# ## What it takes here
#
# Time is another matter than work: small products run at a fraction of the
# speed of large ones. One minute of sound, the median of five calls; measure on
# the machine that will do the work.

# %%
frames = 60 * FRAMES_PER_S
x = np.random.default_rng(0).normal(size=(1, frames, DIM)).astype("float32")
for name in NAMES:
    layer = create(name, frames)
    inputs = keras.Input((None, DIM))
    model = keras.Model(inputs, layer(inputs))
    model.predict_on_batch(x)  # The first call traces.
    times = []
    for _ in range(5):
        start = time.perf_counter()
        model.predict_on_batch(x)
        times.append(time.perf_counter() - start)
    print(f"{name:26s} {1_000 * np.median(times):7.1f} ms")

# %% [markdown]
# ## What it sees
#
# A map says which frames a frame attends to. The share of pairs that are seen
# is what makes an attention cheap; the distance of the farthest is what it can
# connect in one layer. Attentions that weigh features have no such map.

# %%
length = 10 * FRAMES_PER_S
for name in NAMES:
    layer = create(name, length)
    _, weights = layer(x[:, :length], return_attention_scores=True)
    weights = keras.ops.convert_to_numpy(weights)[0]
    if weights.shape[-2:] != (length, length):
        print(f"{name:26s} weighs features")
        continue
    _, query, key = np.nonzero(weights > 1e-6)
    reach_s = np.abs(query - key).max() / FRAMES_PER_S
    share = (weights > 1e-6).mean()
    print(f"{name:26s} {share:6.1%} of pairs, up to {reach_s:.1f} s away")

# %% [markdown]
# ## In a model
#
# `hybrid_local` has local and full attention block by block in turn: the near
# is cheap and nothing is out of reach. Models with a mask take a recording in
# one piece, `chunk_s=None`, or in chunks whose scores are averaged: then the
# length of a chunk, not of the recording, is what attention pays for. Here is a
# recording of a minute both ways; the weights are random, so the labels say
# nothing.

# %%
minute = 0.1 * np.random.default_rng(1).standard_normal(60 * 16_000)
for chunk_s in (None, 5.0):
    classifier = AudioClassifier.from_preset(
        "audio_transformer_mel_small",
        labels=["quiet street", "busy street"],
        chunk_s=chunk_s,
        attention="hybrid_local",
        num_layers=2,
    )
    classifier.classify((minute[:80_000], 16_000))  # The first call traces.
    start = time.perf_counter()
    scores = classifier.classify((minute, 16_000))["scores"]
    print(f"chunk_s={chunk_s}: {time.perf_counter() - start:.2f} s, {scores}")

# %% [markdown]
# Which one also *hears* best depends on the corpus. `audio-tf compare` trains
# the same model with each attention on yours; [the
# leaderboard](../leaderboard.md) is what it gave on spoken commands, and [the
# guide](../attentions.md) says how.
