"""A Slurm of two nodes on this machine for as long as a benchmark needs it."""

from __future__ import annotations

import os
import random
import shutil
import socket
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

SCRIPT = Path(__file__).parents[1] / "scripts" / "slurm"
PORT = "PERFFLOW_SLURM_PORT"
PATH = f"{os.environ.get('PATH', '')}:/usr/sbin:/sbin"
"""Debian puts daemons where only root's PATH leads."""


def missing() -> str:
    """What is not installed; '' where all is."""
    absent = [name for name in ("slurmctld", "slurmd", "sbatch", "srun") if shutil.which(name, path=PATH) is None]
    hint = "Debian: apt-get install slurmctld slurmd slurm-client"
    return f"{', '.join(absent)}: not installed ({hint})" if absent else ""


@contextmanager
def two_nodes(folder: Path) -> Iterator[Path]:
    """Start the nodes, with their files in a folder, and stop them. Yields the file that SLURM_CONF is to name.

    Raises CalledProcessError where they do not start.
    """
    env = {**os.environ, PORT: os.environ.get(PORT) or str(free_port())}
    try:
        subprocess.run(["sh", str(SCRIPT), "start", str(folder)], env=env, check=True, stdout=subprocess.DEVNULL)
        yield folder / "slurm.conf"
    finally:
        subprocess.run(["sh", str(SCRIPT), "stop", str(folder)], env=env, check=False)


def free_port() -> int:
    """A port that is free, as are those that the nodes take: 10 and 11 above it."""
    while True:
        port = random.randrange(17000, 30000)
        try:
            for used in (port, port + 10, port + 11):
                with socket.socket() as probe:
                    probe.bind(("127.0.0.1", used))
        except OSError:
            continue
        return port


def processes(text: str) -> list[int]:
    """Process ids whose command line holds a text, without zombies."""
    found = []
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            words = path.read_bytes()
        except OSError:
            continue
        if text.encode() in words:
            found.append(int(path.parent.name))
    return found
