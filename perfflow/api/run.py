"""A stored run as a frozen object, and its tables."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import Any, Literal, get_args

from perfflow.api import display, frames, rows
from perfflow.api.columns import DecisionRow, SampleRow, columns_of
from perfflow.api.frames import Library
from perfflow.api.model import Benchmark, Target
from perfflow.api.rows import Table
from perfflow.model.errors import UserError
from perfflow.model.result import Result
from perfflow.report.sanitize import visible
from perfflow.store.result_file import to_text


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
    reasons: tuple[str, ...]
    evidence: tuple[str, ...]
    revision: str | None
    baseline_revision: str | None
    dirty: bool
    benchmarks: tuple[Benchmark, ...]
    targets: tuple[Target, ...]
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
        return list(rows.sample_rows(self.id, self.benchmarks, self.folder))

    def decisions(self) -> list[DecisionRow]:
        """Return the decisions as tidy rows: one for each of ``benchmarks``, with the keys of ``DecisionRow``.

        >>> import perfflow
        >>> [(row["benchmark"], row["decision"]) for row in perfflow.load("latest").decisions()]
        [('count', 'regressed')]
        """
        return list(rows.decision_rows(self.id, self.benchmarks))

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
            return frames.frame(self.to_rows(), columns_of(SampleRow), library)
        return frames.frame(self.decisions(), columns_of(DecisionRow), library)

    def to_dict(self) -> dict[str, Any]:
        """Return a copy of the whole result.json as plain data, with all fields that this version knows.

        >>> import perfflow
        >>> perfflow.load("latest").to_dict()["schema"]
        'perfflow.result/1'
        """
        found: dict[str, Any] = json.loads(to_text(self._result))
        return found

    def __repr__(self) -> str:
        rows_of = f"{len(self.benchmarks)} rows" if len(self.benchmarks) != 1 else "1 row"
        return visible(f"<Run {self.id} of {self.workflow}: {self.verdict or 'not judged'}, {rows_of}>")

    def _repr_html_(self) -> str:
        shown = [row for row in self._result.benchmarks if row.gating or row.leading] or self._result.benchmarks
        title = f"{self.workflow}: {self.verdict or 'not judged'}"
        return display.html(title, shown, self._result, names=True)
