"""The rows of each batch that one of several hosts reads."""

import typing

import numpy as np


class Share(typing.NamedTuple):
    """The share of one host in batches that several hosts read together.

    All hosts draw the same order of the whole corpus, and each reads its own
    rows of every batch: what is trained does not depend on how many there are.

    Attributes:
        index: int, the number of this host, from 0.
        count: int, how many hosts there are.
        devices: int, how many devices all hosts have together.
    """

    index: int = 0
    count: int = 1
    devices: int = 1

    @property
    def is_first(self):
        """Whether this is the host that writes."""
        return self.index == 0

    def check(self, batch_size):
        """Raises a `ValueError` if devices cannot share a batch evenly.

        Args:
            batch_size: int, rows of a batch of all hosts.
        """
        if batch_size % self.devices:
            raise ValueError(
                f"{self.devices} devices must share a batch evenly. "
                f"Received: {batch_size} rows"
            )

    def filled(self, rows, **kwargs):
        """Returns rows filled up until all devices have equally many.

        Args:
            rows: int array `(batch,)`, not empty.
            **kwargs: arguments of `numpy.pad`; without them the last row is
                repeated.
        """
        extra = -len(rows) % self.devices
        return np.pad(rows, (0, extra), **(kwargs or {"mode": "edge"}))

    def part(self, rows):
        """Returns the rows of a batch that this host reads.

        Args:
            rows: int array `(batch,)`, the rows of all hosts.
        """
        return np.split(self.filled(rows), self.count)[self.index]


WHOLE = Share()
