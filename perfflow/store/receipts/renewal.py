"""Update the receipt of a run that was judged again."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from perfflow.model.errors import UserError
from perfflow.model.result import Result
from perfflow.store.receipts.manifest import renewed, sha256
from perfflow.store.receipts.verification import read
from perfflow.store.run_folder import PAGE, RECEIPT, REPORT, RESULT, json_lines, write_text

_REWRITTEN = (RESULT, REPORT, PAGE)


@contextmanager
def renewing(result: Result, folder: Path) -> Iterator[None]:
    """Update the hashes of files that are rewritten inside the context, if the receipt listed them before.

    A receipt that does not match the files, or that is damaged, is left unchanged for `receipt verify` to report.
    """
    try:
        receipt = read(folder) if (folder / RECEIPT).is_file() else None
    except UserError:
        receipt = None
    hashes = receipt["files"] if receipt else {}
    # A run whose workflow asks for no HTML has no page until it is judged again.
    fitting = all(hashes.get(name) == _hash(folder / name) for name in _REWRITTEN)
    yield
    if receipt and fitting and any(hashes.get(name) != _hash(folder / name) for name in _REWRITTEN):
        write_text(folder / RECEIPT, json_lines(renewed(receipt, result, folder, _REWRITTEN).items()))


def _hash(file: Path) -> str | None:
    """Return the hash of a file; None if there is none."""
    return sha256(file) if file.is_file() else None
