"""Traces of Python suites: the settings of tools/python/drivers/python_trace.py, and the files that it writes."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import fields
from pathlib import Path
from types import CodeType
from typing import Any

from perfflow.model.plain_data import from_json
from perfflow.tools.adapter import TRACE, Call
from perfflow.tools.python import pytest_benchmark
from perfflow.tools.regular_files import read
from perfflow.unchanged.model import BenchmarkTrace

DRIVERS = Path(pytest_benchmark.__file__).with_name("drivers")
_MOST_READ = 256 * 2**20
_LISTS = frozenset({"vars", "dir", "globals", "__dict__", "getmembers", "__subclasses__"})
"""Names in code that may go through all definitions."""
_FIELDS = tuple(field.name for field in fields(BenchmarkTrace))


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


def read_traces(folder: Path) -> dict[str, BenchmarkTrace]:
    """Return the traces of the benchmarks that ran, by their own ids. A damaged file has none."""
    found: dict[str, BenchmarkTrace] = {}
    for path in sorted(folder.glob("[0-9]*.json")):
        try:
            content = json.loads(read(path, _MOST_READ))
            common = content["common"]
            found |= {name: _joined(common, own) for name, own in content["benchmarks"].items()}
        except (OSError, ValueError, TypeError, AttributeError, KeyError):
            continue
    return found


def _joined(before: Mapping[str, Any], record: Mapping[str, Any]) -> BenchmarkTrace:
    """Return the trace of a benchmark with what ran before the first one of its process."""
    common, recorded = (from_json(BenchmarkTrace, {name: part[name] for name in _FIELDS}) for part in (before, record))
    definitions = {**before["definitions"], **record["definitions"]}
    named = {of: {*names, *record["named"][of]} for of, names in before["named"].items()}
    used = dict(used_definitions(definitions, named))
    return BenchmarkTrace(
        {**common.loaded, **recorded.loaded},
        {**common.inputs, **recorded.inputs},
        dict(_united(common.functions, recorded.functions, used)),
        tuple(dict.fromkeys([*common.unseen, *recorded.unseen])),
        tuple(dict.fromkeys([*common.unknown, *recorded.unknown])),
        {
            file: (*common.lines.get(file, ()), *recorded.lines.get(file, ()))
            for file in {**common.lines, **recorded.lines}
        },
    )


def lines_of_code(path: Path) -> frozenset[int]:
    """Return the lines of a Python file that contain code; none if it cannot be compiled by this Python."""
    try:
        codes = [compile(path.read_bytes(), str(path), "exec", dont_inherit=True)]
    except (OSError, SyntaxError, ValueError):
        return frozenset()
    numbers: set[int] = set()
    while codes:
        code = codes.pop()
        numbers.update(line for _, _, line in code.co_lines() if line)
        codes += [each for each in code.co_consts if isinstance(each, CodeType)]
    return frozenset(numbers)


def used_definitions(
    definitions: Mapping[str, Any], named: Mapping[str, AbstractSet[str]]
) -> Iterator[tuple[str, tuple[str]]]:
    """Yield the digests of the definitions of modules and classes that something names, by their keys.

    Libraries name methods of objects that they get, but what a module defines only by its text. Nobody but the tree
    names what a module imports. ``named``: as in the record. What a named definition names counts as well.
    """
    tree = set(named["tree"])
    texts = tree | named["texts"]
    by_kind = {"import": tree, "module": texts, "class": texts | named["libraries"]}
    left = dict(definitions)

    def is_used(key: str) -> bool:
        return not tree.isdisjoint(_LISTS) or _is_named(re.split("[:.]", key)[-1], by_kind[left[key]["of"]])

    while newly_used := [key for key in left if is_used(key)]:
        for key in newly_used:
            about = left.pop(key)
            for names in by_kind.values():
                names.update(about["uses"])
            yield key, (about["digest"],)


def _is_named(name: str, named: AbstractSet[str]) -> bool:
    cuts = range(1, len(name) + 1)
    return name in named or any(f"{name[:at]}*" in named or f"*{name[-at:]}" in named for at in cuts)


def _united(*parts: Mapping[str, Iterable[str]]) -> Iterator[tuple[str, tuple[str, ...]]]:
    for name in dict.fromkeys(name for part in parts for name in part):
        yield name, tuple(sorted({digest for part in parts for digest in part.get(name, ())}))
