import pytest

from perfflow.testing import AdapterContract
from tests.tools.harness import tool
from tests.tools.lies import Lied


class TestNanobench(AdapterContract):
    adapter = tool("nanobench")
    samples = "4.3.11/plain"
    captured = "."
    command = ["nanobench_odd"]
    ends = False
    lied = Lied(by="command", keys={"runs": 2}, files=("empty", "cut", "other"))

    @pytest.fixture(autouse=True)
    def _built(self, nanobench_odd: str) -> None:
        self.command = [nanobench_odd]
