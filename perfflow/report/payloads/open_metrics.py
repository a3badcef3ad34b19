"""OpenMetrics text of a run's figures, rounded so that two runs that differ only by noise are equal.

GitLab compares such a file with the target branch's file character by character, and reports every difference.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Mapping
from typing import get_args

from perfflow.model.criteria import criteria_from_json
from perfflow.model.result import Benchmark, Result, Sample, TargetStatus
from perfflow.report.sanitize import visible

_STEPS = (1.0, 2.0, 5.0, 10.0)
_PROVEN = ("improved", "regressed")


def text(result: Result) -> str:
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
