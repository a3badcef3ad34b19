"""The words for benchmarks that were not timed, and for changed lines that none executes."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice

from perfflow.model.result import Result, is_untimed

_PLACES = 5


def untimed_line(result: Result) -> Iterator[str]:
    """Yield how many of the benchmarks were not timed, if any."""
    names = {row.name for row in result.benchmarks}
    untimed = {row.name for row in result.benchmarks if is_untimed(row)}
    if untimed:
        verb = "runs the same code and was" if len(untimed) == 1 else "run the same code and were"
        audited = len({row.name for row in result.benchmarks if row.unchanged} - untimed)
        more = f", {audited} more {'were' if audited > 1 else 'was'} timed to check the method" if audited else ""
        yield f"{len(untimed)} of {len(names)} {'benchmarks' if len(names) > 1 else 'benchmark'} {verb} not timed{more}"


def blind_line(result: Result) -> Iterator[str]:
    """Yield how many of the changed lines no benchmark executes, and the first of them, if there are any."""
    found = result.blind
    if found and found.missed:
        places = [f"{file}:{lines}" for file, ranges in found.lines.items() for lines in ranges]
        shown = ", ".join(islice(places, _PLACES)) + (", ..." if len(places) > _PLACES else "")
        which = (
            "the only changed line is" if found.changed == 1 else f"{found.missed} of {found.changed} changed lines are"
        )
        yield f"blind: {which} executed by no benchmark: {shown}"
