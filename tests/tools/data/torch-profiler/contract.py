import sys
from pathlib import Path

import pytest

from perfflow.testing import AdapterContract
from tests.tools.harness import PROGRAMS, tool
from tests.tools.lies import Lied


class TestTorchProfiler(AdapterContract):
    adapter = tool("torch-profiler")
    samples = "2.15.0/small"
    captured = "."
    command = [sys.executable, str(PROGRAMS / "tracer.py")]
    options = {"trace": "out-*/steps/traces/*.json"}
    captured_with = {"": {}}
    lied = Lied(by="itself")

    @pytest.fixture(autouse=True)
    def _written(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        for name, value in {
            "LIE": "honest",
            "LIE_ROOT": tmp_path,
            "LIE_SAVED": tmp_path / "saved",
            "LIE_REAL": "",
        }.items():
            monkeypatch.setenv(name, str(value))
        self.options = {"trace": str(tmp_path / "steps/traces/*.json")}
