"""Optimizers: weight decay, precision, and averages of weights."""

import math

from keras import ops
from keras.backend import standardize_dtype

# Policies whose weights are in half precision, and not their computations
# alone, and the dtypes of these weights.
HALVES = ("float16", "bfloat16")
# Of averages of weights: 1 itself would be 0 / 0.
LARGEST_MOMENTUM = 1.0 - 1e-12


class OwnWeightDecay:
    """Mixin of an optimizer whose step itself decays the weights.

    Keras would take the decay off the weights before the step, too.
    """

    def _apply_weight_decay(self, variables):
        pass

    def decays(self, variable):
        """Returns whether a variable is not excluded from weight decay."""
        return self._use_weight_decay(variable)

    def index_of(self, variable):
        """Returns the place of a variable among those of the optimizer."""
        return self._get_variable_index(variable)


class StateInFloat32:
    """Mixin of an optimizer whose state is in float32 whatever its weights are.

    Keras gives it the precision of the weights. In float16 the squares of
    small gradients are 0, by whose root a step is divided; in bfloat16 neither
    they nor the average of many steps move any more.
    """

    def add_variable(self, shape, *args, dtype=None, name=None, **kwargs):
        """Adds a variable as Keras does, in float32 instead of half.

        Args:
            shape: tuple of int.
            *args, dtype, name, **kwargs: as Keras' own method takes them.

        Returns:
            `keras.Variable`.
        """
        # Those are added to gradients as they come.
        of_gradients = (name or "").endswith("gradient_accumulator")
        if str(dtype) in HALVES and not of_gradients:
            dtype = "float32"
        return super().add_variable(
            shape, *args, dtype=dtype, name=name, **kwargs
        )

    def _overwrite_model_variables_with_average_value(
        self, trainable_variables
    ):
        # TensorFlow assigns no average to a variable of another precision.
        if not any(
            standardize_dtype(each.dtype) in HALVES
            for each in trainable_variables
        ):
            super()._overwrite_model_variables_with_average_value(
                trainable_variables
            )
            return
        averages = self._model_variables_moving_average
        for variable, average in zip(
            trainable_variables, averages, strict=True
        ):
            if average is not None:
                variable.assign(ops.cast(average, variable.dtype))


class UnbiasedAverage:
    """Mixin of an optimizer whose average of weights has no bias.

    Keras begins the average at the weights behind the first step, which then
    are most of it until the run is longer than what the average reaches back.
    Here all steps so far are weighted as later ones are, as Adam corrects its
    moments: with the momentum `m`, the average `a` and the weights `w` behind
    step `t`, counted from 1, it is `a = a + (w - a) (1 - m) / (1 - m ** t)`;
    with 1 it is the mean of all steps, the limit of that.
    """

    def _update_model_variables_moving_average(self, trainable_variables):
        if not self.use_ema:
            return
        # Batches, at each of which Keras updates the average.
        steps = ops.cast(self._iterations + 1, "float32")
        momentum = min(self.ema_momentum, LARGEST_MOMENTUM)
        share = 1.0 - momentum
        if momentum:
            # 1 - m ** t, which float32 would round to 0 for m close to 1.
            share = share / -ops.expm1(steps * math.log(momentum))
        averages = self._model_variables_moving_average
        for variable, average in zip(
            trainable_variables, averages, strict=True
        ):
            if average is not None:
                distance = ops.cast(variable, "float32") - ops.cast(
                    average, "float32"
                )
                average.assign_add(ops.cast(share * distance, average.dtype))


def unshare(variables, weights):
    """Gives variables that hold the very arrays of others copies of them.

    Args:
        variables: list of `keras.Variable`, such as those of an optimizer.
        weights: list of `keras.Variable`, such as those of a model.
    """
    held = {id(weight.value) for weight in weights}
    for variable in variables:
        if id(variable.value) in held:
            variable.assign(ops.copy(variable.value))
