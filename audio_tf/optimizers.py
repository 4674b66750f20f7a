"""The optimizer and the learning rate with which the papers pre-train."""

import math

import keras
from keras import ops

from audio_tf import compat
from audio_tf.ops import checks
from audio_tf.ops.weights import parts_axis

# "lamb" is the papers' text, "adamw" what the authors' code really runs.
PRETRAINING = {
    "lamb": {
        "trust_ratio": True,
        "bias_correction": None,
        "epsilon": 1e-8,
        "weight_decay": 0.01,
    },
    "adamw": {
        "trust_ratio": False,
        "bias_correction": "step_size",
        "epsilon": 1e-9,
        "weight_decay": 0.01,
    },
}
BIAS_CORRECTIONS = (None, "moments", "step_size")


def create(name, /, learning_rate=5e-5, **kwargs):
    """Builds an optimizer by its name.

    Args:
        name: `"lamb"` or `"adamw"`, a key of `PRETRAINING`. Positional only,
            since `name` is the Keras name of the optimizer.
        learning_rate: as `Lamb` takes it.
        **kwargs: further arguments of `Lamb`; they win over the table's.

    Returns:
        A new `Lamb`.

    Raises:
        ValueError: if there is no such optimizer.

    Examples:
        >>> from audio_tf import optimizers
        >>> lamb = optimizers.create("lamb", weight_decay=0.05)
        >>> lamb.weight_decay
        0.05
    """
    if name not in PRETRAINING:
        raise ValueError(
            f"The optimizer must be one of {sorted(PRETRAINING)}"
            f"{checks.closest(name, PRETRAINING)}. Received: {name!r}"
        )
    return Lamb(learning_rate, **{**PRETRAINING[name], **kwargs})


def norm(x, axis=None):
    """Computes the Euclidean norm of a tensor, or of each of its parts.

    Args:
        x: floating tensor.
        axis: int, along which the parts stand, or `None` for one part.

    Returns:
        Tensor of the rank of `x`, of size 1 along all other axes.

    Examples:
        >>> import numpy as np
        >>> from audio_tf import optimizers
        >>> float(optimizers.norm(np.array([3.0, 4.0], "float32"))[0])
        5.0
    """
    others = [each for each in range(len(x.shape)) if each != axis]
    return ops.sqrt(ops.sum(ops.square(x), axis=others, keepdims=True))


@keras.saving.register_keras_serializable("audio_tf")
class Lamb(
    compat.OwnWeightDecay,
    compat.StateInFloat32,
    compat.UnbiasedAverage,
    keras.optimizers.Optimizer,
):
    """The optimizer LAMB: Adam whose step is scaled by each tensor's norm.

    "Large Batch Optimization for Deep Learning" (arXiv 1904.00962),
    algorithm 2, as s3prl's `Lamb` has it. For each tensor `w`:

        u = m / (sqrt(v) + epsilon) + weight_decay * w
        w = w - learning_rate * ratio * u,  ratio = |w| / |u|

    where `m` and `v` are Adam's moments and the ratio is 1 if a norm is 0.
    A weight that is a stack of independent parts (`audio_tf.ops.weights`: the
    heads of a random Synthesizer's table) has a ratio for each part, as if
    each were a tensor of its own. The papers' authors have published no code
    of such a table; in one tensor, s3prl's `Lamb` would scale random heads by
    the norm of the crafted ones, which is a thousand times theirs, and did so
    where it was tried (`benchmarks/lamb_parts.py`), though the loss hardly
    differed.
    `keras.optimizers.Lamb` differs: its moments are always corrected for
    their bias, its epsilon is 1e-7, and it takes
    `learning_rate * weight_decay * w` off beforehand, outside the ratio.

    There are three readings of Adam's bias correction, `c = 1 - beta ** step`:

    - `None`: no correction, as in s3prl's LAMB;
    - `"moments"`: `m / c_1` and `v / c_2` replace the moments, as in the
      paper's algorithm 2;
    - `"step_size"`: the learning rate is multiplied by `sqrt(c_2) / c_1`, so
      that the weight decay is, too. This without the ratio is what s3prl's
      branch AlbertNew runs under LAMB's name.

    `PRETRAINING` has the two settings of the papers.

    The step is computed in float32, in which moments and averages are kept
    whatever the precision of the weights is. Keras itself provides the learning
    rate, clipping and accumulation of gradients: a schedule is given the number
    of batches, not of updates (`WarmupLinearDecay`). With `use_ema`, the
    average of the weights has no bias towards those of the first step
    (`audio_tf.compat.UnbiasedAverage`).

    Args:
        learning_rate: float, a schedule or a callable without arguments.
        beta_1: float, the decay of the first moment.
        beta_2: float, the decay of the second moment.
        epsilon: float, added to the root of the second moment.
        weight_decay: float or `None`, the share of the weights in the step.
        trust_ratio: bool, whether to scale steps by the ratio of the norms.
        bias_correction: one of `BIAS_CORRECTIONS`.
        exclude_from_weight_decay: sequence of strings; a variable with one
            of them in its name, or for its path, has no weight decay. It
            keeps its ratio.
        rate_factors: dict by path of a variable of the float that its
            learning rate is multiplied by, such as that of a new head on a
            trained backbone; `None` for one rate of all.
        **kwargs: arguments of `keras.optimizers.Optimizer`, such as
            `global_clipnorm` and `gradient_accumulation_steps`.

    Raises:
        TypeError: if there is an unknown argument; it names the closest.
        ValueError: if an argument is out of range, or there is a rate for a
            variable that is not there.

    Examples:
        >>> import numpy as np
        >>> import keras
        >>> from audio_tf import optimizers
        >>> model = keras.Sequential([keras.Input((2,)), keras.layers.Dense(1)])
        >>> model.compile(optimizers.Lamb(5e-4, weight_decay=0.0), "mse")
        >>> history = model.fit(np.ones((4, 2)), np.ones((4, 1)), verbose=0)
        >>> int(model.optimizer.iterations.numpy())
        1
    """

    def __init__(
        self,
        learning_rate=5e-5,
        beta_1=0.9,
        beta_2=0.999,
        epsilon=1e-8,
        weight_decay=0.01,
        trust_ratio=True,
        bias_correction=None,
        exclude_from_weight_decay=("bias", "gamma", "beta"),
        rate_factors=None,
        **kwargs,
    ):
        checks.reject_unknown(
            type(self).__name__, kwargs, checks.parameters_of(type(self))
        )
        super().__init__(learning_rate, weight_decay=weight_decay, **kwargs)
        if not (0.0 < beta_1 < 1.0 and 0.0 < beta_2 < 1.0):
            raise ValueError(
                "`beta_1` and `beta_2` must be between 0 and 1. "
                f"Received: beta_1={beta_1}, beta_2={beta_2}"
            )
        if not (
            0.0 <= epsilon < math.inf
            and 0.0 <= (weight_decay or 0.0) < math.inf
        ):
            raise ValueError(
                "`epsilon` and `weight_decay` must be finite and not negative. "
                "Received: "
                f"epsilon={epsilon}, weight_decay={weight_decay}"
            )
        checks.check_flags(trust_ratio=trust_ratio)
        checks.check_choice(
            "bias_correction", bias_correction, BIAS_CORRECTIONS
        )
        if isinstance(exclude_from_weight_decay, str):
            raise ValueError(
                "`exclude_from_weight_decay` must be a sequence of strings. "
                "Received: exclude_from_weight_decay="
                f"{exclude_from_weight_decay!r}"
            )
        self.beta_1 = beta_1
        self.beta_2 = beta_2
        self.epsilon = epsilon
        self.trust_ratio = trust_ratio
        self.bias_correction = bias_correction
        self.rate_factors = dict(rate_factors or {})
        for path, factor in self.rate_factors.items():
            if not 0.0 < factor < math.inf:
                raise ValueError(
                    "`rate_factors` must be positive and finite. "
                    f"Received: {factor} for {path!r}"
                )
        self.exclude_from_weight_decay(var_names=exclude_from_weight_decay)

    def exclude_from_weight_decay(self, var_list=None, var_names=None):
        """Excludes variables as in Keras, and keeps what they are for saving.

        Those of `var_list` are saved by their paths.
        """
        if self.built:
            raise ValueError(
                "Variables must be excluded from weight decay before the "
                f"optimizer is built. Received: var_names={var_names}"
            )
        paths = [variable.path for variable in var_list or ()]
        self.excluded_names = (*(var_names or ()), *paths)
        # No name has a stroke in it; of no layer, a variable's is its path.
        names = [each for each in self.excluded_names if "/" not in each]
        super().exclude_from_weight_decay(var_names=names)

    def decays(self, variable):
        """Returns whether a variable is excluded by neither name nor path."""
        if variable.path in self.excluded_names:
            return False
        return super().decays(variable)

    def build(self, variables):
        if self.built:
            return
        super().build(variables)
        self.momentums, self.velocities = self.add_optimizer_variables(
            variables, ["momentum", "velocity"]
        )
        # Decided here: TensorFlow's own variables, which `update_step` gets,
        # have the names of their layers in theirs.
        self.weight_decays = [
            (self.weight_decay or 0.0) * self.decays(variable)
            for variable in variables
        ]
        paths = [variable.path for variable in variables]
        excluded = {each for each in self.excluded_names if "/" in each}
        for name, named in (
            ("rate_factors", set(self.rate_factors)),
            ("exclude_from_weight_decay", excluded),
        ):
            strangers = sorted(named - set(paths))
            if strangers:
                raise ValueError(
                    f"`{name}` must name variables by their paths. "
                    f"Received: {strangers}, which none of {len(paths)} has"
                )
        self.factors = [self.rate_factors.get(path, 1.0) for path in paths]
        self.part_axes = [parts_axis(variable) for variable in variables]

    def update_step(self, gradient, variable, learning_rate):
        index = self.index_of(variable)
        momentum, velocity = self.momentums[index], self.velocities[index]
        weights = ops.cast(variable, "float32")
        # The sum makes a dense gradient of TensorFlow's sparse ones.
        gradient = ops.add(
            ops.zeros_like(weights), ops.cast(gradient, "float32")
        )
        m = ops.cast(momentum, "float32")
        v = ops.cast(velocity, "float32")
        m = self.beta_1 * m + (1.0 - self.beta_1) * gradient
        v = self.beta_2 * v + (1.0 - self.beta_2) * ops.square(gradient)
        self.assign(momentum, ops.cast(m, momentum.dtype))
        self.assign(velocity, ops.cast(v, velocity.dtype))

        rate = ops.cast(learning_rate, "float32") * self.factors[index]
        step = ops.cast(self.iterations + 1, "float32")
        # 1 - beta ** step; float32 would lose digits in the difference.
        correction_1 = -ops.expm1(step * math.log(self.beta_1))
        correction_2 = -ops.expm1(step * math.log(self.beta_2))
        if self.bias_correction == "moments":
            m, v = m / correction_1, v / correction_2
        elif self.bias_correction == "step_size":
            rate = rate * ops.sqrt(correction_2) / correction_1

        update = m / (ops.sqrt(v) + self.epsilon)
        update = update + self.weight_decays[index] * weights
        if self.trust_ratio:
            axis = self.part_axes[index]
            size, update_size = norm(weights, axis), norm(update, axis)
            known = ops.logical_and(size > 0.0, update_size > 0.0)
            ratio = size / ops.where(known, update_size, 1.0)
            rate = rate * ops.where(known, ratio, 1.0)
        self.assign(variable, ops.cast(weights - rate * update, variable.dtype))

    def get_config(self):
        return {
            **super().get_config(),
            "beta_1": self.beta_1,
            "beta_2": self.beta_2,
            "epsilon": self.epsilon,
            "trust_ratio": self.trust_ratio,
            "bias_correction": self.bias_correction,
            "exclude_from_weight_decay": list(self.excluded_names),
            "rate_factors": dict(self.rate_factors),
        }


@keras.saving.register_keras_serializable("audio_tf")
class WarmupLinearDecay(keras.optimizers.schedules.LearningRateSchedule):
    """A learning rate that rises in a line, then falls in a line to 0.

    At step `t`, from 0, it is `p * t / warmup_steps` below `warmup_steps`,
    then `p * (total_steps - t) / (total_steps - warmup_steps)`, and 0 from
    `total_steps` on, `p` being the peak. This is the schedule of s3prl's
    branch AlbertNew, where the papers' authors warm up for 10 % of all steps.
    Over a run with a warm-up the rates sum to `p * total_steps / 2`. The first
    step moves no weight; s3prl's HEAD counts a step before it asks for the
    rate, so that there the last step is the one that moves none.

    Steps are updates of the weights. Keras counts batches instead, also where
    it accumulates gradients, and makes the update at the last batch of each
    step: an optimizer with `gradient_accumulation_steps` needs a schedule with
    the same.

    Args:
        peak_learning_rate: float, the highest rate, at step `warmup_steps`.
        total_steps: int.
        warmup_steps: int below `total_steps`; `None` for 10 % of them,
            rounded down. With 0, the first step has the highest rate.
        gradient_accumulation_steps: int, the batches of a step, as the
            optimizer has it; `None` for one.

    Call arguments:
        step: integer scalar tensor, the batches before this one.

    Returns:
        Float32 scalar.

    Raises:
        ValueError: if an argument is out of range.

    Examples:
        >>> from audio_tf import optimizers
        >>> rate = optimizers.WarmupLinearDecay(1e-3, 1_000, warmup_steps=100)
        >>> [round(float(rate(step)), 5) for step in (50, 100, 550)]
        [0.0005, 0.001, 0.0005]
    """

    def __init__(
        self,
        peak_learning_rate,
        total_steps,
        warmup_steps=None,
        gradient_accumulation_steps=None,
    ):
        super().__init__()
        if gradient_accumulation_steps is not None:
            checks.check_sizes(
                gradient_accumulation_steps=gradient_accumulation_steps
            )
        if not 0.0 < peak_learning_rate < math.inf:
            raise ValueError(
                "`peak_learning_rate` must be positive and finite. Received: "
                f"peak_learning_rate={peak_learning_rate}"
            )
        if warmup_steps is None and isinstance(total_steps, int):
            warmup_steps = total_steps // 10
        if (
            not isinstance(total_steps, int)
            or not isinstance(warmup_steps, int)
            or not 0 <= warmup_steps < total_steps
        ):
            raise ValueError(
                "`warmup_steps` and `total_steps` must be integers, with "
                "0 <= warmup_steps < total_steps. Received: "
                f"warmup_steps={warmup_steps!r}, total_steps={total_steps!r}"
            )
        self.peak_learning_rate = peak_learning_rate
        self.total_steps = total_steps
        self.warmup_steps = warmup_steps
        self.gradient_accumulation_steps = gradient_accumulation_steps

    def __call__(self, step):
        if self.gradient_accumulation_steps is not None:
            step = ops.floor_divide(step, self.gradient_accumulation_steps)
        step = ops.cast(step, "float32")
        share = (self.total_steps - step) / (
            self.total_steps - self.warmup_steps
        )
        if self.warmup_steps:
            share = ops.minimum(share, step / self.warmup_steps)
        return self.peak_learning_rate * ops.maximum(share, 0.0)

    def get_config(self):
        return {
            "peak_learning_rate": self.peak_learning_rate,
            "total_steps": self.total_steps,
            "warmup_steps": self.warmup_steps,
            "gradient_accumulation_steps": self.gradient_accumulation_steps,
        }
