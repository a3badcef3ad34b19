from pathlib import Path

import pytest

from perfflow.testing import AdapterContract
from tests.tools.harness import tool
from tests.tools.lies import FILES, FILES_OF_A_SUITE, FILES_OF_CARGO, Lied


class TestCargoBench(AdapterContract):
    adapter = tool("cargo-bench")
    samples = "0.8.2/plain"
    captured = "."
    options = {"crate": "CRATE", "locked": True, "bench": "lies"}
    failing_options = {"crate": "none"}
    captured_with = {"": {}}
    timeout = 900.0  # criterion is built first
    lied = Lied(by="bench", keys={"runs": 2}, children={}, files=(*FILES, "later", *FILES_OF_A_SUITE))

    @pytest.fixture(autouse=True)
    def _built(self, crate: Path) -> None:
        self.options = {**type(self).options, "crate": str(crate)}

    @pytest.mark.long  # tests/tools/test_real_cargo.py has failing builds
    def test_a_failing_program_is_an_error(self, tmp_path: Path) -> None:
        super().test_a_failing_program_is_an_error(tmp_path)


class TestCargoBenchBuild(TestCargoBench):
    __test__ = False  # The contract of the same adapter, with other lies for the whole command.
    lied = Lied(by="program", keys={"runs": 2}, children={}, files=FILES_OF_CARGO)
