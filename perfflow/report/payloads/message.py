"""A result as the body of a request to a webhook: messages for Slack and Teams, and texts by a template of the user.

The messages are templates in ``perfflow/report/templates``. All texts of a result in them are cut, so that no result is
too large for the service, and set so that the service shows them as they are: no links, mentions or markup.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import NoReturn

from perfflow.model.errors import UserError
from perfflow.model.result import Result
from perfflow.report import markdown
from perfflow.report.payloads.comment import draft_of, is_failing, not_in_table
from perfflow.report.payloads.escape import clipped, inert_json
from perfflow.report.payloads.revision import revision_of
from perfflow.report.rows import ComparisonLine

JSON = "application/json"
MOST_ROWS = 10
MOST_REASONS = 5
_LINE, _TITLE = 200, 140
"""The most bytes of a line. Slack allows 150 characters in a header and 3,000 in a block, Teams 28 KB in a card."""


@dataclass(frozen=True)
class Message:
    """The body of a request. ``content_type`` is the value of its header."""

    text: str
    content_type: str = JSON


def message(template: str, result: Result, link: str = "") -> Message:
    """Return a message by a template of perfflow, such as ``slack.json.j2``. ``link`` is shown, if there is one."""
    draft = draft_of(result)
    page = draft.page
    of_run = [
        f"run {result.run.id}",
        f"commit {(revision_of(result) or 'unknown')[:12]}",
        f"perfflow {result.run.version}",
    ]
    found = markdown.document(
        template,
        page,
        link=link,
        title=_clipped(page.symbol, page.verdict or "COMPARED", page.component, most=_TITLE),
        headline=_clipped(page.headline, most=_LINE),
        reasons=_first([_clipped(item.text) for item in not_in_table(page.reasons, draft)], MOST_REASONS),
        rows=_first([_row(row) for row in sorted(draft.changed, key=lambda row: not is_failing(row))], MOST_ROWS),
        steps=[
            _clipped(text)
            for route in page.findings.routes[:1]
            for text in (f"next: {route.next}", route.command)
            if text
        ],
        about=_clipped(", ".join(of_run), most=_TITLE),
    )
    return Message(inert_json(found))


def own_message(result: Result, path: Path, content_type: str = JSON, link: str = "") -> Message:
    """Return a message by the user's template. Raises UserError if it fails, or should give JSON and does not."""
    text = markdown.render_own(result, path, link=link)
    kind = content_type.partition(";")[0].strip().lower()
    if text.strip() and (kind == JSON or kind.endswith("+json")):
        _require_json(text, str(path))
        text = inert_json(text)
    return Message(text, content_type)


def _require_json(text: str, name: str) -> None:
    hint = 'write texts by the filter `tojson`, which adds the quotes: {"text": {{ result.run.component|tojson }}}'
    try:
        json.loads(text, parse_constant=_refuse)
    except json.JSONDecodeError as error:
        line = clipped(text.splitlines()[error.lineno - 1] if text.splitlines()[error.lineno - 1 :] else "", _LINE)
        what = (
            f"{name} gives no JSON: {error.msg} in line {error.lineno}, column {error.colno} of what it gives: {line}"
        )
        raise UserError.of(what, hint) from None
    except (ValueError, RecursionError) as error:
        raise UserError.of(f"{name} gives no JSON: {error}", hint) from None


def _refuse(word: str) -> NoReturn:
    raise ValueError(f"{word} is no number of JSON")


def _row(row: ComparisonLine) -> str:
    values = row.values or " → ".join(filter(None, [row.baseline, row.candidate]))
    figures = ", ".join(filter(None, [values, row.change, row.decision]))
    return f"{_clipped(row.operation, most=_LINE // 2)} {_clipped(f'{row.metric}: {figures}', most=_LINE // 2)}"


def _clipped(*parts: str, most: int = _LINE) -> str:
    return clipped(" ".join(filter(None, parts)), most)


def _first(lines: Sequence[str], most: int) -> list[str]:
    """Return the first lines, and a last one with the number of the others."""
    return [*lines[:most], *([f"and {len(lines) - most} more"] if len(lines) > most else [])]
