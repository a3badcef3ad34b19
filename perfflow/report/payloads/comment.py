"""The job summary and the pull-request comment: the report within the size limits of a service."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import PurePath

from perfflow.model.result import Result
from perfflow.report import sections, tables
from perfflow.report.blocks import Document, Fold, Prose, Section, more, named, quoted
from perfflow.report.documents import report_of
from perfflow.report.markdown import document_text
from perfflow.report.payloads.draft import Draft, draft_of, fitted
from perfflow.report.payloads.escape import inert
from perfflow.report.payloads.revision import revision_of
from perfflow.report.payloads.run_log import Hop, hop_of, log, with_hop

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


def short(draft: Draft) -> str:
    """Return the parts of a comment, without reasons and lists that repeat rows of the tables."""
    page = draft.page
    routes = tuple(replace(route, lists=(), commands=()) for route in page.findings.routes)
    page = replace(
        page,
        evidence=(),
        others={**page.others, "evidence": 0},
        reasons=_not_in_table(page.reasons, draft),
        warned=_not_in_table(page.warned, draft),
        findings=replace(page.findings, routes=routes),
    )
    title = ("Performance Report: ", quoted(page.component))
    return inert(document_text(Document(title, tuple(_comment(replace(draft, page=page))))))


def _comment(draft: Draft) -> Iterator[Section]:
    page = draft.page
    yield sections.opening(page)
    yield from sections.red_gate(page)
    yield from sections.by_cell(page)
    yield from sections.reasons(page)
    if page.verdict == "ERROR":
        text = "Not everything was measured. A benchmark that is missing below may have changed."
        yield Section("", (Prose(text),))
    yield from sections.requirements(page)
    left_out = page.others.get("comparisons", 0)
    if draft.changed or left_out:
        changed = (tables.comparisons(page, draft.changed, short=True),) if draft.changed else ()
        yield Section("Benchmarks", (*changed, *more(left_out)))
    if draft.unchanged:
        unchanged = tables.comparisons(page, draft.unchanged, short=True)
        yield Section("", (Fold("Unchanged, or not judged", (unchanged,)),))
    if page.median_note:
        yield Section("", (Prose((quoted(page.median_note),)),))
    yield from sections.blame(page)
    yield from sections.gates(page, short=True)
    yield from sections.routing(page)
    yield from sections.profiles(page)
    yield from sections.verification(page)
    yield from sections.troubles(page, short=True)
    yield from sections.reproduce(page)
    yield from _left_out(draft)


def _not_in_table(reasons: Sequence[str], draft: Draft) -> tuple[str, ...]:
    """Return the reasons that are not about a row of the benchmarks table."""
    names = [f"{row.operation} {row.metric}" for row in draft.changed]
    starts = [f"{word}: {name}" for name in names for word in ("regressed", "unproven", "concern")]
    beginnings = tuple(f"{text}{end}" for text in starts for end in (" ", ":"))
    return tuple(reason for reason in reasons if not reason.startswith(beginnings))


def _whole(draft: Draft) -> str:
    report = report_of(draft.page)
    return inert(document_text(replace(report, sections=(*report.sections, *_left_out(draft)))))


def _left_out(draft: Draft) -> Iterator[Section]:
    if draft.left_out:
        parts = ", ".join(draft.left_out)
        text = f"Left out because of the size limit: {parts}. Everything is in "
        yield Section("", (Prose((text, named("result.json"), ".")),))
