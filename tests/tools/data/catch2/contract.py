import pytest

from perfflow.testing import AdapterContract
from tests.toolchains import needs_catch2
from tests.tools.harness import tool
from tests.tools.lies import FILES, Lied


@needs_catch2
class TestCatch2(AdapterContract):
    adapter = tool("catch2")
    samples = "2.13.10/plain"
    captured = "."
    command = ["catch2_odd"]
    options = {"filter": "sections"}
    captured_with = {"": {}}
    lied = Lied(by="command", keys={"runs": 2}, files=FILES)

    @pytest.fixture(autouse=True)
    def _built(self, catch2_odd: str) -> None:
        self.command = [catch2_odd]
