"""The content of a comment, summary or check, and how it is shortened: by whole parts and rows, never inside a text."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, fields, is_dataclass, replace
from operator import itemgetter
from typing import Any

from perfflow.model.result import Result
from perfflow.report.advice import Routed
from perfflow.report.findings import Findings
from perfflow.report.page import Page, page_of
from perfflow.report.payloads.escape import clipped, fits
from perfflow.report.rows import Comparison
from perfflow.report.sanitize import shortened
from perfflow.report.sections import LONGEST_TITLE

MOST_CHANGED = 50
"""Most rows in a comment besides those that fail a run."""
_LONGEST_ROW = 8000
"""Characters above which a row is left out before any other."""
_MOST_EVIDENCE = 20
"""Evidence lines that are kept in a text that is too long."""
_FEWER = (100, 50, 25, 12, 6, 3, 1, 0)
_FAILING = ("requirements", "comparisons", "reasons", "checks", "troubles", "evidence", "warned")
"""Lists that are shortened last, row by row and with a count."""


@dataclass(frozen=True)
class Draft:
    """A page, and the names of the parts that were left out so far."""

    page: Page
    left_out: tuple[str, ...] = ()

    @property
    def changed(self) -> tuple[Comparison, ...]:
        """Rows that are shown unfolded: rows that fail a run, and the first changed or unproven ones."""
        failing = [row for row in self.page.comparisons if is_failing(row)]
        others = [row for row in self.page.comparisons if not is_failing(row) and _is_changed(row)][:MOST_CHANGED]
        kept = {id(row) for row in (*failing, *others)}
        return tuple(row for row in self.page.comparisons if id(row) in kept)

    @property
    def unchanged(self) -> tuple[Comparison, ...]:
        """All other rows, which are folded."""
        shown = {id(row) for row in self.changed}
        return tuple(row for row in self.page.comparisons if id(row) not in shown)


def draft_of(result: Result) -> Draft:
    """Return the full draft of a result. Headings are cut to the length of a line."""
    page = page_of(result)
    page = replace(
        page,
        component=_title(page.component),
        workflow=_title(page.workflow),
        gate=_title(page.gate),
        judged_by=_title(page.judged_by),
        findings=_titled(page.findings),
    )
    return Draft(page)


def _titled(found: Findings) -> Findings:
    return replace(found, gates=tuple(replace(line, gate=_title(line.gate)) for line in found.gates))


def _title(name: str) -> str:
    """Return a name that is short in columns and, since some letters take no column, in bytes."""
    return clipped(shortened(name, LONGEST_TITLE), 8 * LONGEST_TITLE)


def is_failing(row: Comparison) -> bool:
    """Return whether a row prevents a pass."""
    word = row.decision.partition(" ")[0]
    lost = word in ("removed", "not") and row.gating
    return row.level == "action" or lost or (word == "unproven" and not row.level and row.first)


def _is_changed(row: Comparison) -> bool:
    return row.first and row.decision.partition(" ")[0] != "same"


def fitted(draft: Draft, render: Callable[[Draft], str], most: int) -> str:
    """Return the longest text of at most ``most`` bytes, and so at most as many characters.

    Parts are left out in this order: unchanged rows, further figures, last lines of failed steps, environment and
    notes, evidence beyond the first lines, routing briefs, actions and gates, passed checks, profiles and candidates,
    regressions and recommendations, passing rows; then failing rows, the last first, with a count.
    """
    text = render(draft)
    for shorter in _steps(draft):
        if fits(text, most):
            return text
        draft = shorter
        text = render(draft)
    return text


def _steps(draft: Draft) -> Iterator[Draft]:
    """Yield shorter and shorter drafts."""
    page = draft.page
    kept = draft.changed
    yield (draft := _cut(draft, "unchanged rows", comparisons=kept))
    for what, names in (
        ("further figures", ("figures", "further", "before", "after")),
        ("the last lines of failed steps", ("failed",)),
        ("environment, notes and commands", ("environment", "notes", "cautions", "reproduce", "sides")),
    ):
        yield (draft := _cut(draft, what, **dict.fromkeys(names, ())))
    yield (draft := _fewer(draft, itemgetter(slice(_MOST_EVIDENCE)), ("evidence",)))
    found = replace(page.findings, routes=tuple(map(_bare, page.findings.routes)))
    yield (draft := _cut(draft, "routing briefs", findings=found))
    found = replace(found, actions=(), gates=(), routes=())
    yield (draft := _cut(draft, "actions, routing and gates", findings=found))
    failed = tuple(check for check in page.checks if check[2] != "passed")
    yield (draft := _cut(draft, "passed checks", checks=failed))
    yield (draft := _cut(draft, "profiles and candidates", joined=(), profiles=(), counters=None, ledger=None))
    found = replace(found, summary=None, blame=None, impact=(), recommendations=(), by_cell=(), red=None)
    yield (draft := _cut(draft, "regressions, hotspots and recommendations", findings=found))
    failing = tuple(row for row in kept if is_failing(row))
    unmet = tuple(row for row in page.requirements if row.status != "met")
    yield (draft := _cut(draft, "passing rows", comparisons=failing, requirements=unmet))
    yield (draft := _fewer(draft, lambda rows: tuple(row for row in rows if _length(row) <= _LONGEST_ROW)))
    for most in _FEWER:
        yield (draft := _fewer(draft, itemgetter(slice(most))))


def _bare(route: Routed) -> Routed:
    return replace(route, lists=(), commands=())


def _cut(draft: Draft, what: str, **changes: Any) -> Draft:
    return _noted(replace(draft, page=replace(draft.page, **changes)), draft, what)


def _noted(shorter: Draft, draft: Draft, what: str) -> Draft:
    """Return the shorter draft with ``what`` among the left out parts, if anything was left out."""
    return shorter if shorter == draft else replace(shorter, left_out=(*draft.left_out, what))


def _fewer(draft: Draft, keep: Callable[[tuple[Any, ...]], tuple[Any, ...]], names: Sequence[str] = _FAILING) -> Draft:
    """Return a draft with fewer failing rows; the page counts the ones left out."""
    others: Mapping[str, int] = draft.page.others
    changes: dict[str, Any] = {}
    for name in names:
        rows = getattr(draft.page, name)
        changes[name] = keep(rows)
        others = {**others, name: others.get(name, 0) + len(rows) - len(changes[name])}
    return replace(draft, page=replace(draft.page, **changes, others=others))


def _length(row: object) -> int:
    """Return the number of characters of all texts in a row."""
    if isinstance(row, str):
        return len(row)
    if isinstance(row, tuple):
        return sum(_length(part) for part in row)
    return sum(_length(getattr(row, field.name)) for field in fields(row)) if is_dataclass(row) else 0
