"""The report within the size limits of a service: job summary, pull-request comment, and check run.

- ``summary`` and ``comment`` write the report.
- ``fitted`` shortens the content of a comment, summary or check: by whole parts and rows, never inside a text.
- ``requests`` makes the requests for GitHub's checks API: the first creates a completed check run, the others add
  annotations. They are beside code of the repository's own files, since a service shows no others
  (``path_in_repository``).
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, fields, is_dataclass, replace
from operator import itemgetter
from pathlib import PurePath, PurePosixPath
from typing import Any

from perfflow.model.metrics import in_words
from perfflow.model.result import Attribution, HotspotResult, Reason, ReasonKind, Result
from perfflow.model.stacks import is_own
from perfflow.model.units import format_change
from perfflow.report import markdown
from perfflow.report.blame import Routed, blamed
from perfflow.report.findings import FindingSections
from perfflow.report.page import Page, page_of
from perfflow.report.payloads.escape import clipped, fits, inert, inert_json
from perfflow.report.payloads.revision import has_changes, revision_of
from perfflow.report.payloads.run_log import Hop, hop_of, log, with_hop
from perfflow.report.rows import ComparisonLine
from perfflow.report.sanitize import shortened
from perfflow.report.template import LONGEST_TITLE

SUMMARY_BYTES = 2**20 - 4 * 2**10
"""GitHub refuses a step summary of more than 1 MiB; other commands of the step may add to it."""
COMMENT_BYTES = 65_000
"""A comment may have 65,536 characters; the number of bytes is never smaller than the number of characters."""
_PLAIN = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}")


def marker(result: Result) -> str:
    """Return the hidden line that identifies the comment of one workflow on one kind of machine.

    Search for it only at the beginning of the posting author's own comments, since anyone can write such a line.
    """
    host = result.machine.get("identity")
    return f"<!-- perfflow:{_word(result.run.workflow)}:{_word(str(host)) if host else 'unknown'} -->"


def _word(name: str) -> str:
    """Return a name, or a unique form of it that cannot end the marker."""
    if _PLAIN.fullmatch(name) and "--" not in name:
        return name
    plain = re.sub(r"[^A-Za-z0-9]+", "-", PurePath(name).stem)[:40].strip("-")
    return f"{plain or 'x'}-{hashlib.sha256(name.encode('utf-8', 'replace')).hexdigest()[:8]}"


def summary(result: Result) -> str:
    """Return the whole report for a job summary, in less than 1 MiB."""
    return fitted(draft_of(result), _whole, SUMMARY_BYTES)


def comment(result: Result, earlier: tuple[Hop, ...] = ()) -> str:
    """Return a comment: the marker, the most important parts of the report, and the log of hops, this run's last."""
    first = f"{marker(result)}\n"
    draft = draft_of(result)
    hops = with_hop(earlier, hop_of(result, draft.page.headline, revision_of(result) or ""))
    last = "\n" + log(hops)
    room = COMMENT_BYTES - len((first + last).encode())
    return first + fitted(draft, short, room) + last


def short(draft: CommentDraft) -> str:
    """Return the parts of a comment, without reasons and lists that repeat rows of the tables."""
    page = draft.page
    routes = tuple(replace(route, lists=(), commands=()) for route in page.findings.routes)
    page = replace(
        page,
        evidence=(),
        others={**page.others, "evidence": 0},
        reasons=not_in_table(page.reasons, draft),
        warned=not_in_table(page.warned, draft),
        findings=replace(page.findings, routes=routes),
    )
    draft = replace(draft, page=page)
    rows = {"changed": draft.changed, "unchanged": draft.unchanged}
    return inert(markdown.document("comment.md.j2", page, removed=draft.left_out, **rows))


def not_in_table(reasons: Sequence[Reason], draft: CommentDraft) -> tuple[Reason, ...]:
    """Return the reasons that are not about a row of the benchmarks table."""
    shown = {(row.operation, row.metric) for row in draft.changed}
    of_rows = (ReasonKind.REGRESSED, ReasonKind.UNPROVEN, ReasonKind.CONCERN)
    return tuple(
        item
        for item in reasons
        if item.kind not in of_rows or (item.benchmark, in_words(item.values.get("metric", ""))) not in shown
    )


def _whole(draft: CommentDraft) -> str:
    page = draft.page
    return inert(markdown.document(markdown.template_of(page), page, removed=draft.left_out))


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
class CommentDraft:
    """A page, and the names of the parts that were left out so far."""

    page: Page
    left_out: tuple[str, ...] = ()

    @property
    def changed(self) -> tuple[ComparisonLine, ...]:
        """Rows that are shown unfolded: rows that fail a run, and the first changed or unproven ones."""
        failing = [row for row in self.page.comparisons if is_failing(row)]
        others = [row for row in self.page.comparisons if not is_failing(row) and _is_changed(row)][:MOST_CHANGED]
        kept = {id(row) for row in (*failing, *others)}
        return tuple(row for row in self.page.comparisons if id(row) in kept)

    @property
    def unchanged(self) -> tuple[ComparisonLine, ...]:
        """All other rows, which are folded."""
        shown = {id(row) for row in self.changed}
        return tuple(row for row in self.page.comparisons if id(row) not in shown)


def draft_of(result: Result) -> CommentDraft:
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
    return CommentDraft(page)


def _titled(found: FindingSections) -> FindingSections:
    return replace(found, gates=tuple(replace(line, gate=_title(line.gate)) for line in found.gates))


def _title(name: str) -> str:
    """Return a name that is short in columns and, since some letters take no column, in bytes."""
    return clipped(shortened(name, LONGEST_TITLE), 8 * LONGEST_TITLE)


def is_failing(row: ComparisonLine) -> bool:
    """Return whether a row prevents a pass."""
    word = row.decision.partition(" ")[0]
    lost = word in ("removed", "not") and row.gating
    return row.level == "action" or lost or (word == "unproven" and not row.level and row.first)


def _is_changed(row: ComparisonLine) -> bool:
    return row.first and row.decision.partition(" ")[0] != "same"


def fitted(draft: CommentDraft, render: Callable[[CommentDraft], str], most: int) -> str:
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


def _steps(draft: CommentDraft) -> Iterator[CommentDraft]:
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
    findings = replace(page.findings, routes=tuple(map(_bare, page.findings.routes)))
    yield (draft := _cut(draft, "routing briefs", findings=findings))
    findings = replace(findings, actions=(), gates=(), routes=())
    yield (draft := _cut(draft, "actions, routing and gates", findings=findings))
    failed = tuple(check for check in page.checks if check[2] != "passed")
    yield (draft := _cut(draft, "passed checks", checks=failed))
    yield (draft := _cut(draft, "profiles and candidates", joined=(), profiles=(), counters=None, ledger=None))
    findings = replace(findings, summary=None, blame=None, impact=(), recommendations=(), by_cell=(), red=None)
    yield (draft := _cut(draft, "regressions, hotspots and recommendations", findings=findings))
    failing = tuple(row for row in kept if is_failing(row))
    unmet = tuple(row for row in page.requirements if row.status != "met")
    yield (draft := _cut(draft, "passing rows", comparisons=failing, requirements=unmet))
    yield (draft := _fewer(draft, lambda rows: tuple(row for row in rows if _length(row) <= _LONGEST_ROW)))
    for most in _FEWER:
        yield (draft := _fewer(draft, itemgetter(slice(most))))


def _bare(route: Routed) -> Routed:
    return replace(route, lists=(), commands=())


def _cut(draft: CommentDraft, what: str, **changes: Any) -> CommentDraft:
    return _noted(replace(draft, page=replace(draft.page, **changes)), draft, what)


def _noted(shorter: CommentDraft, draft: CommentDraft, what: str) -> CommentDraft:
    """Return the shorter draft with ``what`` among the left out parts, if anything was left out."""
    return shorter if shorter == draft else replace(shorter, left_out=(*draft.left_out, what))


def _fewer(
    draft: CommentDraft, keep: Callable[[tuple[Any, ...]], tuple[Any, ...]], names: Sequence[str] = _FAILING
) -> CommentDraft:
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


CONCLUSIONS = {"pass": "success", "fail": "failure", "error": "failure"}
UNPROVEN_AS = {"fail": "failure", "pass": "neutral"}
"""Conclusion of an unproven verdict by `--unproven`. ``neutral`` lets a required check pass."""
CHECK_RUN_BYTES = 65_000
MOST_TITLE = 255
MOST_MESSAGE = 64_000
BATCH = 50
"""Most annotations of one request."""
_SPOTS = 3
"""Hotspots of a profile that are annotated."""


def requests(result: Result, unproven: str = "fail") -> list[dict[str, Any]]:
    """Return the body of ``POST /repos/OWNER/REPO/check-runs``, then the bodies of ``PATCH .../check-runs/ID``.

    The list is empty if nothing is judged, as for two stored results: any check could let a required one pass.

    ``unproven``: meaning of an unproven verdict for the check: fail or pass. ``head_sha`` is null if the commit is
    not known; then ``text`` asks the sender to fill it in.
    """
    if result.verdict is None or result.gate is None:
        return []
    output = {
        "title": title(result),
        "summary": fitted(draft_of(result), short, CHECK_RUN_BYTES),
        "text": inert("\n\n".join(_about(result))),
    }
    annotations = list(annotated_places(result))
    batches = [annotations[start : start + BATCH] for start in range(0, len(annotations), BATCH)] or [[]]
    first = {
        "name": clipped(result.gate.name, MOST_TITLE),
        "head_sha": revision_of(result),
        "status": "completed",
        "conclusion": UNPROVEN_AS[unproven] if result.verdict == "unproven" else CONCLUSIONS[result.verdict],
        "output": {**output, "annotations": batches[0]},
    }
    return [first, *({"output": {**output, "annotations": batch}} for batch in batches[1:])]


def check_run_text(result: Result, unproven: str = "fail") -> str:
    """Return the requests as a JSON list."""
    return inert_json(json.dumps(requests(result, unproven), ensure_ascii=True, indent=1)) + "\n"


def title(result: Result) -> str:
    """Return one line of at most 255 bytes: the verdict if any, and its first reason or the first evidence line."""
    reasons = [item.text for item in result.causes]
    if result.verdict == "error":
        return clipped("; ".join(["could not measure", *reasons[:1]]), MOST_TITLE)
    first = reasons[:1] or result.evidence[:1]
    return clipped(": ".join(filter(None, [result.verdict, *first])), MOST_TITLE)


def _about(result: Result) -> Iterator[str]:
    revision = revision_of(result)
    if revision is None:
        yield "The measured commit is not known. Fill in `head_sha` before you send this request."
    elif has_changes(result):
        yield f"Measured with uncommitted changes on top of `{revision}`."
    else:
        yield f"Measured at `{revision}`."
    yield f"Run `{clipped(result.run.id, MOST_TITLE).replace('`', chr(39))}`."


def annotated_places(result: Result) -> Iterator[dict[str, Any]]:
    """Yield annotations of places in the repository, each once: functions that got slower, then hotspots."""
    levels = {(row.name, row.metric): row.level for row in result.benchmarks}
    seen: set[tuple[str, int, str]] = set()
    for attribution in result.attributions:
        level = "failure" if levels.get((attribution.benchmark, attribution.metric)) == "action" else "warning"
        line = blamed(attribution)
        by = f" ({format_change(attribution.change)})" if attribution.change is not None else ""
        parts = [f"{attribution.function}: {line.values}{by} in {attribution.benchmark} ({attribution.metric})"]
        parts += [f"{line.share} of the regression"] if attribution.share is not None else []
        parts += [f"touched by {line.touched}"] if attribution.commits else []
        parts += [attribution.note] if attribution.note else []
        yield from _at(attribution, level, f"slower: {attribution.function}", "; ".join(parts), seen)
    for spot in result.hotspots:
        if spot.rank <= _SPOTS and spot.line:
            parts = [
                f"{spot.location}: {spot.share:.0%} of {spot.unit} in {spot.benchmark} ({spot.source})",
                spot.cause,
            ]
            yield from _at(spot, "notice", f"hotspot: {spot.location}", "; ".join(filter(None, parts)), seen)


def _at(
    place: Attribution | HotspotResult, level: str, title: str, message: str, seen: set[tuple[str, int, str]]
) -> Iterator[dict[str, Any]]:
    path, line = path_in_repository(place.file), max(1, place.line)
    if path and (path, line, title) not in seen:
        seen.add((path, line, title))
        yield {
            "path": path,
            "start_line": line,
            "end_line": line,
            "annotation_level": level,
            "title": clipped(title, MOST_TITLE),
            "message": clipped(message, MOST_MESSAGE),
        }


def path_in_repository(file: str) -> str:
    """Return a source file's path from the repository's root, or '' if it is not known to be in the repository.

    Debug information also names files of libraries and toolchains, and absolute paths in the trees that were built.
    """
    path = PurePosixPath(file)
    inside = file.isprintable() and not path.is_absolute() and not {"..", "~"} & set(path.parts) and "://" not in file
    if not file or not inside or not is_own(file) or "\\" in file or ":" in file or file != file.strip():
        return ""
    return str(path) if path.parts and path.parts[0] != ".git" else ""
