"""The words for benchmarks that were not timed, because both sides execute the same."""

from __future__ import annotations

from collections.abc import Iterator

from perfflow.model.result import Result, is_untimed


def untimed_line(result: Result) -> Iterator[str]:
    """Yield how many of the benchmarks were not timed, if any."""
    names = {row.name for row in result.benchmarks}
    untimed = {row.name for row in result.benchmarks if is_untimed(row)}
    if untimed:
        verb = "runs the same code and was" if len(untimed) == 1 else "run the same code and were"
        audited = len({row.name for row in result.benchmarks if row.unchanged} - untimed)
        more = f", {audited} more {'were' if audited > 1 else 'was'} timed to check the method" if audited else ""
        yield f"{len(untimed)} of {len(names)} {'benchmarks' if len(names) > 1 else 'benchmark'} {verb} not timed{more}"
