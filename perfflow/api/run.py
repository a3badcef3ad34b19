"""Read a stored run as a frozen object with tables: ``load`` and ``Run``.

- The rows of the tables, one for each sample or for each decision.
- A table as a data frame of pandas or polars, which perfflow does not require.
- The decisions as a small HTML table for a notebook, with the texts of the report.
- ``Run``, and its tables as CSV.
- ``load``, which finds and reads the result.json of a run.
"""

from __future__ import annotations

import csv
import io
import json
import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from html import escape
from importlib import import_module
from itertools import islice
from pathlib import Path
from typing import Any, Literal, TypedDict, get_args, get_type_hints

from perfflow.jobs.export.export import read_result
from perfflow.model.criteria import Criteria, criteria_from_json
from perfflow.model.errors import UserError
from perfflow.model.metrics import in_words
from perfflow.model.readings import Side
from perfflow.model.result import Benchmark, Bounds, Decision, Level, Reason, Result, Sample, TargetResult
from perfflow.model.tree_facts import tree_of
from perfflow.report.payloads.revision import has_changes, revision_of
from perfflow.report.rows import comparison_of
from perfflow.report.sanitize import csv_cell, visible
from perfflow.store import run_folder
from perfflow.store.result_file import to_text
from perfflow.store.sample_order import Orders, TakingOrder, Wanted, order_in
from perfflow.trees import repository


class SampleRow(TypedDict):
    """One sample: a process that was run on one side.

    ``run``, ``benchmark``, ``step``, ``metric``: its origin. ``value`` is in the base unit ``unit``.
    ``side``: ``baseline`` or ``candidate``. ``at_most``: the value is an upper bound, below which the tool cannot see.
    ``pair``: number of the pair from 0; the sample of the other side with this number is its partner. None if the
    samples were not taken in pairs. ``order``: position among all samples of its benchmark and metric in the order in
    which they were taken, from 0. None if the run's events are missing or do not have it.

    >>> import perfflow
    >>> first, *_ = perfflow.load("latest").to_rows()
    >>> first["metric"], first["unit"], first["side"], first["pair"]
    ('time', 's', 'baseline', 0)
    """

    run: str
    benchmark: str
    step: str
    metric: str
    unit: str
    side: Literal["baseline", "candidate"]
    pair: int | None
    order: int | None
    value: float
    at_most: bool


class DecisionRow(TypedDict):
    """One metric of one benchmark with its decision: a ``Benchmark`` with flattened bounds.

    ``baseline``, ``candidate``: the statistic of each side in the base unit ``unit``, with the ends of its interval.
    ``change``: candidate/baseline - 1. ``speedup``: above 1 is better. Unknown values are None.

    >>> import perfflow
    >>> (row,) = perfflow.load("latest").decisions()
    >>> row["baseline"], row["candidate"], round(row["change"], 3), row["decision"]
    (0.125, 0.15, 0.2, 'regressed')
    """

    run: str
    benchmark: str
    step: str
    tool: str
    metric: str
    statistic: str
    unit: str
    better: Literal["lower", "higher", "none"]
    baseline: float | None
    baseline_low: float | None
    baseline_high: float | None
    candidate: float | None
    candidate_low: float | None
    candidate_high: float | None
    change: float | None
    change_low: float | None
    change_high: float | None
    speedup: float | None
    speedup_low: float | None
    speedup_high: float | None
    confidence: float | None
    decision: Decision | None
    level: Level | None
    gating: bool
    pairs: int


_TYPES: tuple[type, ...] = (bool, int, float)


def columns_of(row: type[SampleRow | DecisionRow]) -> Mapping[str, type]:
    """Return the names of a table's columns in order, with the type of the values that are not None."""
    hints = get_type_hints(row)
    return {name: _type(hint) for name, hint in hints.items()}


def _type(hint: object) -> type:
    inside = getattr(hint, "__args__", ())
    return next((known for known in _TYPES if hint is known or known in inside), str)


Table = Literal["samples", "decisions"]
SideName = Literal["baseline", "candidate"]


def sample_rows(run: str, benchmarks: Iterable[Benchmark], folder: Path | None) -> Iterator[SampleRow]:
    """Return the samples of each benchmark, pair by pair, with the order in which they were taken.

    ``run``: the run's id. ``folder``: the run folder, whose events hold the order. Raises UserError if they are
    damaged, immediately and not at the first row.
    """
    return _all_samples(run, benchmarks, order_in(folder))


def _all_samples(run: str, benchmarks: Iterable[Benchmark], order: TakingOrder) -> Iterator[SampleRow]:
    for row in benchmarks:
        found: dict[SideName, Sample | None] = {"baseline": row.baseline, "candidate": row.candidate}
        sides = {side: sample for side, sample in found.items() if sample is not None}
        values = {str(side): tuple(sample.samples) for side, sample in sides.items()}
        orders = order.of(Wanted(row.step, row.name, row.metric, values))
        yield from _samples(run, row, sides, orders)


def _samples(run: str, row: Benchmark, sides: Mapping[SideName, Sample], orders: Orders) -> Iterator[SampleRow]:
    longest = max((len(sample.samples) for sample in sides.values()), default=0)
    bounded = {side: sample.at_most for side, sample in sides.items()}
    for number in range(longest):
        for side, sample in sides.items():
            if number < len(sample.samples):
                yield SampleRow(
                    run=run,
                    benchmark=row.name,
                    step=row.step,
                    metric=row.metric,
                    unit=row.unit,
                    side=side,
                    pair=number if row.in_pairs else None,
                    order=orders[side][number] if side in orders else None,
                    value=sample.samples[number],
                    at_most=bool(bounded[side]) and bounded[side][number],
                )


def decision_rows(run: str, benchmarks: Iterable[Benchmark]) -> Iterator[DecisionRow]:
    """Yield the decision of each row. ``run``: the run's id."""
    for row in benchmarks:
        baseline, candidate = row.baseline or _NONE, row.candidate or _NONE
        change, speedup = row.change or _NONE, row.speedup or _NONE
        yield DecisionRow(
            run=run,
            benchmark=row.name,
            step=row.step,
            tool=row.tool,
            metric=row.metric,
            statistic=row.statistic,
            unit=row.unit,
            better=row.better,
            baseline=baseline.value,
            baseline_low=baseline.low,
            baseline_high=baseline.high,
            candidate=candidate.value,
            candidate_low=candidate.low,
            candidate_high=candidate.high,
            change=change.value,
            change_low=change.low,
            change_high=change.high,
            speedup=speedup.value,
            speedup_low=speedup.low,
            speedup_high=speedup.high,
            confidence=row.confidence,
            decision=row.decision,
            level=row.level,
            gating=row.gating,
            pairs=row.pairs,
        )


_NONE = Bounds(value=None, low=None, high=None)


Library = Literal["pandas", "polars"]
Rows = Sequence[SampleRow] | Sequence[DecisionRow]


def frame_of(rows: Rows, columns: Mapping[str, type], library: Library | None = None) -> Any:
    """Return rows as a data frame of ``library``, or of the first that is installed: pandas, polars.

    ``columns``: names and types, also used if there are no rows. Raises UserError if the library is not installed.
    """
    known: tuple[Library, ...] = get_args(Library)
    if library is not None and library not in known:
        raise UserError.of(f"unknown library {library!r}", f"write one of: {', '.join(known)}")
    for name in [library] if library else known:
        try:
            module = import_module(name)
        except ImportError:
            continue
        return _MAKERS[name](module, rows, columns)
    missing = library or " nor ".join(known)
    text = f"{missing} is not installed" if library else f"neither {missing} is installed"
    hint = f"install one with `python -m pip install {library or known[0]}`; to_rows() and decisions() need none"
    raise UserError.of(text, hint)


def _pandas(module: Any, rows: Rows, columns: Mapping[str, type]) -> Any:
    found = module.DataFrame.from_records(list(rows), columns=list(columns))
    # Int64 and string have missing values; plain integer columns with missing values would become floats.
    return found.astype({name: _OF_PANDAS[kind] for name, kind in columns.items()})


def _polars(module: Any, rows: Rows, columns: Mapping[str, type]) -> Any:
    return module.DataFrame(list(rows), schema=dict(columns))


_OF_PANDAS: Mapping[type, str] = {str: "string", int: "Int64", float: "float64", bool: "bool"}
_MAKERS: Mapping[str, Callable[[Any, Rows, Mapping[str, type]], Any]] = {"pandas": _pandas, "polars": _polars}


MOST_ROWS = 50
"""Most rows of a table, since a notebook stores its output in its file."""


def comparison_html(title: str, rows: Sequence[Benchmark], result: Result, *, names: bool) -> str:
    """Return a table of rows with both sides, the change with its interval, and the decision; all text is escaped.

    ``names``: whether the benchmarks' names are a column.
    """
    criteria = criteria_from_json(result.criteria)
    head = [*(["benchmark"] if names else []), "metric", "baseline", "candidate", "change", "decision"]
    lines = [
        "<table>",
        f"<caption>{_cell_text(title)}</caption>",
        f"<thead><tr>{''.join(f'<th>{_cell_text(name)}</th>' for name in head)}</tr></thead>",
        "<tbody>",
        *(_row(cells) for cells in _cells(rows[:MOST_ROWS], criteria, names=names)),
        "</tbody>",
        "</table>",
    ]
    left = len(rows) - MOST_ROWS
    if left > 0:
        lines.append(f"<p>{left} more rows are in <code>benchmarks</code>.</p>")
    return "\n".join(lines)


def _cells(rows: Sequence[Benchmark], criteria: Criteria, *, names: bool) -> Iterator[list[str]]:
    for row in rows:
        shown = comparison_of(row, criteria)
        name = [row.name] if names else []
        yield [*name, in_words(row.metric), shown.baseline, shown.candidate, shown.change, shown.decision]


def _row(cells: Sequence[str]) -> str:
    return f"<tr>{''.join(f'<td>{_cell_text(cell)}</td>' for cell in cells)}</tr>"


def _cell_text(text: str) -> str:
    return escape(visible(text))


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Run:
    """A stored run, as it is in result.json; nothing is judged again.

    ``id``, ``workflow``, ``component``: the run's id, the workflow's name, and the report's title.
    ``started``, ``finished``: in UTC; ``finished`` is None if perfflow was killed. ``seconds``: duration of the run.
    ``seed``: of the random order of the pairs. ``version``: of perfflow. ``interrupted``: whether it was interrupted.
    ``verdict``: ``pass``, ``fail``, ``unproven`` or ``error``; None if two stored results were compared.
    ``gate``: ``pass`` or ``fail``; None if ``verdict`` is None.
    ``reasons``: why the verdict is not a pass, then warnings. ``evidence``: the evidence lines for a review.
    ``revision``: the measured commit, with two trees the candidate's. ``baseline_revision``: with two trees, the
    baseline's. Both are None if not known. ``dirty``: whether files differed from ``revision``.
    ``benchmarks``, ``targets``: rows of the report, in its order.
    ``warnings``: about the run as a whole, then those of its steps, as ``STEP: text``.
    ``folder``: the run folder, None for a result.json outside of a run folder.

    >>> import perfflow
    >>> run = perfflow.load("latest")
    >>> run.workflow, run.verdict, run.started.tzname()
    ('words', 'fail', 'UTC')
    >>> [row.metric for row in run.benchmarks]
    ['time']
    """

    id: str
    workflow: str
    component: str
    started: datetime
    finished: datetime | None
    seconds: float | None
    seed: int
    version: str
    interrupted: bool
    verdict: Literal["pass", "fail", "unproven", "error"] | None
    gate: Literal["pass", "fail"] | None
    reasons: tuple[Reason, ...]
    evidence: tuple[str, ...]
    revision: str | None
    baseline_revision: str | None
    dirty: bool
    benchmarks: tuple[Benchmark, ...]
    targets: tuple[TargetResult, ...]
    warnings: tuple[str, ...]
    folder: Path | None
    _result: Result = field(repr=False)

    def benchmark(self, name: str, metric: str) -> Benchmark:
        """Return the row of one metric of one benchmark. Raises KeyError with the names of the existing rows.

        >>> import perfflow
        >>> perfflow.load("latest").benchmark("count", "time").decision
        'regressed'
        """
        for row in self.benchmarks:
            if (row.name, row.metric) == (name, metric):
                return row
        known = ", ".join(f"{row.name} {row.metric}" for row in self.benchmarks)
        raise KeyError(f"the run has no row {name!r} {metric!r}; it has: {known or 'none'}")

    def to_rows(self) -> list[SampleRow]:
        """Return the samples as tidy rows: one for each sample of each side, with the keys of ``SampleRow``.

        Raises UserError if the run's events are damaged.

        >>> import perfflow
        >>> rows = perfflow.load("latest").to_rows()
        >>> len(rows), rows[0]["benchmark"], rows[0]["side"], rows[0]["pair"], rows[0]["value"]
        (20, 'count', 'baseline', 0, 0.125)
        """
        return list(sample_rows(self.id, self.benchmarks, self.folder))

    def decisions(self) -> list[DecisionRow]:
        """Return the decisions as tidy rows: one for each of ``benchmarks``, with the keys of ``DecisionRow``.

        >>> import perfflow
        >>> [(row["benchmark"], row["decision"]) for row in perfflow.load("latest").decisions()]
        [('count', 'regressed')]
        """
        return list(decision_rows(self.id, self.benchmarks))

    def to_frame(self, table: Table = "samples", library: Library | None = None) -> Any:
        """Return ``to_rows``, or ``decisions`` if ``table="decisions"``, as a data frame of pandas, else of polars.

        ``library`` selects one of the two. Raises UserError if it, or both, are not installed.

        >>> import perfflow
        >>> perfflow.load("latest").to_frame("decisions")["decision"].to_list()
        ['regressed']
        """
        if table not in get_args(Table):
            raise UserError.of(f"unknown table {table!r}", f"write one of: {', '.join(get_args(Table))}")
        if table == "samples":
            return frame_of(self.to_rows(), columns_of(SampleRow), library)
        return frame_of(self.decisions(), columns_of(DecisionRow), library)

    def to_dict(self) -> dict[str, Any]:
        """Return a copy of the whole result.json as plain data, with all fields that this version knows.

        >>> import perfflow
        >>> perfflow.load("latest").to_dict()["schema"]
        'perfflow.result/2'
        """
        found: dict[str, Any] = json.loads(to_text(self._result))
        return found

    def __repr__(self) -> str:
        rows_of = f"{len(self.benchmarks)} rows" if len(self.benchmarks) != 1 else "1 row"
        return visible(f"<Run {self.id} of {self.workflow}: {self.verdict or 'not judged'}, {rows_of}>")

    def _repr_html_(self) -> str:
        shown = [row for row in self._result.benchmarks if row.gating or row.leading] or self._result.benchmarks
        title = f"{self.workflow}: {self.verdict or 'not judged'}"
        return comparison_html(title, shown, self._result, names=True)


FILES: Mapping[Table, str] = {"samples": "samples.csv", "decisions": "decisions.csv"}
_ROWS = 1000
"""Rows per chunk."""


def chunks(run: Run, table: Table) -> Iterator[str]:
    """Return the text of one table in chunks, since a long run has millions of samples.

    Raises UserError if the run's events are damaged.
    """
    if table == "samples":
        return _chunks(SampleRow, sample_rows(run.id, run.benchmarks, run.folder))
    return _chunks(DecisionRow, decision_rows(run.id, run.benchmarks))


def _chunks(kind: type[SampleRow | DecisionRow], rows: Iterator[SampleRow] | Iterator[DecisionRow]) -> Iterator[str]:
    yield _text([list(columns_of(kind))])
    lines = (list(map(_cell, row.values())) for row in rows)
    while part := list(islice(lines, _ROWS)):
        yield _text(part)


def _text(lines: list[list[str]]) -> str:
    stream = io.StringIO()
    csv.writer(stream, lineterminator="\n").writerows(lines)
    return stream.getvalue()


def _cell(value: object) -> str:
    if value is None:
        return ""
    if isinstance(value, bool):
        return "true" if value else "false"
    # repr of a float is the shortest text that parses to the same number.
    return csv_cell(value) if isinstance(value, str) else repr(value)


def load(run: str | os.PathLike[str] = "latest", *, root: str | os.PathLike[str] | None = None) -> Run:
    """Read a stored run.

    ``run``: ``latest``, a run's id, a run's folder, or the path of a result.json.
    ``root``: the project in which ids and relative paths are looked up; by default the one of the current folder.
    Raises UserError if the run does not exist, or if its result.json is missing, damaged or from another tool.

    >>> import perfflow
    >>> run = perfflow.load("latest")
    >>> perfflow.load(run.id).id == perfflow.load(run.folder / "result.json").id == run.id
    True
    >>> perfflow.load("20200101-000000-abcdef")
    Traceback (most recent call last):
    perfflow.model.errors.UserError: error: 20200101-000000-abcdef: no run there
    ...
    """
    place = _place(os.fspath(run), root)
    return run_of(read_result(place), place if place.is_dir() else None)


def _place(name: str, root: str | os.PathLike[str] | None) -> Path:
    if root is None:
        return run_folder.find(repository.project_here(), name)
    base = Path(root).absolute()
    base = repository.root_of(base) or base
    # `find` resolves a path from the current folder, which may be outside of the project in `root`.
    path = Path(root).absolute() / name
    return run_folder.find(base, str(path if path.exists() else base / run_folder.HOME / "runs" / name))


def run_of(result: Result, folder: Path | None) -> Run:
    """Return a result as a run. ``folder``: the run folder. Raises UserError if a start or end is not a time."""
    info = result.run
    revision = revision_of(result)
    baseline, candidate = (tree_of(result.trees, side) for side in Side)
    return Run(
        id=info.id,
        workflow=info.workflow,
        component=info.component,
        started=_time(info.started, folder),
        finished=_time(info.finished, folder) if info.finished else None,
        seconds=info.seconds,
        seed=info.seed,
        version=info.version,
        interrupted=info.interrupted,
        verdict=result.verdict,
        gate=result.gate.status if result.gate else None,
        reasons=tuple(result.reasons),
        evidence=tuple(result.evidence),
        revision=revision,
        baseline_revision=baseline.revision if candidate.kind else None,
        dirty=has_changes(result),
        benchmarks=tuple(result.benchmarks),
        targets=tuple(result.targets),
        warnings=(*info.warnings, *(f"{step.id}: {text}" for step in result.steps for text in step.warnings)),
        folder=folder,
        _result=result,
    )


def _time(text: str, folder: Path | None) -> datetime:
    try:
        return datetime.fromisoformat(text)
    except ValueError as error:
        where = f"{folder}: " if folder else ""
        raise UserError.of(
            f"{where}{text!r} in its result.json is not a time", "was the file edited by hand?"
        ) from error
