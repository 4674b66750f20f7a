"""Connections over HTTP that answer within a time, or say why not."""

import functools
import http.client
import io
import urllib.request


class NoRedirects(urllib.request.HTTPRedirectHandler):
    """Leaves a redirect as the error that it is.

    urllib would send a request without its body, but with user and password,
    to wherever the server says.
    """

    def redirect_request(self, *arguments):
        """Returns `None`, by which urllib follows no redirection."""
        return None


class ReaderUntil(io.RawIOBase):
    """Reads a connection up to a point in time.

    A socket's own timeout starts anew with each byte, and a server that sends
    one now and then would be waited for without end.

    Args:
        raw: unbuffered reader of the connection.
        set_timeout: function that sets the seconds of the next reading.
        clock: tells the time, as the module `time` does.
        end: float, when the reading ends, in the clock's seconds.
    """

    def __init__(self, raw, set_timeout, clock, end):
        self.raw = raw
        self.set_timeout = set_timeout
        self.clock = clock
        self.end = end

    def readable(self):
        """Tells that the bytes can be read."""
        return True

    def readinto(self, buffer):
        """Reads into a buffer the bytes that come before the end.

        Raises:
            TimeoutError: if the end has come.
        """
        left_s = self.end - self.clock.monotonic()
        if left_s <= 0.0:
            raise TimeoutError("timed out")
        self.set_timeout(left_s)
        return self.raw.readinto(buffer)

    def close(self):
        self.raw.close()
        super().close()


class ResponseUntil(http.client.HTTPResponse):
    """A response whose headers and body are read up to a point in time."""

    def __init__(self, sock, *args, clock, end, **kwargs):
        super().__init__(sock, *args, **kwargs)
        self.fp = io.BufferedReader(
            ReaderUntil(self.fp.detach(), sock.settimeout, clock, end)
        )


class TimedConnection(http.client.HTTPConnection):
    """A connection whose timeout holds for all of the answer."""

    def __init__(self, *args, clock, **kwargs):
        super().__init__(*args, **kwargs)
        end = clock.monotonic() + self.timeout
        self.response_class = functools.partial(
            ResponseUntil, clock=clock, end=end
        )

    def send(self, data):
        """Sends a part of a request, all of it unless nobody reads it.

        Who refuses a large body may end the connection before it is all there.
        What was answered can be read then, and says more than that.
        """
        try:
            super().send(data)
        except (BrokenPipeError, ConnectionResetError):
            if self.sock is None:  # It was never connected.
                raise


class TimedSecureConnection(TimedConnection, http.client.HTTPSConnection):
    """An encrypted `TimedConnection`."""


class TimedHandler(urllib.request.HTTPHandler, urllib.request.HTTPSHandler):
    """Opens a connection for each request that answers within its timeout.

    Args:
        clock: tells the time, as the module `time` does.
    """

    def __init__(self, clock):
        super().__init__()
        self.clock = clock

    def http_open(self, request):
        """Sends a request, as `urllib.request` asks a handler to."""
        return self.open_timed(TimedConnection, request)

    def https_open(self, request):
        """Sends an encrypted request."""
        return self.open_timed(TimedSecureConnection, request)

    def open_timed(self, connection, request):
        """Sends a request by a class of connections."""
        timed = functools.partial(connection, clock=self.clock)
        return self.do_open(timed, request)
