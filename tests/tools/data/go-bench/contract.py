from pathlib import Path

import pytest

from perfflow.testing import AdapterContract
from tests.toolchains import needs_go
from tests.tools.harness import GO_MODULE, tool
from tests.tools.lies import Lied


@needs_go
class TestGoBench(AdapterContract):
    adapter = tool("go-bench")
    samples = "1.26.8/plain"
    captured = "."
    options = {"module": str(GO_MODULE), "package": "./table"}
    failing_options = {"package": "./none"}
    captured_with = {"": {}}
    timeout = 600.0  # the standard library is compiled first
    lied = Lied(by="program", keys={"runs": 2}, children={}, files=("idle", "gone", "empty", "cut", "other"))

    @pytest.mark.long  # tests/tools/test_go.py runs it in CI
    def test_a_real_run_yields_what_the_adapter_names(self, tmp_path: Path) -> None:
        super().test_a_real_run_yields_what_the_adapter_names(tmp_path)
