"""Run a Python program as ``python`` itself would, and record every SQL statement that its sqlite3 connections run.

    python [flags] python_run.py --under=sqlite_run.py FILE script|module|code TARGET [ARGUMENT ...]

FILE has one JSON string per statement, with its values, and a last line ``{"status": 0, "statements": 12}``. Only
connections of this process that ``sqlite3.connect`` returns are traced, not those of child processes. A trace callback
that the program sets replaces this one.

Run by the measured interpreter, so: standard library only, and nothing newer than Python 3.8.
"""

# ruff: noqa: PTH100, PTH105, PTH123

from __future__ import annotations

import functools
import json
import os
import sqlite3
import sqlite3.dbapi2
import threading
from typing import Any


class Log:
    """A file of statements, safe for several threads."""

    def __init__(self, path: str) -> None:
        # Under another name until the program has ended, so that the final file is always complete.
        self._path, self._growing = path, path + ".part"
        self._stream = open(self._growing, "w", encoding="utf-8")  # noqa: SIM115 (closed when the program ends)
        self._lock, self._owner = threading.Lock(), os.getpid()
        self._statements = 0

    def add(self, statement: str) -> None:
        """Write one statement, unless this is a forked child."""
        if os.getpid() == self._owner:
            with self._lock:
                if not self._stream.closed:
                    self._stream.write(json.dumps(statement) + "\n")
                    self._statements += 1

    def end(self, status: int) -> None:
        """Write the last line."""
        with self._lock:
            self._stream.write(json.dumps({"status": status, "statements": self._statements}) + "\n")
            self._stream.close()
        os.replace(self._growing, self._path)


def main(runner: Any, words: list[str]) -> None:
    """Run the program of the command line. Its exceptions end this process as they would have ended the program."""
    log = Log(os.path.abspath(words[0]))
    # The audit event of a new connection comes before it can be traced (CPython 3.11), so connect itself is wrapped.
    connect: Any = sqlite3.connect

    @functools.wraps(connect)
    def connect_and_trace(*arguments: Any, **named: Any) -> Any:
        connection = connect(*arguments, **named)
        connection.set_trace_callback(log.add)
        return connection

    sqlite3.connect = sqlite3.dbapi2.connect = connect_and_trace
    runner.watch(words[1:], runner.perfflow_program, log.end)
