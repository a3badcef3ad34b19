"""JUnit XML: test cases for the verdict, each requirement, each row that the verdict rests on, and each check."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from xml.etree import ElementTree as ET

from perfflow.model.criteria import Criteria, criteria_from_json
from perfflow.model.result import WARNED, Benchmark, Result, is_untimed
from perfflow.report.page import page_of
from perfflow.report.requirements import requirement_of
from perfflow.report.rows import comparison_of
from perfflow.report.sanitize import visible

_OUTCOMES = {"pass": "passed", "fail": "failure", "error": "error", "unproven": "skipped"}
_TARGETS = {
    "met": "passed",
    "not met": "failure",
    "unproven": "skipped",
    "not measured": "error",
    "not held by base": "passed",
    "not looked at": "skipped",
}
_CHECKS = {"passed": "passed", "failed": "failure", "skipped": "skipped", "not run": "error"}


@dataclass(frozen=True)
class Case:
    """One test case. ``outcome``: passed, failure, error or skipped. ``kind``: verdict, requirement and so on."""

    kind: str
    name: str
    outcome: str
    message: str


def text(result: Result, unproven: str = "fail") -> str:
    """Return the file. An unproven case is skipped with a message, or a failure if ``unproven`` is ``fail``."""
    found = [_settled(case, unproven) for case in _cases(result)]
    counts = {word: sum(case.outcome == word for case in found) for word in ("failure", "error", "skipped")}
    numbers = {
        "tests": str(len(found)),
        "failures": str(counts["failure"]),
        "errors": str(counts["error"]),
        "skipped": str(counts["skipped"]),
        "time": f"{max(0.0, (result.run.seconds or 0) - result.waited):.3f}",
    }
    root = ET.Element("testsuites", {"name": "perfflow", **numbers})
    names = {"name": visible(result.run.component), "timestamp": visible(result.run.started)}
    suite = ET.SubElement(root, "testsuite", {**names, **numbers})
    for case in found:
        about = {"classname": visible(f"{result.run.workflow}.{case.kind}"), "name": visible(case.name)}
        item = ET.SubElement(suite, "testcase", about)
        if case.outcome != "passed":
            ET.SubElement(item, case.outcome, {"message": visible(case.message)})
        elif case.message:
            ET.SubElement(item, "system-out").text = visible(case.message)
    ET.indent(root)
    body = ET.tostring(root, encoding="unicode")
    # Names occur only in attributes and texts, where the entity means the same character.
    return f'<?xml version="1.0" encoding="UTF-8"?>\n{body}\n'.replace("##[", "##&#91;")


def _settled(case: Case, unproven: str) -> Case:
    if case.outcome == "skipped" and unproven == "fail" and case.kind != "correctness":
        return Case(case.kind, case.name, "failure", case.message)
    return case


def _cases(result: Result) -> Iterator[Case]:
    criteria = criteria_from_json(result.criteria).knowing(row.name for row in result.benchmarks)
    reasons = [reason for reason in result.reasons if not reason.startswith(WARNED)]
    warned = [reason for reason in result.reasons if reason.startswith(WARNED)]
    headline = page_of(result).headline
    why = "; ".join([*reasons, *([] if reasons else warned)]) or headline
    if result.verdict and result.gate:
        outcome = _OUTCOMES[result.verdict]
        yield Case("verdict", result.gate.name, outcome, f"could not measure: {why}" if outcome == "error" else why)
    for target in result.targets:
        line = requirement_of(target, criteria, None)
        measured = " ".join(filter(None, (line.measured, line.interval)))
        message = f"{target.status}: measured {measured}, required {line.required}"
        detail = f" ({target.detail})" if target.detail else ""
        yield Case("requirement", f"{line.name} {line.required}", _TARGETS[target.status], message + detail)
    for row in result.benchmarks:
        if row.gating and row.decision:
            yield Case("benchmark", f"{row.name} {row.metric}", _row_outcome(row), _row_message(row, criteria))
    allowed = {step.id for step in result.steps if step.allowed}
    for check in result.verification:
        word = "skipped" if check.status == "failed" and check.id in allowed else _CHECKS[check.status]
        yield Case("correctness", check.id, word, f"{check.status}: {check.detail}" if check.detail else check.status)


def _row_outcome(row: Benchmark) -> str:
    if row.decision in ("removed", "not measured"):
        return "error"
    if row.decision == "regressed" and row.level == "action":
        return "failure"
    return "skipped" if row.decision == "unproven" and row.level is None else "passed"


def _row_message(row: Benchmark, criteria: Criteria) -> str:
    if is_untimed(row):
        return "same: not timed, because base and head run the same code"
    line = comparison_of(row, criteria)
    return "; ".join(filter(None, (f"{line.decision}: {line.values}, speedup {line.speedup}", line.remark)))
