"""One HTTP request whose response, including its headers, is limited in bytes and in time.

The standard library only limits each wait for the next byte, so a server that sends a byte now and then never times
out.
"""

from __future__ import annotations

import io
import json
import socket
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import partial
from http.client import HTTPConnection, HTTPException, HTTPResponse, HTTPSConnection
from typing import Any
from urllib.error import HTTPError, URLError
from urllib.request import HTTPHandler, HTTPRedirectHandler, HTTPSHandler, Request, build_opener

MOST = 32 * 2**20
"""The most bytes of one response. A page of a hundred comments has about 7 MiB."""
_CHUNK = 2**16


class NoAnswerError(Exception):
    """There was no readable response. ``sent``: whether the server may have received the request."""

    def __init__(self, reason: str, *, sent: bool = True) -> None:
        super().__init__(reason)
        self.sent = sent


@dataclass(frozen=True)
class Answer:
    """A server's response. Names of ``headers`` are lower case; ``data`` is None if the body is not JSON."""

    status: int
    reason: str
    headers: Mapping[str, str] = field(default_factory=dict)
    data: Any = None


def ask(request: Request, seconds: float) -> Answer:
    """Send a request and read the response, both within ``seconds``. Raises NoAnswerError.

    Redirects are not followed, so that the token goes to no other host.
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
            return Answer(int(response.status or 0), str(response.reason), headers, _decoded(body, response.status))
    except URLError as error:
        sent = not isinstance(error.reason, ConnectionRefusedError | socket.gaierror)
        raise NoAnswerError(str(error.reason), sent=sent) from None
    except (HTTPException, OSError, ValueError, RecursionError) as error:
        raise NoAnswerError(str(error) or type(error).__name__) from None


def _decoded(body: bytes, status: int | None) -> Any:
    """Return the JSON of a body. Raises ValueError if a success has none; an error may have an HTML page instead."""
    try:
        return json.loads(body or b"null")
    except (ValueError, RecursionError):
        if status and status < 300:
            raise ValueError("the answer is not JSON") from None
        return None


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
