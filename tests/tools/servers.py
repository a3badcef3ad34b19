"""A server for load generators: it answers 200, or the status in the path, such as /500.

At /form it wants the form of ``FORM``, and answers 400 to everything else.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Mapping
from functools import cache
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

DEAD = "http://127.0.0.1:1/"
"""An address where nothing listens."""


FORM: Mapping[str, Any] = {"method": "POST", "body": "a=b c&d", "headers": ["X-Word: one two", "X-Other: 3"]}
"""Options of the load generators."""


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    # Otherwise the system delays the second of two short packets.
    disable_nagle_algorithm = True

    def do_GET(self) -> None:
        length = int(self.headers.get("Content-Length", 0))
        body = self.rfile.read(length).decode()
        found: dict[str, Any] = {"method": self.command, "body": body}
        found["headers"] = [f"{name}: {self.headers[name]}" for name in ("X-Word", "X-Other")]
        status = (200 if found == FORM else 400) if self.path == "/form" else int(self.path[1:] or 200)
        self.send_response(status)
        self.send_header("Content-Length", "5")
        self.end_headers()
        self.wfile.write(b"hello")

    do_POST = do_GET  # noqa: N815 (the name that http.server calls)

    def log_message(self, *_words: object) -> None:
        """Print nothing."""


class _Server(ThreadingHTTPServer):
    def handle_error(self, *_request: object) -> None:
        """Say nothing of connections that the client resets."""


@cache
def address() -> str:
    """Return the address of a server that runs until the tests end."""
    server = _Server(("127.0.0.1", 0), _Handler)
    threading.Thread(target=server.serve_forever, daemon=True, name=f"server of {os.getpid()}").start()
    return f"http://127.0.0.1:{server.server_port}"
