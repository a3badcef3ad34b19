"""Share builds between jobs on machines of the same kind: the trees and the outputs of the build steps, by a key.

The key covers the code, the workflow, the kind of machine, and the folder, since programs contain paths. If all nodes
of a cluster use the same folder on their own disks, each kind of node builds once.
"""

from __future__ import annotations

import hashlib
import json
import os
import secrets
import subprocess
import threading
import time
from collections.abc import Collection, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path

from perfflow.jobs.cluster.job_folder import BEAT, Work
from perfflow.machine.facts import facts
from perfflow.model.plain_data import from_json, to_json
from perfflow.model.readings import Side
from perfflow.store import run_folder
from perfflow.store.run_folder import write_text
from perfflow.trees.repository import home_of
from perfflow.trees.rmtree import remove_tree

_NOTE = "perfflow-built-for"
"""A file in a clone's git folder with the key of the build in the clone and its trees."""
_SILENCE = 60.0
"""Seconds without a touched claim after which a builder counts as dead."""


@dataclass(frozen=True)
class Built:
    """The outputs of build steps, by side and step. Empty if the build failed; each job then reports that itself."""

    outputs: Mapping[Side, Mapping[str, Mapping[str, str]]] = field(default_factory=dict)


def key_of(work: Work, clone: Path) -> str:
    """Return a hash of everything that a build depends on."""
    parts = [dict(work.states), work.digest, facts()["identity"], str(clone), work.version]
    return hashlib.sha256(json.dumps(parts, sort_keys=True).encode()).hexdigest()[:16]


class Builds:
    """The builds of one run: a folder for each key, which all its jobs can read."""

    def __init__(self, work: Work, clone: Path) -> None:
        self.key = key_of(work, clone)
        self._folder = Path(work.source).parent / "builds" / self.key
        self._clone, self._trees = clone, home_of(clone)

    def stored(self) -> Built | None:
        """Return another job's build, and unpack it here; None if there is none. Raises OSError."""
        try:
            found = from_json(Built, json.loads((self._folder / "built.json").read_text(encoding="utf-8")))
        except FileNotFoundError:
            return None
        if found.outputs and not self._stands():
            self._unpack()
        return found

    @contextmanager
    def building(self) -> Iterator[bool]:
        """Claim the build, and touch the claim while the block runs. Yield False after waiting for another builder."""
        self._folder.mkdir(parents=True, exist_ok=True)
        claim = self._folder / "builder"
        while True:
            with suppress(FileExistsError):
                os.close(os.open(claim, os.O_CREAT | os.O_EXCL | os.O_WRONLY | os.O_CLOEXEC, 0o644))
                break
            if not self._waited(claim):
                yield False
                return
        over = threading.Event()
        beating = threading.Thread(target=_beat, args=(claim, over), daemon=True)
        beating.start()
        try:
            yield True
        finally:
            over.set()
            beating.join()
            claim.unlink(missing_ok=True)

    def keep(self, built: Built) -> None:
        """Store the build of this machine for other machines. Raises OSError."""
        if built.outputs:
            names = [str(path) for path in (self._clone, self._trees) if path.is_dir()]
            without = [f"--exclude={self._clone / name}" for name in (".git", run_folder.HOME)]
            fresh = self._folder / f".trees.{secrets.token_hex(8)}"
            # The posix format keeps fractions of seconds in times, which build tools compare.
            argv = ["tar", "--create", "--format=posix", "--absolute-names", f"--file={fresh}", *without, *names]
            subprocess.run(argv, check=True, stdin=subprocess.DEVNULL)
            fresh.replace(self._folder / "trees.tar")
            self._note()
        write_text(self._folder / "built.json", json.dumps(to_json(built)))

    def _waited(self, claim: Path) -> bool:
        """Wait until the other builder ends; return True if it died, after removing its claim."""
        before, since = None, time.monotonic()
        while not (self._folder / "built.json").exists():
            try:
                now = claim.stat().st_mtime
            except FileNotFoundError:
                return not (self._folder / "built.json").exists()
            if now != before:
                before, since = now, time.monotonic()
            elif time.monotonic() > since + _SILENCE:
                return self._taken_over(claim, before)
            time.sleep(BEAT / 4)
        return False

    def _taken_over(self, claim: Path, beat: float) -> bool:
        """Remove the claim of a dead builder, whose last touch was at ``beat``; return True.

        Another waiter may have removed it, and claimed the build itself, since this one looked. So the claim is renamed
        first, which only one waiter can do, and put back if it is not the one that was watched.
        """
        dead = claim.with_name(f".{claim.name}.{secrets.token_hex(8)}")
        try:
            claim.rename(dead)
        except FileNotFoundError:
            return True
        if dead.stat().st_mtime != beat:
            with suppress(FileExistsError):
                os.link(dead, claim)
        dead.unlink()
        return True

    def _stands(self) -> bool:
        try:
            return (self._clone / ".git" / _NOTE).read_text(encoding="utf-8") == self.key
        except OSError:
            return False

    def _note(self) -> None:
        write_text(self._clone / ".git" / _NOTE, self.key)

    def _unpack(self) -> None:
        if self._trees.exists():
            remove_tree(self._trees)
        for path in self._clone.iterdir():
            if path.name not in (".git", run_folder.HOME):
                if path.is_dir() and not path.is_symlink():
                    remove_tree(path)
                else:
                    path.unlink()
        argv = ["tar", "--extract", "--absolute-names", f"--file={self._folder / 'trees.tar'}"]
        subprocess.run(argv, check=True, stdin=subprocess.DEVNULL)
        self._note()


def _beat(claim: Path, over: threading.Event) -> None:
    while not over.wait(BEAT):
        with suppress(OSError):
            os.utime(claim)


def outputs_of(run: Path, steps: Collection[str]) -> Built:
    """Return the outputs of a run's build steps on each side; empty if one of them failed."""
    found: dict[Side, dict[str, dict[str, str]]] = {}
    for event in run_folder.own_events(run):
        if event.get("event") == "step" and event["id"] in steps:
            if event["status"] != "done":
                return Built()
            side = Side.BASELINE if event.get("trial") else Side.CANDIDATE
            found.setdefault(side, {})[event["id"]] = event.get("outputs", {})
    return Built(found)
