"""A history in a file, and in a real PostgreSQL server that a test starts."""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

PATIENCE = "600"
"""Seconds for the server to start or stop on a busy machine."""
PROGRAMS = sorted(Path("/usr/lib/postgresql").glob("*/bin"))


def has_server() -> bool:
    """Return whether the PostgreSQL server is installed (apt-get install postgresql)."""
    return bool(PROGRAMS) or bool(shutil.which("initdb"))


@contextmanager
def server() -> Iterator[str]:
    """Start a server with an empty database and yield its address. It refuses root, so root becomes postgres."""
    programs = PROGRAMS[-1] if PROGRAMS else Path(shutil.which("initdb") or "").parent
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    # Outside pytest's folder, which only its owner may enter.
    with tempfile.TemporaryDirectory(prefix="perfflow-postgres-") as folder:
        become: list[str] = []
        if os.geteuid() == 0:
            shutil.chown(folder, "postgres")
            become = ["runuser", "-u", "postgres", "--"]

        def call(program: str, *words: str) -> None:
            subprocess.run([*become, str(programs / program), *words], check=True, capture_output=True, cwd="/")

        data, log = f"{folder}/data", f"{folder}/log"
        call("initdb", "-D", data, "-A", "trust", "-U", "tester", "--no-sync")
        options = f"-p {port} -c listen_addresses=127.0.0.1 -c unix_socket_directories={folder} -c fsync=off"
        call("pg_ctl", "-D", data, "-l", log, "-w", "-t", PATIENCE, "-o", options, "start")
        try:
            call("createdb", "-h", "127.0.0.1", "-p", str(port), "-U", "tester", "perfflow")
            yield f"postgresql://tester@127.0.0.1:{port}/perfflow"
        finally:
            call("pg_ctl", "-D", data, "-m", "immediate", "-t", PATIENCE, "stop")
