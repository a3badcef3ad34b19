import pytest

from perfflow.testing import AdapterContract
from tests.tools.harness import tool
from tests.tools.lies import FILES, Lied


class TestGoogleBenchmark(AdapterContract):
    adapter = tool("google-benchmark")
    samples = "1.7.1/plain"
    captured = "."
    command = ["gbench", "--benchmark_min_time=0.01"]
    options = {"filter": "add/64"}
    captured_with = {"": {}}
    lied = Lied(by="command", keys={"runs": 2}, files=(*FILES, "later"))

    @pytest.fixture(autouse=True)
    def _built(self, gbench: str) -> None:
        self.command = [gbench, *type(self).command[1:]]
