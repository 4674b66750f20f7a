"""How the loads on the stand-in are judged, on outcomes that are known."""

import keras
import numpy as np
import pytest

if keras.backend.backend() != "tensorflow":
    pytest.skip("an export is TensorFlow's", allow_module_level=True)

from audio_tf.client.load_figures import FAILED, GOOD, Outcome
from serving import overload, watch


def outcomes(*rows):
    """One outcome a second, of pairs of latency and verdict."""
    return [
        Outcome(second + 0.5, second + 0.5, second + 0.5 + latency, verdict)
        for second, (latency, verdict) in enumerate(rows)
    ]


def test_a_server_is_well_when_all_are_good_and_soon():
    calm, slow, lost = (0.1, GOOD), (0.5, GOOD), (0.1, FAILED)
    for rows, seconds in (
        ([calm, lost, calm, calm], 0.0),
        ([calm, lost, slow, calm], 1.0),
        ([calm, lost, calm, lost, calm], 2.0),
        ([calm, lost, lost, slow], 2.0),
    ):
        assert overload.recovery(outcomes(*rows), 2.0, 0.3) == seconds


def lives(megabytes, handles):
    watcher = watch.Watcher(dict)
    seconds = np.arange(len(megabytes), dtype=float)
    watcher.lives = {
        ("server 0", 7): list(zip(seconds, megabytes, handles, strict=True))
    }
    text = watcher.report()
    return text, watcher.violations


def test_memory_and_handles_that_grow_are_named():
    warm_up = int(watch.WARM_UP_S)
    rise = np.maximum(np.arange(warm_up + 180.0) - warm_up + 120.0, 0.0)
    flat = np.full(len(rise), 500.0)
    text, violations = lives(flat, flat)
    assert not violations and "judged: 1" in text
    # A server may allocate at first.
    _, violations = lives(flat + np.minimum(rise, 100.0), flat)
    assert not violations
    grown = flat + rise / 2.0
    assert lives(grown, flat)[1] == ["server 0: from 575 to 635 MB"]
    grown = flat + rise
    assert lives(flat, grown)[1] == ["server 0: from 650 to 770 handles"]
    # What a pool takes until it is full, and a leak that takes the same hour.
    seconds = np.arange(3600.0)
    few = np.ones(3600)
    pool = 9.0 + np.minimum(seconds / 200.0, 8.0)
    assert not lives(pool, few)[1]
    leak = 500.0 * (1.0 + 0.055 * seconds / 3600.0)
    assert lives(leak, few)[1] == ["server 0: from 514 to 527 MB"]
    # A pool that is lost with each of ten requests a second.
    lost = 9.0 + 256e-6 * 10.0 * seconds
    assert lives(lost, few)[1] == ["server 0: from 14 to 18 MB"]
    # What a peak of requests takes, and a leak that goes on behind it.
    peak = seconds >= 2700.0
    handles = np.where(peak & (seconds < 2760.0), 90.0, 20.0)
    assert not lives(9.0 + 5.0 * peak, handles)[1]
    assert lives(9.0 + 5.0 * peak, few)[1] == ["server 0: from 9 to 14 MB"]
    assert lives(lost, handles)[1] == ["server 0: from 16 to 18 MB"]
    text, violations = lives(grown[:warm_up], grown[:warm_up])
    assert not violations and "judged: 0" in text


def test_a_process_that_has_ended_is_no_sample():
    assert watch.sample(2**22 + 1) is None
    megabytes, handles = watch.sample("self")
    assert megabytes > 1.0 and handles > 0
