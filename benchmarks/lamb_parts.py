"""LAMB's ratio over a table of crafted and random heads: one, or one a head.

    python benchmarks/lamb_parts.py --data-dir fsdd

A small Audio ALBERT learns to fill in frames of spoken digits, with twelve
heads of which the hand-crafted seven outweigh the random five by a thousand.
Prints for each peak rate and seed the loss on the test split, the random
heads' root mean square and the mean entropy of their rows in nats, at first
and at last; log(40) is 3.69.
"""

import argparse
import itertools
import os

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")

import keras  # noqa: E402
import numpy as np  # noqa: E402

from audio_tf import layers, models, optimizers  # noqa: E402
from audio_tf.audio import load_audio  # noqa: E402
from audio_tf.corpora import load_speech  # noqa: E402

FRAMES = 40
CRAFTED_HEADS = 7
RATE_HZ = 8_000


def read_features(corpus):
    """Returns features `(clips, 40, 80)` and the real frames of each clip."""
    extract = layers.SpeechFeatures("s3prl", RATE_HZ)
    clips = [load_audio(file, RATE_HZ) for file in corpus.files]
    samples = np.array([len(clip) for clip in clips], "int32")
    longest = FRAMES * extract.frame_size
    samples = np.minimum(samples, longest - 1)
    waveforms = np.zeros((len(clips), longest - 1), "float32")
    for row, (clip, count) in enumerate(zip(clips, samples, strict=True)):
        waveforms[row, :count] = clip[:count]
    lengths = keras.ops.convert_to_numpy(extract.frame_lengths(samples))
    parts = [
        extract(waveforms[part], lengths=samples[part])
        for part in np.split(np.arange(len(clips)), range(100, len(clips), 100))
    ]
    return {
        "features": np.concatenate(list(map(np.asarray, parts))),
        "lengths": lengths,
    }


def mean_entropy(logits):
    """Returns the mean entropy, in nats, of the softmax of each row."""
    weights = np.exp(logits - logits.max(axis=-1, keepdims=True))
    weights /= weights.sum(axis=-1, keepdims=True)
    return -(weights * np.log(weights + 1e-12)).sum(axis=-1).mean()


def run(splits, steps, peak_rate, seed, by_head, attention):
    """Trains once and returns a row of the table."""
    keras.utils.set_random_seed(seed)
    backbone = models.AudioAlbertBackbone(
        num_layers=3,
        num_heads=12,
        key_dim=8,
        hidden_dim=96,
        intermediate_dims=(192,),
        feature_dim=splits["train"]["features"].shape[-1],
        attention=attention,
        made_for_frames=FRAMES,
    )
    model = models.MaskedAcousticModel(backbone, masking="s3prl", compile=False)
    table = backbone.blocks[0].attention.table
    if not by_head:
        table.parts_axis = None
    rates = optimizers.WarmupLinearDecay(peak_rate, steps)
    model.compile(optimizers.create("lamb", rates, global_clipnorm=10.0))
    first = CRAFTED_HEADS if attention == "crafted_synthesizer" else 0
    before = table.numpy()[first:]
    rng = np.random.default_rng(seed)
    for _ in range(steps):
        rows = rng.integers(0, len(splits["train"]["lengths"]), 32)
        batch = {name: x[rows] for name, x in splits["train"].items()}
        model.train_on_batch(batch)
    after = table.numpy()[first:]
    loss = model.evaluate(splits["test"], batch_size=100, verbose=0)
    return (
        f"{attention:20s} {'head' if by_head else 'table':6s} "
        f"{peak_rate:<7g} {seed:<5d} {loss:.3f}  "
        f"{np.sqrt(np.mean(before**2)):.3f} {np.sqrt(np.mean(after**2)):.3f}  "
        f"{mean_entropy(before):.2f} {mean_entropy(after):.2f}"
    )


def main():
    parser = argparse.ArgumentParser(
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--data-dir", required=True, help="folder of FSDD")
    parser.add_argument("--steps", type=int, default=800)
    parser.add_argument("--seeds", type=int, nargs="+", default=[0, 1])
    parser.add_argument("--rates", type=float, nargs="+", default=[0.003, 0.01])
    arguments = parser.parse_args()
    corpora = load_speech("fsdd", arguments.data_dir)
    splits = {name: read_features(corpora[name]) for name in ("train", "test")}
    print("attention            ratio  peak    seed  loss  rms         entropy")
    for rate, seed in itertools.product(arguments.rates, arguments.seeds):
        for by_head, attention in (
            (True, "crafted_synthesizer"),
            (False, "crafted_synthesizer"),
            (True, "random_synthesizer"),
        ):
            row = run(splits, arguments.steps, rate, seed, by_head, attention)
            print(row, flush=True)


if __name__ == "__main__":
    main()
