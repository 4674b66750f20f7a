"""The contract of the layers that a backbone's frames run through."""


class Stage:
    """Mixin of a layer from frames to frames, `(batch, time, dim)`.

    A backbone asks its `stages` for no more than is here. A stream runs
    through them by the methods `stream_...`, which are given past inputs
    beside the new ones; by default, all past inputs.

    Attributes:
        frame_stride: int, frames that go in for each that comes out.
        max_frames: int, frames of the longest input, or `None` for any.
        causal: bool, whether no frame that comes out depends on later ones.
        streams: bool, whether frames that came out stay as they are when more
            go in. Frames of an unfinished window have to wait for its end.
    """

    frame_stride = 1
    max_frames = None
    causal = False

    @property
    def streams(self):
        """Whether outputs of a stream stay as they are when more goes in."""
        return self.causal

    def stream_memory(self, frames):
        """Returns how many of the last inputs are needed again.

        Args:
            frames: integer scalar tensor, inputs of the stream so far.
        """
        return frames

    def stream_outputs(self, frames):
        """Returns how many outputs so many inputs have given."""
        return frames

    def stream_piece(self, seen, count, last):
        """Computes the outputs that the new inputs complete.

        Args:
            seen: tensor `(batch, time, dim)`, the inputs that `stream_memory`
                has kept and, behind them, the new ones.
            count: integer scalar tensor, how many are new.
            last: boolean scalar tensor, whether the stream ends here.

        Returns:
            Tensor `(batch, outputs, dim)`, equal to these frames of the whole
            clip's output.
        """
        raise NotImplementedError  # abstract


def run_through(stages, x, mask):
    """Applies stages one after the other, each with the mask of its input.

    Args:
        stages: list of `Stage`.
        x: floating tensor, `(batch, time, ...)`.
        mask: boolean `(batch, time)`, True where a frame is real.

    Returns:
        Pair of the last output and its mask.
    """
    for stage in stages:
        before, x = x, stage(x, mask=mask)
        mask = stage.compute_mask(before, mask)
    return x, mask
