"""Verify that the files of a run match its receipt."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from perfflow.model.errors import Exit, UserError
from perfflow.store.event_chain import chain_of
from perfflow.store.receipts.manifest import SCHEMA, SEAL, names, seal, sha256
from perfflow.store.run_folder import EVENTS, RECEIPT, RESULT, json_lines
from perfflow.tools import regular_files

FindingKind = Literal["changed", "missing", "added", "verdict"]


@dataclass(frozen=True)
class ReceiptFinding:
    """A difference from the receipt. A file ``added`` later does not invalidate the others."""

    kind: FindingKind
    file: str
    detail: str

    @property
    def breaks(self) -> bool:
        """Whether the difference invalidates the run."""
        return self.kind != "added"


def read(folder: Path) -> dict[str, Any]:
    """Read the receipt of a run. Raises UserError if it is missing or not a receipt."""
    path = folder / RECEIPT
    try:
        text = regular_files.read(path).decode()
    except FileNotFoundError as error:
        hint = "a run that was killed has no receipt; that of a finished run is next to its result.json"
        raise UserError.of(f"{folder}: the run has no {RECEIPT}", hint) from error
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else "not UTF-8"
        raise UserError.of(f"{path}: {reason}", "name a run's folder with its receipt", Exit.UNMEASURED) from error
    try:
        receipt = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise UserError.of(
            f"{path}: not JSON ({error})", "it was changed since perfflow wrote it", Exit.FAIL
        ) from error
    if not isinstance(receipt, dict) or receipt.get("schema") != SCHEMA or not isinstance(receipt.get("files"), dict):
        hint = f"the schema must be {SCHEMA}; another version of perfflow may be able to read it"
        raise UserError.of(f"{path}: not a receipt", hint, Exit.FAIL)
    return receipt


def findings(folder: Path, receipt: Mapping[str, Any]) -> Iterator[ReceiptFinding]:
    """Yield the differences between a run's files and its receipt, file by file."""
    yield from _of_itself(folder, receipt)
    there = names(folder)
    if "chain" in receipt and EVENTS in there:
        yield from _unchained(folder, receipt["chain"])
    for name, digest in receipt["files"].items():
        if name not in there:
            yield ReceiptFinding("missing", name, "the file is gone")
        else:
            yield from _compared(folder, name, digest)
    for name in sorted(there - set(receipt["files"]) - {RECEIPT}):
        yield ReceiptFinding("added", name, "written after the receipt")


def _of_itself(folder: Path, receipt: Mapping[str, Any]) -> Iterator[ReceiptFinding]:
    """Yield a difference if the receipt is not byte for byte what perfflow writes, or its seal does not match."""
    try:
        as_written = b"".join(chunk.encode("utf-8", "backslashreplace") for chunk in json_lines(receipt.items()))
        told = regular_files.read(folder / RECEIPT)
    except (TypeError, ValueError, OSError):
        as_written, told = b"", b"?"
    if as_written != told or receipt.get(SEAL) != seal(receipt):
        yield ReceiptFinding("changed", RECEIPT, "not in the form that perfflow writes")


def _unchained(folder: Path, head: object) -> Iterator[ReceiptFinding]:
    """Yield a difference if the events are not those that perfflow wrote during the run."""
    with regular_files.opened(folder / EVENTS) as stream:
        found = chain_of(stream)
    if found.broken:
        yield ReceiptFinding("changed", EVENTS, f"line {found.broken} does not follow from the lines before it")
    elif found.head != head:
        yield ReceiptFinding("changed", EVENTS, "its lines are not those that perfflow wrote during the run")


def _compared(folder: Path, name: str, digest: object) -> Iterator[ReceiptFinding]:
    try:
        now = sha256(folder / name)
    except OSError as error:
        yield ReceiptFinding("missing", name, f"cannot be read: {error.strerror}")
        return
    if now != digest:
        yield ReceiptFinding("changed", name, f"its sha256 is {now[:12]}…, and was {str(digest)[:12]}…")


def outcome_differences(receipt: Mapping[str, Any], result: Mapping[str, Any]) -> Iterator[ReceiptFinding]:
    """Yield the differences between a result and the receipt about the outcome of the run."""
    for key in ("verdict", "gate", "run", "trees", "data"):
        if _plain(receipt.get(key)) != _plain(result.get(key)):
            was, now = (_shown(part.get(key), key) for part in (receipt, result))
            text = f"`{key}` is {now}, but {was} in the receipt" if now != was else f"`{key}` differs from the receipt"
            yield ReceiptFinding("verdict", RESULT, text)


def _plain(value: Any) -> Any:
    return value or None


def _shown(value: Any, key: str) -> str:
    if key == "gate" and isinstance(value, dict):
        return repr(value.get("status"))
    return repr(value) if isinstance(value, str) else "another value"
