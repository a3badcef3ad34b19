"""Requests for GitHub's checks API: the first creates a completed check run, the others add annotations."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

from perfflow.model.result import WARNED, Attribution, HotspotResult, Result
from perfflow.model.units import format_change
from perfflow.report.blame import blamed
from perfflow.report.payloads.comment import short
from perfflow.report.payloads.draft import draft_of, fitted
from perfflow.report.payloads.escape import clipped, inert, inert_json
from perfflow.report.payloads.places import path_in_repository
from perfflow.report.payloads.revision import has_changes, revision_of

CONCLUSIONS = {"pass": "success", "fail": "failure", "error": "failure"}
UNPROVEN_AS = {"fail": "failure", "pass": "neutral"}
"""Conclusion of an unproven verdict by `--unproven`. ``neutral`` lets a required check pass."""
SUMMARY_BYTES = 65_000
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
        "summary": fitted(draft_of(result), short, SUMMARY_BYTES),
        "text": inert("\n\n".join(_about(result))),
    }
    found = list(annotated_places(result))
    batches = [found[start : start + BATCH] for start in range(0, len(found), BATCH)] or [[]]
    first = {
        "name": clipped(result.gate.name, MOST_TITLE),
        "head_sha": revision_of(result),
        "status": "completed",
        "conclusion": UNPROVEN_AS[unproven] if result.verdict == "unproven" else CONCLUSIONS[result.verdict],
        "output": {**output, "annotations": batches[0]},
    }
    return [first, *({"output": {**output, "annotations": batch}} for batch in batches[1:])]


def text(result: Result, unproven: str = "fail") -> str:
    """Return the requests as a JSON list."""
    return inert_json(json.dumps(requests(result, unproven), ensure_ascii=True, indent=1)) + "\n"


def title(result: Result) -> str:
    """Return one line of at most 255 bytes: the verdict if any, and its first reason or the first evidence line."""
    reasons = [reason for reason in result.reasons if not reason.startswith(WARNED)]
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
    for found in result.attributions:
        level = "failure" if levels.get((found.benchmark, found.metric)) == "action" else "warning"
        line = blamed(found)
        by = f" ({format_change(found.change)})" if found.change is not None else ""
        parts = [f"{found.function}: {line.values}{by} in {found.benchmark} ({found.metric})"]
        parts += [f"{line.share} of the regression"] if found.share is not None else []
        parts += [f"touched by {line.touched}"] if found.commits else []
        parts += [found.note] if found.note else []
        yield from _at(found, level, f"slower: {found.function}", "; ".join(parts), seen)
    for spot in result.hotspots:
        if spot.rank <= _SPOTS and spot.line:
            parts = [
                f"{spot.location}: {spot.share:.0%} of {spot.unit} in {spot.benchmark} ({spot.source})",
                spot.cause,
            ]
            yield from _at(spot, "notice", f"hotspot: {spot.location}", "; ".join(filter(None, parts)), seen)


def _at(
    found: Attribution | HotspotResult, level: str, title: str, message: str, seen: set[tuple[str, int, str]]
) -> Iterator[dict[str, Any]]:
    path, line = path_in_repository(found.file), max(1, found.line)
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
