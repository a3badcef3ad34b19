"""Verify a stored run by its receipt: check its files, judge it again, and compare its environment with another's."""

from __future__ import annotations

import json
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from perfflow.model.errors import UserError
from perfflow.model.result import Result
from perfflow.model.version import VERSION
from perfflow.session.perform import result_of_events
from perfflow.store.receipts import manifest, verification
from perfflow.store.receipts.manifest import MachineDifference, sha256
from perfflow.store.receipts.verification import ReceiptFinding
from perfflow.store.result_file import require_verdict, to_text
from perfflow.store.run_folder import EVENTS, RECEIPT, RESULT, require_ended
from perfflow.tools import regular_files


@dataclass(frozen=True)
class Verified:
    """The result of a verification. ``sha256`` is the receipt's own hash. A copy kept elsewhere reveals a forgery."""

    run: str
    verdict: str
    sha256: str
    files: int
    findings: tuple[ReceiptFinding, ...]
    data: tuple[ReceiptFinding, ...]
    """Declared input files that changed since the run. Later runs use other data."""
    environment: tuple[MachineDifference, ...]

    @property
    def holds(self) -> bool:
        """Whether the run matches its receipt."""
        return not any(finding.breaks for finding in self.findings)


def verify(folder: Path, root: Path, against: Result | None = None) -> Verified:
    """Compare a run with its receipt, and its environment with that of ``against``.

    root: the folder of the input data. Raises UserError if there is no receipt, and while the run is running.
    """
    require_ended(folder)
    if not (folder / RECEIPT).is_file():
        require_verdict(folder)
    receipt = verification.read(folder)
    findings = list(verification.findings(folder, receipt))
    changed = {finding.file for finding in findings if finding.breaks}
    findings += _judged_otherwise(folder, receipt, changed)
    return Verified(
        run=str((receipt.get("run") or {}).get("id", folder.name)),
        verdict=str(receipt.get("verdict", "")),
        sha256=sha256(folder / RECEIPT),
        files=len(receipt["files"]),
        findings=tuple(findings),
        data=tuple(_data(root, receipt.get("data") or {})),
        environment=tuple(manifest.environment_differences(_surroundings(against), receipt)) if against else (),
    )


def _surroundings(result: Result) -> dict[str, Any]:
    """Return the environment of a stored result. The versions of its programs are only in its receipt."""
    return {"machine": result.machine, "versions": {"perfflow": result.run.version}}


def _judged_otherwise(folder: Path, receipt: Mapping[str, Any], changed: Collection[str]) -> Iterator[ReceiptFinding]:
    try:
        stored = json.loads(regular_files.read(folder / RESULT))
    except (OSError, ValueError):
        return  # already a finding, since the receipt has the file's hash
    if not isinstance(stored, dict):
        return
    yield from verification.outcome_differences(receipt, stored)
    try:
        again = result_of_events(folder)
    except UserError as error:
        if EVENTS not in changed:
            yield ReceiptFinding("changed", EVENTS, error.problems[0].message)
        return
    if again.verdict != stored.get("verdict"):
        yield ReceiptFinding(
            "verdict", RESULT, f"says {stored.get('verdict')!r}, but its events give {again.verdict!r}"
        )
    elif again.run.version == VERSION and not {RESULT, EVENTS} & set(changed) and not _is(again, folder / RESULT):
        yield ReceiptFinding("verdict", RESULT, "its events give another result")


def _is(result: Result, path: Path) -> bool:
    return to_text(result).encode("utf-8", "backslashreplace") == regular_files.read(path)


def _data(root: Path, data: Mapping[str, str]) -> Iterator[ReceiptFinding]:
    for name, digest in data.items():
        path = root / name
        if not path.is_file():
            yield ReceiptFinding("missing", name, "the input file is gone")
        elif sha256(path) != digest:
            yield ReceiptFinding("changed", name, "the input file has changed since the run")
