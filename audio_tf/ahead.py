"""Work done by threads a little ahead of who takes its results."""

import collections
import concurrent.futures


def map_ahead(function, items, workers):
    """Applies a function by threads, a few items ahead of what is asked for.

    Memory does not grow with the number of items, which may come from a
    generator. Who stops early leaves no thread at work on what was not begun.

    Args:
        function: function of an item; what it raises is raised when its
            result is asked for.
        items: iterable.
        workers: int, how many threads, and how many items ahead.

    Yields:
        The results, in the order of the items.
    """
    pool = concurrent.futures.ThreadPoolExecutor(workers)
    ahead = collections.deque()
    try:
        for item in items:
            ahead.append(pool.submit(function, item))
            if len(ahead) > workers:
                yield ahead.popleft().result()
        while ahead:
            yield ahead.popleft().result()
    finally:
        # The garbage collector may end this generator while a thread that
        # starts holds the lock which a thread that ends needs: to wait for
        # one here would never end.
        pool.shutdown(wait=False, cancel_futures=True)
