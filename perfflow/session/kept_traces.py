"""What is known about the benchmarks of a tree, kept beside it for later gates that have it as their base.

It is a list of the benchmarks of a suite, or a record of what they execute. Only the base uses that of an earlier run.
If something else than the tree has changed since, such as a library, a record is still safe: that of head is new, and
whoever executes the same code on the same inputs executes the same on the base. A kept record of head would hide it.
"""

from __future__ import annotations

import gzip
import hashlib
import json
import zlib
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

from perfflow.execute.child import MARK
from perfflow.execute.prepare import ReadyProcess
from perfflow.model.plain_data import from_json, to_json
from perfflow.model.readings import Side
from perfflow.tools.regular_files import read
from perfflow.unchanged.model import BenchmarkTrace
from perfflow.unchanged.recorded import HASH_OF_CARGO

Traces = Mapping[str, BenchmarkTrace]
"""Traces by the own ids of the benchmarks; '' for a command, or benchmarks that one process runs together."""
_MOST_READ = 64 * 2**20
_KEPT = "kept.json.gz"
"""Name of the record in the folder of the call, where the receipt covers it."""


def listed(prepared: ReadyProcess, take: Callable[[], tuple[str, ...]]) -> tuple[str, ...]:
    """Return the ids of a suite's benchmarks: for the base what an earlier run kept, else what ``take`` returns."""
    path = _path(prepared, "list", words_of(prepared))
    if path and prepared.side is Side.BASELINE:
        with suppress(OSError, ValueError, TypeError):
            return tuple(map(str, _unpacked(read(path, _MOST_READ))))
    found = take()
    if path and found:
        _keep(path, found)
    return found


def recorded(prepared: ReadyProcess, about: Sequence[str], take: Callable[[], Traces]) -> Traces:
    """Return the traces of a call: for the base those that an earlier run kept, else those that ``take`` records.

    ``about``: what the call depends on besides the tree, without what depends on the run.
    """
    path, call = _path(prepared, *about), prepared.call
    if path is None or call is None:
        return take()
    if prepared.side is Side.BASELINE:
        with suppress(OSError, ValueError, TypeError, AttributeError, LookupError):
            packed = read(path, _MOST_READ)
            traces = {name: from_json(BenchmarkTrace, item) for name, item in _unpacked(packed).items()}
            call.folder.mkdir(parents=True, exist_ok=True)
            (call.folder / _KEPT).write_bytes(packed)
            return traces
    traces = dict(take())
    if traces and not any(item.unknown for item in traces.values()):
        _keep(path, {name: to_json(item) for name, item in traces.items()})
    return traces


def _path(prepared: ReadyProcess, *about: str) -> Path | None:
    """Return the file of a call; None if it does not run in a tree of its own."""
    slot, call = prepared.slot, prepared.call
    if slot is None or call is None or not slot.kept.tree:
        return None
    key = json.dumps([slot.kept.tree, call.chosen, *about])
    return slot.traces / f"{hashlib.sha256(key.encode()).hexdigest()[:32]}.json.gz"


def _unpacked(packed: bytes) -> Any:
    """Return the data of a file. Raises OSError or ValueError if it is damaged."""
    try:
        return json.loads(gzip.decompress(packed))
    except (EOFError, zlib.error) as error:
        raise ValueError from error


def _keep(path: Path, data: Any) -> None:
    """Write a file; a full disk only means that it is not there for the next run."""
    with suppress(OSError):
        path.parent.mkdir(exist_ok=True, mode=0o700)
        half = path.with_suffix(".half")
        half.write_bytes(gzip.compress(json.dumps(data).encode(), compresslevel=1))
        half.replace(path)


def own_folders(prepared: ReadyProcess) -> list[Path]:
    """Return the folders of the tree in which a call runs."""
    return [prepared.slot.path, prepared.slot.build] if prepared.slot else []


def words_of(prepared: ReadyProcess) -> str:
    """Return the command line and the environment of a call, without what belongs to its side or run.

    The name of a program has no hash of cargo, which depends on the path of the workspace.
    """
    env = {name: text for name, text in prepared.env.items() if name != MARK}
    found = json.dumps({"argv": prepared.shown, "env": env}, sort_keys=True)
    for path in [*own_folders(prepared), *([prepared.call.folder, prepared.call.place] if prepared.call else [])]:
        found = found.replace(json.dumps(str(path))[1:-1], "<side>")
    return HASH_OF_CARGO.sub("", found)
