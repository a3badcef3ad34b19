"""The files that `perfflow export` writes: format, file name and content."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from perfflow.model.result import Result
from perfflow.report.payloads import check_run, code_quality, junit, open_metrics
from perfflow.report.payloads.comment import comment, summary
from perfflow.report.payloads.escape import inert
from perfflow.report.payloads.run_log import earlier_hops


@dataclass(frozen=True)
class ExportOptions:
    """Options of an export. ``unproven``: fail or pass. ``previous``: the comment whose log of hops continues."""

    unproven: str = "fail"
    previous: str = ""


@dataclass(frozen=True)
class Payload:
    """One format: its file name, and the function that makes the content."""

    file: str
    make: Callable[[Result, ExportOptions], str]


def _evidence(result: Result) -> str:
    return inert("".join(f"{line}\n" for line in result.evidence))


PAYLOADS: Mapping[str, Payload] = {
    "summary": Payload("summary.md", lambda result, _: summary(result)),
    "comment": Payload("comment.md", lambda result, options: comment(result, earlier_hops(options.previous))),
    "check-run": Payload("check_run.json", lambda result, options: check_run.text(result, options.unproven)),
    "junit": Payload("junit.xml", lambda result, options: junit.text(result, options.unproven)),
    "metrics": Payload("metrics.txt", lambda result, _: open_metrics.text(result)),
    "codequality": Payload("codequality.json", lambda result, _: code_quality.text(result)),
    "evidence": Payload("evidence.txt", lambda result, _: _evidence(result)),
}
"""Formats by their name for ``--format``."""
