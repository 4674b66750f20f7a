"""Weights of classes in training, by the names of labels or by numbers."""

import collections.abc
import numbers

from audio_tf.ops.checks import check_not_negative, closest


def weights_by_class(class_weight, labels, num_classes):
    """Returns the weight of every class, as Keras takes it on each backend.

    Args:
        class_weight: dict of weights by the number or the label of a class; a
            class that is not in it has the weight 1. The number is that of a
            target: of a model of one class, 1 is that class, as its label is,
            and 0 what is not of it.
        labels: list of str, the labels, or `None`.
        num_classes: int.

    Returns:
        Dict of float by int, from 0 to `num_classes - 1`, or to 1 of one class.

    Raises:
        ValueError: if it is no dict, has another class or a class twice, or
            if a weight is no number of at least 0.
    """
    if not isinstance(class_weight, collections.abc.Mapping):
        raise ValueError(
            "`class_weight` must be a dict of the weights of classes, by "
            f"label or number. Received: class_weight={class_weight!r}"
        )
    columns = {label: column for column, label in enumerate(labels or ())}
    if num_classes == 1:
        # Keras looks up the only target of a clip, not where it stands.
        columns, num_classes = dict.fromkeys(columns, 1), 2
    found = {}
    for key, weight in class_weight.items():
        column = columns.get(key, key)
        if not (
            isinstance(column, numbers.Integral) and 0 <= column < num_classes
        ):
            raise ValueError(
                f"`class_weight` must have numbers from 0 to {num_classes - 1}"
                f" or labels of the model{closest(key, columns)}. "
                f"Received: class {key!r}"
            )
        if column in found:
            raise ValueError(
                "`class_weight` must have a class once. Received: class "
                f"{key!r}, which is the class {int(column)}, too"
            )
        check_not_negative(class_weight=weight)
        found[int(column)] = float(weight)
    return {column: found.get(column, 1.0) for column in range(num_classes)}
