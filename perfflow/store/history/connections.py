"""Connections to a history: SQLite through the standard library, PostgreSQL through SQLAlchemy (an extra).

Both accept the same statements, with named parameters, and return rows as tuples.
"""

from __future__ import annotations

import contextlib
import os
import sqlite3
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

from perfflow.model.errors import Exit, UserError
from perfflow.store.history import schema

if TYPE_CHECKING:
    from sqlalchemy import Connection as ServerConnection

PATIENCE = 60
"""Seconds that one writer waits for another."""
_MOMENT = 1000
"""Milliseconds after which a writer reports that it waits."""
_LOCK = 0x70657266
"""Advisory lock of PostgreSQL writers: a number that nothing else in the database uses."""
_EXTRA = f"{sys.executable} -m pip install sqlalchemy 'psycopg[binary]' (the extra `postgres` has them)"
Values = Mapping[str, object]


class AwayError(UserError):
    """The store cannot be reached now. The data can be sent later."""


class DamagedError(Exception):
    """The file is not a database, or a part of it cannot be read."""


class Connection(Protocol):
    """One connection; ``words`` are the parts of the table definitions that depend on the database."""

    words: Mapping[str, str]
    read_only: bool

    def rows(self, statement: str, values: Values | None = None) -> list[tuple[Any, ...]]:
        """Return the rows of a query; none for a statement without a result."""

    def many(self, statement: str, values: Sequence[Values]) -> None:
        """Execute a statement once for each set of values."""

    def writing(self) -> contextlib.AbstractContextManager[None]:
        """Open a transaction: all of it or nothing, with no other writer meanwhile."""

    def has_tables(self) -> bool:
        """Return whether the tables exist."""

    def close(self) -> None:
        """Close the connection."""


class SqliteConnection:
    """A SQLite file. Raises DamagedError if it is not a SQLite database, AwayError if it cannot be opened.

    ``read_only``: never write to it, without creating a missing file. ``waiting`` is called if another process writes.
    """

    words = schema.SQLITE

    def __init__(self, path: Path, *, read_only: bool = False, waiting: Callable[[], None] = lambda: None) -> None:
        self._path, self._waiting, self.read_only = path, waiting, read_only
        try:
            if read_only:
                # Where SQLite cannot create its shared memory, it reads only files that it may take for unchanging.
                way = "mode=ro" if os.access(path.parent, os.W_OK) else "immutable=1"
                self._own = sqlite3.connect(f"{path.absolute().as_uri()}?{way}", uri=True, isolation_level=None)
                return
            self._own = sqlite3.connect(path, timeout=PATIENCE, isolation_level=None)
            with self._told():
                self._patiently("PRAGMA journal_mode = WAL")
                # A killed process loses no committed data; a power failure may.
                self._own.execute("PRAGMA synchronous = NORMAL")
                self._own.execute("PRAGMA foreign_keys = ON")
        except sqlite3.OperationalError as error:
            raise self._away(error) from error

    def _patiently(self, statement: str) -> None:
        """Execute a statement that waits for other writers, and report if that takes more than a moment."""
        self._own.execute(f"PRAGMA busy_timeout = {_MOMENT}")
        try:
            self._own.execute(statement)
        except sqlite3.OperationalError as error:
            if error.sqlite_errorcode & 0xFF != sqlite3.SQLITE_BUSY:
                raise
            self._waiting()
            self._own.execute(f"PRAGMA busy_timeout = {PATIENCE * 1000}")
            self._own.execute(statement)
        finally:
            self._own.execute(f"PRAGMA busy_timeout = {PATIENCE * 1000}")

    @contextlib.contextmanager
    def _told(self) -> Iterator[None]:
        try:
            yield
        except sqlite3.OperationalError as error:
            raise self._away(error) from error
        except sqlite3.DatabaseError as error:
            raise DamagedError(str(error)) from error

    def _away(self, error: sqlite3.OperationalError) -> UserError:
        hint = "check the disk's space and the folder's permissions; the runs themselves are kept"
        return AwayError.of(f"{self._path}: {error}", hint, Exit.UNMEASURED)

    def rows(self, statement: str, values: Values | None = None) -> list[tuple[Any, ...]]:
        """Return the rows of a query; none for a statement without a result."""
        with self._told():
            return self._own.execute(statement, dict(values or {})).fetchall()

    def many(self, statement: str, values: Sequence[Values]) -> None:
        """Execute a statement once for each set of values."""
        with self._told():
            self._own.executemany(statement, values)

    @contextlib.contextmanager
    def writing(self) -> Iterator[None]:
        """Open a transaction: all of it or nothing, with no other writer meanwhile."""
        with self._told():
            self._patiently("BEGIN IMMEDIATE")
        try:
            yield
        except BaseException:
            self._own.rollback()
            raise
        self.rows("COMMIT")

    def has_tables(self) -> bool:
        """Return whether the tables exist."""
        return bool(self.rows("SELECT 1 FROM sqlite_master WHERE type = 'table' AND name = 'about'"))

    def close(self) -> None:
        """Close the connection."""
        self._own.close()


class PostgresConnection:
    """A PostgreSQL database that several machines share. Raises AwayError if connecting takes more than ``wait`` s."""

    words = schema.POSTGRESQL
    read_only = False

    def __init__(self, url: str, wait: int = 10) -> None:
        try:
            import sqlalchemy
            from sqlalchemy.exc import ArgumentError, SQLAlchemyError
        except ModuleNotFoundError as error:
            raise UserError.of(
                "a history in PostgreSQL needs SQLAlchemy and psycopg", f"install them: {_EXTRA}"
            ) from error
        self._text, self._error = sqlalchemy.text, SQLAlchemyError
        try:
            self._address = sqlalchemy.make_url(url)
            if self._address.drivername == "postgresql":
                self._address = self._address.set(drivername="postgresql+psycopg")
            self._engine = sqlalchemy.create_engine(self._address, connect_args={"connect_timeout": wait})
        except ModuleNotFoundError as error:
            raise UserError.of(f"a history in PostgreSQL needs {error.name}", f"install it: {_EXTRA}") from error
        except ArgumentError as error:
            hint = "write postgresql://USER@HOST/DATABASE"
            raise UserError.of("the address of the history is not a database address", hint) from error
        with self._told():
            self._own: ServerConnection = self._engine.connect()

    @contextlib.contextmanager
    def _told(self) -> Iterator[None]:
        try:
            yield
        except self._error as error:
            # Statements and addresses may contain secrets, so show only the first line of the driver's message.
            said = str(getattr(error, "orig", None) or error).strip().splitlines() or [type(error).__name__]
            hint = "is the server running, and may this user write there? The measured values are kept and sent later"
            raise AwayError.of(f"{self._address.render_as_string()}: {said[0]}", hint, Exit.UNMEASURED) from error

    def rows(self, statement: str, values: Values | None = None) -> list[tuple[Any, ...]]:
        """Return the rows of a query; none for a statement without a result."""
        with self._told():
            found = self._own.execute(self._text(statement), dict(values or {}))
            return [tuple(row) for row in found] if found.returns_rows else []

    def many(self, statement: str, values: Sequence[Values]) -> None:
        """Execute a statement once for each set of values."""
        if values:
            with self._told():
                self._own.execute(self._text(statement), values)

    @contextlib.contextmanager
    def writing(self) -> Iterator[None]:
        """Open a transaction: all of it or nothing, with no other writer meanwhile."""
        self._own.rollback()
        # Two writers that insert the same rows in different orders would deadlock.
        self.rows(f"SELECT pg_advisory_xact_lock({_LOCK})")
        try:
            yield
        except BaseException:
            self._own.rollback()
            raise
        with self._told():
            self._own.commit()

    def has_tables(self) -> bool:
        """Return whether the tables exist."""
        # A session caches names that it has looked up, but not the contents of this table.
        tables = "SELECT 1 FROM pg_catalog.pg_tables WHERE tablename = 'about' AND schemaname = current_schema()"
        return bool(self.rows(tables))

    def close(self) -> None:
        """Close the connection."""
        self._own.close()
        self._engine.dispose()
