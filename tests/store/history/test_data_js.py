"""github-action-benchmark's ``data.js``."""

from __future__ import annotations

import pytest

from perfflow.model.errors import ToolOutputError
from perfflow.tools.shell import data_js

TEXT = """window.BENCHMARK_DATA = {
  "lastUpdate": 1586000000000,
  "repoUrl": "https://github.com/o/r",
  "entries": {
    "Rust": [
      {"commit": {"id": "aaa", "timestamp": "2020-04-01T00:00:00Z", "message": "x"}, "date": 1585699200000,
       "tool": "cargo", "benches": [{"name": "fib 10", "value": 135, "range": "± 24", "unit": "ns/iter"}]},
      {"commit": {"id": "bbb", "timestamp": "2020-04-02T00:00:00Z"}, "date": 1585785600000,
       "tool": "cargo", "benches": [{"name": "fib 10", "value": 130, "range": "± 3", "unit": "ns/iter"}]}
    ],
    "Size": [
      {"commit": {"id": "bbb"}, "date": 1585785600000, "tool": "customSmallerIsBetter",
       "benches": [{"name": "binary", "value": 2.5, "unit": "Megabytes"},
                   {"name": "ops", "value": 5, "unit": "ops/sec"}]}
    ]
  }
};"""


def test_each_entry_is_a_set_of_its_commit() -> None:
    assert data_js.recognises(TEXT)
    first, second, size = data_js.parse(TEXT, [])
    assert first.benchmarks["Rust/fib 10", "time"] == pytest.approx((1.35e-7,))
    assert (first.started, first.facts["commit"]) == ("2020-04-01T00:00:00Z", "aaa")
    assert first.facts["committed"] == "2020-04-01T00:00:00Z"
    assert second.facts["commit"] == "bbb"
    assert size.benchmarks[("Size/ops", "rate")] == (5.0,)
    assert size.benchmarks[("Size/binary", "Megabytes")] == (2.5,)
    assert size.metrics["Megabytes"].better.value == "lower"


@pytest.mark.parametrize(
    "text",
    [
        *("window.BENCHMARK_DATA", "window.BENCHMARK_DATA = ", 'window.BENCHMARK_DATA = {"entries": 3}', TEXT[:300]),
        'window.BENCHMARK_DATA = {"entries": {"a": [{"date": 1, "benches": []}]}}',
        *(TEXT.replace("135", '"fast"'), TEXT.replace("135", "1e999")),
    ],
)
def test_what_is_cut_or_damaged_is_refused(text: str) -> None:
    with pytest.raises(ToolOutputError):
        list(data_js.parse(text, []))
