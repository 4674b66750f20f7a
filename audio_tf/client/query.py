"""Scores files on a server, in batches and with retries."""

import itertools
import math
import os
import random
import time
import typing

import numpy as np

from audio_tf.client.address import ServerError, parse_url
from audio_tf.client.transport import TRANSPORTS
from audio_tf.client.wav_files import batches
from audio_tf.ops.checks import check_sizes, closest
from audio_tf.terminal import printable

SIGNATURE = "serving_audio_bytes"
# The other signatures of an export take samples, not files.
WAVEFORM_SIGNATURES = (
    "serving_default",
    "embed",
    "frames",
    "stream",
    "explain",
)

# Where nobody says how many classes there are, an answer is not read further
# than so many of each clip take: AudioSet has 527.
MAX_CLASSES = 10_000

# An error text names so many outputs, and so many characters of a name.
MAX_NAMES = 8
MAX_NAME = 40

MAX_PAUSE_S = 10.0
# Three years: a socket takes a few hundred, and not more.
MAX_WAIT_S = 1e8
# A server that failed this many batches in a row is not asked for the rest.
GIVE_UP_AFTER = 2


class Result(typing.NamedTuple):
    """The answer of a server for one clip.

    Attributes:
        file: str, the path, or `"clip 3"` if the third clip was given as
            bytes.
        scores: float32 array `(classes,)`, or `None` if the clip is not
            `valid`.
        valid: bool, whether the clip was scored.
        error: str, why the clip was not scored, or `None`.

    Examples:
        >>> from audio_tf import client
        >>> result = client.Result("a.mp3", None, False, "no WAV")
        >>> result.error if not result.valid else result.scores.argmax()
        'no WAV'
    """

    file: str
    scores: np.ndarray | None
    valid: bool
    error: str | None


class Client:
    """Scores audio files on a server.

    ```python
    with audio_tf.client.Client("http://localhost:8501") as client:
        for result in client.query(["dog.wav", "rain.flac"], batch_size=2):
            print(result.file, result.scores if result.valid else result.error)
    ```

    A request that fails for a reason that may pass (no connection, too slow,
    status 429, 502, 503 or 504, `UNAVAILABLE`, `DEADLINE_EXCEEDED`,
    `RESOURCE_EXHAUSTED` unless a message is too long) is sent again after a
    pause that doubles each time, cut at random so that clients do not come
    back together. A host that nobody knows, a certificate that is not trusted
    and a server without TLS behind `https` are errors at once. With `https`,
    certificates are trusted as the system does, or by the file that the
    environment names in `SSL_CERT_FILE`. Threads may share a client.

    Args:
        url: str, `http://HOST:8501`, `https://...` or `grpc://HOST:8500`, and
            behind it `/v1/models/NAME`, `/v1/models/NAME/versions/N` or
            `/v1/models/NAME/labels/LABEL` if the model has another name or a
            version is meant, by its number or by the server's label of it.
        model_name: str, the name of the model, if the URL does not say.
        timeout_s: float, the seconds of one attempt, from its first byte to
            its last.
        retries: int, the attempts after the first.
        deadline_s: float, the seconds of one batch with all its attempts;
            `None` for twice `timeout_s`.
        backoff_s: float, the longest that the first pause may be, in seconds.
        errors: list of str, the texts of the server's error codes; `None` for
            the texts of this version of audio_tf.
        num_classes: int, the scores of a clip; `None` for as many as the first
            answer has. No answer is read much further than that.
        clock: tells the time and waits, by functions `monotonic` and `sleep`
            as those of the module `time`; tests have one of their own.

    The server is not trusted: answers of another size, scores that are not
    finite and bodies that are cut off are errors, and its words are printed
    without control characters, cut, and without the URL's password.

    Raises:
        ValueError: if `url` is no URL, or a number is out of range.
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
        num_classes=None,
        clock=time,
    ):
        if deadline_s is None:
            deadline_s = 2 * timeout_s
        for name, seconds in (
            ("timeout_s", timeout_s),
            ("deadline_s", deadline_s),
        ):
            if not 0.0 < seconds <= MAX_WAIT_S:
                raise ValueError(
                    f"`{name}` must be positive and at most {MAX_WAIT_S:g}. "
                    f"Received: {name}={seconds}"
                )
        if not 0.0 <= backoff_s < math.inf:
            raise ValueError(
                "`backoff_s` must be finite and not negative. "
                f"Received: backoff_s={backoff_s}"
            )
        if isinstance(retries, bool) or retries != int(retries) or retries < 0:
            raise ValueError(
                "`retries` must be an integer, at least 0. "
                f"Received: retries={retries}"
            )
        if num_classes is not None:
            check_sizes(num_classes=num_classes)
        address = parse_url(url, model_name, TRANSPORTS)
        self.url = address.url
        self.version = address.version
        self.timeout_s = timeout_s
        self.retries = retries
        self.deadline_s = deadline_s
        self.backoff_s = backoff_s
        self.errors = errors
        self.num_classes = num_classes
        self.classes_given = num_classes is not None
        self.clock = clock
        self.transport = TRANSPORTS[address.scheme](address, clock)

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
            contents: list of bytes, the contents of WAV files.
            signature: str, the name of a signature that takes `audio_bytes`.

        Returns:
            Dict of arrays by the names of the outputs.

        Raises:
            ServerError: if the last attempt failed too, or the server
                refused the request.
        """
        end = self.clock.monotonic() + self.deadline_s
        numbers = self.numbers(len(contents))
        for attempt in range(self.retries + 1):
            left_s = max(1e-3, end - self.clock.monotonic())
            left_s = min(self.timeout_s, left_s)
            try:
                return self.transport.predict(
                    signature, {"audio_bytes": contents}, left_s, numbers
                )
            except ServerError as error:
                pause_s = min(MAX_PAUSE_S, self.backoff_s * 2**attempt)
                pause_s *= random.uniform(0.5, 1.0)
                late = self.clock.monotonic() + pause_s >= end
                if error.transient and (late or attempt == self.retries):
                    raise ServerError(
                        f"{error} ({attempt + 1} attempts)",
                        transient=True,
                        status=error.status,
                    ) from error
                if not error.transient:
                    hint = closest(signature, [SIGNATURE])
                    if signature == SIGNATURE or not hint:
                        raise
                    raise ServerError(f"{error}{hint}") from error
            self.clock.sleep(pause_s)

    def numbers(self, count):
        """Returns how many numbers an answer for some clips may hold."""
        # Beside the scores, whether a clip was scored and why not.
        return count * ((self.num_classes or MAX_CLASSES) + 2)

    def query(self, files, signature=SIGNATURE, batch_size=8, contents=None):
        """Scores files, one batch after the other.

        A WAV file that servers read is sent as it is. Any other that
        `audio_tf.audio.read_audio` reads is decoded here and sent as float32
        WAV at its own rate: nothing is lost.

        Args:
            files: iterable of paths, or of the contents of WAV files as bytes.
            signature: str, the name of a signature that takes `audio_bytes`.
            batch_size: int, the clips of a request; fewer if they are long.
            contents: dict by path of the contents, in any format, of files
                that are not read from disk, or `None`.

        Returns:
            Iterator of the `Result` of each file, in order; a clip or a
            request that failed leaves the others alone.

        Raises:
            TypeError: if `files` is one file.
            ValueError: if `signature` takes no files or `batch_size` is out
                of range; while iterating, if the model has another number of
                classes than the `num_classes` that the client was given.
        """
        check_sizes(batch_size=batch_size)
        # A string is an iterable, of letters.
        if isinstance(files, (str, bytes, bytearray, os.PathLike)):
            raise TypeError(
                "`files` must be several, as in [file]. "
                f"Received: files={type(files).__name__}"
            )
        if not signature or signature in WAVEFORM_SIGNATURES:
            raise ValueError(
                f"`signature` must take audio files, as {SIGNATURE!r} does. "
                f"Received: signature={signature!r}"
            )
        by_path = {
            os.fspath(path): each for path, each in (contents or {}).items()
        }
        return self.results(files, signature, batch_size, by_path)

    def results(self, files, signature, batch_size, contents):
        """Yields the `Result` of each file."""
        failures = 0
        for batch in batches(files, batch_size, contents):
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
                    # A server that refuses is there.
                    absent = error.transient or not error.answered
                    failures = failures + 1 if absent else 0
            for clip in batch:
                scores, error = None, clip.error
                if clip.content is not None:
                    scores, error = outcomes.pop(0)
                yield Result(clip.file, scores, error is None, error)

    def outcomes(self, contents, signature):
        """Scores one batch: a pair of scores and error text for each clip.

        One of the two is `None`.

        Raises:
            ServerError: if the answer holds no scores for these clips.
            ValueError: if the model has another number of classes than
                `num_classes`.
        """
        return self.judged(self.predict(contents, signature), len(contents))

    def judged(self, outputs, count):
        """Returns what `outcomes` does of the outputs for some clips.

        Args:
            outputs: dict of arrays by name, as `predict` returns it.
            count: int, how many clips.

        Raises:
            ServerError, ValueError: as `outcomes`.
        """
        names = {
            printable(name, MAX_NAME): (rows.dtype.name, rows.shape)
            for name, rows in itertools.islice(outputs.items(), MAX_NAMES)
        }
        scores = outputs.get("scores")
        valid = outputs.get("valid", np.ones(count, bool))
        codes = outputs.get("error", np.zeros(count, int))
        if (
            scores is None
            or scores.dtype.kind not in "fiu"
            or scores.ndim != 2
            or not scores.shape[1]
            or valid.dtype.kind != "b"
            or codes.dtype.kind not in "iu"
            or {(count,)} != {scores.shape[:1], valid.shape, codes.shape}
        ):
            raise ServerError(
                f"{self.url}: no numbers `scores` ({count}, classes), with or "
                f"without `valid` ({count},) and `error` ({count},). "
                f"Received: {names}"
            )
        self.check_classes(scores.shape[1])
        # What float32 cannot hold comes as infinite, and is refused below.
        with np.errstate(over="ignore"):
            scores = scores.astype("float32")
        return [
            self.outcome(row, good, code)
            for row, good, code in zip(
                scores, valid.tolist(), codes.tolist(), strict=True
            )
        ]

    def check_classes(self, classes):
        """Raises an error if a model has not as many classes as before."""
        if self.num_classes is None:
            self.num_classes = classes
        if classes == self.num_classes:
            return
        if self.classes_given:
            raise ValueError(
                f"{self.url}: the model scores {classes} classes. Expected, by "
                f"`labels` or by `num_classes`: {self.num_classes}"
            )
        raise ServerError(
            f"{self.url}: another number of classes than before. "
            f"Received: {classes} scores, {self.num_classes} before"
        )

    def outcome(self, row, good, code):
        """Returns scores and `None`, or `None` and an error text, of a clip."""
        if not good:
            return None, self.describe(code)
        bad = np.flatnonzero(~np.isfinite(row))
        if bad.size:
            return None, (
                f"{self.url}: scores that are not finite. Received: "
                f"{row[bad[0]]} for class {bad[0]}"
            )
        return row, None

    def describe(self, code):
        """Returns the text of an error code."""
        if self.errors is None:
            from audio_tf.audio import wav

            self.errors = [wav.ERRORS[error] for error in wav.WavError]
        if 0 <= code < len(self.errors):
            return self.errors[code]
        return f"error {code} of the server"
