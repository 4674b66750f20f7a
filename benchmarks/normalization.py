"""What the statistics of real frames cost a step of the convolutional rivals.

    python benchmarks/normalization.py

Seconds of a training step on --clips patches of one second, in turn with the
same model under `keras.layers.BatchNormalization`, which takes a mask too:
medians of --repeats, after two steps that trace and warm up, and the median of
the ratios of pairs.
"""

import argparse
import os
import platform
import statistics
import time

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")

import keras  # noqa: E402
import numpy as np  # noqa: E402

from audio_tf import models  # noqa: E402
from audio_tf.layers.batch_normalization import (  # noqa: E402
    MaskedBatchNormalization,
)

RIVALS = {
    "crnn": models.CRNNBackbone,
    "vgg_like": models.VGGLikeBackbone,
    "resnet18": models.ResNet18Backbone,
    "densenet121": models.DenseNet121Backbone,
}
CLASSES = 50


def call_of_keras(self, inputs, mask=None, training=None, moments=None):
    """Normalises as Keras does, without what a caller knows already."""
    mask = keras.ops.expand_dims(mask, -1)
    return keras.layers.BatchNormalization.call(self, inputs, training, mask)


def stepper(backbone, call, clips):
    """Returns a function that takes a training step under a normalisation."""
    ours, MaskedBatchNormalization.call = MaskedBatchNormalization.call, call
    model = models.AudioClassifier(backbone(), num_classes=CLASSES)
    model.compile("adam", "categorical_crossentropy")
    x = np.random.default_rng(0).standard_normal((clips, model.sample_rate_hz))
    x, y = x.astype("float32"), np.eye(CLASSES)[np.arange(clips) % CLASSES]
    for _ in range(2):
        model.train_on_batch(x, y)
    MaskedBatchNormalization.call = ours
    return lambda: model.train_on_batch(x, y)


def seconds(step):
    start = time.perf_counter()
    step()
    return time.perf_counter() - start


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument(
        "--models", nargs="+", choices=RIVALS, default=[*RIVALS]
    )
    parser.add_argument("--clips", type=int, default=64)
    parser.add_argument("--repeats", type=int, default=7)
    arguments = parser.parse_args()
    print(
        f"{os.cpu_count()} cores, {platform.machine()}, "
        f"{keras.backend.backend()}, Keras {keras.__version__}"
    )
    print("| model | ours, s | Keras', s | ours / Keras' |\n|---|---|---|---|")
    for name in arguments.models:
        ours, theirs = (
            stepper(RIVALS[name], call, arguments.clips)
            for call in (MaskedBatchNormalization.call, call_of_keras)
        )
        pairs = [
            (seconds(ours), seconds(theirs)) for _ in range(arguments.repeats)
        ]
        each = [statistics.median(times) for times in zip(*pairs, strict=True)]
        ratio = statistics.median(one / other for one, other in pairs)
        print(
            f"| `{name}` | {each[0]:.2f} | {each[1]:.2f} | {ratio:.2f} |",
            flush=True,
        )
        keras.utils.clear_session()


if __name__ == "__main__":
    main()
