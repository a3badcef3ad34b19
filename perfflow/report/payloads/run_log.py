"""The log of hops in a comment: one line for each run, between two marks, continued from the previous comment.

Others can edit a comment, so only earlier lines of the exact form are kept, and their content is escaped again.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from perfflow.model.result import Result
from perfflow.report.payloads.escape import clipped, inert
from perfflow.report.sanitize import visible

BEGIN, END = "<!-- perfflow:hops:begin -->", "<!-- perfflow:hops:end -->"
"""The lines before and after the log."""
MOST_HOPS = 20
_LONGEST = 240
"""Bytes of one field of a line."""
_FORM = re.compile(r"- `([^`]+)` at `([^`]+)`: (PASS|FAIL|UNPROVEN|ERROR|NOT JUDGED), next `([^`]+)`: `([^`]+)`")
_NONE = "–"
_NOT_JUDGED = "not judged"


@dataclass(frozen=True)
class Hop:
    """One run: its id, the revision, the verdict in capitals, the route taken, and the report's headline."""

    run: str
    revision: str
    verdict: str
    route: str
    headline: str

    def line(self) -> str:
        """Return the line of the log, which `_read` parses."""
        run, revision, route, headline = map(_span, (self.run, self.revision, self.route, self.headline))
        return f"- {run} at {revision}: {self.verdict}, next {route}: {headline}"


def hop_of(result: Result, headline: str, revision: str) -> Hop:
    """Return the hop of a result."""
    route = result.routes[0].to if result.routes else _NONE
    return Hop(result.run.id, revision[:12] or _NONE, (result.verdict or _NOT_JUDGED).upper(), route, headline)


def earlier_hops(comment: str) -> tuple[Hop, ...]:
    """Return the hops of a comment, oldest first; () if it has no complete log."""
    lines = comment.splitlines()
    try:
        start = lines.index(BEGIN)
        end = lines.index(END, start)
    except ValueError:
        return ()
    return tuple(hop for hop in map(_read, lines[start + 1 : end]) if hop)


def with_hop(earlier: tuple[Hop, ...], hop: Hop, most: int = MOST_HOPS) -> tuple[Hop, ...]:
    """Return the newest hops; a run that is exported again replaces its earlier line."""
    return (*(item for item in earlier if _span(item.run) != _span(hop.run)), hop)[-most:]


def log(hops: tuple[Hop, ...]) -> str:
    """Return the log as Markdown, between its marks."""
    lines = "".join(f"{hop.line()}\n" for hop in hops)
    return f"{BEGIN}\n<details><summary>Runs so far</summary>\n\n{lines}\n</details>\n{END}\n"


def _read(line: str) -> Hop | None:
    match = _FORM.fullmatch(line)
    return Hop(*match.groups()) if match else None


def _span(text: str) -> str:
    """Return text as a code span with one backtick on each side and none inside."""
    shown = clipped(inert(visible(text).replace("`", "'").strip()), _LONGEST).strip()
    return f"`{shown or _NONE}`"
