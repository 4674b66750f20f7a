"""The decoder of the Gaussian adaptive transformer, over embeddings."""

import functools
import math

import keras
from keras import ops

from audio_tf import attention, compat, optimizers
from audio_tf.models import head_dtypes
from audio_tf.models.attention_modules import ATTENTION_MODULES, find_module
from audio_tf.models.checked_calls import CheckedCalls
from audio_tf.models.freezing import freeze_layers
from audio_tf.ops import checks
from audio_tf.ops.layer import Dropout

# Biases, norms and Gaussians: in the paper's Table 5 the scaled variances, from
# 2, are 1.88 to 2.06, which a decay of 0.1 would have left far below.
NO_DECAY = (
    "bias",
    "gamma",
    "beta",
    "mean_offset",
    "scaled_variance",
    "gaussian_width",
    "mean_shift",
    "left_width",
    "right_width",
)


def make_optimizer(learning_rate=1e-4, weight_decay=0.1, **options):
    """Makes the AdamW of the experiments, which decays kernels alone.

    Args:
        learning_rate: float, 1e-4 for speech, 5e-5 for Llama 2.
        weight_decay: float, the paper's by default; its authors' code says
            0.01.
        **options: further arguments of `audio_tf.optimizers.Lamb`.
    """
    # Keras' own is loaded without what it excludes, and decays all from then.
    own = {
        "bias_correction": "moments",
        "epsilon": 1e-7,
        "exclude_from_weight_decay": NO_DECAY,
    }
    return optimizers.create(
        "adamw", learning_rate, weight_decay=weight_decay, **{**own, **options}
    )


def make_loss(gamma=2.5, alpha=0.25):
    """Makes the focal loss of the experiments with speech, Keras' own.

    Args:
        gamma: float, how little what is right already counts; 0 is the cross
            entropy, times `alpha`.
        alpha: float, the weight of all classes; the authors' code has 0.25.
    """
    return keras.losses.CategoricalFocalCrossentropy(alpha, gamma)


def grid_of(dim, height=None):
    """Returns rows and columns whose product is `dim`, as square as may be.

    Args:
        dim: int.
        height: int, the rows if they divide `dim`, or `None`.
    """
    if height is None or dim % height:
        height = math.isqrt(dim)
        while dim % height:
            height -= 1
    return height, dim // height


@keras.saving.register_keras_serializable("audio_tf")
class GaussianAdaptiveDecoder(
    CheckedCalls,
    compat.OnAnyBackend,
    compat.QuietQuantization,
    keras.Model,
):
    """Scores classes from the embeddings that the layers of an encoder give.

    The decoder network of "Gaussian Adaptive Attention is All You Need"
    (arXiv 2401.11143), as in its authors' experiments: an attention module
    over the layers, two convolutions of 3 x 3 in which layers are channels
    and the features of a layer a picture, and one dense layer. There is no
    residual around the attention. `GaussianAdaptiveTransformer` has one over
    a backbone of waveforms; alone it takes embeddings from anywhere.

    ```python
    decoder = GaussianAdaptiveDecoder(24, 1024, num_classes=4)
    decoder.fit(embeddings, one_hot, epochs=35, batch_size=8)
    importance = analysis.importance_factor(decoder, validation_embeddings)
    ```

    | `module` | what it is | heads | weights at 24 x 1024 |
    |---|---|---|---|
    | `gaam_v1` | Gaussian adaptive attention | 8 of 3 layers | 16,384 |
    | `gaam_v2` | Gaussian adaptive attention | 1 | 2,048 |
    | `gqgaam` | the first, then grouped queries of 512 | 8 | 1,001,472 |
    | `mha` | multi-head self-attention | 8 of 128 features | 4,198,400 |
    | `mha_batch_norm` | the same, normalised over the batch | 8 | 4,202,496 |
    | `sga`, `bi_sga` | skewed Gaussians | 1 | 3,072, 6,144 |
    | `gct` | a Gaussian of fixed width 2 about the mean | 1 | none learnt |

    Attention is over the layers of one clip: the authors' code of `mha` mixes
    the clips of a batch, which is taken for a mistake. `sga` and `bi_sga` are
    readings of a paper that is not public, see `SkewedGaussianAttention`.

    Args:
        num_layers: int, layers of the encoder.
        dim: int, features of a layer's embedding.
        num_classes: int, the number of classes.
        module: str, a key of `ATTENTION_MODULES`.
        num_heads: int, heads of the module; `None` for the paper's number, or
            the next smaller one that leaves each head three layers or more.
        attention_kwargs: dict of further arguments of the attention, which
            override the module's; it says `num_heads` if that is `None`.
        filters: int, channels between the two convolutions.
        grid: pair of ints whose product is the features behind the attention,
            rows and columns of the picture; `None` for the authors', nearly
            square, 8 rows for `gqgaam`.
        dropout: float, the dropout rate before the last layer; 0 in the
            paper.
        activation: the activation of the scores.
        head_dtype: dtype policy of the layers, or `None` for the global one.
        compile: bool, whether to compile the model as the paper does for
            speech: focal loss of gamma 2.5, AdamW at 1e-4.
        name: str, the model's name.
        trainable: bool. If False, nothing of the model is trained.

    Call arguments:
        inputs: floating tensor `(batch, num_layers, dim)`.

    Returns:
        Scores `(batch, num_classes)`, float32.

    Raises:
        TypeError: if there is an unknown argument, of the attention too.
        ValueError: if an argument is out of range, heads do not divide what
            they cut, or the grid does not hold the features.
    """

    axes_of_inputs = {"embeddings": ("batch", "layers", "dim")}

    def __init__(
        self,
        num_layers,
        dim,
        num_classes,
        module="gaam_v1",
        num_heads=None,
        attention_kwargs=None,
        filters=512,
        grid=None,
        dropout=0.0,
        activation="softmax",
        head_dtype=None,
        compile=True,
        name=None,
        trainable=True,
        **unknown,
    ):
        known = checks.parameters_of(
            GaussianAdaptiveDecoder, GaussianAdaptiveDecoder
        )
        checks.reject_unknown("GaussianAdaptiveDecoder", unknown, known)
        checks.check_sizes(
            num_layers=num_layers,
            dim=dim,
            num_classes=num_classes,
            filters=filters,
        )
        checks.check_rates(dropout=dropout)
        checks.check_flags(compile=compile, trainable=trainable)
        if grid is not None:
            grid = checks.pair_of("grid", grid)
        found = find_module(module)
        own_head_dtype = head_dtypes.asked(head_dtype)
        dtype = own_head_dtype or keras.config.dtype_policy()
        # === Layers ===
        recalibrate = found.make_attention(
            num_layers, dim, num_heads, attention_kwargs, dtype
        )
        conv = functools.partial(
            keras.layers.Conv2D,
            kernel_size=3,
            padding="same",
            # What Keras is set to would take rows of the picture for channels.
            data_format="channels_last",
            activation="relu",
            dtype=dtype,
        )
        norm = None
        if found.is_normalised:
            norm = keras.layers.BatchNormalization(
                momentum=0.9, epsilon=1e-5, dtype=dtype, name="attention_norm"
            )
        output_dropout = Dropout(dropout, dtype=dtype, name="output_dropout")
        output_dense = keras.layers.Dense(
            num_classes, dtype=dtype, name="predictions"
        )

        # === Functional Model ===
        inputs = keras.Input((num_layers, dim), name="embeddings")
        x = recalibrate(inputs)
        if norm is not None:
            x = norm(x)
        width = x.shape[-1]
        rows, columns = grid or grid_of(width, found.grid_height)
        if rows * columns != width:
            raise ValueError(
                f"`grid` must hold the {width} features behind {module!r}. "
                f"Received: grid={grid}"
            )
        x = ops.reshape(x, (-1, num_layers, rows, columns))
        x = ops.transpose(x, (0, 2, 3, 1))  # (B, rows, columns, layers)
        x = conv(filters, name="conv_1")(x)
        x = conv(num_layers, name="conv_2")(x)
        x = ops.reshape(x, (-1, num_layers * width))
        x = output_dense(output_dropout(x))
        # Scores in half precision lose all ranks near 0 and 1.
        scores = keras.layers.Activation(
            activation, dtype="float32", name="scores"
        )(x)
        super().__init__(inputs=inputs, outputs=scores, name=name)
        freeze_layers(self, trainable)
        compat.scale_loss_for(self, dtype)
        compat.settle_dtypes(self)

        # === Config ===
        self.attention_layer = recalibrate
        self.num_layers = num_layers
        self.dim = dim
        self.num_classes = num_classes
        self.module = module
        self.num_heads = num_heads
        self.attention_kwargs = dict(attention_kwargs or {})
        self.filters = filters
        self.grid = None if grid is None else list(grid)
        self.dropout = dropout
        self.activation = keras.activations.get(activation)
        self.head_dtype = own_head_dtype
        if compile:
            self.compile(
                make_optimizer(),
                make_loss(),
                metrics=["accuracy"],
            )

    @property
    def weights_features(self):
        """Whether the attention has a map of features, a Gaussian one."""
        return self.attention_layer.map_kind == "features"

    def gaussian_map(self, embeddings):
        """Computes the Gaussian's weight of each feature of each layer.

        Args:
            embeddings: floating array `(batch, num_layers, dim)`.

        Returns:
            Float32 array `(batch, num_layers, dim)`.

        Raises:
            ValueError: if the module has no such map.
        """
        if not self.weights_features:
            gaussian = [
                name
                for name, each in ATTENTION_MODULES.items()
                if attention.find(each.attention).map_kind == "features"
            ]
            raise ValueError(
                "A map of features is that of a Gaussian module, one of "
                f"{gaussian}. Received: module={self.module!r}"
            )
        _, weights = self.attention_layer(
            ops.convert_to_tensor(embeddings),
            training=False,
            return_attention_scores=True,
        )
        return ops.convert_to_numpy(ops.cast(weights, "float32"))

    def get_config(self):
        # Convolutions are never quantised.
        plain = self.get_layer("conv_1").dtype_policy
        layers = compat.layers_within(self)
        return {
            "name": self.name,
            "trainable": self.trainable,
            "num_layers": self.num_layers,
            "dim": self.dim,
            "num_classes": self.num_classes,
            "module": self.module,
            "num_heads": self.num_heads,
            "attention_kwargs": dict(self.attention_kwargs),
            "filters": self.filters,
            "grid": self.grid,
            "dropout": self.dropout,
            "activation": keras.activations.serialize(self.activation),
            "head_dtype": head_dtypes.saved(self.head_dtype, plain, layers),
        }

    @classmethod
    def from_config(cls, config, custom_objects=None):
        # A file that has an optimizer compiles the model itself.
        return cls(**{**config, "compile": False})
