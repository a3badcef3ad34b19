"""The page as a short text for a terminal: the verdict and why, requirements, comparisons, and where the rest is."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from perfflow.report.columns import aligned, narrowed
from perfflow.report.failed_steps import FEW_LINES, FailedStep
from perfflow.report.findings import Culprit
from perfflow.report.ledger import Try
from perfflow.report.page import Page, ProfileTable, page_of
from perfflow.report.parts import Line, Part, folded
from perfflow.report.plain import MARKS, NO_EDGE, ascii_text, cells, fitted, padded, shortened, visible, wrapped
from perfflow.report.requirements import Requirement, told_once
from perfflow.report.rows import NOTHING
from perfflow.result import Result

_GREEN, _RED, _YELLOW = "32", "31", "33"
_COLORS = {"✅": _GREEN, "❌": _RED, "❔": _YELLOW}
_DECISIONS = {"improved": _GREEN, "unproven": _YELLOW, "removed": _RED}
_ARROW = " → "
_NUMBER = re.compile(r"(?:≤ ?)?[-+]?[\d.]+")
_SIDES = {"baseline": "  baseline   ", "candidate": "  candidate  "}
_STATUSES = ("not met", "not measured", "unproven", "met")
MOST_ROWS = 25
"""Rows of the text. Targets that are not met, and sides of stored sets, are shown even where it takes more."""
MOST_LINES = 8
MOST_PROFILES = 3
MOST_CULPRITS = 4
MOST_FAILED = 3
LONGEST_NAME = 36
LONGEST_NOTE = 300
_FAILED = ("target not met: ", "regressed: ", "correctness step failed: ")
"""How reasons begin that fail a run."""
NARROWEST = 20
LEAST_NAME, HALF_A_NAME = 12, 18
GROWTH = 6
"""Columns by which a row of figures may get wider when its arrow and bounds are written in ASCII."""


def render(result: Result, *, width: int, color: bool, unicode: bool, where: str = "") -> str:
    """Return the verdict as text, no line wider than ``width``; with NO_EDGE no text is cut, only rows are folded."""
    lines: list[str] = []
    for line, paint in _lines(page_of(result), max(NARROWEST, width), where, 0 if unicode else GROWTH):
        shown = fitted(visible(line) if unicode else ascii_text(visible(line)), width, "…" if unicode else "...")
        lines.append(f"\x1b[{paint}m{shown}\x1b[0m" if color and paint and shown else shown)
    return "\n".join(lines) + "\n"


def _lines(page: Page, width: int, where: str, growth: int) -> Iterator[Line]:
    requirements = _requirements(page, width)
    culprits = Part(
        [_wrapped("  why: ", _culprit(item, width), width) for item in page.findings.culprits],
        page.findings.others.get("culprits", 0),
        MOST_CULPRITS,
        what="functions",
    )
    reasons = Part(
        [_wrapped("  why: ", why, width) for why in _whys(page)],
        page.others["reasons"],
        MOST_LINES,
        least=2,
        what="reasons",
    )
    warned = Part(_noted(page.warned, width), page.others["warned"], MOST_LINES, least=1, what="warnings")
    comparisons = Part(
        _comparisons(page, width - growth), page.others["comparisons"], MOST_LINES, least=2, what="comparisons"
    )
    apart = Part([_wrapped("  note: ", page.apart, width)] if page.apart else [], least=0)
    figures = Part(_figures(page, width), page.others["figures"], MOST_LINES, what="figures")
    hotspots = Part(
        [*(_hotspots(table, width) for table in page.profiles[:MOST_PROFILES]), *_of_gpus(page, width)], least=0
    )
    tries = Part(
        _tries(page, width - growth, where), page.ledger.others if page.ledger else 0, MOST_LINES, what="candidates"
    )
    taking = Part([_wrapped("  ", text, width) for text in _taking(page)])
    failing = [_failed(item, width, where) for item in page.failed if item.said or not item.told]
    failed = Part(failing, most=MOST_FAILED, what="failed steps")
    skipped = Part(
        [_wrapped("  skipped: ", text, width, _YELLOW) for text in _skipped(page)],
        most=MOST_LINES,
        what="skipped steps",
    )
    cautions = Part(_noted(page.cautions, width), most=MOST_LINES, what="notes")
    # Where none of it has room it goes without a word: it repeats the tables, for programs, which read the report.
    values = [_wrapped("perf: ", line.removeprefix("perf: "), width) for line in page.evidence]
    evidence = Part(values, page.others["evidence"], MOST_LINES, 0, "values")
    following = [
        _wrapped("next: ", f"{_name(route.to, width)} because {_name(route.rule, width)}", width)
        for route in page.findings.routes[:1]
    ]
    gate = [[(page.gate, "")]] if page.gate else []
    blocks = [
        [Part([_head(page, width)]), culprits, reasons, failed, warned, skipped],
        [Part([_wrapped(_SIDES[name], text, width) for name, text in page.sides])],
        [requirements],
        [comparisons, apart, figures],
        [tries, taking],
        [hotspots, cautions],
        [Part([*gate, *following]), evidence, Part([_whole(f"report: {where}", width)] if where else [])],
    ]
    details = (evidence, apart, hotspots, tries, figures, cautions)
    giving_way = (*details, failed, warned, reasons, skipped, comparisons, culprits)
    yield from folded(blocks, giving_way, MOST_ROWS)


def _whys(page: Page) -> list[str]:
    """The reasons without those that a row of the requirements repeats, which says by how much, too."""
    told = tuple(f"target {row.status}: {row.name} {row.required}" for row in page.requirements)
    told += page.findings.explained
    whys = [reason for reason in page.reasons if not reason.startswith(told)] if told else list(page.reasons)
    if whys and page.reasons[0] not in whys and not whys[0].startswith(_FAILED) and not page.findings.culprits:
        # Else it would seem that the run fails for what is only unproven, or could not be measured.
        whys.insert(0, page.reasons[0])
    return whys


def _noted(texts: Sequence[str], width: int) -> list[list[Line]]:
    return [_wrapped("  note: ", text, width, _YELLOW) for text in texts]


def _skipped(page: Page) -> list[str]:
    """The steps that were skipped, those of one reason together."""
    names: dict[str, list[str]] = {}
    for name, how, why in page.troubles:
        if how == "skipped":
            names.setdefault(why, []).append(name)
    return [f"{', '.join(skipped)}: {why}" for why, skipped in names.items()]


def _failed(item: FailedStep, width: int, where: str) -> list[Line]:
    """A step that failed, why where nothing before says it, its program's last words, and the log as a path."""
    head = item.name if item.told else f"{item.name}: {item.reason}"
    lines = _wrapped("  failed: ", head, width, _RED)
    lines += [line for text in item.last for line in _wrapped("    | ", text, width)]
    return lines + (_whole(f"    log: {_in_folder(item.log, where)}", width) if item.log else [])


def _in_folder(file: str, report: str) -> str:
    """The path of a file that lies in the folder of a run, whose report is ``report``."""
    folder = report.rpartition("/")[0]
    return f"{folder}/{file}" if folder else file


def _of_gpus(page: Page, width: int) -> list[list[Line]]:
    """What holds the kernels of GPUs that take most time."""
    return [_wrapped("  ", text, width) for text in page.kernels.hottest] if page.kernels else []


def _head(page: Page, width: int) -> list[Line]:
    """The verdict in one line, or its counts below it where they do not fit beside it."""
    paint = f"1;{_COLORS[page.symbol]}" if page.symbol else "1"
    said = f"{MARKS[page.symbol][0]} {page.verdict}  " if page.symbol else ""
    start = f"{said}{_name(page.component, width)}"
    line = f"{start}   {page.headline}"
    lines = [(line, paint)]
    if cells(line) > width:
        whole = cells(page.headline) <= width - 2
        counts = [page.headline] if whole else page.headline.split("; ")
        lines = [(start, paint), *(row for text in counts for row in _wrapped("  ", text, width))]
    if page.judged_by:
        lines += _wrapped("  ", f"judged again by: {page.judged_by}", width, _YELLOW)
    return lines


def _wrapped(start: str, text: str, width: int, paint: str = "") -> list[Line]:
    """A text that goes on in next lines, since its end matters; in a narrow terminal a long one loses its middle."""
    indent = " " * min(cells(start), width // 2)
    if width != NO_EDGE:
        text = shortened(text, min(LONGEST_NOTE, 3 * max(1, width - len(indent))))
    return [(line, paint) for line in wrapped(start + visible(text), width, indent)]


def _whole(text: str, width: int) -> list[Line]:
    """What is copied, such as a path: broken at the edge, as the terminal itself would."""
    text = visible(text)
    if width == NO_EDGE:
        return [(text, "")]
    return [(text[start : start + width], "") for start in range(0, len(text), width)]


def _name(name: str, width: int) -> str:
    return name if width == NO_EDGE else shortened(name, max(LONGEST_NAME, width // 3))


def _culprit(item: Culprit, width: int) -> str:
    """``decode +25.0% in parse_object src/parse.rs:214 (61% of it) by 3fa2c1d "Parse twice"``; names give way."""
    share = f"({item.share} of it)" if item.share else ""
    place = f"{_name(item.function, width)} {_name(item.place, width)}".rstrip()
    by = f"by {_name(item.commit, width)}" if item.commit else ""
    return " ".join(filter(None, (_name(item.benchmark, width), item.change, item.others, "in", place, share, by)))


def _requirements(page: Page, width: int) -> Part:
    """What failed comes first and is always shown, unless not even the report has all; met ones fold into a count."""
    rows = list(told_once(sorted(page.requirements, key=lambda row: _STATUSES.index(row.status))))
    if len(rows) > MOST_LINES:
        rows = [row for row in rows if row.status != "met"]
    measured = _by_number([row.measured for row in rows])
    values = [f"{text} {row.interval}".rstrip() for text, row in zip(measured, rows, strict=True)]
    # A name gives way to the requirement beside it, and both to what was measured.
    room = width - 4 - max(map(cells, values), default=0)
    names = [_required(row, room, width) for row in rows]
    table = aligned([list(pair) for pair in zip(names, values, strict=True)]) if rows else []
    entries = [_requirement(row, text, width) for row, text in zip(rows, table, strict=True)]
    met = page.counts["met"] - sum(row.status == "met" for row in rows)
    last = [[(f"✓ {met} {'more ' if rows else ''}targets met", _GREEN)]] if met else []
    others = page.others["requirements"]
    return Part(entries, others, MOST_LINES if others else None, last=last, what="targets")


def _required(row: Requirement, room: int, width: int) -> str:
    name = _name(row.name, width)
    return (
        f"{shortened(name, max(LEAST_NAME, min(cells(visible(name)), room - cells(row.required) - 1)))} {row.required}"
    )


def _requirement(row: Requirement, text: str, width: int) -> list[Line]:
    paint = _COLORS[row.symbol]
    line = f"{MARKS[row.symbol][0]} {text}"
    if not row.detail:
        return [(line, paint)]
    if cells(f"{line}   {row.detail}") <= width:
        return [(f"{line}   {row.detail}", paint)]
    return [(line, paint), *_wrapped("    ", row.detail, width, paint)]


def _comparisons(page: Page, width: int) -> list[list[Line]]:
    """What a verdict rests on, what got worse first, and the decision before the figures."""
    rows = sorted(
        (row for row in page.comparisons if row.first),
        key=lambda row: (row.decision.split(" ")[0] in ("same", "improved"), row.level != "action"),
    )
    befores, afters = (_by_number([row.values.split(_ARROW)[side] for row in rows]) for side in (0, 1))
    befores = [padded(text, max(map(cells, befores))) for text in befores]
    values = [f"{before}{_ARROW}{after}" for before, after in zip(befores, afters, strict=True)]
    speedups = _by_number([row.change if page.gated else row.speedup for row in rows])
    table = [
        [_name(row.operation, width), row.metric, row.decision, speedup, value]
        for row, speedup, value in zip(rows, speedups, values, strict=True)
    ]
    colors = [_RED if row.level == "action" else _DECISIONS.get(row.decision.split(" ")[0], "") for row in rows]
    return [[(f"  {text}", color)] for text, color in zip(_fitting(table, width - 2), colors, strict=True)]


def _fitting(table: list[list[str]], width: int) -> list[str]:
    """Lines of a table of which the last column goes where it would be cut, then what is in brackets before it."""
    if not table:
        return []
    for shown in (table, [row[:-1] for row in table], [[*row[:-2], row[-2].partition(" [")[0]] for row in table]):
        rows = _filled(shown)
        # Half a name tells more than a figure that is not there.
        lines = narrowed(rows, width, HALF_A_NAME)
        if max(map(cells, lines)) <= width:
            return lines
    return narrowed(rows, width, LEAST_NAME)


def _figures(page: Page, width: int) -> list[list[Line]]:
    """Measurements without a second side."""
    rows = [row for row in page.figures if row.gating]
    values = _by_number([row.baseline for row in rows])
    table = [[_name(row.benchmark, width), row.metric, value] for row, value in zip(rows, values, strict=True)]
    return [[(f"  {text}", "")] for text in narrowed(_filled(table), width - 2, LEAST_NAME)]


def _tries(page: Page, width: int, where: str) -> list[list[Line]]:
    """What was kept, each with its effect, then of what nothing remains, each with the reason."""
    if page.ledger is None:
        return []
    table = [
        [f"kept {shortened(row.name, LONGEST_NAME)}", shortened(row.where, LONGEST_NAME), row.effect, row.values]
        for row in page.ledger.kept
    ]
    kept = [[(f"  {text}", _GREEN)] for text in _fitting(table, width - 2)]
    return [*kept, *([(text, "") for text in _reverted(row, where)] for row in page.ledger.reverted)]


def _reverted(row: Try, where: str) -> Iterator[str]:
    """Why nothing remains of a try, and the last words of the command for which it was rejected."""
    yield f"  - {shortened(row.name, LONGEST_NAME)}: {row.reason}"
    yield from (f"      | {line}" for line in row.said[-FEW_LINES:])
    if row.said:
        yield f"      log: {_in_folder(row.log, where)}"


def _taking(page: Page) -> Iterator[str]:
    """Where what was kept is: a branch, and settings that belong into the workflow."""
    if page.ledger is None:
        return
    if not page.ledger.kept:
        yield "nothing was kept"
    if page.ledger.branch:
        yield f"branch: {page.ledger.take}"
    elif page.ledger.no_branch:
        yield f"no branch: {page.ledger.no_branch}"
    if page.ledger.settings:
        yield f"settings for {page.ledger.file or 'the workflow'}: {' '.join(map(str.strip, page.ledger.settings))}"


def _by_number(texts: Sequence[str]) -> list[str]:
    """Values one below the other with their numbers ending, and so their units beginning, in the same column."""
    ends = [cells(found[0]) if (found := _NUMBER.match(text)) else cells(text) for text in texts]
    return [" " * (max(ends) - end) + text for end, text in zip(ends, texts, strict=True)]


def _filled(rows: list[list[str]]) -> list[list[str]]:
    """Rows without the columns that say nothing in any of them."""
    columns = [column for column in zip(*rows, strict=True) if set(column) != {NOTHING}]
    return [list(row) for row in zip(*columns, strict=True)]


def _hotspots(table: ProfileTable, width: int) -> list[Line]:
    """The top of a profile, as many places as fit in one line; where they are is in the report."""
    line = f"  {_name(table.benchmark, width)} {table.unit} ({table.source}):"
    for number, spot in enumerate(table.spots):
        more = f"{',' if number else ''} {spot.share} {_name(spot.location, width)}"
        if number and cells(visible(line + more)) > width:
            break
        line += more
    return [(line, "")]
