"""Find the history of a project, and open it for reading."""

from __future__ import annotations

import hashlib
import json
import os
import re
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from platformdirs import user_config_path

from perfflow.machine.private_folder import private_folder
from perfflow.model.errors import UserError
from perfflow.store.history.connections import DamagedError, PostgresConnection, SqliteConnection
from perfflow.store.history.database import History
from perfflow.store.run_folder import HISTORY, HOME, require_own, write_text

NOT_READ = "history-address"
"""A file with this name in the project's folder is not used: whoever wrote the project would choose the server."""
VARIABLE = "PERFFLOW_HISTORY"
_WAIT = 2
"""Seconds to wait for a server that is only needed to estimate the duration of a run."""
_SSL = ("disable", "allow", "prefer", "require", "verify-ca", "verify-full")
_ADDRESS = re.compile(
    r"postgresql(?:\+psycopg)?://(?:[A-Za-z0-9_.%+-]+@)?(?:[A-Za-z0-9._-]+|\[[0-9A-Fa-f:.]+\])?(?::[0-9]{1,5})?"
    rf"/[A-Za-z0-9_.$-]+(?:\?sslmode=(?:{'|'.join(_SSL)}))?"
)
_PASSWORD = re.compile(r"[a-z0-9+]+://[^/@]*:[^/]*@.*")


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
        """The place as text, which never contains a password."""
        return self.address or str(self.file)


def place_of(root: Path) -> Place:
    """Return the place set by PERFFLOW_HISTORY or stored by ``history use``, else the project's own file.

    Raises UserError for an address that is not valid, and for links out of the project.
    """
    require_own(root)
    address = os.environ.get(VARIABLE, "").strip() or _stored(root)
    return Place(root, checked(address) if address else "")


def store(root: Path, address: str) -> None:
    """Store the address of a project's history in the user's configuration, or remove it for ''. Raises OSError."""
    path = _settings(root)
    if not address:
        path.unlink(missing_ok=True)
        return
    path.parent.parent.mkdir(parents=True, exist_ok=True)
    private_folder(path.parent, below=path.parent.parent)
    write_text(path, f"{json.dumps({'project': os.path.realpath(root), 'address': address})}\n")


def _stored(root: Path) -> str:
    try:
        about = json.loads(_settings(root).read_text(encoding="utf-8"))
        return str(about["address"])
    except (OSError, ValueError, TypeError, KeyError):
        return ""


def _settings(root: Path) -> Path:
    """Return the file with the address of a project's history: outside of the project, named by its real path."""
    name = hashlib.sha256(os.fsencode(os.path.realpath(root))).hexdigest()[:16]
    return user_config_path("perfflow") / "histories" / f"{name}.json"


def checked(address: str) -> str:
    """Return the address of a server: user, host, port, database and sslmode. Raises UserError for anything else.

    Other parameters of a connection can name files to read, programs and other servers.
    """
    if not address.startswith(("postgresql://", "postgresql+psycopg://")):
        hint = f"write postgresql://USER@HOST/DATABASE, or unset {VARIABLE} to use the project's own file"
        raise UserError.of("the address of the history is not a PostgreSQL address", hint)
    if _PASSWORD.fullmatch(address):
        hint = "set PGPASSWORD, or write it to ~/.pgpass; the address is stored and shown"
        raise UserError.of("the address of the history contains a password", hint)
    if not _ADDRESS.fullmatch(address):
        hint = f"write postgresql://USER@HOST:PORT/DATABASE?sslmode=MODE, where MODE is {', '.join(_SSL)}"
        raise UserError.of("the address of the history may have a user, host, port, database and sslmode only", hint)
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
