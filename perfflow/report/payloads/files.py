"""Make the files that `perfflow export` writes: format, file name and content.

- ``junit_text``: JUnit XML, with test cases for the verdict, each requirement, each row that the verdict rests on, and
  each check.
- ``code_quality_text``: GitLab's code quality report, with functions that got slower, and hotspots.
- ``open_metrics_text``: OpenMetrics text of a run's figures, rounded so that two runs that differ only by noise are
  equal. GitLab compares such a file with the target branch's file character by character, and reports every difference.
- ``PAYLOADS``: all formats.
"""

from __future__ import annotations

import hashlib
import json
import math
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, get_args
from xml.etree import ElementTree as ET

from perfflow.model.criteria import Criteria, criteria_from_json
from perfflow.model.result import Benchmark, Result, Sample, TargetStatus, is_untimed
from perfflow.report.page import page_of
from perfflow.report.payloads.comment import annotated_places, check_run_text, comment, summary
from perfflow.report.payloads.escape import inert, inert_json
from perfflow.report.payloads.run_log import earlier_hops
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


def junit_text(result: Result, unproven: str = "fail") -> str:
    """Return the file. An unproven case is skipped with a message, or a failure if ``unproven`` is ``fail``."""
    cases = [_settled(case, unproven) for case in _cases(result)]
    counts = {word: sum(case.outcome == word for case in cases) for word in ("failure", "error", "skipped")}
    numbers = {
        "tests": str(len(cases)),
        "failures": str(counts["failure"]),
        "errors": str(counts["error"]),
        "skipped": str(counts["skipped"]),
        "time": f"{max(0.0, (result.run.seconds or 0) - result.waited):.3f}",
    }
    root = ET.Element("testsuites", {"name": "perfflow", **numbers})
    names = {"name": visible(result.run.component), "timestamp": visible(result.run.started)}
    suite = ET.SubElement(root, "testsuite", {**names, **numbers})
    for case in cases:
        about = {"classname": visible(f"{result.run.workflow}.{case.kind}"), "name": visible(case.name)}
        element = ET.SubElement(suite, "testcase", about)
        if case.outcome != "passed":
            ET.SubElement(element, case.outcome, {"message": visible(case.message)})
        elif case.message:
            ET.SubElement(element, "system-out").text = visible(case.message)
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
    headline = page_of(result).headline
    why = "; ".join(item.text for item in result.causes or result.warned) or headline
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


_SEVERITIES = {"failure": "major", "warning": "minor", "notice": "info"}


def code_quality_text(result: Result) -> str:
    """Return the file. A fingerprint is made of file, function and kind, so it stays the same when lines move."""
    return inert_json(json.dumps(findings(result), ensure_ascii=True, indent=1)) + "\n"


def findings(result: Result) -> list[dict[str, Any]]:
    """Return each finding once, in the order of the result."""
    by_fingerprint: dict[str, dict[str, Any]] = {}
    for annotation in annotated_places(result):
        kind, _, function = annotation["title"].partition(": ")
        parts = "\0".join((annotation["path"], function, kind))
        fingerprint = hashlib.sha256(parts.encode("utf-8", "replace")).hexdigest()
        finding = {
            "description": annotation["message"],
            "check_name": f"perfflow-{kind}",
            "fingerprint": fingerprint,
            "severity": _SEVERITIES[annotation["annotation_level"]],
            "location": {"path": annotation["path"], "lines": {"begin": annotation["start_line"]}},
        }
        by_fingerprint.setdefault(fingerprint, finding)
    return list(by_fingerprint.values())


_STEPS = (1.0, 2.0, 5.0, 10.0)
_PROVEN = ("improved", "regressed")


def open_metrics_text(result: Result) -> str:
    """Return the file: the gate, targets by status, and a value for each row whose metric has a direction."""
    return "\n".join([*_lines(result), "# EOF"]) + "\n"


def _lines(result: Result) -> Iterator[str]:
    if result.gate:
        yield "# TYPE perfflow_gate_passed gauge"
        yield "# HELP perfflow_gate_passed Whether the performance gate passed: 1 or 0."
        passed = "1" if result.gate.status == "pass" else "0"
        yield _sample("perfflow_gate_passed", {"workflow": result.run.workflow}, passed)
    if result.targets:
        yield "# TYPE perfflow_targets gauge"
        yield "# HELP perfflow_targets How many requirements have this status."
        for status in get_args(TargetStatus):
            count = sum(target.status == status for target in result.targets)
            yield _sample("perfflow_targets", {"workflow": result.run.workflow, "status": status}, str(count))
    criteria = criteria_from_json(result.criteria).knowing(row.name for row in result.benchmarks)
    values = []
    seen: set[tuple[str, ...]] = set()
    for row in result.benchmarks:
        exact = criteria.metric(row.metric).exact
        value = _value(row, criteria.thresholds_of(row.name).floor, exact=exact)
        about = {
            "workflow": result.run.workflow,
            "benchmark": row.name,
            "metric": row.metric,
            "statistic": row.statistic,
            "unit": row.unit,
        }
        # Names may become equal once control characters are spelled out, but a series may occur only once.
        key = tuple(visible(part) for part in about.values())
        if row.better != "none" and value is not None and key not in seen:
            seen.add(key)
            values.append(_sample("perfflow_value", about, value))
    if values:
        yield "# TYPE perfflow_value gauge"
        yield "# HELP perfflow_value Measured value in base units, rounded to its noise."
        yield from values


def _value(row: Benchmark, floor: float, *, exact: bool) -> str | None:
    """Return the candidate's value if it is proven to differ from the baseline's, else the baseline's, as text."""
    changed = row.decision in _PROVEN or row.baseline is None or row.baseline.value is None
    side = (row.candidate if changed else row.baseline) or row.candidate or row.baseline
    if row.decision == "removed" or side is None or side.value is None:
        return None
    return rounded(side.value, 0.0 if exact else noise(side, floor))


def noise(side: Sample, floor: float) -> float:
    """Return the noise of a value: the width of its 95% interval, but at least ``floor`` of the value."""
    value = abs(side.value or 0.0)
    width = side.high - side.low if side.low is not None and side.high is not None else 0.0
    return max(width, floor * value)


def rounded(value: float, step: float) -> str:
    """Return the value rounded to 1, 2 or 5 times a power of ten that is at least ``step``; exactly if ``step`` is 0.

    A value below its noise keeps one digit, so that it becomes neither 0 nor twice as large.
    """
    if step <= 0 or not math.isfinite(step) or not math.isfinite(value):
        return _number(value)
    power = math.floor(math.log10(step))
    factor = next(factor for factor in _STEPS if factor * 10.0**power >= step * (1 - 1e-9))
    if value and factor * 10.0**power > abs(value):
        factor, power = 1.0, math.floor(math.log10(abs(value)))
    # Parse the unit from text: 10.0**power is not exact, and neither is 3 * 0.1.
    unit = float(f"{factor:g}e{power}")
    return _number(float(f"{round(value / unit) * unit:.12g}"))


def _number(value: float) -> str:
    if math.isinf(value):
        return "+Inf" if value > 0 else "-Inf"
    return "NaN" if math.isnan(value) else repr(value + 0.0 if value else 0.0)


def _sample(name: str, labels: Mapping[str, str], value: str) -> str:
    listed = ",".join(f'{label}="{escaped(text)}"' for label, text in labels.items())
    return f"{name}{{{listed}}} {value}"


def escaped(words: str) -> str:
    """Return a label's value with backslashes, quotes, control characters and workflow commands escaped."""
    shown = re.sub(r'[\\"]', r"\\\g<0>", visible(words))
    return shown.replace("##[", "## [")


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
    "check-run": Payload("check_run.json", lambda result, options: check_run_text(result, options.unproven)),
    "junit": Payload("junit.xml", lambda result, options: junit_text(result, options.unproven)),
    "metrics": Payload("metrics.txt", lambda result, _: open_metrics_text(result)),
    "codequality": Payload("codequality.json", lambda result, _: code_quality_text(result)),
    "evidence": Payload("evidence.txt", lambda result, _: _evidence(result)),
}
"""Formats by their name for ``--format``."""
