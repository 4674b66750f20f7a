"""Sound events made by code, and clips that mix them.

Each event fills its clip or repeats at least twice a second, so that a chunk
of one second holds all the labels of its clip.
"""

import numpy as np

# The highest partials stay below 4 kHz.
MIN_SAMPLE_RATE_HZ = 8_000


def beep(rng, num_samples, sample_rate_hz):
    """Makes a steady pure tone."""
    frequency_hz = np.full(num_samples, _log_uniform(rng, 1_000.0, 2_400.0))
    return _normalized(_oscillator(rng, frequency_hz, sample_rate_hz))


def tremolo(rng, num_samples, sample_rate_hz):
    """Makes a pure tone, its amplitude modulated to silence."""
    frequency_hz = np.full(num_samples, _log_uniform(rng, 300.0, 900.0))
    rate_hz = np.full(num_samples, rng.uniform(6.0, 14.0))
    envelope = 0.5 + 0.5 * _oscillator(rng, rate_hz, sample_rate_hz)
    tone = _oscillator(rng, frequency_hz, sample_rate_hz)
    return _normalized(envelope * tone)


def siren(rng, num_samples, sample_rate_hz):
    """Makes a tone of slowly swinging frequency."""
    rate_hz = np.full(num_samples, rng.uniform(1.5, 4.0))
    swing = _oscillator(rng, rate_hz, sample_rate_hz)
    center_hz = rng.uniform(800.0, 1_200.0)
    frequency_hz = center_hz * (1.0 + rng.uniform(0.25, 0.45) * swing)
    return _normalized(_oscillator(rng, frequency_hz, sample_rate_hz))


def chirp_up(rng, num_samples, sample_rate_hz):
    """Makes repeated rising sweeps."""
    low_hz, high_hz = rng.uniform(200.0, 400.0), rng.uniform(1_200.0, 2_000.0)
    return _sweeps(rng, num_samples, sample_rate_hz, low_hz, high_hz)


def chirp_down(rng, num_samples, sample_rate_hz):
    """Makes repeated falling sweeps."""
    low_hz, high_hz = rng.uniform(900.0, 1_500.0), rng.uniform(3_000.0, 3_800.0)
    return _sweeps(rng, num_samples, sample_rate_hz, high_hz, low_hz)


def white_noise_burst(rng, num_samples, sample_rate_hz):
    """Makes white noise, switched on and off."""
    time_s = np.arange(num_samples) / sample_rate_hz
    period_s = rng.uniform(0.2, 0.4)
    is_on = time_s % period_s < rng.uniform(0.3, 0.6) * period_s
    return _normalized(is_on * rng.standard_normal(num_samples))


def rumble(rng, num_samples, sample_rate_hz):
    """Makes steady low-passed noise."""
    cutoff_hz = rng.uniform(80.0, 250.0)
    return _filtered_noise(
        rng, num_samples, sample_rate_hz, cutoff_hz, "lowpass"
    )


def hiss(rng, num_samples, sample_rate_hz):
    """Makes steady high-passed noise."""
    cutoff_hz = rng.uniform(2_000.0, 3_000.0)
    return _filtered_noise(
        rng, num_samples, sample_rate_hz, cutoff_hz, "highpass"
    )


def click_train(rng, num_samples, sample_rate_hz):
    """Makes regular clicks of a few samples."""
    from scipy import signal

    audio = np.zeros(num_samples)
    period = sample_rate_hz / rng.uniform(12.0, 30.0)
    # The fade of a short clip must not silence its only click.
    onsets = np.arange(period / 4, num_samples, period)
    audio[onsets.astype(int)] = 1.0
    decay_s = rng.uniform(0.0002, 0.0008)
    return _normalized(
        signal.lfilter(
            [1.0, -1.0], [1.0, -_decay(decay_s, sample_rate_hz)], audio
        )
    )


def bell(rng, num_samples, sample_rate_hz):
    """Makes repeated strokes of decaying, inharmonic partials."""
    base_hz = rng.uniform(450.0, 700.0)
    decay_s = rng.uniform(0.1, 0.3)

    def stroke(time_s):
        return sum(
            np.sin(2 * np.pi * base_hz * ratio * time_s)
            * np.exp(-time_s * np.sqrt(ratio) / decay_s)
            for ratio in (1.0, 2.0, 2.76, 4.07, 5.4)
        )

    period_s = rng.uniform(0.3, 0.45)
    return _repeated(rng, num_samples, sample_rate_hz, stroke, period_s, 1.2)


def buzz(rng, num_samples, sample_rate_hz):
    """Makes a steady low tone of a square or sawtooth wave."""
    from scipy import signal

    time_s = np.arange(num_samples) / sample_rate_hz
    wave = (signal.square, signal.sawtooth)[rng.integers(2)]
    phase = 2 * np.pi * (rng.uniform(70.0, 180.0) * time_s + rng.random())
    return _normalized(wave(phase))


def crickets(rng, num_samples, sample_rate_hz):
    """Makes a high tone in groups of quick pulses."""
    time_s = np.arange(num_samples) / sample_rate_hz
    frequency_hz = np.full(num_samples, rng.uniform(2_800.0, 3_700.0))
    pulses_per_s = rng.uniform(22.0, 40.0)
    pulse = np.sin(np.pi * pulses_per_s * time_s) ** 2
    group_s = rng.integers(3, 6) / pulses_per_s
    is_on = time_s % (group_s * rng.uniform(1.3, 1.8)) < group_s
    tone = _oscillator(rng, frequency_hz, sample_rate_hz)
    return _normalized(pulse * is_on * tone)


def water_drops(rng, num_samples, sample_rate_hz):
    """Makes irregular short blips of falling pitch."""
    high_hz, low_hz = rng.uniform(1_800.0, 2_800.0), rng.uniform(600.0, 1_000.0)
    length_s = rng.uniform(0.03, 0.06)

    def drop(time_s):
        fallen = np.minimum(time_s / length_s, 1.0)
        cycles = high_hz * time_s - (high_hz - low_hz) * fallen * time_s / 2
        return np.sin(2 * np.pi * cycles) * (1.0 - fallen) ** 2

    period_s = rng.uniform(0.1, 0.2)
    return _repeated(rng, num_samples, sample_rate_hz, drop, period_s, 0.1, 0.3)


def knock(rng, num_samples, sample_rate_hz):
    """Makes repeated dull thuds."""
    frequency_hz = rng.uniform(150.0, 350.0)
    decay_s = rng.uniform(0.012, 0.03)

    def thud(time_s):
        return sum(
            np.sin(2 * np.pi * frequency_hz * ratio * time_s)
            * np.exp(-time_s * ratio / decay_s)
            for ratio in (1.0, 2.3, 3.9, 6.1)
        )

    period_s = rng.uniform(0.12, 0.25)
    return _repeated(rng, num_samples, sample_rate_hz, thud, period_s, 0.2, 0.1)


# name -> function `(rng, num_samples, sample_rate_hz)` -> float32 array
# `(num_samples,)` with a peak of 1, its parameters drawn from `rng`.
EVENTS = {
    "beep": beep,
    "bell": bell,
    "buzz": buzz,
    "chirp_down": chirp_down,
    "chirp_up": chirp_up,
    "click_train": click_train,
    "crickets": crickets,
    "hiss": hiss,
    "knock": knock,
    "rumble": rumble,
    "siren": siren,
    "tremolo": tremolo,
    "water_drops": water_drops,
    "white_noise_burst": white_noise_burst,
}


def synthesize_clip(
    rng, sample_rate_hz, duration_s, max_events=3, first_event=None
):
    """Mixes one to `max_events` distinct events above a weak noise floor.

    Each event starts in the first tenth of the clip, ends in the last, and
    is 0 to 12 dB below full level; the mix peaks 3 to 12 dB below full scale
    and the floor lies 35 to 50 dB below it.

    Args:
        rng: `np.random.Generator`, the only source of chance.
        sample_rate_hz: int, at least 8000.
        duration_s: float, the clip's duration.
        max_events: int, at most the number of `EVENTS`.
        first_event: string, an event that must be present, or `None`.

    Returns:
        Pair of a float32 array `(samples,)` in [-1, 1] and the sorted list of
        the events present.

    Raises:
        ValueError: if an argument is out of range.
    """
    check_ranges(sample_rate_hz, duration_s, duration_s, max_events)
    if first_event is not None and first_event not in EVENTS:
        raise ValueError(
            f"`first_event` must be one of {', '.join(EVENTS)}. "
            f"Received: first_event={first_event!r}"
        )
    names = draw_events(rng, max_events, first_event)
    num_samples = round(duration_s * sample_rate_hz)
    audio = np.zeros(num_samples)
    for name in names:
        start = int(rng.uniform(0.0, 0.1) * num_samples)
        stop = num_samples - int(rng.uniform(0.0, 0.1) * num_samples)
        event = EVENTS[name](rng, stop - start, sample_rate_hz)
        gain = _from_db(rng.uniform(-12.0, 0.0))
        gain /= _loudest_rms(event, sample_rate_hz)
        audio[start:stop] += gain * _faded(event, sample_rate_hz)
    audio *= _from_db(rng.uniform(-12.0, -3.0)) / np.abs(audio).max()
    floor = _from_db(rng.uniform(-50.0, -35.0))
    audio += floor * rng.standard_normal(num_samples)
    return audio.astype(np.float32), sorted(names)


def _log_uniform(rng, low, high):
    return np.exp(rng.uniform(np.log(low), np.log(high)))


def _from_db(level_db):
    return 10.0 ** (level_db / 20.0)


def _decay(decay_s, sample_rate_hz):
    """Returns the factor by which one sample decays to the next."""
    return np.exp(-1.0 / (decay_s * sample_rate_hz))


def _normalized(audio):
    return (audio / np.abs(audio).max()).astype(np.float32)


def _oscillator(rng, frequency_hz, sample_rate_hz):
    """Makes a sine of the frequencies `(num_samples,)`, at a random phase."""
    cycles = np.cumsum(frequency_hz) / sample_rate_hz
    return np.sin(2 * np.pi * (cycles + rng.random()))


def _sweeps(rng, num_samples, sample_rate_hz, start_hz, stop_hz):
    time_s = np.arange(num_samples) / sample_rate_hz
    period_s = rng.uniform(0.2, 0.4)
    done = (time_s / period_s) % 1.0
    frequency_hz = start_hz * (stop_hz / start_hz) ** done
    # A gap hides the jump back from the end of a sweep to its start.
    envelope = np.sin(np.pi * np.minimum(done / 0.9, 1.0)) ** 0.5
    return _normalized(
        envelope * _oscillator(rng, frequency_hz, sample_rate_hz)
    )


def _filtered_noise(rng, num_samples, sample_rate_hz, cutoff_hz, kind):
    from scipy import signal

    sections = signal.butter(
        4, cutoff_hz, kind, fs=sample_rate_hz, output="sos"
    )
    return _normalized(
        signal.sosfilt(sections, rng.standard_normal(num_samples))
    )


def _repeated(
    rng, num_samples, sample_rate_hz, stroke, period_s, length_s, jitter=0.0
):
    """Adds up strokes of `length_s`, one a period, early or late by jitter.

    Args:
        rng: `np.random.Generator`.
        num_samples: int.
        sample_rate_hz: int.
        stroke: function from seconds `(n,)` to samples `(n,)`.
        period_s: float, the mean distance of two strokes.
        length_s: float, where a stroke is cut.
        jitter: float, a share of the period.

    Returns:
        Float32 array `(num_samples,)` with a peak of 1.
    """
    one = stroke(np.arange(round(length_s * sample_rate_hz)) / sample_rate_hz)
    audio = np.zeros(num_samples)
    onset = 0
    while onset < num_samples:
        part = one[: num_samples - onset]
        audio[onset : onset + len(part)] += part * rng.uniform(0.7, 1.0)
        wait_s = period_s * (1.0 + rng.uniform(-jitter, jitter))
        onset += round(wait_s * sample_rate_hz)
    return _normalized(audio)


def _loudest_rms(audio, sample_rate_hz):
    """Returns the RMS of the loudest 20 ms.

    Equal peaks would drown a click in noise, an equal RMS over the clip would
    let it tower above a tone.
    """
    block = min(len(audio), sample_rate_hz // 50)
    blocks = audio[: len(audio) // block * block].reshape(-1, block)
    return np.sqrt(np.mean(np.square(blocks), axis=1).max())


def _faded(audio, sample_rate_hz):
    """Ramps both ends over 5 ms, so that the edges do not click."""
    ramp = np.ones(len(audio))
    length = min(len(audio) // 2, sample_rate_hz // 200)
    ramp[:length] = np.linspace(0.0, 1.0, length, endpoint=False)
    return audio * np.minimum(ramp, ramp[::-1])


def draw_events(rng, max_events, first_event):
    """Draws the names of a clip's events, before any of its samples."""
    num_events = rng.integers(1, max_events + 1)
    names = [str(name) for name in rng.permutation(list(EVENTS))]
    if first_event is not None:
        names.remove(first_event)
        names.insert(0, first_event)
    return names[:num_events]


def check_ranges(sample_rate_hz, min_duration_s, max_duration_s, max_events):
    """Raises a `ValueError` that names the first argument out of range."""
    if sample_rate_hz < MIN_SAMPLE_RATE_HZ:
        raise ValueError(
            f"`sample_rate_hz` must be at least {MIN_SAMPLE_RATE_HZ}. "
            f"Received: sample_rate_hz={sample_rate_hz}"
        )
    if not 0.1 <= min_duration_s <= max_duration_s:
        raise ValueError(
            "Durations must be at least 0.1 s, and in order. "
            f"Received: min_duration_s={min_duration_s}, "
            f"max_duration_s={max_duration_s}"
        )
    if not 1 <= max_events <= len(EVENTS):
        raise ValueError(
            f"`max_events` must be in [1, {len(EVENTS)}]. "
            f"Received: max_events={max_events}"
        )
