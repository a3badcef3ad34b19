"""The page as a short text for a terminal: verdict, requirements, comparisons, hotspots, why, and where the rest is."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from perfflow.report.page import Page, page_of
from perfflow.report.plain import visible
from perfflow.result import Result

_MARKS = {"✅": ("✓", "+"), "❌": ("✗", "x"), "❔": ("?", "?")}
_COLORS = {"✅": "32", "❌": "31", "❔": "33"}
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
MOST_LINES = 8


def render(result: Result, *, width: int, color: bool, unicode: bool, where: str = "") -> str:
    """Return the verdict as text, no line wider than ``width``."""
    page = page_of(result)
    lines: list[str] = []
    for line, paint in _lines(page, where):
        shown = line if unicode else _ascii(line)
        shown = _fit(shown, width)
        lines.append(f"\x1b[{paint}m{shown}\x1b[0m" if color and paint and shown else shown)
    return "\n".join(lines) + "\n"


def _lines(page: Page, where: str) -> Iterator[tuple[str, str]]:
    mark, paint = _MARKS[page.symbol][0], _COLORS[page.symbol]
    yield f"{mark} {page.verdict}  {visible(page.component)}   {page.headline}", f"1;{paint}"
    yield from _block(_requirements(page))
    yield from _block(_comparisons(page))
    hotspots = [_hotspots(page)] if page.profiles else []
    whys = [(f"  why: {visible(reason)}", "") for reason in page.reasons]
    yield from _block([*((text, "") for text in hotspots if text), *_shortened(whys)])
    yield "", ""
    yield page.gate, ""
    for line in page.evidence[:MOST_LINES]:
        yield visible(line), ""
    if len(page.evidence) > MOST_LINES:
        yield f"  … {len(page.evidence) - MOST_LINES} more in the report", ""
    if where:
        yield f"report: {where}", ""


def _block(lines: Sequence[tuple[str, str]]) -> Iterator[tuple[str, str]]:
    if lines:
        yield "", ""
        yield from lines


def _shortened(lines: list[tuple[str, str]]) -> list[tuple[str, str]]:
    if len(lines) <= MOST_LINES:
        return lines
    return [*lines[: MOST_LINES - 1], (f"  … {len(lines) - MOST_LINES + 1} more in the report", "")]


def _requirements(page: Page) -> list[tuple[str, str]]:
    """What failed or is unproven is always shown; many met ones fold into a count."""
    rows = list(page.requirements)
    if len(rows) > MOST_LINES:
        rows = [row for row in rows if row.status != "met"]
    texts = [(f"{visible(row.name)} {row.required}", f"{row.measured} {row.interval}".strip(), row) for row in rows]
    name_width = max((len(name) for name, _, _ in texts), default=0)
    lines = []
    for name, measured, row in texts:
        detail = f"   {row.detail}" if row.detail else ""
        lines.append((f"{_MARKS[row.symbol][0]} {name:<{name_width}}  {measured}{detail}", _COLORS[row.symbol]))
    if len(rows) < len(page.requirements):
        lines.append((f"✓ {len(page.requirements) - len(rows)} more targets met", _COLORS["✅"]))
    return lines


def _comparisons(page: Page) -> list[tuple[str, str]]:
    rows = [row for row in page.comparisons if row.gating]
    name_width = max((len(visible(row.operation)) for row in rows), default=0)
    lines = []
    for row in rows:
        sides = row.baseline if row.candidate == "–" else f"{row.baseline} → {row.candidate}  {row.speedup}"
        color = {"improved": "32", "unproven": "33"}.get(
            row.decision.split(" ")[0], "31" if row.level == "action" else ""
        )
        lines.append(
            (f"  {visible(row.operation):<{name_width}}  {row.metric}  {sides}  {row.decision}".rstrip(), color)
        )
    return _shortened(lines)


def _hotspots(page: Page) -> str:
    table = page.profiles[0]
    spots = [
        f"{spot.share} {visible(spot.location)}" + (f" {visible(spot.place)}" if spot.place else "")
        for spot in table.spots
    ]
    return f"  hotspots of {visible(table.benchmark)}: " + ", ".join(spots)


def _ascii(line: str) -> str:
    for symbol, (fancy, plain) in _MARKS.items():
        line = line.replace(fancy, plain).replace(symbol, plain)
    for fancy, plain in _ASCII.items():
        line = line.replace(fancy, plain)
    return line.encode("ascii", "replace").decode()


def _fit(line: str, width: int) -> str:
    """Cut a line in its middle, where it is too wide; wide letters count double."""
    from unicodedata import east_asian_width

    def cells(text: str) -> int:
        return sum(2 if east_asian_width(letter) in "WF" else 1 for letter in text)

    if cells(line) <= width:
        return line
    keep = line
    while keep and cells(keep) > width - 1:
        keep = keep[:-1]
    return keep + "…" if line.isascii() is False else keep[: width - 3] + "..."
