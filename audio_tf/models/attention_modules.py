"""The attention modules of the Gaussian adaptive transformer's decoder."""

import dataclasses

import keras

from audio_tf import attention
from audio_tf.ops import checks

# Layers of a head in the paper's experiments with speech: 8 heads of 24.
# Over two layers the Gaussian is one number, whatever the two are.
LEAST_LAYERS = 3


@dataclasses.dataclass(frozen=True)
class AttentionModule:
    """One way to recalibrate embeddings before they are decoded.

    Attributes:
        attention: str, a key of `audio_tf.attention.ATTENTIONS`.
        meaning: str, what it is in a few words.
        heads: int, heads in the paper.
        cuts: str, what is cut among heads: `"layers"` or `"features"`.
        arguments: dict of further arguments of the attention.
        is_normalised: bool, whether a batch normalisation over the features
            follows.
        hidden_dim: int, features of the output in the paper, if there is a
            projection to them, else `None`.
        grid_height: int, rows that the features of a layer are written in
            before they are convolved; `None` for nearly as many as columns.
    """

    attention: str
    meaning: str
    heads: int = 1
    cuts: str = "layers"
    arguments: dict = dataclasses.field(default_factory=dict)
    is_normalised: bool = False
    hidden_dim: int | None = None
    grid_height: int | None = None

    def fitting_heads(self, num_layers, dim):
        """Returns the number of heads where nobody says.

        It is the paper's, or the next smaller number that fits: it divides the
        layers, so that each head has at least three of them, or the features.

        Args:
            num_layers: int.
            dim: int, features of a layer's embedding.
        """
        size, least = num_layers, LEAST_LAYERS
        if self.cuts == "features":
            size, least = dim, 1
        for heads in range(self.heads, 1, -1):
            if size % heads == 0 and size // heads >= least:
                return heads
        return 1

    def make_attention(self, num_layers, dim, num_heads, given, dtype):
        """Makes the attention layer.

        Args:
            num_layers: int.
            dim: int, features of a layer's embedding.
            num_heads: int, or `None` for as many as fit.
            given: dict of arguments that override its own, or `None`.
            dtype: dtype policy.

        Returns:
            `audio_tf.attention.Attention`.

        Raises:
            TypeError: if the attention takes no such argument.
            ValueError: if heads do not divide what they cut.
        """
        given = dict(given or {})
        if "num_heads" in given:
            if num_heads is not None:
                raise ValueError(
                    "`num_heads` and `attention_kwargs` must not say the same. "
                    f"Received: num_heads={num_heads}, attention_kwargs={given}"
                )
            num_heads = given["num_heads"]
        if num_heads is None:
            num_heads = self.fitting_heads(num_layers, dim)
        own = {**self.arguments, "name": "attention", "dtype": dtype}
        checks.check_sizes(num_heads=num_heads)
        if self.cuts == "layers":
            own["head_axis"] = 1
        elif dim % num_heads:
            raise ValueError(
                "`num_heads` must divide the features of a layer. "
                f"Received: num_heads={num_heads}, dim={dim}"
            )
        if self.hidden_dim is not None:
            own["hidden_dim"] = min(self.hidden_dim, dim)
        attention.check_arguments(self.attention, given)
        return attention.create(
            self.attention,
            **{
                "num_heads": num_heads,
                "key_dim": dim // num_heads,
                "causal": False,
                **own,
                **given,
            },
        )


ATTENTION_MODULES = {
    "gaam_v1": AttentionModule(
        "gaussian_adaptive", "Gaussian adaptive attention, 8 heads", heads=8
    ),
    "gaam_v2": AttentionModule(
        "gaussian_adaptive", "Gaussian adaptive attention, 1 head"
    ),
    "gqgaam": AttentionModule(
        "grouped_query_gaussian_adaptive",
        "Gaussian adaptive, then grouped query attention",
        heads=8,
        arguments={"num_query_heads": 8, "num_key_value_heads": 2},
        hidden_dim=512,
        # A row is a query head of 64 features.
        grid_height=8,
    ),
    "mha": AttentionModule(
        "full", "multi-head self-attention", heads=8, cuts="features"
    ),
    "mha_batch_norm": AttentionModule(
        "full",
        "multi-head self-attention, then batch normalisation",
        heads=8,
        cuts="features",
        is_normalised=True,
    ),
    "sga": AttentionModule(
        "skewed_gaussian", "skewed Gaussian attention, a reading"
    ),
    "bi_sga": AttentionModule(
        "bi_skewed_gaussian", "two skewed Gaussians, a reading"
    ),
    "gct": AttentionModule(
        "gaussian_adaptive",
        "Gaussian context transformer, nothing to learn",
        arguments={
            # The constant width of 2, squared.
            "width_initializer": keras.initializers.Constant(4.0),
            "trainable": False,
        },
    ),
}


def find_module(name):
    """Looks up an `AttentionModule`.

    Raises:
        ValueError: if there is none of that name; it names the nearest.
    """
    checks.check_choice("module", name, ATTENTION_MODULES)
    return ATTENTION_MODULES[name]
