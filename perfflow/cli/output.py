"""Writes to stdout and stderr. A reader that closes its end, or does not read, does not stop a run."""

from __future__ import annotations

import errno
import io
import os
import select
import stat
import sys
from collections.abc import Iterable

from perfflow.cli.style import style_of
from perfflow.model.errors import Exit, UserError
from perfflow.report.sanitize import ascii_text
from perfflow.store.write_failure import write_remedy

_PIECE = select.PIPE_BUF
"""Bytes that a pipe accepts without blocking after poll(2) reports it ready."""


_PATIENCE = 1.0


_waiting = True
"""Whether to wait for a full stderr. False after one wait without success."""


_is_read = True
"""Whether stdout still has a reader. False after a text was lost."""


def say(text: str, *, end: str = "\n") -> bool:
    """Print to stdout. If the reader is gone, such as ``head`` or a terminal, drop the text and keep the exit status.

    Returns whether all was printed. Raises UserError if the stream is a file that cannot be written, since the verdict
    would be lost.
    """
    global _is_read  # noqa: PLW0603 (one stream a process)
    try:
        _write(text + end)
    except BrokenPipeError:
        _is_read = False
        _to_nowhere(1)
    except OSError as error:
        gone = error.errno == errno.EIO and stat.S_ISCHR(os.fstat(1).st_mode)
        _is_read = False
        if not gone:
            raise lost_output(error) from error
        _to_nowhere(1)
        return False
    return _is_read


def lost_output(error: OSError) -> UserError:
    """Return the error to raise if stdout is a file that cannot be written. Later output to it is dropped."""
    # Flushing the buffer at exit would fail again, with Python's own exit status.
    _to_nowhere(1)
    what = f"cannot write to standard output: {error.strerror}"
    hint = f"{write_remedy(error)} where the output goes, or send it elsewhere; `perfflow report` shows stored runs"
    return UserError.of(what, hint, Exit.UNMEASURED)


def _write(text: str) -> None:
    """Write a whole text to stdout; characters that it cannot encode are spelled out. Raises OSError."""
    stream = sys.stdout
    if stream is None:
        return
    try:
        stream.flush()
        number = stream.fileno()
    except (io.UnsupportedOperation, ValueError):  # not a file descriptor
        stream.write(text)
        return
    # Python itself loses the rest of a text that is written in part, if PYTHONUNBUFFERED is set.
    data = memoryview(text.encode(stream.encoding or "utf-8", "backslashreplace"))
    while data:
        try:
            data = data[os.write(number, data) :]
        except BlockingIOError:  # another program made it non-blocking
            _takes(number, None)


def say_page(lines: Iterable[str]) -> None:
    """Print lines in characters that stdout can encode. The lines already fit the terminal."""
    text = "\n".join(lines)
    say(text if style_of(sys.stdout).unicode else ascii_text(text))


def tell(text: str) -> None:
    """Write to stderr. Drop the text if the reader does not read within a second, and all text if it is gone."""
    global _waiting  # noqa: PLW0603 (one stream a process)
    if sys.stderr is None:
        return
    text = text if style_of(sys.stderr).unicode else ascii_text(text)
    try:
        number = sys.stderr.fileno()
    except (io.UnsupportedOperation, ValueError):  # not a file descriptor, so it cannot be full
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


def _takes(number: int, seconds: float | None) -> bool:
    """Wait for a write that does not block, as it does on a full pipe or a terminal stopped by ^S. None: no limit."""
    poller = select.poll()
    poller.register(number, select.POLLOUT)
    return bool(poller.poll(None if seconds is None else seconds * 1000))


def _to_nowhere(number: int) -> None:
    os.dup2(os.open(os.devnull, os.O_WRONLY), number)
