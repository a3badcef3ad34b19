from pathlib import Path

import pytest

from perfflow.testing import AdapterContract
from tests.toolchains import needs_go
from tests.tools.harness import tool
from tests.tools.lies import FILES, Lied


@needs_go
class TestGoPprof(AdapterContract):
    adapter = tool("go-pprof")
    samples = "1.26.8/plain"
    captured = "."
    command = ["text.test", "-test.run=^$", "-test.bench=Odd/x"]
    captured_with = {"": {"command": ["text.test", "-test.bench=Odd/x"]}}
    unread = ("go.txt",)
    lied = Lied(by="command", files=FILES)

    @pytest.fixture(autouse=True)
    def _built(self, go_tests: str) -> None:
        self.command = [go_tests, *type(self).command[1:]]

    @pytest.mark.long  # tests/tools/test_go.py runs it in CI
    def test_a_real_run_yields_what_the_adapter_names(self, tmp_path: Path) -> None:
        super().test_a_real_run_yields_what_the_adapter_names(tmp_path)
