"""``asv run``: one file of ``results/MACHINE/``, with the samples of each benchmark where they were recorded.

Without them there are the median and its interval of 99%, which asv makes of at least three samples.

Rows are lists after ``result_columns`` whose empty ends are left out; a benchmark with parameters has a list of results
in each column, one for each combination. Units are in ``benchmarks.json``, two folders up from the results' file; where
that is gone, the names tell, as asv itself goes by them. asv writes ``Infinity`` and ``NaN``, which is not strict JSON.
"""

from __future__ import annotations

import itertools
import math
import re
from collections.abc import Mapping, Sequence
from typing import cast

from perfflow.errors import ToolOutputError
from perfflow.statistics import student_t_quantile
from perfflow.tools.json_parts import facts, part, values
from perfflow.tools.result_set import JsonFormat, ResultSet, Samples, Summary, label, moment

TOOL = "asv"

_ABOUT = "benchmarks.json"
_TYPES: Mapping[str, str] = {"time": "time", "peakmemory": "rss", "memory": "object_size"}
# asv_runner/benchmarks: by the last part of the name.
_NAMES: Sequence[tuple[re.Pattern[str], str]] = [
    (re.compile(r"Time[A-Z_]|time(?:raw)?_|Timeraw[A-Z_]"), "time"),
    (re.compile(r"PeakMem[A-Z_]|peakmem_"), "peakmemory"),
    (re.compile(r"Mem[A-Z_]|mem_"), "memory"),
    (re.compile(r"Track[A-Z_]|track_"), "track"),
]
_MOST_NAMED = 5
_MOST_CELLS = 1_000_000


def recognises(content: Mapping[str, object]) -> bool:
    """Whether the object has results in rows, as asv has written them since 0.5."""
    return isinstance(content.get("result_columns"), list) and isinstance(content.get("results"), dict)


def parse(content: Mapping[str, object]) -> ResultSet:
    """Read every benchmark and every combination of its parameters.

    What failed or was skipped has no figure in the file and is named in a warning. Raises ToolOutputError for nonsense.
    """
    samples = Samples()
    columns = values(content, "result_columns")
    about = content.get(_ABOUT)
    without: list[str] = []
    starts: list[str] = []
    for name, found in part(content, "results").items():
        if not isinstance(found, list):
            raise ToolOutputError(f"the results of {label(name)} are no list")
        row = dict(zip((str(column) for column in columns), found, strict=False))
        kind, unit = _kind(name, about)
        starts.append(moment(row.get("started_at")))
        without += _add(samples, name, row, kind, unit)
    if without:
        more = f" and {len(without) - _MOST_NAMED} more" if len(without) > _MOST_NAMED else ""
        samples.warnings.append(f"no result, since failed or skipped: {', '.join(without[:_MOST_NAMED])}{more}")
    given = part(content, "params")
    python = content.get("python")
    # Of an existing environment asv stores the interpreter's path, which names a user's folders.
    version = python if isinstance(python, str) and "/" not in python else None
    machine = facts(
        cpu=given.get("cpu"), cpus=given.get("num_cpu"), os=given.get("os"), arch=given.get("arch"), python=version
    )
    told = facts(commit=content.get("commit_hash"))
    return samples.result_set(TOOL, "", machine, told, min(filter(None, starts), default=""))


def _kind(name: str, about: object) -> tuple[str, str]:
    """Return a benchmark's type and unit. Raises ToolOutputError where neither benchmarks.json nor its name tells."""
    told = about.get(name) if isinstance(about, dict) else None
    if isinstance(told, dict) and isinstance(told.get("type"), str):
        unit = told.get("unit")
        return told["type"], unit if isinstance(unit, str) and unit.strip() else "unit"
    last = name.rpartition(".")[2]
    kind = next((kind for pattern, kind in _NAMES if pattern.match(last)), "")
    if not kind:
        raise ToolOutputError(f"the kind of {label(name)} is in {_ABOUT} alone, which is not two folders up")
    return kind, "unit"


def _add(samples: Samples, name: str, row: Mapping[str, object], kind: str, unit: str) -> list[str]:
    """Add the values of one benchmark; return the names of those that have none."""
    cells = _cells(name, row.get("params"))
    results = _column(name, row.get("result"), len(cells))
    recorded = _column(name, row.get("samples"), len(cells))
    summed = _summaries(name, row, len(cells))
    version = row.get("version")
    without = []
    for cell, result, taken, summary in zip(cells, results, recorded, summed, strict=True):
        shown = f"{name}({', '.join(cell)})" if cell else name
        if result is None or (isinstance(result, float) and math.isnan(result)):
            without.append(label(shown))
            continue
        if taken is not None and not isinstance(taken, list):
            raise ToolOutputError(f"the samples of {label(shown)} are no list")
        if isinstance(version, str):
            samples.versions[label(shown)] = version
        if summary and not taken and kind in _TYPES:
            samples.add_summary(shown, _TYPES[kind], result, summary)
            continue
        for value in taken or [result]:
            if kind in _TYPES:
                samples.add(shown, _TYPES[kind], value)
            else:
                samples.add_custom(shown, unit, value)
    return without


def _summaries(name: str, row: Mapping[str, object], cells: int) -> list[Summary | None]:
    """What asv says of the median's error: half its interval of 99%; None where that has no end."""
    low, high, repeats = (_column(name, row.get(f"stats_{key}"), cells) for key in ("ci_99_a", "ci_99_b", "repeat"))
    return [_summary(*ends) for ends in zip(low, high, repeats, strict=True)]


def _summary(low: object, high: object, repeat: object) -> Summary | None:
    ends = [float(end) for end in (low, high) if isinstance(end, int | float) and math.isfinite(end)]
    if len(ends) < 2 or not isinstance(repeat, int) or repeat < 2:
        return None
    return Summary(repeat, (ends[1] - ends[0]) / 2 / student_t_quantile(0.995, repeat - 1), "p50")


def _cells(name: str, given: object) -> list[tuple[str, ...]]:
    """Return the combinations of parameters in asv's order; one without any where there are none."""
    lists = given if isinstance(given, list) else None
    if lists is None or not all(isinstance(each, list) for each in lists):
        raise ToolOutputError(f"the params of {label(name)} are no lists")
    sizes = math.prod(len(each) for each in lists)
    if sizes > _MOST_CELLS:
        raise ToolOutputError(f"{label(name)} has {sizes} combinations of parameters")
    return list(itertools.product(*([str(item) for item in each] for each in cast(list[list[object]], lists))))


def _column(name: str, found: object, cells: int) -> Sequence[object]:
    """Return one value for each combination; a benchmark that failed as a whole has null for all of them."""
    if found is None:
        return [None] * cells
    if not isinstance(found, list) or len(found) != cells:
        raise ToolOutputError(f"{label(name)} has not one result for each of its {cells} combinations of parameters")
    return found


FORMAT = JsonFormat(TOOL, "asv run --record-samples", recognises, parse, companion=_ABOUT)
