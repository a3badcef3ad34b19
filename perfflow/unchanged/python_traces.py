"""Traces of Python suites: the settings of tools/python/drivers/python_trace.py, and the files that it writes."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path

from perfflow.model.plain_data import from_json
from perfflow.tools.adapter import TRACE, Call
from perfflow.tools.python import pytest_benchmark
from perfflow.tools.regular_files import read
from perfflow.unchanged.model import Trace

DRIVERS = Path(pytest_benchmark.__file__).with_name("drivers")
_MOST_READ = 256 * 2**20


def write_settings(call: Call, own: Sequence[Path]) -> None:
    """Write the settings of a call that records into its folder, which is new. ``own``: the folders of the tree."""
    call.folder.mkdir(parents=True)
    settings = {
        "own": [str(path) for path in own],
        # If perfflow itself is measured, its drivers lie in the tree.
        "shared": [str(DRIVERS)],
        "benchmarks": list(call.chosen),
        "out": str(call.folder),
    }
    (call.folder / TRACE).write_text(json.dumps(settings))


def read_traces(folder: Path) -> dict[str, Trace]:
    """Return the traces of the benchmarks that ran, by their own ids. A damaged file has none."""
    found: dict[str, Trace] = {}
    for path in sorted(folder.glob("[0-9]*.json")):
        try:
            content = json.loads(read(path, _MOST_READ))
            common = from_json(Trace, content["common"])
            found |= {name: _joined(common, from_json(Trace, own)) for name, own in content["benchmarks"].items()}
        except (OSError, ValueError, TypeError, AttributeError, KeyError):
            continue
    return found


def _joined(common: Trace, own: Trace) -> Trace:
    """Return the trace of a benchmark with what ran before the first one of its process."""
    return Trace(
        {**common.loaded, **own.loaded},
        {**common.inputs, **own.inputs},
        dict(_united(common.functions, own.functions)),
        tuple(dict.fromkeys([*common.unseen, *own.unseen])),
        tuple(dict.fromkeys([*common.unknown, *own.unknown])),
    )


def _united(*parts: Mapping[str, Iterable[str]]) -> Iterator[tuple[str, tuple[str, ...]]]:
    for name in dict.fromkeys(name for part in parts for name in part):
        yield name, tuple(sorted({digest for part in parts for digest in part.get(name, ())}))
