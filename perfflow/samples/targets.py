"""Targets: ``time p50: <10μs`` on a benchmark or a glob of benchmarks."""

from __future__ import annotations

import difflib
import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache

from perfflow.samples.metrics import METRICS, STATISTICS, Metric, default_statistic, statistic_dimension
from perfflow.units import GROWTH_CLASSES, Relation, Requirement, UnitError, parse_requirement


@dataclass(frozen=True, slots=True)
class Target:
    """One requirement on one metric and statistic of every benchmark that ``benchmark`` (a glob) matches."""

    benchmark: str
    metric: Metric
    statistic: str
    requirement: Requirement


def parse_target(benchmark: str, key: str, requirement: object, metrics: Mapping[str, Metric]) -> Target:
    """Read the key ``[metric] [statistic]`` and its requirement. ``metrics`` holds those that the workflow adds.

    Raises UnitError for an unknown metric or statistic, and for a unit of the wrong dimension.
    """
    known = {**METRICS, **metrics}
    words = key.split()
    metric = known.get(words[0]) if words else None
    if metric is None and words and words[0] in STATISTICS:
        metric, words = METRICS["time"], ["time", *words]
    if metric is None or len(words) > 2:
        raise UnitError(f"{key!r} is not a metric and a statistic", _nearest(words, known))
    statistic = words[1] if len(words) == 2 else default_statistic(metric)
    if statistic not in STATISTICS:
        raise UnitError(f"unknown statistic {statistic!r}", f"known: {', '.join(STATISTICS)}")
    read = parse_requirement(requirement, statistic_dimension(metric, statistic))
    if read.growth and statistic != "growth" and len(words) == 1:
        statistic = "growth"
    if bool(read.growth) != (statistic == "growth"):
        raise UnitError("a growth class goes with the statistic growth", f"known classes: {', '.join(GROWTH_CLASSES)}")
    if statistic == "speedup" and not read.unit and read.relation is Relation.EQUAL:
        raise UnitError(f"{read.text!r} would be an exact speedup", f"write ≥{read.text}x")
    return Target(benchmark, metric, statistic, read)


def _nearest(words: list[str], known: Mapping[str, Metric]) -> str:
    near = difflib.get_close_matches(words[0] if words else "", [*known, *STATISTICS], n=1, cutoff=0.5)
    return f"did you mean {near[0]!r}?" if near else f"metrics: {', '.join(known)}"


@cache
def glob_pattern(glob: str) -> re.Pattern[str]:
    """Compile a glob: ``?`` and ``*`` stay within one ``/`` part, ``**`` crosses them; nothing else is special."""
    pattern = ""
    for token in re.findall(r"\*\*|\*|\?|[^*?]+", glob):
        pattern += {"**": ".*", "*": "[^/]*", "?": "[^/]"}.get(token) or re.escape(token)
    return re.compile(pattern, re.DOTALL)


def matches(glob: str, name: str) -> bool:
    """Whether a benchmark's name matches a glob, case-sensitively and in whole.

    A cell ``name[k=v]`` is also matched by a glob for ``name``.
    """
    pattern = glob_pattern(glob)
    return bool(pattern.fullmatch(name) or (name.endswith("]") and pattern.fullmatch(name.rpartition("[")[0])))
