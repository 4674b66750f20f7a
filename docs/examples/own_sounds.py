# %% [markdown]
# # Own sounds to a served model
#
# From a folder of recordings to a model that TensorFlow Serving loads, in about
# a minute on 2 cores. The recordings are synthetic, so that nothing is
# downloaded: put your own in their place, a folder per class.

# %%
import os
import pathlib
import tempfile

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")

import keras
import numpy as np
import soundfile

from audio_tf import corpora, data, export, metrics
from audio_tf.corpora import sound_events
from audio_tf.export import gate
from audio_tf.models import AudioClassifier

keras.utils.set_random_seed(0)
folder = pathlib.Path(tempfile.mkdtemp())
RATE_HZ = 16_000

# %% [markdown]
# ## A folder per class
#
# Four kinds of sound, 40 clips each. One file is broken, as in any collection.

# %%
rng = np.random.default_rng(0)
for label in ("bell", "siren", "knock", "crickets"):
    (folder / "sounds" / label).mkdir(parents=True)
    for number in range(40):
        sound = sound_events.EVENTS[label](rng, RATE_HZ, RATE_HZ)
        noise = 0.02 * rng.standard_normal(RATE_HZ)
        file = folder / "sounds" / label / f"{number:02d}.wav"
        soundfile.write(file, 0.5 * sound + noise, RATE_HZ)
(folder / "sounds" / "bell" / "broken.wav").write_bytes(b"no sound")

splits = corpora.read_folders(folder / "sounds")
for split, corpus in splits.items():
    print(f"{split}: {len(corpus.files)} clips of {corpus.vocabulary}")

# %% [markdown]
# ## Train
#
# `prepare` decodes each file once, into a cache; the broken one is left out and
# named. A smaller model than `audio_transformer_mel_small` does here: blocks,
# heads and widths are arguments.

# %%
clips = {
    split: data.prepare(corpus, RATE_HZ, folder / "cache", progress=False)
    for split, corpus in splits.items()
}
chunks = {split: data.Chunks(each) for split, each in clips.items()}
model = AudioClassifier.from_preset(
    "audio_transformer_mel_small",
    labels=splits["train"].vocabulary,
    num_layers=1,
    pooling="statistics",
    activation="softmax",  # each clip has one label
)
model.compile(
    keras.optimizers.AdamW(3e-3, weight_decay=0.05),
    "categorical_crossentropy",
    metrics=["accuracy"],
)
history = model.fit(
    chunks["train"].dataset(batch_size=16, shuffle=True),
    validation_data=chunks["val"].dataset(batch_size=16),
    epochs=6,
    verbose=2,
)

# %% [markdown]
# ## What it has learned
#
# The test clips were never seen. Look at what is wrong before you trust a
# figure: of how many clips is it?

# %%
test = clips["test"].corpus
scores = data.score_clips(model, chunks["test"], verbose=0)
columns = [test.vocabulary.index(label) for (label,) in test.labels]
targets = np.eye(len(test.vocabulary), dtype=int)[columns]
accuracy = metrics.accuracy(targets, scores)
print(f"accuracy {accuracy:.2f} on {len(scores)} test clips")
for file, target, row in zip(test.files, targets, scores, strict=True):
    if row.argmax() != target.argmax():
        print(f"{file.name} is heard as {test.vocabulary[row.argmax()]}")

# %% [markdown]
# ## Classify files
#
# A list may hold what cannot be used: it has an error in place of scores.

# %%
some = [test.files[0], folder / "sounds" / "bell" / "broken.wav"]
for answer in model.classify([str(file) for file in some], top=2):
    print(answer)

# %% [markdown]
# ## Export, and ask as a server does
#
# The SavedModel takes the bytes of WAV files: no Python, no custom operation.
# The gate lists what TensorFlow Serving would refuse.

# %%
version = export.export(model, folder / "models" / "sounds")
print(f"{version} is the first version of the model")
assert gate.problems(version) == []

served = export.ExportedClassifier(version)
content = pathlib.Path(test.files[0]).read_bytes()
answer = served.classify(content)["scores"]
same = model.classify(str(test.files[0]))["scores"]
worst = max(abs(answer[label] - same[label]) for label in same)
print(f"served and trained differ by {worst:.1e}")
assert worst < 1e-5

# %% [markdown]
# The official image wants the folder above the version, here MODEL, as
# [Serve](../serve.md) shows:
#
# ```text
# docker run -p 8501:8501 -v MODEL:/models/audio_tf \
#     -e MODEL_NAME=audio_tf tensorflow/serving
# audio-tf query http://localhost:8501 *.wav \
#     --labels MODEL/1/assets.extra/audio_tf.json
# ```
