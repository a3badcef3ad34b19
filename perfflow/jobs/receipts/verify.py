"""A stored run held against its receipt: its files, its verdict judged anew, and its surroundings against another's."""

from __future__ import annotations

import json
from collections.abc import Collection, Iterator, Mapping
from pathlib import Path
from typing import Any

from perfflow.model.errors import UserError
from perfflow.model.later import dataclass
from perfflow.model.result import Result
from perfflow.model.version import VERSION
from perfflow.session.conclude import result_of_events
from perfflow.store.folder import EVENTS, RECEIPT, RESULT, require_ended
from perfflow.store.receipts import environment, verification
from perfflow.store.receipts.environment import Difference
from perfflow.store.receipts.files import sha256
from perfflow.store.receipts.verification import Finding
from perfflow.store.result_file import to_text
from perfflow.store.run_bisection import require_verdict
from perfflow.tools import regular_files


@dataclass(frozen=True)
class Verified:
    """What came of it. ``sha256`` is the receipt's own: who keeps it elsewhere can tell a forged one."""

    run: str
    verdict: str
    sha256: str
    files: int
    findings: tuple[Finding, ...]
    data: tuple[Finding, ...]
    """Declared input that is not what it was; later runs are about something else."""
    environment: tuple[Difference, ...]

    @property
    def holds(self) -> bool:
        """Whether the run is what its receipt tells of."""
        return not any(finding.breaks for finding in self.findings)


def verify(folder: Path, root: Path, against: Result | None = None) -> Verified:
    """Hold a run against its receipt, and its surroundings against those of ``against``.

    Input data are looked for below ``root``. Raises UserError where there is no receipt, and while the run is running.
    """
    require_ended(folder)
    if not (folder / RECEIPT).is_file():
        require_verdict(folder)
    receipt = verification.read(folder)
    found = list(verification.findings(folder, receipt))
    changed = {finding.file for finding in found if finding.breaks}
    found += _judged_otherwise(folder, receipt, changed)
    return Verified(
        run=str((receipt.get("run") or {}).get("id", folder.name)),
        verdict=str(receipt.get("verdict", "")),
        sha256=sha256(folder / RECEIPT),
        files=len(receipt["files"]),
        findings=tuple(found),
        data=tuple(_data(root, receipt.get("data") or {})),
        environment=tuple(environment.differences(_surroundings(against), receipt)) if against else (),
    )


def _surroundings(result: Result) -> dict[str, Any]:
    """Of a stored result; the versions of its programs stand in its receipt alone."""
    return {"machine": result.machine, "versions": {"perfflow": result.run.version}}


def _judged_otherwise(folder: Path, receipt: Mapping[str, Any], changed: Collection[str]) -> Iterator[Finding]:
    try:
        stored = json.loads(regular_files.read(folder / RESULT))
    except (OSError, ValueError):
        return  # found before: the receipt holds its hash
    if not isinstance(stored, dict):
        return
    yield from verification.outcome_differences(receipt, stored)
    try:
        again = result_of_events(folder)
    except UserError as error:
        if EVENTS not in changed:
            yield Finding("changed", EVENTS, error.problems[0].message)
        return
    if again.verdict != stored.get("verdict"):
        yield Finding("verdict", RESULT, f"says {stored.get('verdict')!r}, and its events come to {again.verdict!r}")
    elif again.run.version == VERSION and not {RESULT, EVENTS} & set(changed) and not _is(again, folder / RESULT):
        yield Finding("verdict", RESULT, "its events come to another result")


def _is(result: Result, path: Path) -> bool:
    return to_text(result).encode("utf-8", "backslashreplace") == regular_files.read(path)


def _data(root: Path, data: Mapping[str, str]) -> Iterator[Finding]:
    for name, digest in data.items():
        path = root / name
        if not path.is_file():
            yield Finding("missing", name, "the input file is gone")
        elif sha256(path) != digest:
            yield Finding("changed", name, "the input file is another one than the run had")
