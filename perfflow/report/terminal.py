"""The page as a short text for a terminal: verdict, requirements, comparisons, hotspots, why, and where the rest is."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from textwrap import wrap

from perfflow.report.page import Page, page_of
from perfflow.report.plain import cells, fitted, padded, shortened, visible
from perfflow.report.rows import NOTHING
from perfflow.result import Result

_MARKS = {"✅": ("✓", "+"), "❌": ("✗", "x"), "❔": ("?", "?")}
_GREEN, _RED, _YELLOW = "32", "31", "33"
_COLORS = {"✅": _GREEN, "❌": _RED, "❔": _YELLOW}
_DECISIONS = {"improved": _GREEN, "unproven": _YELLOW, "removed": _RED}
_ASCII = {
    "μ": "u",
    "≤": "<=",
    "≥": ">=",
    "±": "+-",
    "–": "-",
    "→": "->",
    "∞": "inf",
    "Δ": "delta",
    "…": "...",
    "×": "x",
}
_NOTE = "  note: "
_SIDES = {"baseline": "  baseline   ", "candidate": "  candidate  "}
MOST_LINES = 8
MOST_PROFILES = 3
LONGEST_NAME = 36
LONGEST_NOTE = 300
Line = tuple[str, str]
"""A text and its colour."""


def render(result: Result, *, width: int, color: bool, unicode: bool, where: str = "") -> str:
    """Return the verdict as text, no line wider than ``width``."""
    lines: list[str] = []
    for line, paint in _wrapped(_lines(page_of(result), where), width):
        shown = fitted(visible(line) if unicode else ascii_text(visible(line)), width, "…" if unicode else "...")
        lines.append(f"\x1b[{paint}m{shown}\x1b[0m" if color and paint and shown else shown)
    return "\n".join(lines) + "\n"


def _wrapped(lines: Iterable[Line], width: int) -> Iterator[Line]:
    """Notes and what was compared go on in a next line, since their ends matter; all else is cut."""
    for line, paint in lines:
        indent = next((len(start) for start in (_NOTE, *_SIDES.values()) if line.startswith(start)), 0)
        parts = wrap(line, width, subsequent_indent=" " * indent, break_on_hyphens=False) if indent else [line]
        yield from ((part, paint) for part in parts)


def _lines(page: Page, where: str) -> Iterator[Line]:
    mark, paint = _MARKS[page.symbol][0], _COLORS[page.symbol]
    yield f"{mark} {page.verdict}  {shortened(page.component, LONGEST_NAME)}   {page.headline}", f"1;{paint}"
    if page.judged_by:
        yield f"  judged again by other thresholds than the run's own: {page.judged_by}", _YELLOW
    yield from _block([(f"{_SIDES[name]}{shortened(text, LONGEST_NOTE)}", "") for name, text in page.sides])
    yield from _block(_requirements(page))
    yield from _block([*_comparisons(page), *_figures(page)])
    skipped = [(f"  skipped: {name}: {reason}", "33") for name, status, reason in page.troubles if status == "skipped"]
    whys = [(f"  why: {reason}", "") for reason in page.reasons]
    cautions = [(f"{_NOTE}{shortened(text, LONGEST_NOTE)}", _YELLOW) for text in page.cautions]
    reasons = _most(whys, page.others["reasons"])
    yield from _block([*_hotspots(page), *reasons, *_most(skipped), *_most(cautions)])
    yield "", ""
    yield page.gate, ""
    yield from _most([(line, "") for line in page.evidence], page.others["evidence"])
    if where:
        yield f"report: {where}", ""


def _block(lines: Sequence[Line]) -> Iterator[Line]:
    if lines:
        yield "", ""
        yield from lines


def _most(lines: list[Line], others: int = 0) -> list[Line]:
    """The first lines, and how many more there are; ``others`` are those that the page leaves out itself."""
    if len(lines) + others <= MOST_LINES:
        return lines
    where = "result.json" if others else "the report"
    shown = lines[: MOST_LINES - 1]
    return [*shown, (f"  … {len(lines) - len(shown) + others} more in {where}", "")]


def _requirements(page: Page) -> list[Line]:
    """What failed or is unproven is always shown, unless not even the report has all; met ones fold into a count."""
    rows = list(page.requirements)
    if len(rows) > MOST_LINES:
        rows = [row for row in rows if row.status != "met"]
    names = [f"{shortened(row.name, LONGEST_NAME)} {row.required}" for row in rows]
    table = _aligned([[name, f"{row.measured} {row.interval}".strip()] for name, row in zip(names, rows, strict=True)])
    lines = [
        (f"{_MARKS[row.symbol][0]} {text}{'   ' + row.detail if row.detail else ''}", _COLORS[row.symbol])
        for text, row in zip(table, rows, strict=True)
    ]
    met = page.counts["met"] - sum(row.status == "met" for row in rows)
    folded = [(f"✓ {met} more targets met", _GREEN)] if met else []
    others = page.others["requirements"]
    return [*(_most(lines, others) if others else lines), *folded]


def _comparisons(page: Page) -> list[Line]:
    """What a verdict rests on, the decision before the figures: a narrow terminal cuts the end."""
    rows = sorted(
        (row for row in page.comparisons if row.first),
        key=lambda row: row.decision.split(" ")[0] in ("same", "improved"),
    )
    table = _aligned(
        [[shortened(row.operation, LONGEST_NAME), row.metric, row.decision, row.speedup, row.values] for row in rows]
    )
    colors = [_RED if row.level == "action" else _DECISIONS.get(row.decision.split(" ")[0], "") for row in rows]
    lines = [(f"  {text}", color) for text, color in zip(table, colors, strict=True)]
    return _most(lines, page.others["comparisons"])


def _figures(page: Page) -> list[Line]:
    """Measurements without a second side."""
    rows = [row for row in page.figures if row.gating]
    return _most(
        [
            (f"  {text}", "")
            for text in _aligned([[shortened(row.benchmark, LONGEST_NAME), row.metric, row.baseline] for row in rows])
        ],
        page.others["figures"],
    )


def _aligned(rows: list[list[str]]) -> list[str]:
    """Columns as wide as their widest cell, two blanks apart; what is nothing in every row is left out."""
    columns = [column for column in zip(*rows, strict=True) if set(column) != {NOTHING}]
    widths = [max(cells(visible(cell)) for cell in column) for column in columns]
    return [
        "  ".join(padded(visible(cell), width) for cell, width in zip(row, widths, strict=True)).rstrip()
        for row in zip(*columns, strict=True)
    ]


def _hotspots(page: Page) -> list[Line]:
    """The top of each profile in one line; where they are is in the report."""
    lines = []
    for table in page.profiles[:MOST_PROFILES]:
        spots = ", ".join(f"{spot.share} {shortened(spot.location, LONGEST_NAME)}" for spot in table.spots)
        lines.append((f"  {shortened(table.benchmark, LONGEST_NAME)} {table.unit} ({table.source}): {spots}", ""))
    return lines


def ascii_text(line: str) -> str:
    """Text for a terminal that knows no other characters."""
    for symbol, (fancy, plain) in _MARKS.items():
        line = line.replace(fancy, plain).replace(symbol, plain)
    for fancy, plain in _ASCII.items():
        line = line.replace(fancy, plain)
    return line.encode("ascii", "replace").decode()
