"""Pictures of how a masked acoustic model fills in frames, for TensorBoard."""

import keras
import numpy as np
import tensorflow as tf

from audio_tf.models.inputs import complete


def pictures(features, shown, stacked_frames=1):
    """Draws input, masked input and output above each other.

    Frequency goes upwards. Grey spans the input's 1st to 99th percentile,
    padding is black, and white bars above the masked input mark the frames
    that are masked.

    Args:
        features: floating array `(clips, frames, dim)`.
        shown: dict of arrays that `MaskedAcousticModel.reconstruct` returns
            for them.
        stacked_frames: int, how many spectra are stacked in a frame; they are
            drawn beside each other.

    Returns:
        Float32 array `(clips, height, frames * stacked_frames, 1)` in [0, 1].
    """
    features = np.asarray(features, "float32")
    clips, frames = features.shape[:2]
    columns = frames * stacked_frames
    real = np.repeat(shown["frame_mask"], stacked_frames, axis=1)
    masked = np.repeat(shown["masked_frames"], stacked_frames, axis=1)
    valid = features[shown["frame_mask"]]
    low, high = np.percentile(valid, (1, 99)) if valid.size else (0.0, 1.0)

    def panel(values):
        values = np.asarray(values, "float32").reshape(clips, columns, -1)
        values = (values - low) / max(high - low, 1e-6)
        values = np.clip(np.where(real[:, :, None], values, 0.0), 0.0, 1.0)
        return np.moveaxis(values, 1, 2)[:, ::-1]

    bars = np.repeat(masked[:, None].astype("float32"), 2, axis=1)
    rows = [
        panel(features),
        bars,
        panel(shown["masked_features"]),
        np.zeros_like(bars),
        panel(shown["reconstruction"]),
    ]
    return np.concatenate(rows, axis=1)[..., None]


class ReconstructionPictures(keras.callbacks.Callback):
    """Writes `pictures` of the same clips after epochs of training.

    Args:
        features: a few clips, as `MaskedAcousticModel` takes them.
        log_dir: folder of TensorBoard's events.
        every_epochs: int, epochs between pictures.
        stacked_frames: int, as `pictures` takes it.
    """

    def __init__(self, features, log_dir, every_epochs=1, stacked_frames=1):
        super().__init__()
        self.features = features
        self.log_dir = str(log_dir)
        self.every_epochs = every_epochs
        self.stacked_frames = stacked_frames

    def on_train_begin(self, logs=None):
        self.writer = tf.summary.create_file_writer(self.log_dir)

    def on_epoch_end(self, epoch, logs=None):
        if (epoch + 1) % self.every_epochs:
            return
        images = pictures(
            complete(self.features, "features")["features"],
            self.model.reconstruct(self.features),
            self.stacked_frames,
        )
        with self.writer.as_default():
            tf.summary.image(
                "reconstruction", images, step=epoch, max_outputs=len(images)
            )
        self.writer.flush()

    def on_train_end(self, logs=None):
        self.writer.close()
