from pathlib import Path

import pytest

from perfflow.testing import AdapterContract
from tests.tools.harness import tool
from tests.tools.lies import FILES_OF_ITSELF, LONG, SCRIPT_CHILDREN, Lied


class TestScalene(AdapterContract):
    adapter = tool("scalene")
    samples = "2.4.0/plain"
    captured = "."
    command = LONG
    failing_command = SCRIPT_CHILDREN["exits 3"]
    lied = Lied(by="itself", children=SCRIPT_CHILDREN, files=FILES_OF_ITSELF)

    @pytest.mark.long  # tests/tools/test_real_python.py has failing programs
    def test_a_failing_program_is_an_error(self, tmp_path: Path) -> None:
        super().test_a_failing_program_is_an_error(tmp_path)
