"""Figures that Keras counts over the batches of an epoch, in training.

`audio_tf.metrics` has the figures of whole splits, clip by clip. Training sees
a chunk at a time, and targets that augmentation may have mixed.
"""

import keras
from keras import ops


@keras.saving.register_keras_serializable("audio_tf")
class BatchAveragePrecision(keras.metrics.AUC):
    """Counts the mean average precision of the classes over batches.

    It is that of `audio_tf.metrics` for scores that are rounded up to
    multiples of `1 / (num_thresholds - 1)`, a score of 0 to the first of them;
    a class without a positive counts not. Where targets are mixed, each label
    with a share above 0 is a positive.

    Args:
        num_labels: int, the number of classes.
        num_thresholds: int, levels that scores in [0, 1] are told apart by.
        name: str, the figure's name in the logs.
        dtype: the dtype of the counts, or `None` for Keras' own.
    """

    def __init__(self, num_labels, num_thresholds=201, name="mAP", dtype=None):
        super().__init__(
            num_thresholds,
            curve="PR",
            multi_label=True,
            num_labels=num_labels,
            name=name,
            dtype=dtype,
        )

    def interpolate_pr_auc(self):
        """Sums precision over the steps of recall, and averages the classes."""
        hits, alarms = self.true_positives, self.false_positives
        precision = ops.divide_no_nan(hits, ops.add(hits, alarms))
        # At the highest threshold nothing is found any more.
        steps = hits - ops.pad(hits[1:], [[0, 1], [0, 0]])
        positives = hits[0] + self.false_negatives[0]
        precisions = ops.divide_no_nan(
            ops.sum(steps * precision, axis=0), positives
        )
        used = ops.cast(positives > 0, precisions.dtype)
        return ops.divide_no_nan(ops.sum(precisions), ops.sum(used))

    def get_config(self):
        config = super().get_config()
        names = ("num_labels", "num_thresholds", "name", "dtype")
        return {name: config[name] for name in names}
