import threading

import pytest

from audio_tf.ahead import map_ahead


def test_results_come_in_order_a_few_ahead():
    asked = []

    def double(number):
        asked.append(number)
        return 2 * number

    doubled = map_ahead(double, iter(range(1_000)), 3)
    assert [next(doubled) for _ in range(5)] == [0, 2, 4, 6, 8]
    doubled.close()
    assert len(asked) <= 5 + 3
    assert list(map_ahead(double, range(20), 3)) == list(range(0, 40, 2))
    assert list(map_ahead(double, [], 3)) == []


def test_an_error_comes_at_its_place():
    inverted = map_ahead(lambda number: 1 / number, [2, 1, 0, 4], 2)
    assert [next(inverted), next(inverted)] == [0.5, 1]
    with pytest.raises(ZeroDivisionError):
        next(inverted)


def test_to_stop_early_waits_for_no_thread():
    # To wait within a garbage collection may be to wait for ever.
    may_end = threading.Event()
    working = map_ahead(lambda last: last and may_end.wait(), [0, 0, 1, 1], 2)
    next(working)
    stopping = threading.Thread(target=working.close, daemon=True)
    stopping.start()
    stopping.join(60)
    stopped = not stopping.is_alive()
    may_end.set()
    assert stopped
