"""What one job built for all that follow on machines of its kind: the trees and what the build steps put out, by a key.

The key names the code, the workflow, the kind of machine and the folder, since programs hold paths. So on a cluster
whose nodes work in the same folder of their own disks each kind of node builds once.
"""

from __future__ import annotations

import hashlib
import json
import os
import subprocess
import threading
import time
from collections.abc import Collection, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import field
from pathlib import Path

from perfflow.jobs.cluster.job_folder import BEAT, Work
from perfflow.machine.facts import facts
from perfflow.model.later import dataclass
from perfflow.model.plain_data import from_json, to_json
from perfflow.model.readings import Side
from perfflow.store import folder as rundir
from perfflow.store.folder import write_text
from perfflow.trees.repository import home_of
from perfflow.trees.rmtree import remove_tree

_NOTE = "perfflow-built-for"
"""A file in a clone's git folder: the key of what stands built in it and in its trees."""
_SILENCE = 60.0
"""Seconds after which a builder that was not heard of is taken for dead."""


@dataclass(frozen=True)
class Built:
    """What build steps put out, by side and step; nothing where the build failed, which each job then shows itself."""

    outputs: Mapping[Side, Mapping[str, Mapping[str, str]]] = field(default_factory=dict)


def key_of(work: Work, clone: Path) -> str:
    """Name what a build depends on."""
    parts = [dict(work.states), work.digest, facts()["identity"], str(clone), work.version]
    return hashlib.sha256(json.dumps(parts, sort_keys=True).encode()).hexdigest()[:16]


class Builds:
    """The builds of one run: a folder for each key, that all of its jobs see."""

    def __init__(self, work: Work, clone: Path) -> None:
        self.key = key_of(work, clone)
        self._folder = Path(work.source).parent / "builds" / self.key
        self._clone, self._trees = clone, home_of(clone)

    def stored(self) -> Built | None:
        """What another job built, put in place here; None where none has. Raises OSError."""
        try:
            found = from_json(Built, json.loads((self._folder / "built.json").read_text(encoding="utf-8")))
        except FileNotFoundError:
            return None
        if found.outputs and not self._stands():
            self._unpack()
        return found

    @contextmanager
    def building(self) -> Iterator[bool]:
        """Be the one who builds: False where another job does, and was waited for. Others see that this one lives."""
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
        """Store what stands built here, for other machines. Raises OSError."""
        if built.outputs:
            names = [str(path) for path in (self._clone, self._trees) if path.is_dir()]
            without = [f"--exclude={self._clone / name}" for name in (".git", rundir.HOME)]
            fresh = self._folder / f".trees.{os.getpid()}"
            # The format that keeps fractions of seconds: build tools go by times.
            argv = ["tar", "--create", "--format=posix", "--absolute-names", f"--file={fresh}", *without, *names]
            subprocess.run(argv, check=True, stdin=subprocess.DEVNULL)
            fresh.replace(self._folder / "trees.tar")
            self._note()
        write_text(self._folder / "built.json", json.dumps(to_json(built)))

    def _waited(self, claim: Path) -> bool:
        """Wait until whoever builds has ended; whether it died, so that its claim is removed."""
        before, since = None, time.monotonic()
        while not (self._folder / "built.json").exists():
            try:
                now = claim.stat().st_mtime
            except FileNotFoundError:
                return not (self._folder / "built.json").exists()
            if now != before:
                before, since = now, time.monotonic()
            elif time.monotonic() > since + _SILENCE:
                claim.unlink(missing_ok=True)
                return True
            time.sleep(BEAT / 4)
        return False

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
            if path.name not in (".git", rundir.HOME):
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
    """What the build steps of a run put out on each side; nothing where one of them failed."""
    found: dict[Side, dict[str, dict[str, str]]] = {}
    for event in rundir.own_events(run):
        if event.get("event") == "step" and event["id"] in steps:
            if event["status"] != "done":
                return Built()
            side = Side.BASELINE if event.get("trial") else Side.CANDIDATE
            found.setdefault(side, {})[event["id"]] = event.get("outputs", {})
    return Built(found)
