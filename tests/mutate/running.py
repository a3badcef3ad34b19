"""Many mutated inputs for one parser, the same for the same seed."""

from __future__ import annotations

import tempfile
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from random import Random

from perfflow.errors import ToolOutputError, UserError
from tests.mutate.judging import GOOD, Judged, judge, mutate
from tests.mutate.parsers import LARGEST, Answer, Parser
from tests.mutate.plain_readers import Files

KEPT = 5
"""Defects that are kept with their bytes."""


@dataclass
class Tally:
    """How the inputs of one parser ended; ``defects`` are the first that ended badly."""

    name: str
    inputs: int = 0
    outcomes: Counter[str] = field(default_factory=Counter)
    defects: list[tuple[Judged, str]] = field(default_factory=list)

    def take(self, judged: Judged, what: Callable[[], str]) -> None:
        """Count one input."""
        self.inputs += 1
        self.outcomes[judged.outcome] += 1
        if judged.outcome not in GOOD and len(self.defects) < KEPT:
            self.defects.append((judged, what()))


@dataclass(frozen=True, slots=True)
class _Case:
    """One run's files on disk, and the answer to them as they are."""

    folder: Path
    files: Files
    intact: Answer


def run(parser: Parser, examples: int, seed: int) -> Tally:
    """Mutate ``examples`` times one file of one case, and judge what the parser makes of it."""
    random = Random(f"{seed} {parser.name}")
    tally = Tally(parser.name)
    with tempfile.TemporaryDirectory(prefix="mutate-") as temporary:
        cases = _written(parser, Path(temporary))
        for _ in range(examples):
            case = random.choice(cases)
            name = random.choice([file for file in case.files if file not in parser.skipped])
            kind, content = mutate(case.files[name], random)
            path = case.folder / name
            path.write_bytes(content)
            judged = judge(parser, case.folder, {**case.files, name: content}, kind, case.intact)
            tally.take(judged, lambda name=name, kind=kind, content=content: f"{kind} of {name}: {content[:3000]!r}")  # type: ignore[misc]
            path.write_bytes(case.files[name])
    return tally


def _written(parser: Parser, target: Path) -> list[_Case]:
    """Write the cases that hold an answer, and are not large; one that a good parser refuses has nothing to lose."""
    found = []
    for number, files in enumerate(parser.cases):
        folder = target / str(number)
        for name, content in files.items():
            path = folder / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(content)
        try:
            found.append(_Case(folder, files, parser.read(folder)))
        except (ToolOutputError, UserError):
            continue
    small = [case for case in found if sum(map(len, case.files.values())) <= LARGEST]
    return small or found
