"""Averages and pooling between the blocks of the Audio Transformer."""

import contextlib
import dataclasses

from audio_tf.layers import MultiScaleAverage
from audio_tf.layers.pooling import TEMPORAL_POOLINGS
from audio_tf.ops.checks import check_choice, check_sizes


@dataclasses.dataclass(frozen=True)
class Averages:
    """Multi-scale averages behind some blocks.

    The attributes are those of the backbone's arguments `multiscale` and
    `multiscale_...`, and errors call them so.

    Attributes:
        kind: `None`, `"block"` or `"causal"`.
        windows: list of ints, or `None` for the layer's own.
        shares: list of floats, or `None` for the layer's own.
        after: list of ints, or `None` for each block but the last.
    """

    kind: str | None
    windows: list | None
    shares: list | None
    after: list | None

    def places(self, num_layers):
        """Lists the blocks that averages come after, empty without any.

        Args:
            num_layers: int, the number of blocks.

        Raises:
            ValueError: if there is no such kind of averages or no such block,
                an argument does not fit, or is of averages that there are not.
        """
        check_choice("multiscale", self.kind, (None, "block", "causal"))
        if self.kind is None:
            for name in ("windows", "shares", "after"):
                value = getattr(self, name)
                if value is not None:
                    raise ValueError(
                        f"`multiscale_{name}` applies to `multiscale`, which "
                        f"is None. Received: multiscale_{name}={value!r}"
                    )
            return []
        with told_as("`multiscale_windows` and `multiscale_shares`"):
            self.layer()
        if self.after is None:
            return list(range(num_layers - 1))
        blocks = set(self.after)
        each_once = len(blocks) == len(self.after)
        if not blocks or not each_once or blocks - {*range(num_layers)}:
            raise ValueError(
                "`multiscale_after` must be blocks from 0 to "
                f"{num_layers - 1}, each once. "
                f"Received: multiscale_after={self.after!r}"
            )
        return list(self.after)

    def layer(self, **kwargs):
        """Makes the average, with arguments of `keras.layers.Layer`."""
        return MultiScaleAverage(
            causal=self.kind == "causal",
            windows=self.windows,
            shares=self.shares,
            **kwargs,
        )


@dataclasses.dataclass(frozen=True)
class Pooling:
    """Pooling over time after every so many blocks but not behind the last.

    The attributes are those of the backbone's arguments `pool_...`, and errors
    call them so.

    Attributes:
        every: int, or `None` for no pooling.
        size: int, frames of a window.
        strides: int, frames from window to window, or `None` for `size`.
        kind: str, a key of `TEMPORAL_POOLINGS`.
    """

    every: int | None = None
    size: int = 2
    strides: int | None = None
    kind: str = "average"

    def places(self, num_layers):
        """Lists the blocks that a pooling comes after, empty without any.

        Args:
            num_layers: int, the number of blocks.

        Raises:
            ValueError: if there is no such kind, an argument is out of range,
                or is of a pooling that there is not.
        """
        check_choice("pool_kind", self.kind, TEMPORAL_POOLINGS)
        if self.every is None:
            for field in dataclasses.fields(self):
                value = getattr(self, field.name)
                if value != field.default:
                    raise ValueError(
                        f"`pool_{field.name}` applies to `pool_every`, which "
                        f"is None. Received: pool_{field.name}={value!r}"
                    )
            return []
        check_sizes(pool_every=self.every)
        with told_as("`pool_size` and `pool_strides`"):
            self.layer()
        return list(range(self.every - 1, num_layers - 1, self.every))

    def layer(self, **kwargs):
        """Makes the pooling, with arguments of `keras.layers.Layer`."""
        return TEMPORAL_POOLINGS[self.kind](self.size, self.strides, **kwargs)


@contextlib.contextmanager
def told_as(names):
    """Begins the errors of a layer within by the model's own arguments.

    Args:
        names: str, what the arguments of that layer are called here.
    """
    try:
        yield
    except ValueError as error:
        raise ValueError(f"{names}: {error}") from None


def between_blocks(averages, pooling, num_layers, dtype):
    """Makes the layers that come between the blocks.

    Args:
        averages: `Averages`.
        pooling: `Pooling`.
        num_layers: int, the number of blocks.
        dtype: dtype policy of the layers.

    Returns:
        List of lists of `Stage`: those behind each block, an average before a
        pooling.

    Raises:
        ValueError: as `Averages.places` and `Pooling.places`.
    """
    stages = [[] for _ in range(num_layers)]
    pooled = pooling.places(num_layers)
    for index in averages.places(num_layers):
        name = f"multiscale_{index}"
        stages[index].append(averages.layer(dtype=dtype, name=name))
    for index in pooled:
        name = f"pooling_{index}"
        stages[index].append(pooling.layer(dtype=dtype, name=name))
    return stages
