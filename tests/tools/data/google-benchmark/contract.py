from functools import partial

import pytest

from perfflow.testing import AdapterContract
from perfflow.tools.result_set import label
from tests.mutate import plain_readers
from tests.tools.harness import tool
from tests.tools.lies import FILES, Lied


class TestGoogleBenchmark(AdapterContract):
    adapter = tool("google-benchmark")
    samples = "1.7.1/plain"
    captured = "."
    command = ["gbench", "--benchmark_min_time=0.01"]
    options = {"filter": "add/64"}
    captured_with = {"": {}}
    readers = (partial(plain_readers.google_benchmark, key="name"),)
    lied = Lied(by="command", keys={"runs": 2}, files=(*FILES, "later"))

    @staticmethod
    def shown(name: str) -> str:
        return label(name)

    @pytest.fixture(autouse=True)
    def _built(self, gbench: str) -> None:
        self.command = [gbench, *type(self).command[1:]]
