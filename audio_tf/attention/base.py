"""The contract of every attention."""

import keras
from keras import ops

from audio_tf.ops import blocks, masks
from audio_tf.ops.checks import check_flags, check_rates, check_sizes
from audio_tf.ops.layer import Layer
from audio_tf.ops.weights import another


class HasProjections:
    """Mixin of an attention with a `use_bias` and a `kernel_initializer`."""

    takes_kernel_initializer = True

    def dense(self, units, name, input_shape, activation=None):
        """Builds a projection with this layer's dtype, bias and initializer."""
        dense = keras.layers.Dense(
            units,
            activation=activation,
            use_bias=self.use_bias,
            kernel_initializer=another(self.kernel_initializer),
            dtype=self.dtype_policy,
            name=name,
        )
        dense.build(input_shape)
        return dense


class Attention(Layer):
    """The contract of every attention of the table.

    An attention mixes the frames of a clip, or weights their features. What
    it is capable of is said by class attributes, which an instance may
    narrow, and which `audio_tf.attention.create` asks for all others:

    - `supports_causal`: bool, whether it can be made to see no later frame;
    - `takes_flash_attention`: bool, whether a kernel of a GPU may do its work;
    - `takes_key_dim`: bool, whether its heads have a size of their own;
    - `takes_kernel_initializer`: bool, whether it has projections;
    - `complexity`: str, time and memory in terms of length `L`, heads `H`,
      width `D`;
    - `map_kind`: `"frames"` if its map weights pairs of frames,
      `(batch, num_heads, time, time)`, or `"features"` if it weights each
      feature of each frame, `(batch, time, dim)`;
    - `max_length`: int, the longest input in frames, where a weight has a
      length, and else `None`;
    - `foldable`: bool, whether `fold` leaves less to compute once trained;
      then `folded` says whether that was done;
    - `patterns`: the name of the patterns its weights start from, or `None`;
    - `paper_sizes`: dict, the sizes of its own that `costs.paper_cost` takes.

    The base owns the number of heads, dropout, causality, the checks of
    inputs, and padding: a padded frame is zero before anything is computed
    from it, whatever it held. A subclass gives `transform`, `cost`, and what
    differs in `sizes_for`, `output_dim`, `check_shape` and `call_last`.

    Args:
        num_heads: int, the number of heads `H`.
        dropout: float, the rate at which attention weights are dropped.
        causal: bool. If True, no position sees a later one; `None` means
            True where the mechanism can be causal.
        **kwargs: arguments of `keras.layers.Layer`.

    Call arguments:
        inputs: floating tensor `(batch, time, dim)`.
        mask: boolean `(batch, time)`, True where a frame is real, or `None`.
        training: bool, whether dropout applies.
        return_attention_scores: bool. If True, also return the map, without
            dropout. This may cost a second pass and is for analysis.

    Returns:
        Tensor `(batch, time, dim)`; with `return_attention_scores`, a pair.
        An empty batch has empty outputs; so have inputs of no frames, where
        that is known before run time, as it is outside of a graph.

    Raises:
        TypeError: if there is an unknown argument.
        ValueError: if an argument is out of range, `causal=True` is asked of
            a mechanism that cannot be causal, or an input does not fit.

    Examples:
        >>> from audio_tf import attention
        >>> local = attention.find("local_dense_synthesizer")
        >>> issubclass(local, attention.Attention), local.supports_causal
        (True, True)
    """

    supports_causal = True
    takes_flash_attention = False
    takes_key_dim = True
    takes_kernel_initializer = False
    complexity = ""
    map_kind = "frames"
    max_length = None
    foldable = False
    folded = False
    patterns = None

    def __init__(self, num_heads, dropout=0.0, causal=False, **kwargs):
        super().__init__(**kwargs)
        check_sizes(num_heads=num_heads)
        check_rates(dropout=dropout)
        if causal is None:
            causal = self.supports_causal
        check_flags(causal=causal)
        if causal and not self.supports_causal:
            raise ValueError(
                f"{type(self).__name__} mixes all frames and cannot be "
                f"causal. Received: causal={causal}"
            )
        self.supports_masking = True
        self.num_heads = num_heads
        self.dropout = dropout
        self.causal = causal

    @property
    def paper_sizes(self):
        return {}

    @classmethod
    def sizes_for(cls, length):
        """Arguments that fit a longest input.

        Args:
            length: int, frames of the longest input.

        Returns:
            Dict of constructor arguments; empty where nothing has a length.
        """
        del length
        return {}

    def share(self, first):
        """Takes over what all blocks of a model have in common, if anything.

        A model whose blocks share calls it before it builds them.

        Args:
            first: the attention of the model's first block, which is built.
        """

    def transform(self, inputs, mask, training, with_map):
        """Computes the outputs from checked inputs whose padding is zero.

        Args:
            inputs: floating tensor `(batch, time, dim)`.
            mask: boolean `(batch, time)` or `None`.
            training: bool or `None`.
            with_map: bool, whether the map is asked for.

        Returns:
            The outputs and the map; the map may be `None` if not asked for.
        """
        raise NotImplementedError  # abstract

    def call(
        self,
        inputs,
        mask=None,
        training=None,
        return_attention_scores=False,
    ):
        self.check_shape(inputs.shape)
        inputs = self.as_floats(inputs)
        if mask is not None:
            mask = ops.cast(mask, "bool")
            inputs = masks.zero_padding(inputs, mask)
        # Known to have no frames, they are computed of one that is left out
        # again; where the length is not known, none is guarded against.
        length = inputs.shape[1]
        if length == 0:
            inputs = blocks.fill_up(inputs)
            mask = None if mask is None else blocks.fill_up(mask)
        outputs, weights = self.transform(
            inputs, mask, training, return_attention_scores
        )
        if length == 0:
            outputs = outputs[:, :0]
            if weights is not None:
                of_pairs = self.map_kind == "frames"
                weights = weights[:, :, :0, :0] if of_pairs else weights[:, :0]
        return (outputs, weights) if return_attention_scores else outputs

    def call_last(self, inputs, count):
        """Computes the outputs of the last frames alone, for streams.

        Args:
            inputs: floating tensor `(batch, time, dim)`, all frames so far.
            count: integer or scalar tensor, how many are new.

        Returns:
            Tensor `(batch, count, dim)`, the end of what `call` returns.

        Raises:
            ValueError: if the layer is not causal.
        """
        if not self.causal:
            raise ValueError(
                f"{type(self).__name__} looks ahead: its outputs are not "
                f"known before the clip ends. Received: causal={self.causal}"
            )
        return self.last_outputs(inputs, count)

    def last_outputs(self, inputs, count):
        """Does the work of `call_last`, here by a whole `call`."""
        past = ops.shape(inputs)[1] - count
        return blocks.narrow(self(inputs), 1, past, count)

    def compute_output_spec(
        self,
        inputs,
        mask=None,
        training=None,
        return_attention_scores=False,
    ):
        self.check_shape(inputs.shape)
        batch, length, dim = inputs.shape
        outputs = keras.KerasTensor(
            (batch, length, self.output_dim(dim)), dtype=self.compute_dtype
        )
        if not return_attention_scores:
            return outputs
        shapes = {
            "frames": (batch, self.num_heads, length, length),
            "features": (batch, length, dim),
        }
        return outputs, keras.KerasTensor(
            shapes[self.map_kind], dtype=self.compute_dtype
        )

    def output_dim(self, dim):
        """Returns the number of output features for `dim` input features."""
        return dim

    def check_shape(self, shape):
        """Raises a `ValueError` for an input shape that is not taken."""
        name = type(self).__name__
        if len(shape) != 3:
            raise ValueError(
                f"{name} needs inputs of shape (batch, time, dim). "
                f"Received: shape={tuple(shape)}"
            )
        # A graph may not know the features of a frame, but building must.
        if shape[-1] is None and not self.built:
            raise ValueError(
                f"{name} needs inputs of a known number of features. "
                f"Received: shape={tuple(shape)}"
            )
        length = shape[1]
        if self.max_length is None or not isinstance(length, int):
            return
        if length > self.max_length:
            raise ValueError(
                f"{name} was made for at most max_length={self.max_length} "
                f"frames. Received: an input of {length} frames"
            )

    def cost(self, length, dim, training=False):
        """Counts the work and the memory for one clip.

        Args:
            length: int, frames of the clip.
            dim: int, features of a frame.
            training: bool. If True, count the backward pass too.

        Returns:
            `Cost(multiply_adds, weight_bytes)`: the multiply-adds of all
            matrix products, projections included, padding of blocks too,
            and the bytes of the attention weights that the call forms in
            float32, which training keeps for the backward pass.
        """
        raise NotImplementedError  # abstract

    def get_config(self):
        return {
            **super().get_config(),
            "num_heads": self.num_heads,
            "dropout": self.dropout,
            "causal": self.causal,
        }
