"""Replace the contents of a file in the user's project."""

from __future__ import annotations

import os
import stat
from pathlib import Path

from perfflow.model.errors import UserError


def replace_file(path: Path, shown: str, before: bytes, after: bytes, remedy: str) -> None:
    """Replace the contents of a file atomically and keep its mode.

    Raises UserError, with ``remedy`` as its hint, if the file cannot be written, or differs from ``before``.
    """
    fresh = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        if path.read_bytes() != before:
            raise UserError.of(f"{shown} was changed by another program, so it is not written", remedy)
        mode = stat.S_IMODE(path.stat().st_mode)
        with os.fdopen(os.open(fresh, os.O_WRONLY | os.O_CREAT | os.O_EXCL, mode), "wb") as stream:
            os.fchmod(stream.fileno(), mode)
            stream.write(after)
            stream.flush()
            os.fsync(stream.fileno())
        fresh.replace(path)
    except OSError as error:
        raise UserError.of(f"{shown} cannot be written: {error.strerror}", remedy) from error
    finally:
        fresh.unlink(missing_ok=True)
