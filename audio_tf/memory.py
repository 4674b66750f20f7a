"""Memory that is freed, which the C library can keep for what comes next."""

import ctypes
import os
import platform

# Parameters of `mallopt`, from glibc's malloc.h.
M_TRIM_THRESHOLD = -1
M_MMAP_MAX = -4
MOST_BYTES = 2**31 - 1
# What the environment says of them stands.
VARIABLES = ("GLIBC_TUNABLES", "MALLOC_")


def keep_freed():
    """Has this process keep freed memory for the tensors that come next.

    glibc gives the memory of each large tensor back to the system, which
    clears every page anew for the next one: a training step can spend half of
    its time so. A process keeps the most that it has needed from here on.

    Returns:
        Bool, whether that is so now: it is not where the C library is another
        one, or where the environment has settings of glibc's of its own
        (`MALLOC_ARENA_MAX`, `GLIBC_TUNABLES` and their kind).

    Examples:
        >>> from audio_tf import memory
        >>> kept = memory.keep_freed()  # once, before models are trained
    """
    if platform.libc_ver()[0] != "glibc" or any(
        name.startswith(VARIABLES) for name in os.environ
    ):
        return False
    mallopt = ctypes.CDLL(None).mallopt
    large = mallopt(M_MMAP_MAX, 0)
    return bool(large and mallopt(M_TRIM_THRESHOLD, MOST_BYTES))
