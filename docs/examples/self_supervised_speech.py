# %% [markdown]
# # Self-supervised speech
#
# An Audio ALBERT learns from speech without labels, by filling in hidden
# frames. Frozen, it is asked what it has learned: a probe, a linear classifier
# over its frames, tells phones, beside the same probe over the features that
# the encoder learned from. About two minutes on 2 cores.
#
# The speech is synthetic, so that nothing is downloaded: pulses of a larynx
# through the formants of five vowels. With a folder per speaker of your own,
# start at "Pre-train".

# %%
import json
import os
import pathlib
import tempfile

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")

import numpy as np
import soundfile
from scipy import signal

from audio_tf import cli

folder = pathlib.Path(tempfile.mkdtemp())
RATE_HZ = 8_000
rng = np.random.default_rng(0)

# %% [markdown]
# ## Speech
#
# Six speakers, each with a pitch and a length of vocal tract. An utterance is a
# row of vowels, and the label of each 10 ms is known.

# %%
VOWELS = {  # The first two formants in Hz.
    1: (270, 2_290),
    2: (530, 1_840),
    3: (730, 1_090),
    4: (570, 840),
    5: (300, 870),
}


def speak(pitch_hz, tract):
    """Returns samples of a second, and a label for each 10 ms of them."""
    labels = np.repeat(rng.choice(list(VOWELS), 5), 20)
    parts = []
    for vowel in labels[::20]:
        size = RATE_HZ // 5
        pulses = np.zeros(size)
        period = RATE_HZ / (pitch_hz * rng.uniform(0.95, 1.05))
        pulses[np.arange(0, size, period).astype(int)] = 1.0
        for formant_hz in VOWELS[vowel]:
            b, a = signal.iirpeak(formant_hz / tract, 6, RATE_HZ)
            pulses = pulses + 4 * signal.lfilter(b, a, pulses)
        parts.append(pulses / np.abs(pulses).max())
    noise = 0.1 * rng.standard_normal(RATE_HZ)
    return 0.3 * np.concatenate(parts) + noise, labels


lines = []
for speaker in range(6):
    pitch_hz, tract = rng.uniform(90, 240), rng.uniform(0.85, 1.15)
    place = folder / "speech" / f"speaker_{speaker}"
    place.mkdir(parents=True)
    for number in range(30):
        samples, labels = speak(pitch_hz, tract)
        soundfile.write(place / f"{number:02d}.wav", samples, RATE_HZ)
        name = f"speaker_{speaker}/{number:02d}"
        lines.append(" ".join([name, *map(str, labels)]))
(folder / "phones.txt").write_text("\n".join(lines))
print(f"{len(lines)} utterances; the first: {lines[0][:60]} ...")

# %% [markdown]
# ## Pre-train
#
# `cli.main` does what `audio-tf` does in a shell. The attention here is
# `crafted_synthesizer`, whose weights do not depend on the input; the model is
# one small layer, applied three times.

# %%
SPEECH = [
    *("--dataset", "folder", "--data-dir", folder / "speech"),
    *("--sample-rate-hz", RATE_HZ, "--features", "s3prl"),
    *("--features-options", '{"num_mel_bins": 40, "fft_length": 256}'),
    *("--cache-dir", folder / "cache"),
]
MODEL = {
    "num_heads": 4,
    "key_dim": 24,
    "hidden_dim": 96,
    "intermediate_dims": [192],
}
cli.main(
    [
        *("pretrain", *SPEECH, "--out", folder / "run"),
        *("--model", "audio_albert_3", "--model-kwargs", json.dumps(MODEL)),
        *("--attention", "crafted_synthesizer", "--made-for-frames", 256),
        *("--target", "input", "--masking", "s3prl", "--feature-cache"),
        *("--optimizer", "adamw", "--learning-rate", 2e-3),
        *("--steps", 600, "--batch-size", 16, "--save-every", 600),
    ]
)

# %% [markdown]
# ## Probe
#
# The encoder is frozen. The same probe over its features, log-mel, is what it
# must beat: the speech is noisy, and a frame alone says less than its
# neighbours do.

# %%
PROBE = [
    *("--alignment", folder / "phones.txt", "--epochs", 15),
    *("--tasks", "phoneme_linear", "--learning-rate", 4e-3),
    *("--dataset", "folder", "--data-dir", folder / "speech"),
    *("--cache-dir", folder / "cache", "--by-time"),
]
cli.main(
    ["probe", *PROBE, "--model", folder / "run/preset"]
    + ["--out", folder / "encoder_probe"]
)
cli.main(["probe", *SPEECH, *PROBE, "--out", folder / "mel_probe"])

for what in ("encoder", "mel"):
    found = json.loads((folder / f"{what}_probe/probes.json").read_text())
    for task, result in found["tasks"].items():
        print(f"{what:8s} {task:15s} {result['test_accuracy']:.3f}")

# %% [markdown]
# Five vowels and a short training show the way, and no more. `--tasks` takes
# probes of speakers as well. [Speech without labels](../speech.md) has the
# commands for LibriSpeech, and RESULTS what came of spoken digits.
