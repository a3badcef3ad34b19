"""Read summaries of the load generator k6: that of ``handleSummary``, and of ``--summary-export``.

Format: the object that k6 passes to ``handleSummary``: ``metrics.NAME.values``, times in ms. ``--summary-export`` has
the values in ``metrics.NAME`` itself. ``p(99)`` is there only if the option ``summaryTrendStats`` has it.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

from perfflow.model.errors import ToolOutputError
from perfflow.tools.parsed_output import Json
from perfflow.tools.result_set import JsonFormat, ResultSet, ValueCollector
from perfflow.tools.tool_files import number

_PERCENTILE = re.compile(r"p\(\d+(\.\d+)?\)")
_MS = 1e-3
_TREND, _COUNTER = "med", "count"


class _Summary(Json):
    metrics: dict[str, dict[str, object]]


def _values(metric: Mapping[str, object]) -> Mapping[str, object]:
    inside = metric.get("values")
    return inside if isinstance(inside, dict) else metric


def _gather(summary: _Summary) -> ResultSet:
    """Collect the medians and percentiles of times, and the rates of counters.

    Raises ToolOutputError if all requests failed.
    """
    samples = ValueCollector()
    failed = _values(summary.metrics.get("http_req_failed", {}))
    # `--summary-export` calls the rate `value`.
    share = number(failed.get("rate", failed.get("value", 0)), "http_req_failed")
    if share >= 1:
        raise ToolOutputError("all requests failed")
    if share:
        samples.warnings.append(f"{share:.2%} of the requests failed, and a request that fails is not faster")
    # k6 writes them in a random order.
    for name, metric in sorted(summary.metrics.items()):
        values = _values(metric)
        # In `--summary-export` nothing says that a trend is a time; those of k6 itself are.
        is_time = metric.get("contains", "time" if name.startswith(("http_req_", "iteration_")) else "") == "time"
        if _TREND in values and is_time:
            _add_times(samples, name, values)
        elif _COUNTER in values and "rate" in values and metric.get("contains") != "data":
            samples.add(name, "rate", [number(values["rate"], f"rate of {name}")])
    return samples.result_set(FORMAT.tool, "", {})


def _add_times(samples: ValueCollector, name: str, values: Mapping[str, object]) -> None:
    """Add the median of a time unless it is 0: no connection is made for most requests."""
    median = number(values[_TREND], f"{_TREND} of {name}")
    if median:
        samples.add(name, "time", [median * _MS])
        known = {key[2:-1]: value for key, value in values.items() if _PERCENTILE.fullmatch(key)}
        for percentile in sorted(known, key=float):
            samples.add_custom(name, f"p{percentile}-ms", [known[percentile]])


FORMAT = JsonFormat(
    "k6",
    "k6 run --summary-export FILE SCRIPT",
    lambda content: isinstance(content.get("metrics"), dict) and "root_group" in content,
    _Summary,
    _gather,
)
