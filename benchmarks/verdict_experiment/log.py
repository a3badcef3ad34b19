"""The experiment's log: JSON lines that are only ever added to, so that a part goes on where it stopped."""

from __future__ import annotations

import json
import os
import random
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeVar

from perfflow.machine.facts import facts
from perfflow.model.version import VERSION
from perfflow.trees import repository

T = TypeVar("T")

Entry = dict[str, Any]
"""One line of the log."""


class OtherSeedError(Exception):
    """The log holds this part drawn by another seed, which is another experiment."""


@dataclass(slots=True)
class Session:
    """One start of one part: what it draws from, where it works, and the log that it adds to.

    ``count`` is the number of trials of each kind, ``folder`` is scratch space, ``out`` holds what is kept. ``share``
    is (k, n) of one of n starts that run at once: it takes every n-th trial from the k-th on.
    """

    part: str
    count: int
    seed: int
    out: Path
    folder: Path
    share: tuple[int, int] = (1, 1)
    entries: list[Entry] = field(default_factory=list)

    def begin(self) -> bool:
        """Read what is there, and write who goes on; False where all is done. Raises OtherSeedError."""
        if self.log.exists():
            whole = self.log.read_bytes().rpartition(b"\n")
            if whole[2]:
                # A line that a kill cut off.
                self.log.write_bytes(whole[0] + whole[1])
            self.entries = [entry for entry in read(self.log) if entry.get("part", self.part) == self.part]
        for entry in self.entries:
            if "start" in entry and entry["options"]["seed"] != self.seed:
                raise OtherSeedError(
                    f"{self.log} has the seed {entry['options']['seed']}; give --seed or another --out"
                )
        if any(entry.get("count", 0) >= self.count for entry in self.entries):
            return False
        self.note(
            {
                "start": now(),
                "options": {"seed": self.seed, "count": self.count},
                "machine": facts(),
                "tree": repository.describe_project(repository.root_of(Path(__file__)) or Path(__file__).parent),
                "perfflow": VERSION,
            }
        )
        return True

    @property
    def log(self) -> Path:
        """The file that all parts share."""
        return self.out / "verdicts.jsonl"

    def note(self, entry: Entry) -> None:
        """Add one line, which is on the disk when this returns."""
        entry = {"part": self.part, **entry}
        self.entries.append(entry)
        with self.log.open("a", encoding="utf-8") as stream:
            stream.write(json.dumps(entry, ensure_ascii=False) + "\n")

    def end(self) -> None:
        """Write that the part is complete; one of several shares leaves that to a start without a share."""
        if self.share[1] > 1:
            return
        self.note({"end": now(), "count": self.count, "load": os.getloadavg()})

    def draws(self, *what: object) -> random.Random:
        """A generator of its own for each thing that is drawn, so that what is skipped moves nothing else."""
        return random.Random(f"{self.seed} {self.part} {' '.join(map(str, what))}")

    def trials(self, kinds: Sequence[T]) -> Iterator[tuple[int, T, random.Random]]:
        """Yield the trials that the log lacks: number, kind, generator. Each block has every kind, in random order."""
        done = self.noted("trial")
        for block in range(self.count):
            for at, kind in enumerate(self.draws("block", block).sample(kinds, len(kinds))):
                number = block * len(kinds) + at
                if number not in done and number % self.share[1] == self.share[0] - 1:
                    yield number, kind, self.draws("trial", number)

    def noted(self, key: str) -> set[Any]:
        """What lines of this part hold under the key."""
        return {entry[key] for entry in self.entries if key in entry}


ExperimentPart = Callable[[Session], None]


def read(log: Path) -> list[Entry]:
    """All lines of the log."""
    return [json.loads(line) for line in log.read_text(encoding="utf-8").splitlines()]


def now() -> str:
    """The time in UTC, to the second."""
    return time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
