"""HTTP requests of ``perfflow publish``, bounded and with retries.

- ``ask`` sends one HTTP request whose response, including its headers, is limited in bytes and in time. The standard
  library only limits each wait for the next byte, so a server that sends a byte now and then never times out.
- ``retried`` repeats what failed with a temporary error, after growing pauses or the time that the server asks for.
"""

from __future__ import annotations

import io
import socket
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from email.utils import parsedate_to_datetime
from functools import partial
from http.client import HTTPConnection, HTTPException, HTTPResponse, HTTPSConnection
from typing import Any, TypeVar
from urllib.error import HTTPError, URLError
from urllib.parse import urlsplit
from urllib.request import HTTPHandler, HTTPRedirectHandler, HTTPSHandler, Request, build_opener

from perfflow.model.errors import Exit, UserError

MOST = 32 * 2**20
"""The most bytes of one response. A page of a hundred comments has about 7 MiB."""
_CHUNK = 2**16


TOTAL = 240.0
"""Seconds for all requests of a command and their pauses."""
TIMEOUT = 30.0
"""Seconds for one response."""
PAUSES = (1.0, 2.0, 4.0, 8.0)
"""Seconds before each retry, unless the server names a time."""
_LOOPBACK = ("127.0.0.1", "::1", "localhost")
T = TypeVar("T")


class NoAnswerError(Exception):
    """There was no readable response. ``sent``: whether the server may have received the request."""

    def __init__(self, reason: str, *, sent: bool = True) -> None:
        super().__init__(reason)
        self.sent = sent


@dataclass(frozen=True)
class HttpResponse:
    """A server's response. Names of ``headers`` are lower case."""

    status: int
    reason: str
    headers: Mapping[str, str] = field(default_factory=dict)
    body: bytes = b""


def ask(request: Request, seconds: float) -> HttpResponse:
    """Send a request and read the response, both within ``seconds``. Raises NoAnswerError.

    Redirects are not followed, so that a secret goes to no other host.
    """
    ends = time.monotonic() + seconds
    opener = build_opener(_NoRedirects, _Plain(ends), _Secure(ends))
    try:
        try:
            response = opener.open(request, timeout=seconds)
        except HTTPError as error:
            response = error
        with response:
            body = b"".join(iter(partial(response.read, _CHUNK), b""))
            headers = {name.lower(): value for name, value in response.headers.items()}
            return HttpResponse(int(response.status or 0), str(response.reason), headers, body)
    except URLError as error:
        sent = not isinstance(error.reason, ConnectionRefusedError | socket.gaierror)
        raise NoAnswerError(str(error.reason), sent=sent) from None
    except (HTTPException, OSError, ValueError) as error:
        raise NoAnswerError(str(error) or type(error).__name__) from None


class _NoRedirects(HTTPRedirectHandler):
    """Follows no redirect: urllib would send the token to the new location."""

    def redirect_request(self, *_parts: object, **_named: object) -> None:
        """Return None, which makes a redirect an HTTP error."""


class _Bounded(io.RawIOBase):
    """A server's response as a stream that is limited in bytes and in time."""

    def __init__(self, raw: io.RawIOBase, connection: socket.socket, ends: float) -> None:
        self._raw, self._connection, self._ends, self._left = raw, connection, ends, MOST

    def readable(self) -> bool:
        """Return True."""
        return True

    def readinto(self, buffer: Any) -> int | None:
        """Read available bytes. Raises TimeoutError after the deadline, and OSError beyond the size limit."""
        seconds = self._ends - time.monotonic()
        if seconds <= 0:
            raise TimeoutError("the answer took too long")
        self._connection.settimeout(seconds)
        count: int | None = self._raw.readinto(buffer)
        self._left -= count or 0
        if self._left < 0:
            raise OSError(f"the answer is longer than {MOST >> 20} MiB")
        return count

    def close(self) -> None:
        """Close the connection."""
        self._raw.close()
        super().close()


class _Response(HTTPResponse):
    """A response that is read through ``_Bounded``."""

    def __init__(self, connection: socket.socket, *parts: Any, ends: float, **named: Any) -> None:
        super().__init__(connection, *parts, **named)
        self.fp = io.BufferedReader(_Bounded(self.fp.detach(), connection, ends))


def _bounded(kind: type[HTTPConnection], ends: float) -> Callable[..., HTTPConnection]:
    def connect(*parts: Any, **named: Any) -> HTTPConnection:
        connection = kind(*parts, **named)
        connection.response_class = partial(_Response, ends=ends)  # type: ignore[assignment] # called like the class
        return connection

    return connect


class _Plain(HTTPHandler):
    def __init__(self, ends: float) -> None:
        super().__init__()
        self._ends = ends

    def http_open(self, request: Request) -> HTTPResponse:
        """Open a URL without TLS."""
        return self.do_open(_bounded(HTTPConnection, self._ends), request)


class _Secure(HTTPSHandler):
    def __init__(self, ends: float) -> None:
        super().__init__()
        self._ends = ends

    def https_open(self, request: Request) -> HTTPResponse:
        """Open a URL with TLS, with its certificate verified."""
        return self.do_open(_bounded(HTTPSConnection, self._ends), request)


class RefusedError(UserError):
    """A server responded with an error, or not at all. ``status`` is the HTTP status, 0 without a response.

    ``passing``: whether a retry may succeed, as after a rate limit, which does not mean that rights are missing.
    ``after``: seconds until then, if known. ``done``: whether the server may have performed the request.
    """

    status: int = 0
    passing: bool = False
    after: float | None = None
    done: bool = False

    @classmethod
    def because(cls, what: str, hint: str) -> RefusedError:
        """Return the error with exit status ``Exit.UNMEASURED``."""
        return cls(UserError.of(what, hint).problems, Exit.UNMEASURED)


def is_encrypted(url: str) -> bool:
    """Return whether a secret may be sent to an address: over https, or within this machine. Raises ValueError."""
    parts = urlsplit(url)
    return parts.scheme == "https" or (parts.scheme == "http" and parts.hostname in _LOOPBACK)


def timeout(ends: float) -> float:
    """Return the seconds for one response, when all of them end at ``ends`` on the monotonic clock."""
    return max(0.01, min(TIMEOUT, ends - time.monotonic()))


def retried(attempt: Callable[[], T], ends: float, made: Callable[[], T | None] = lambda: None) -> T:
    """Return what ``attempt`` returns. Raises RefusedError if a retry cannot help or would end after ``ends``.

    ``made`` looks for what a try without a response made, so that it is not made twice.
    """
    for pause in PAUSES:
        try:
            return attempt()
        except RefusedError as error:
            wait = pause if error.after is None else error.after
            if not error.passing or time.monotonic() + wait > ends:
                raise
            time.sleep(wait)
            answer_before = made() if error.done else None
            if answer_before is not None:
                return answer_before
    return attempt()


def seconds_until(text: str | None) -> float | None:
    """Return the seconds until the time in a ``Retry-After`` header, a number or a date; None if it has neither."""
    if text is None:
        return None
    if text.isdecimal():
        return float(text[:16])
    try:
        return max(0.0, parsedate_to_datetime(text).timestamp() - time.time())
    except (ValueError, OverflowError):
        return None
