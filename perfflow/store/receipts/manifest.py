"""The manifest of a run: commands, machine, inputs, outcome, and the sha256 of every file of the run.

It contains no secrets and nothing of the process environment: secrets in the command lines of steps are masked before
they are stored (``run.secrets``).
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from perfflow.model.result import Result
from perfflow.model.version import VERSION
from perfflow.store.json_text import json_lines
from perfflow.store.receipts.files import hashes, sha256
from perfflow.store.run_folder import RECEIPT

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
            # The receipt cannot contain its own hash.
            "files": {name: digest for name, digest in hashes(folder) if name != RECEIPT},
        }
    )


def renewed(receipt: Mapping[str, Any], result: Result, folder: Path, rewritten: Iterable[str]) -> dict[str, Any]:
    """Return the receipt of a run that was judged again, possibly by another version. Its samples are unchanged."""
    files = receipt["files"] | {name: sha256(folder / name) for name in rewritten}
    return _sealed({**receipt, **_outcome(result), "files": files})


def seal(receipt: Mapping[str, Any]) -> str:
    """Return the hash of a receipt without its seal, which detects accidental changes of the receipt itself."""
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
