"""A history in a file, and in a real PostgreSQL server that a test starts."""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
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
def server(folder: Path) -> Iterator[str]:
    """Start a server with an empty database and yield its address. It refuses root, so root becomes postgres."""
    programs = PROGRAMS[-1] if PROGRAMS else Path(shutil.which("initdb") or "").parent
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    folder.mkdir(parents=True)
    become: list[str] = []
    if os.geteuid() == 0:
        shutil.chown(folder, "postgres")
        become = ["runuser", "-u", "postgres", "--"]

    def call(program: str, *words: str) -> None:
        # Every time, because another pytest session closes the folder that all share.
        for above in folder.parents if become else ():
            if above.stat().st_mode & 0o001 == 0 and above != Path("/"):
                above.chmod(above.stat().st_mode | 0o011)
        subprocess.run([*become, str(programs / program), *words], check=True, capture_output=True, cwd="/")

    data, log = str(folder / "data"), str(folder / "log")
    call("initdb", "-D", data, "-A", "trust", "-U", "tester", "--no-sync")
    options = f"-p {port} -c listen_addresses=127.0.0.1 -c unix_socket_directories={folder} -c fsync=off"
    call("pg_ctl", "-D", data, "-l", log, "-w", "-t", PATIENCE, "-o", options, "start")
    try:
        call("createdb", "-h", "127.0.0.1", "-p", str(port), "-U", "tester", "perfflow")
        yield f"postgresql://tester@127.0.0.1:{port}/perfflow"
    finally:
        call("pg_ctl", "-D", data, "-m", "immediate", "-t", PATIENCE, "stop")
