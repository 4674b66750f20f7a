"""Pictures of how a masked acoustic model fills in frames, for TensorBoard."""

import keras
import numpy as np
import tensorflow as tf

from audio_tf.analysis import figures, reconstructions
from audio_tf.models.inputs import complete
from audio_tf.runs import showing


def draw_clips(features, shown, hop_s, stacked_frames=1, targets=None):
    """Draws the real frames of each clip as `draw_reconstruction` does.

    Args:
        features: floating array `(clips, frames, dim)`.
        shown: dict of arrays that `MaskedAcousticModel.reconstruct` returns
            for them.
        hop_s: float, seconds from one spectrum to the next.
        stacked_frames: int, how many spectra are stacked in a frame; they are
            drawn beside each other.
        targets: floating array `(clips, frames, target_dim)`, or `None` if the
            features are rebuilt.

    Returns:
        List of matplotlib figures of one size.
    """
    drawn = []
    for clip, real in enumerate(np.asarray(shown["frame_mask"])):

        def spectra(values, clip=clip, real=real):
            values = np.asarray(values[clip], "float32")[real]
            return values.reshape(len(values) * stacked_frames, -1)

        masked = np.asarray(shown["masked_frames"][clip])[real]
        if not len(masked):
            continue
        drawn.append(
            reconstructions.draw_reconstruction(
                spectra(features),
                spectra(shown["masked_features"]),
                spectra(shown["reconstruction"]),
                np.repeat(masked, stacked_frames),
                hop_s,
                f"clip {clip + 1}: {np.mean(masked):.0%} of "
                f"{len(masked)} frames are masked",
                None if targets is None else spectra(targets),
            )
        )
    return drawn


class ReconstructionPictures(keras.callbacks.Callback):
    """Draws the same clips after some epochs and after the last of training.

    It does so if there is matplotlib.

    TensorBoard gets all of them, and a file the first one.

    Args:
        features: a few clips, as `MaskedAcousticModel` takes them.
        log_dir: folder of TensorBoard's events.
        path: the file of the first clip's picture.
        hop_s, stacked_frames, targets: as `draw_clips` takes them.
        every_epochs: int, epochs between pictures.
    """

    def __init__(
        self,
        features,
        log_dir,
        path,
        hop_s,
        every_epochs=1,
        stacked_frames=1,
        targets=None,
    ):
        super().__init__()
        self.features = features
        self.log_dir = str(log_dir)
        self.path = path
        self.hop_s = hop_s
        self.every_epochs = every_epochs
        self.stacked_frames = stacked_frames
        self.targets = targets

    def on_train_begin(self, logs=None):
        self.writer = tf.summary.create_file_writer(self.log_dir)

    def on_epoch_end(self, epoch, logs=None):
        last = epoch + 1 == self.params["epochs"]
        if (epoch + 1) % self.every_epochs and not last:
            return
        if not showing.can_draw():
            return
        drawn = draw_clips(
            complete(self.features, "features")["features"],
            self.model.reconstruct(self.features),
            self.hop_s,
            self.stacked_frames,
            self.targets,
        )
        if not drawn:
            return
        figures.save(drawn[0], self.path)
        images = np.stack([figures.pixels(figure) for figure in drawn])
        with self.writer.as_default():
            tf.summary.image(
                "reconstruction", images, step=epoch, max_outputs=len(images)
            )
        self.writer.flush()

    def on_train_end(self, logs=None):
        self.writer.close()
