"""Judge a stored run again, from its events or from its result.json alone. Nothing is measured.

``with_thresholds`` reads thresholds for it: ``concern=3%,memory.action=5%``, ``core/**:action=5%``, or those of a file.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from perfflow.library.pinned import Library
from perfflow.model.criteria import (
    MEMORY_KEYS,
    THRESHOLD_KEYS,
    Criteria,
    MemoryThresholds,
    OwnThresholds,
    Thresholds,
    order_problem,
    read_threshold,
)
from perfflow.model.errors import Problem, Severity, SourcePosition, UserError
from perfflow.model.result import Result
from perfflow.model.targets import matches
from perfflow.model.units import UnitError
from perfflow.report.page import page_of
from perfflow.session.perform import write
from perfflow.session.session import record_of_events
from perfflow.store import result_file, run_folder
from perfflow.store.history.stored import suggestion
from perfflow.store.receipts.renewal import renewing
from perfflow.store.record import Record
from perfflow.trees import repository
from perfflow.verdict.from_result import record_of_result
from perfflow.verdict.judge import judge
from perfflow.workflow.document import Loc
from perfflow.workflow.extends import read_with_parents
from perfflow.workflow.yaml_hints import for_unknown_key


@dataclass(frozen=True)
class Rejudged:
    """A result, the path of its report (None: no report was written), and a note for the reader."""

    result: Result
    report: Path | None
    note: str = ""


def rejudge(place: Path, thresholds: Sequence[str], out: Path | None, template: Path | None = None) -> Rejudged:
    """Judge a run's folder or a result file again, optionally by other thresholds.

    A run's own files are only rewritten if its events are judged by its own thresholds. For everything else,
    ``out`` is a new folder. ``template`` is for report.md. Raises UserError for damaged files, bad thresholds, a
    template that fails, an ``out`` that is not empty, and a run that has not ended.
    """
    if place.is_dir():
        run_folder.require_ended(place)
    from_events = place.is_dir() and (place / run_folder.EVENTS).is_file()
    if from_events and not thresholds and out is None:
        return _written_beside(_rejudge_events(place, ())[0], place, template)
    source = place / (run_folder.EVENTS if from_events else run_folder.RESULT) if place.is_dir() else place
    result, note = _rejudge_events(place, thresholds) if from_events else _rejudge_result(source, thresholds)
    if out is None:
        return Rejudged(result, None, note)
    run_folder.require_empty(out)
    return Rejudged(result, write(result, out, source=place if place.is_dir() else None, template=template), note)


def _written_beside(result: Result, folder: Path, template: Path | None) -> Rejudged:
    """Write the result into its run's folder. On a full or read-only disk, return it with a note instead."""
    try:
        with renewing(result, folder):
            return Rejudged(result, write(result, folder, template=template))
    except OSError as error:
        return Rejudged(result, None, f"cannot write the report to {folder}: {error.strerror}; --out DIR names another")


def _rejudge_result(source: Path, thresholds: Sequence[str]) -> tuple[Result, str]:
    stored = result_file.read(source)
    with run_folder.explaining_damage(source):
        result, note = _rejudge_record(record_of_result(stored), thresholds)
        # Judging does not read all parts of a file, so rendering the page finds damage in the others.
        page_of(result)
        return result, note


def _rejudge_events(folder: Path, thresholds: Sequence[str]) -> tuple[Result, str]:
    with run_folder.explaining_damage(folder / run_folder.EVENTS):
        return _rejudge_record(record_of_events(folder), thresholds)


def _rejudge_record(record: Record, thresholds: Sequence[str]) -> tuple[Result, str]:
    """Return the result, and a note about the thresholds."""
    notes: list[str] = []
    if thresholds:
        benchmarks = {benchmark for benchmark, _ in record.series}
        record.criteria, notes = with_thresholds(record.criteria, thresholds, benchmarks)
        record.run = record.run.model_copy(update={"judged_by": [*record.run.judged_by, *thresholds]})
    return judge(record, record.criteria), "; ".join(notes)


MEMORY = "memory"
OFF = "off"
KEYS = (*THRESHOLD_KEYS, MEMORY, *(f"{MEMORY}.{key}" for key in MEMORY_KEYS))
FORM = "write concern=3%,action=5%,floor=1%, 'GLOB:action=5%', or a file with `thresholds:`"


@dataclass(frozen=True)
class GivenThreshold:
    """One threshold as given; ``glob`` is '' for all benchmarks. ``source`` is the prefix of messages about it.

    ``key`` is one of ``KEYS``.
    """

    glob: str
    key: str
    text: str
    source: str = ""
    place: SourcePosition | None = None


def with_thresholds(
    criteria: Criteria, specs: Sequence[str], benchmarks: Collection[str]
) -> tuple[Criteria, list[str]]:
    """Return the criteria with the thresholds in ``specs`` replaced one by one, and notes.

    All other thresholds stay as the run had them, including those of its globs. A glob that matches none of the
    ``benchmarks`` is an error on the command line, and a note in a file, which may serve many workflows.
    Raises UserError.
    """
    given = [threshold for spec in specs for threshold in _read(spec)]
    problems = []
    for threshold in given:
        share = _share(threshold)
        if isinstance(share, Problem):
            problems.append(share)
        else:
            criteria = _without_memory(criteria, threshold.glob) if share is None else _with(criteria, threshold, share)
    problems = problems or list(_order(criteria, given))
    idle = {
        threshold.glob: threshold
        for threshold in given
        if threshold.glob and not any(matches(threshold.glob, name) for name in benchmarks)
    }
    problems += [
        Problem(f"{threshold.source}no benchmark matches {glob!r}", suggestion(glob, sorted(benchmarks), "benchmarks"))
        for glob, threshold in idle.items()
        if threshold.place is None
    ]
    if problems:
        raise UserError(tuple(problems))
    notes = [f"{threshold.place}: no benchmark of this run matches {glob!r}" for glob, threshold in idle.items()]
    return criteria, notes


def _with(criteria: Criteria, threshold: GivenThreshold, share: float) -> Criteria:
    key = _memory_key(threshold)
    if not threshold.glob:
        if threshold.key in THRESHOLD_KEYS:
            return replace(criteria, thresholds=replace(criteria.thresholds, **{key: share}))
        return replace(criteria, memory=replace(criteria.memory or MemoryThresholds(), **{key: share}))
    of_glob = criteria.per_glob.get(threshold.glob, OwnThresholds())
    if threshold.key in THRESHOLD_KEYS:
        of_glob = replace(of_glob, shares={**of_glob.shares, key: share})
    else:
        of_glob = replace(of_glob, memory={**(of_glob.memory or {}), key: share})
    return replace(criteria, per_glob={**criteria.per_glob, threshold.glob: of_glob})


def _without_memory(criteria: Criteria, glob: str) -> Criteria:
    if not glob:
        return replace(criteria, memory=None)
    own = replace(criteria.per_glob.get(glob, OwnThresholds()), memory=None)
    return replace(criteria, per_glob={**criteria.per_glob, glob: own})


def _memory_key(item: GivenThreshold) -> str:
    return item.key.rpartition(".")[2]


def _read(spec: str) -> Iterator[GivenThreshold]:
    """Yield the thresholds of one option. It is a file if it exists or ends in .yaml or .yml; otherwise it is text."""
    path = Path(spec)
    if path.is_file() or path.suffix in (".yaml", ".yml"):
        yield from _of_file(path)
        return
    glob, _, shares = spec.rpartition(":")
    for part in shares.split(","):
        key, equals, text = part.partition("=")
        if not equals or not key.strip():
            raise UserError.of(f"--thresholds {spec}: {part.strip()!r} is not a threshold", FORM)
        yield GivenThreshold(glob, key.strip(), text.strip(), f"--thresholds {spec}: ")


def _of_file(path: Path) -> Iterator[GivenThreshold]:
    library = Library(repository.root_of(path.parent) or Path.cwd())
    document = read_with_parents(path, library.resolve, library.readable(path))
    if wrong := tuple(item for item in document.problems if item.severity is Severity.ERROR):
        raise UserError(wrong)
    data = document.data()
    mapping = data.get("thresholds") if isinstance(data, dict) else None
    if not isinstance(mapping, dict) or not mapping:
        raise UserError.of(f"--thresholds {path}: the file has no `thresholds:` mapping", FORM)
    for loc, text in _texts(mapping, ("thresholds",)):
        glob, names = (str(loc[2]), loc[3:]) if loc[1] == "for" and len(loc) > 3 else ("", loc[1:])
        yield GivenThreshold(glob, ".".join(map(str, names)), text, place=document.place(loc))


def _texts(value: Any, loc: Loc) -> Iterator[tuple[Loc, str]]:
    """Yield the place and the text of every value in nested maps."""
    if isinstance(value, dict):
        for key, item in value.items():
            yield from _texts(item, (*loc, key))
    else:
        yield loc, str(value)


def _share(threshold: GivenThreshold) -> float | Problem | None:
    """Return the share of a threshold; None for `off`."""
    if threshold.key not in KEYS:
        hint = for_unknown_key(threshold.key, KEYS)
        return Problem(f"{threshold.source}unknown threshold `{threshold.key}`", hint, threshold.place)
    if threshold.key == MEMORY:
        hint = "write `memory.action=20%`, or `memory=off`"
        return (
            None
            if threshold.text == OFF
            else Problem(f"{threshold.source}`memory` cannot be {threshold.text!r}", hint, threshold.place)
        )
    try:
        return read_threshold(threshold.key, threshold.text)
    except UnitError as error:
        return Problem(f"{threshold.source}{error}", error.hint, threshold.place)


def _order(criteria: Criteria, given: Sequence[GivenThreshold]) -> Iterator[Problem]:
    """Yield an error for each glob whose concern is above its action. Missing ones are those of all benchmarks."""
    for glob in dict.fromkeys(item.glob for item in given):
        thresholds = criteria.per_glob.get(glob, OwnThresholds())
        limits = replace(criteria.memory or MemoryThresholds(), **(thresholds.memory or {}))
        of_glob = [item for item in given if item.glob == glob]
        plain = {item.key: item for item in of_glob}
        of_memory = {_memory_key(item): item for item in of_glob if "." in item.key}
        for limit, keys in (
            (replace(criteria.thresholds, **thresholds.shares), plain),
            (Thresholds(limits.concern, limits.action), of_memory),
        ):
            problem = order_problem(limit, keys)
            if problem:
                last = keys[problem.key]
                yield Problem(f"{last.source}{problem.message}", problem.hint, last.place)
