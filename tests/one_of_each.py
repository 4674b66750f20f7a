"""One of each, as a user adds it outside the package.

`test_extending.py` imports this module and shows that nothing else is needed.
It is a config of `audio-tf train` too: `--config tests/one_of_each.py`.
"""

import pathlib
import shutil
import tempfile

import keras
import numpy as np
from keras import ops

from audio_tf import attention, corpora, layers, metrics, models
from audio_tf.export import base, formats, runtimes
from audio_tf.models.inputs import symbolic
from audio_tf.ops import masks


class NearAttention(attention.SelfAttention):
    """An attention in which each frame sees frames at most `reach` away."""

    complexity = "O(L^2 D)"

    def __init__(self, num_heads, key_dim, reach=2, **kwargs):
        super().__init__(num_heads, key_dim, **kwargs)
        self.reach = reach

    def score_mask(self, length):
        times = ops.arange(length)
        lag = ops.expand_dims(times, 1) - ops.expand_dims(times, 0)
        near = ops.abs(lag) <= self.reach
        return masks.combine(super().score_mask(length), near)

    def get_config(self):
        return {**super().get_config(), "reach": self.reach}


attention.ATTENTIONS["near"] = NearAttention


@keras.saving.register_keras_serializable("one_of_each")
class WindowsBackbone(models.AudioBackbone):
    """A backbone of one block over windows of 10 ms, without positions."""

    def __init__(
        self,
        hidden_dim=6,
        sample_rate_hz=8_000,
        attention="full",
        attention_kwargs=None,
        made_for_frames=50,
        dtype=None,
        **kwargs,
    ):
        frontend = layers.WaveformFrontend(
            filters=8,
            hidden_dim=hidden_dim,
            window_s=0.01,
            sample_rate_hz=sample_rate_hz,
            dtype=dtype,
        )
        block = layers.TransformerBlock(
            num_heads=2,
            key_dim=3,
            attention=attention,
            attention_kwargs=attention_kwargs,
            made_for_frames=made_for_frames,
            dtype=dtype,
        )
        frame_mask = layers.FrameMask(frontend.window_size)
        inputs = symbolic("waveform")
        mask = frame_mask(inputs["waveform"], inputs["lengths"])
        x = frontend(inputs["waveform"], inputs["lengths"])
        outputs = {"sequence_output": block(x, mask=mask), "frame_mask": mask}
        super().__init__(inputs=inputs, outputs=outputs, dtype=dtype, **kwargs)
        self.frontend, self.mask_layer = frontend, frame_mask
        self.blocks = self.stages = [block]
        self.frame_size = frontend.window_size
        self.hidden_dim, self.sample_rate_hz = hidden_dim, sample_rate_hz
        self.attention = block.attention_name
        self.attention_kwargs = dict(attention_kwargs or {})
        self.made_for_frames = made_for_frames

    def embed(self, inputs):
        waveform, lengths = inputs["waveform"], inputs["lengths"]
        x = self.frontend(waveform, lengths)
        return x, self.mask_layer(waveform, lengths)

    def get_config(self):
        return {
            **super().get_config(),
            "hidden_dim": self.hidden_dim,
            "sample_rate_hz": self.sample_rate_hz,
            "attention": self.attention,
            "attention_kwargs": dict(self.attention_kwargs),
            "made_for_frames": self.made_for_frames,
        }


models.BACKBONES["windows"] = WindowsBackbone


MINI = {
    "audio_transformer_mini": {
        "num_layers": 1,
        "num_heads": 2,
        "key_dim": 3,
        "hidden_dim": 6,
        "intermediate_dims": [5],
        "frontend_filters": 8,
        "sample_rate_hz": 8_000,
    }
}
models.AudioTransformerBackbone.register_sizes(MINI)


def read_named(data_dir, seed=0):
    """Reads files that are named after their label, as in `3_dog.wav`."""
    files = sorted(pathlib.Path(data_dir).glob("*.wav"))
    files = list(np.random.default_rng(seed).permutation(files))
    labels = [[file.stem.partition("_")[2]] for file in files]
    vocabulary = sorted({label for (label,) in labels})
    whole = corpora.Corpus(files, labels, vocabulary)
    cut = len(files) // 2
    return {
        "train": whole.select(range(cut)),
        "val": whole.select(range(cut, len(files))),
    }


corpora.CORPORA["named"] = corpora.Layout(read_named, "files <number>_<label>")


class ZippedClassifier(runtimes.RuntimeClassifier):
    """A classifier that runs a zipped SavedModel in TensorFlow."""

    def open(self, path, num_threads):
        import tensorflow as tf

        with tempfile.TemporaryDirectory() as folder:
            shutil.unpack_archive(path, folder)
            self.model = tf.saved_model.load(folder)

    def run(self, waveform, lengths):
        score = self.model.signatures["serving_default"]
        return score(waveform=waveform, lengths=lengths)["scores"].numpy()


class Zipped(base.FileFormat):
    """A SavedModel as one `.zip`."""

    name = "zipped"
    suffix = ".zip"
    runtime = ZippedClassifier
    unquantizable = {"dynamic": "nothing converts the weights"}

    def convert(self, folder, path, quantize):
        shutil.make_archive(path.with_suffix(""), "zip", folder)


formats.FORMATS["zipped"] = Zipped()


def one_error(targets, scores):
    """The share of clips whose highest score is that of a wrong label."""
    best = scores.argmax(axis=1)
    return float(np.mean(targets[np.arange(len(best)), best] == 0))


metrics.METRICS["one_error"] = metrics.Metric(
    one_error, "min", "clips whose highest score is wrong"
)


def get_config():
    return {
        "dataset": "named",
        "model": "audio_transformer_mini",
        "attention": "near",
        "attention_kwargs": {"reach": 1},
        "monitor": "val_one_error",
        "chunk_s": 0.1,
        "batch_size": 4,
        "epochs": 1,
    }
