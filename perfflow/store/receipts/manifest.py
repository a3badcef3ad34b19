"""A run's manifest: what ran where, on which inputs, what came out, and the sha256 of every file of the run.

No secret and nothing of the process environment goes in: what steps' command lines hold of them is masked before it is
stored (``run.secrets``).
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from perfflow.model.result import Result
from perfflow.model.version import VERSION
from perfflow.store.folder import RECEIPT
from perfflow.store.json_text import json_lines
from perfflow.store.receipts.files import hashes, sha256

SCHEMA = "perfflow.receipt/1"
SEAL = "seal"


def make(result: Result, folder: Path, versions: Mapping[str, str]) -> dict[str, Any]:
    """Return the manifest of a finished run."""
    return _sealed(
        {
            "schema": SCHEMA,
            **_outcome(result),
            "versions": {"perfflow": VERSION, **versions},
            "machine": result.machine,
            **({"nodes": [node.model_dump(mode="json") for node in result.nodes]} if result.nodes else {}),
            "trees": result.trees,
            "steps": [{"id": step.id, "tool": step.tool, "argv": step.argv} for step in result.steps],
            "data": result.data or {},
            # It cannot hold its own hash.
            "files": {name: digest for name, digest in hashes(folder) if name != RECEIPT},
        }
    )


def renewed(receipt: Mapping[str, Any], result: Result, folder: Path, rewritten: Iterable[str]) -> dict[str, Any]:
    """The receipt of a run that was judged again, by another version perhaps: its samples are as they were."""
    files = receipt["files"] | {name: sha256(folder / name) for name in rewritten}
    return _sealed({**receipt, **_outcome(result), "files": files})


def seal(receipt: Mapping[str, Any]) -> str:
    """A hash of all that a receipt says besides: a slip of the hand or of a disk in it is found by itself."""
    parts = ((name, value) for name, value in receipt.items() if name != SEAL)
    return hashlib.sha256("".join(json_lines(parts)).encode("utf-8", "backslashreplace")).hexdigest()


def _sealed(receipt: dict[str, Any]) -> dict[str, Any]:
    return receipt | {SEAL: seal(receipt)}


def _outcome(result: Result) -> dict[str, Any]:
    return {
        "run": result.run.model_dump(mode="json"),
        "verdict": result.verdict,
        "gate": result.gate and result.gate.model_dump(mode="json"),
    }
