"""Results to export: a gate with every kind of row, and a large one."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from perfflow.model import result as model
from perfflow.model.result import Attribution, Brief, CommitInfo, ReasonKind, Result, RouteTaken, reason
from tests.report.results import everything
from tests.verdict.records import row

HEAD = "1234567890abcdef1234567890abcdef12345678"
TREES: dict[str, Any] = {
    "baseline": {"kind": "revision", "revision": "a" * 40, "name": "origin/main"},
    "candidate": {"kind": "working tree", "revision": HEAD, "name": "HEAD", "dirty": False},
}


def blamed(function: str = "parse_object", file: str = "src/parse.rs", line: int = 214, **keys: Any) -> Attribution:
    known: dict[str, Any] = {"benchmark": "encode", "metric": "time", "step": "cpu", "tool": "perf", "unit": "s"}
    commits = [CommitInfo(revision="3fa2c1d88a01" + "0" * 28, subject="Parse twice", author="A")]
    known |= {"baseline": 0.001, "candidate": 0.0015, "change": 0.5, "share": 0.8, "commits": commits}
    return Attribution(**{**known, **keys}, function=function, file=file, line=line)


def route(words: str = "perf-engineer", why: str = "encode got slower") -> RouteTaken:
    brief = Brief(regressed=[why], thresholds=["10%"], hotspots=[why], commands=["perfflow gate flow.yaml"])
    return RouteTaken(rule="regression-localized", to=words, why=why, next=words, command=words, brief=brief)


def gated() -> Result:
    """Return a failed gate: targets of all kinds, a regression, a function with a commit, a route."""
    return everything().model_copy(update={"trees": TREES, "attributions": [blamed()], "routes": [route()]})


def large(
    names: Sequence[str], statuses: Sequence[str], decisions: Sequence[tuple[str, str | None]], detail: str
) -> Result:
    """Return a gate with a row, a target and a reason for each name."""
    whole = gated()
    target, slower = whole.targets[0], row(whole, name="encode")
    rows: list[model.Benchmark] = []
    targets: list[model.TargetResult] = []
    for number, name in enumerate(names):
        decision, level = decisions[number % len(decisions)]
        own = f"{number}{name}"
        rows.append(slower.model_copy(update={"name": own, "decision": decision, "level": level}))
        status = statuses[number % len(statuses)]
        targets.append(target.model_copy(update={"benchmark": own, "status": status, "detail": detail}))
    unmet = [item.benchmark for item in targets if item.status == "not met"]
    reasons = [reason(ReasonKind.TARGET_NOT_MET, f"target not met: {name}", name) for name in unmet]
    reasons = reasons or [reason(ReasonKind.STEP_FAILED, "why not")]
    update = {"benchmarks": rows, "targets": targets, "reasons": reasons, "evidence": [f"perf: {n}" for n in names]}
    return whole.model_copy(update=update)
