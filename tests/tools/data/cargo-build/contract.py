from pathlib import Path

import pytest

from perfflow.testing import AdapterContract
from tests.tools.harness import tool
from tests.tools.lies import FILES_OF_CARGO, Lied


class TestCargoBuild(AdapterContract):
    adapter = tool("cargo-build")
    samples = "1.95.0/plain"
    captured = "."
    options = {"crate": "CRATE", "locked": True}
    failing_options = {"crate": "none"}
    captured_with = {"": {}}
    timeout = 900.0
    lied = Lied(by="program", children={}, files=(*FILES_OF_CARGO, "stale"))

    @pytest.fixture(autouse=True)
    def _built(self, crate: Path) -> None:
        self.options = {**type(self).options, "crate": str(crate)}
