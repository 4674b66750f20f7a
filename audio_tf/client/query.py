"""Scoring files on a server: batches, retries, what came of each file."""

import io
import json
import os
import pathlib
import random
import time
import typing

import numpy as np

from audio_tf.client.transport import TRANSPORTS, ServerError, parse_url

SIGNATURE = "serving_audio_bytes"

MAX_PAUSE_S = 10.0
MAX_BATCH_BYTES = 2**25  # A few clips of minutes must not fill the memory.
# A server that failed this many batches in a row is not asked for the rest.
GIVE_UP_AFTER = 2

# WAV formats that the signature reads: integer, float, A-law, mu-law, and
# the extensible header of these.
SERVED_FORMATS = {1, 3, 6, 7, 0xFFFE}


class Result(typing.NamedTuple):
    """What the server said of one clip.

    Attributes:
        file: the path, or `"clip 3"` for the third clip given as bytes.
        scores: float32 array `(classes,)`, or `None` if not `valid`.
        valid: bool, whether the clip was scored.
        error: text that says why it was not, or `None`.
    """

    file: str
    scores: np.ndarray | None
    valid: bool
    error: str | None


class Client:
    """Scores audio files on a server.

    A request that fails for a reason that may pass (no connection, too slow,
    status 429, 502, 503 or 504, `UNAVAILABLE`, `DEADLINE_EXCEEDED`) is sent
    again after a pause that doubles each time, cut at random so that clients
    do not come back together.

    Args:
        url: `http://HOST:8501`, `https://...` or `grpc://HOST:8500`, each
            with `/v1/models/NAME` or `/v1/models/NAME/versions/N` after it or
            not.
        model_name: name of the model, if the URL does not say.
        timeout_s: float, seconds of one attempt.
        retries: int, attempts after the first.
        deadline_s: float, seconds of one batch with all its attempts; twice
            `timeout_s` if `None`.
        backoff_s: float, seconds of the first pause, at most.
        errors: list of texts by the server's error codes; those of this
            version of audio_tf if `None`.

    Raises:
        ValueError: if the URL is none, or a number makes no sense.
    """

    def __init__(
        self,
        url,
        model_name=None,
        timeout_s=60.0,
        retries=4,
        deadline_s=None,
        backoff_s=0.5,
        errors=None,
    ):
        if timeout_s <= 0 or retries < 0:
            raise ValueError(
                "`timeout_s` must be positive and `retries` not negative. "
                f"Received: timeout_s={timeout_s}, retries={retries}"
            )
        address = parse_url(url, model_name)
        self.url = address.url
        self.timeout_s = timeout_s
        self.retries = retries
        self.deadline_s = 2 * timeout_s if deadline_s is None else deadline_s
        self.backoff_s = backoff_s
        self.errors = errors
        self.transport = TRANSPORTS[address.scheme](address)

    def __enter__(self):
        return self

    def __exit__(self, *error):
        self.close()

    def close(self):
        """Ends the connection."""
        self.transport.close()

    def predict(self, contents, signature=SIGNATURE):
        """Runs a signature on one batch, with retries.

        Args:
            contents: list of bytes, contents of WAV files.
            signature: name of a signature that takes `audio_bytes`.

        Returns:
            Dict of arrays by the names of the outputs.

        Raises:
            ServerError: if the last attempt failed too, or the server
                refused the request.
        """
        end = time.monotonic() + self.deadline_s
        for attempt in range(self.retries + 1):
            left_s = min(self.timeout_s, max(1e-3, end - time.monotonic()))
            try:
                return self.transport.predict(
                    signature, {"audio_bytes": contents}, left_s
                )
            except ServerError as error:
                pause_s = min(MAX_PAUSE_S, self.backoff_s * 2**attempt)
                pause_s *= random.uniform(0.5, 1.0)
                late = time.monotonic() + pause_s >= end
                if error.transient and (late or attempt == self.retries):
                    raise ServerError(
                        f"{error} ({attempt + 1} attempts)", transient=True
                    ) from error
                if not error.transient:
                    raise
            time.sleep(pause_s)

    def query(self, files, signature=SIGNATURE, batch_size=8):
        """Scores files, one batch after the other.

        A WAV file is sent as it is. Any other that
        `audio_tf.data.read_audio` reads is decoded here and sent as float32
        WAV at its own rate: nothing is lost.

        Args:
            files: paths, or bytes of WAV files.
            signature: name of a signature that takes `audio_bytes`.
            batch_size: int, clips per request; fewer if they are long.

        Yields:
            `Result` of each file, in order; a clip or a request that failed
            leaves the others alone.
        """
        failures = 0
        for batch in batches(files, batch_size):
            sent = [clip for clip in batch if clip.content is not None]
            if sent and failures >= GIVE_UP_AFTER:
                error = f"{self.url}: not asked, it failed before"
                outcomes = [(None, error)] * len(sent)
            elif sent:
                try:
                    outcomes = self.outcomes(
                        [clip.content for clip in sent], signature
                    )
                    failures = 0
                except ServerError as error:
                    outcomes = [(None, str(error))] * len(sent)
                    failures += error.transient
            for clip in batch:
                scores, error = None, clip.error
                if clip.content is not None:
                    scores, error = outcomes.pop(0)
                yield Result(clip.file, scores, error is None, error)

    def outcomes(self, contents, signature):
        """Pairs of scores and error text, one of them `None`, per clip."""
        outputs = self.predict(contents, signature)
        count = len(contents)
        try:
            scores = outputs["scores"].astype("float32")
            valid = outputs.get("valid", np.ones(count, bool)).tolist()
            codes = outputs.get("error", np.zeros(count, int)).tolist()
            usable = scores.ndim == 2 and {count} == {
                *map(len, (scores, valid, codes))
            }
        except (KeyError, TypeError, ValueError):
            usable = False
        if not usable:
            shapes = {name: rows.shape for name, rows in outputs.items()}
            raise ServerError(
                f"{self.url}: no scores ({count}, classes). Received: {shapes}"
            )
        return [
            (row, None) if good else (None, self.describe(code))
            for row, good, code in zip(scores, valid, codes, strict=True)
        ]

    def describe(self, code):
        """The text of an error code."""
        if self.errors is None:
            from audio_tf.data import wav  # Imports TensorFlow.

            self.errors = [wav.ERRORS[n] for n in range(len(wav.ERRORS))]
        if 0 <= code < len(self.errors):
            return self.errors[code]
        return f"error {code} of the server"


class Clip(typing.NamedTuple):
    """One clip to send, or the `error` why there is no `content`."""

    file: str
    content: bytes | None
    error: str | None


def batches(files, batch_size):
    """Yields lists of `Clip`, at most `batch_size` and bounded in bytes."""
    batch, size = [], 0
    for number, file in enumerate(files, 1):
        if isinstance(file, bytes):
            clip = Clip(f"clip {number}", file, None)
        else:
            clip = Clip(os.fspath(file), *read_wav(file))
        batch.append(clip)
        size += len(clip.content or b"")
        if len(batch) == batch_size or size > MAX_BATCH_BYTES:
            yield batch
            batch, size = [], 0
    if batch:
        yield batch


def read_wav(path):
    """Content of a file as WAV, and `None`; or `None` and an error text."""
    path = pathlib.Path(path)
    try:
        if path.is_file():
            with path.open("rb") as file:
                if is_served(file.read(2**16)):
                    file.seek(0)
                    return file.read(), None
        import soundfile

        from audio_tf.data.decode import read_audio  # Imports TensorFlow.

        audio, rate_hz = read_audio(path)
        content = io.BytesIO()
        soundfile.write(content, audio, rate_hz, format="WAV", subtype="FLOAT")
        return content.getvalue(), None
    except (OSError, ValueError) as error:
        return None, getattr(error, "reason", None) or str(error)


def is_served(head):
    """Whether a file that begins so is left to the server to read."""
    if head[:4] != b"RIFF" or head[8:12] != b"WAVE":
        return False
    place = head.find(b"fmt ", 12)
    # Without a format it is broken, and the server says how.
    tag = int.from_bytes(head[place + 8 : place + 10], "little")
    return place < 0 or tag in SERVED_FORMATS


def read_labels(path):
    """Reads what a model's outputs mean.

    Args:
        path: an export's `assets.extra/audio_tf.json`, or a text file with a
            label per line.

    Returns:
        Pair of a list of labels, or `None`, and a list of error texts by
        code, or `None`.
    """
    text = pathlib.Path(path).read_text(encoding="utf-8")
    if pathlib.Path(path).suffix != ".json":
        return text.splitlines(), None
    described = json.loads(text)
    if isinstance(described, list):
        return described, None
    return described.get("labels"), described.get("errors")
