"""Text to the streams. A reader that goes away, or does not read, is no reason to stop what is measured."""

from __future__ import annotations

import errno
import io
import os
import select
import stat
import sys
from collections.abc import Iterable

import click

from perfflow.cli.style import style_of
from perfflow.model.errors import Exit, UserError
from perfflow.report.sanitize import ascii_text

_PIECE = select.PIPE_BUF
"""A pipe that poll(2) calls ready takes so many bytes without waiting."""
_PATIENCE = 1.0
_waiting = True
"""Whether a full stderr is waited for; after it was in vain once, not any more."""


def say(text: str, *, end: str = "\n") -> None:
    """Print to stdout; after the reader has gone, as ``head`` or a terminal does, nowhere: no status changes.

    Raises UserError where the stream is a file that cannot be written: nobody would see the verdict.
    """
    try:
        # Colour was decided before, once; click must not decide it again.
        click.echo(text + end, nl=False, color=True)
    except BrokenPipeError:
        _to_nowhere(1)
    except OSError as error:
        # What is still buffered would fail once more at the end, with an exit status of Python's own.
        gone = error.errno == errno.EIO and stat.S_ISCHR(os.fstat(1).st_mode)
        _to_nowhere(1)
        if gone:
            return
        what = f"cannot write to standard output: {error.strerror}"
        raise UserError.of(what, "`perfflow report` prints the verdict again", Exit.UNMEASURED) from error


def say_page(lines: Iterable[str]) -> None:
    """Print lines in characters that stdout understands; they fit its terminal already."""
    text = "\n".join(lines)
    say(text if style_of(sys.stdout).unicode else ascii_text(text))


def tell(text: str) -> None:
    """Write to stderr; what its reader does not take within a second is left out, after it has gone all."""
    global _waiting  # noqa: PLW0603 (one stream a process)
    if sys.stderr is None:
        return
    try:
        number = sys.stderr.fileno()
    except (io.UnsupportedOperation, ValueError):  # no stream of the system: it cannot be full
        sys.stderr.write(text)
        return
    try:
        sys.stderr.flush()
        data = text.encode(sys.stderr.encoding or "utf-8", "backslashreplace")
        while data:
            _waiting = _takes(number, _PATIENCE if _waiting else 0)
            if not _waiting:
                return
            data = data[os.write(number, data[:_PIECE]) :]
    except OSError:
        _to_nowhere(number)


def _takes(number: int, seconds: float) -> bool:
    """Whether a write would not have to wait for a reader: a full pipe, a terminal that is held by ^S."""
    poller = select.poll()
    poller.register(number, select.POLLOUT)
    return bool(poller.poll(seconds * 1000))


def _to_nowhere(number: int) -> None:
    os.dup2(os.open(os.devnull, os.O_WRONLY), number)
