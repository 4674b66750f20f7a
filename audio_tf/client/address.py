"""The address of a server, and the error of a request that failed."""

import base64
import dataclasses
import re
import socket
import ssl
import urllib.parse

from audio_tf.terminal import printable

MODEL_NAME = "audio_tf"  # As in `serving/models.config`.
MAX_VERSION = 2**63 - 1  # An int64 in TensorFlow Serving's protos.
MAX_ERROR_CHARACTERS = 500


class ServerError(RuntimeError):
    """A request that failed as a whole.

    ```python
    try:
        scores = client.predict([contents])
    except audio_tf.client.ServerError as error:
        print(error, "try again" if error.transient else "", error.status)
    ```

    Args:
        message: str, what went wrong; it names the URL.
        transient: bool, whether the same request may succeed later.
        status: int of HTTP or str of gRPC, what the server answered; `None`
            if it was not reached or not understood.
        answered: bool, whether any server has answered.
    """

    def __init__(self, message, transient=False, status=None, answered=True):
        super().__init__(message)
        self.transient = transient
        self.status = status
        self.answered = answered


@dataclasses.dataclass(frozen=True)
class Address:
    """A server's URL in parts.

    Attributes:
        scheme: key of `transport.TRANSPORTS`.
        host: `HOST` or `HOST:PORT`, without user and password.
        prefix: path before `/v1/models`, or `""`.
        model_name: name of the model.
        version: int, or `None` for the server's choice.
        version_label: str, what the server's `version_labels` call the
            version, or `None`.
        user: `USER:PASSWORD` as bytes, or `None`. It is in no text.
    """

    scheme: str
    host: str
    prefix: str
    model_name: str
    version: int | None
    version_label: str | None = None
    user: bytes | None = dataclasses.field(default=None, repr=False)

    @property
    def url(self):
        """The URL without user and password, for requests and messages."""
        version = "" if self.version is None else f"/versions/{self.version}"
        if self.version_label is not None:
            version = f"/labels/{self.version_label}"
        return (
            f"{self.scheme}://{self.host}{self.prefix}"
            f"/v1/models/{self.model_name}{version}"
        )

    @property
    def token(self):
        """User and password as HTTP's Basic authentication has them."""
        return base64.b64encode(self.user).decode() if self.user else None

    def clean(self, text):
        """Returns words of a server on one line, cut, without the password."""
        text = printable(text, MAX_ERROR_CHARACTERS + len(self.token or ""))
        if self.user:
            password = self.user.decode(errors="replace").partition(":")[2]
            for secret in filter(None, (self.token, password)):
                text = text.replace(printable(secret), "***")
        return printable(text, MAX_ERROR_CHARACTERS)


def lasting_reason(error):
    """Tells why a connection fails now as it will fail again.

    Args:
        error: exception of the connection.

    Returns:
        String, or `None` where the reason may pass: also where the servers of
        names cannot be asked.
    """
    if isinstance(error, socket.gaierror):
        unknown = error.errno in (socket.EAI_NONAME, socket.EAI_NODATA)
        return f"there is no host of that name ({error})" if unknown else None
    if isinstance(error, ssl.SSLCertVerificationError):
        return f"the certificate of the server is not trusted ({error})"
    if getattr(error, "reason", None) == "WRONG_VERSION_NUMBER":
        return f"the server speaks no TLS, http:// may be meant ({error})"
    return None


def redact(url):
    """Returns a URL of any form without user, password and query."""
    url = re.sub(r"^(\w+://)?.*@", r"\1***@", str(url), flags=re.DOTALL)
    return printable(re.sub(r"[?#].*", "?***", url, flags=re.DOTALL))


def parse_url(url, model_name, schemes):
    """Reads a server's URL.

    It is `SCHEME://[USER:PASSWORD@]HOST:PORT`, and behind it may stand
    `/v1/models/NAME`, `/v1/models/NAME/versions/N` or
    `/v1/models/NAME/labels/LABEL`.

    Args:
        url: str.
        model_name: str, the name of the model if the URL has none; `None` for
            `MODEL_NAME`.
        schemes: the schemes that there are, such as `transport.TRANSPORTS`.

    Returns:
        `Address`.

    Raises:
        ValueError: if `url` is no such URL, or names another model than
            `model_name`. The message holds no password.
    """
    try:
        parts = urllib.parse.urlsplit(url)
        usable = parts.hostname and parts.scheme in schemes
        usable = usable and parts.port != 0  # Raises if it is no number.
        usable = usable and not (parts.query or parts.fragment)
        usable = usable and re.fullmatch(r"[!-~]+", url)
        # As for a connection: it raises if a label is empty or too long.
        usable = usable and parts.hostname.encode("idna")
    except ValueError:
        usable = False
    path = usable and re.fullmatch(
        r"(.*?)(?:/v1/models/([^/:]+)"
        r"(?:/versions/(\d+)|/labels/([^/:]+))?)?(?::predict)?/?",
        parts.path,
    )
    # Else a version that is no number would pass for the path of a proxy.
    if not path or "/v1/models" in path[1] or int(path[3] or 0) > MAX_VERSION:
        raise ValueError(
            f"A server's URL begins with one of {', '.join(schemes)} and "
            "://HOST:PORT, may end with /v1/models/NAME, with "
            "/v1/models/NAME/versions/N of a number N or with "
            "/v1/models/NAME/labels/LABEL, and has no query, no blank and "
            "nothing beyond ASCII; between the dots of "
            f"HOST are 1 to 63 characters. Received: {redact(url)}"
        )
    prefix, named, version, version_label = path.groups()
    if named and model_name and named != model_name:
        raise ValueError(
            "The URL names another model than `model_name`. "
            f"Received: {redact(url)} and {printable(model_name)}"
        )
    name = named or (MODEL_NAME if model_name is None else model_name)
    if not re.fullmatch(r"[!-~]+", name) or set(name) & set("/:?#"):
        raise ValueError(
            "`model_name` must be of ASCII characters, without blanks and "
            f"none of / : ? #. Received: model_name={printable(name)!r}"
        )
    user, _, host = parts.netloc.rpartition("@")
    user = urllib.parse.unquote_to_bytes(user)
    if user and b":" not in user:
        user += b":"
    return Address(
        parts.scheme,
        host,
        prefix,
        name,
        int(version) if version else None,
        version_label,
        user or None,
    )
