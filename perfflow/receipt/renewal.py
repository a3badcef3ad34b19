"""A run's receipt after the run was judged again."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from perfflow.errors import UserError
from perfflow.receipt.files import sha256
from perfflow.receipt.manifest import renewed
from perfflow.receipt.verification import read
from perfflow.result import Result
from perfflow.rundir.folder import RECEIPT, REPORT, RESULT, write_text
from perfflow.rundir.json_text import json_lines

_REWRITTEN = (RESULT, REPORT)


@contextmanager
def renewing(result: Result, folder: Path) -> Iterator[None]:
    """Let the receipt tell of files that are rewritten inside, where it told of them before.

    One that does not fit what is there, or that is damaged, is left as it is: that is for `receipt verify` to find.
    """
    try:
        receipt = read(folder) if (folder / RECEIPT).is_file() else None
    except UserError:
        receipt = None
    told = receipt["files"] if receipt else {}
    fitting = all((folder / name).is_file() and told.get(name) == sha256(folder / name) for name in _REWRITTEN)
    yield
    if receipt and fitting and any(told[name] != sha256(folder / name) for name in _REWRITTEN):
        write_text(folder / RECEIPT, json_lines(renewed(receipt, result, folder, _REWRITTEN).items()))
