"""A stored set of samples from any tool: one side of a comparison, without pairs."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from perfflow.model.criteria import Criteria, criteria_from_json
from perfflow.model.errors import UserError
from perfflow.model.metrics import METRICS, is_exact
from perfflow.model.readings import Reading, Side
from perfflow.model.result import Benchmark, Result
from perfflow.model.result_kernels import measured_of
from perfflow.model.result_samples import Sample
from perfflow.model.summaries import COUNT, ERROR
from perfflow.model.tree_facts import STORED, TreeFacts, tree_of
from perfflow.store.record import reading_from_json
from perfflow.tools.result_set import ResultSet, Summary
from perfflow.tools.tool_files import clean_name

Key = tuple[str, str]
"""Benchmark and metric."""
Source = Result | ResultSet
"""The source of a stored set."""
OWN = "perfflow"


@dataclass(frozen=True)
class Stored:
    """Samples by (benchmark, metric) in base units, and facts about their origin.

    ``started`` (RFC 3339), ``run_id`` and ``revision`` are '' if unknown; ``data`` is None if the declared input files
    are not known. ``failed`` are benchmarks without samples because they failed; ``versions`` are the versions of the
    benchmarks' own code, if the tool reports them.
    """

    label: str
    tool: str
    version: str
    series: Mapping[Key, tuple[Reading, ...]]
    machine: Mapping[str, Any]
    started: str = ""
    run_id: str = ""
    workflow: str = ""
    revision: str = ""
    dirty: bool = False
    data: Mapping[str, str] | None = None
    data_missing: tuple[str, ...] = ()
    criteria: Criteria | None = None
    failed: tuple[str, ...] = ()
    versions: Mapping[str, str] = field(default_factory=dict)
    warnings: tuple[str, ...] = ()
    kernels: tuple[Mapping[str, Any], ...] = ()
    """GPU kernels of its side, in the form of events. ``peaks`` are the peaks of these GPUs."""
    peaks: tuple[Mapping[str, Any], ...] = ()

    @property
    def gpus(self) -> list[str]:
        """Names of the GPUs on which its kernels ran."""
        return list(dict.fromkeys(item["device"] for item in self.kernels if item["device"]))

    @property
    def benchmarks(self) -> list[str]:
        """Names of the benchmarks in the order of the source, each once."""
        return list(dict.fromkeys(name for name, _ in self.series))


def stored_of(source: Source, label: str) -> Stored:
    """Return the candidate side of a run (or its only side), or all samples of another tool's file.

    Raises UserError if a run's samples are damaged.
    """
    return _of_result(source, label) if isinstance(source, Result) else _of_import(source, label)


def _of_import(imported: ResultSet, label: str) -> Stored:
    series = {
        key: tuple(_reading(key, value, imported.summaries.get(key)) for value in values)
        for key, values in imported.benchmarks.items()
    }
    failed = tuple(f"{name} {reason}" for name, reason in imported.failed.items())
    return Stored(
        label,
        imported.tool,
        imported.version,
        series,
        imported.machine,
        started=imported.started,
        revision=imported.facts.get("commit", ""),
        criteria=Criteria(metrics=imported.metrics),
        warnings=(*imported.warnings, *failed),
        failed=tuple(imported.failed),
        versions=imported.versions,
    )


def _reading(key: Key, value: float, summary: Summary | None) -> Reading:
    if summary is None:
        return Reading(key[1], value, key[0])
    inner = {ERROR: summary.error, COUNT: float(summary.count)}
    return Reading(key[1], value, key[0], inner, statistic=summary.statistic)


def _of_result(result: Result, label: str) -> Stored:
    try:
        series = dict(_series(result))
    except (LookupError, TypeError, ValueError, AttributeError) as error:
        text = f"{clean_name(label)}: its samples are damaged ({type(error).__name__}: {error})"
        raise UserError.of(text, "`perfflow report` can rebuild a result from the events.jsonl beside it") from error
    tree = _taken_tree(result)
    # The time of a comparison of stored sets is that of its second side.
    started = tree.started if tree.kind == STORED else result.run.started
    return Stored(
        label,
        OWN,
        result.run.version,
        series,
        result.machine,
        started=started,
        run_id=result.run.id,
        workflow=result.run.workflow,
        revision=tree.revision or "",
        dirty=bool(tree.dirty),
        data=result.data,
        data_missing=tuple(result.run.data_missing),
        criteria=criteria_from_json(result.criteria),
        warnings=(f"ended in error: {_why(result)}",) if result.unmeasured else (),
        kernels=tuple(_kernels(result)),
        peaks=tuple(peak.model_dump(exclude={"step", "unit"}) for peak in result.peaks if peak.step and peak.device),
    )


def _taken_tree(result: Result) -> TreeFacts:
    """Return the tree of the selected side."""
    baseline, candidate = (tree_of(result.trees, side) for side in Side)
    return candidate if candidate.kind else baseline


def branch_of(source: Source) -> str:
    """Return the branch that a run measured; '' if unknown or for a detached head."""
    branch = (_taken_tree(source).branch or "") if isinstance(source, Result) else source.facts.get("branch", "")
    return "" if branch == "HEAD" else branch


def _kernels(result: Result) -> Iterator[Mapping[str, Any]]:
    """Yield the kernels of the candidate, or of the only side."""
    trees = {item.tree for item in result.kernels}
    for item in result.kernels:
        if item.tree == "candidate" or trees == {"baseline"}:
            yield measured_of(item)


def _why(result: Result) -> str:
    return result.reasons[0] if result.reasons else "no reason is given"


def error_of(source: Source) -> str:
    """Return why a run ended in error; '' for other runs."""
    return _why(source) if isinstance(source, Result) and source.unmeasured else ""


def ending_of(source: Source) -> str:
    """Return the note stored with a run that failed or ended in error; '' for other runs."""
    words = {"fail": "this run failed", "error": "this run ended in error"}
    if not isinstance(source, Result) or source.verdict not in words:
        return ""
    return f"{words[source.verdict]}: {_why(source)}"


def _series(result: Result) -> Iterator[tuple[Key, tuple[Reading, ...]]]:
    two_sided = any(row.candidate for row in result.benchmarks)
    for row in result.benchmarks:
        # Rows that only the baseline has do not belong to the candidate.
        gone = two_sided and row.decision == "removed"
        side = row.candidate or (None if gone else row.baseline)
        if side and side.samples:
            yield (row.name, row.metric), tuple(_readings(row, side))


def _readings(row: Benchmark, side: Sample) -> Iterator[Reading]:
    data = side.readings or [{"metric": row.metric, "value": value} for value in side.samples]
    for item in data:
        reading = replace(reading_from_json(item), metric=row.metric, benchmark=row.name, exact=is_exact(row.statistic))
        if not math.isfinite(reading.value) or (row.metric in METRICS and reading.value < 0):
            raise ValueError(f"a value of {row.name} {row.metric} is {reading.value}")
        yield reading
