"""Find the history of a project, and open it for reading."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from perfflow.model.errors import UserError
from perfflow.model.lazy import dataclass
from perfflow.store.run_folder import HISTORY, HOME

if TYPE_CHECKING:
    from perfflow.store.history.database import History

ADDRESS = "history-address"
"""File with the address of a shared server. git ignores it, because the address may contain a password."""
VARIABLE = "PERFFLOW_HISTORY"
_WAIT = 2
"""Seconds to wait for a server that is only needed to estimate the duration of a run."""


@dataclass(frozen=True)
class Place:
    """The place of a project's history: the address of a server, or '' for the file in its own folder."""

    root: Path
    address: str

    @property
    def file(self) -> Path:
        """The file of a history in the project's own folder."""
        return self.root / HOME / HISTORY

    @property
    def shown(self) -> str:
        """The place without a password."""
        if not self.address:
            return str(self.file)
        scheme, _, rest = self.address.partition("://")
        user, at, host = rest.rpartition("@")
        return f"{scheme}://{user.partition(':')[0]}{at}{host}"


def place_of(root: Path) -> Place:
    """Return the place set by PERFFLOW_HISTORY or stored by ``history use``, else the project's own file."""
    address = os.environ.get(VARIABLE, "").strip()
    if not address:
        try:
            address = (root / HOME / ADDRESS).read_text(encoding="utf-8").strip()
        except OSError:
            address = ""
    return Place(root, checked(address) if address else "")


def checked(address: str) -> str:
    """Return the address of a server. Raises UserError if it is not valid."""
    if not address.startswith(("postgresql://", "postgresql+psycopg://")):
        hint = f"write postgresql://USER@HOST/DATABASE, or unset {VARIABLE} to use the project's own file"
        raise UserError.of("the address of the history is not a PostgreSQL address", hint)
    return address


@contextmanager
def open_for_reading(root: Path, *, server: bool) -> Iterator[History | None]:
    """Open the history for reading; None if there is none or it cannot be read.

    ``server``: whether to connect to a server. Commands that only show data do not.
    """
    place = place_of(root)
    if not (server if place.address else place.file.is_file()):
        yield None
        return
    from perfflow.store.history.connections import DamagedError, PostgresConnection, SqliteConnection
    from perfflow.store.history.database import History

    history: History | None = None
    try:
        address = place.address
        own = PostgresConnection(address, _WAIT) if address else SqliteConnection(place.file, read_only=True)
        history = History(own)
    except (UserError, DamagedError):
        history = None
    try:
        yield history
    finally:
        if history:
            history.close()
