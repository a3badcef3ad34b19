from __future__ import annotations

from pathlib import Path

from perfflow.testing import AdapterContract
from tests.mutate import in_program_readers
from tests.tools.harness import tool
from tests.tools.lies import FILES_OF_ITSELF, HOT, PYTHON_CHILDREN, Lied

HERE = Path(__file__).parent


class TestLineProfiler(AdapterContract):
    adapter = tool("line-profiler")
    samples = HERE / "5.1.0" / "plain"
    captured = HERE
    command = HOT
    failing_command = PYTHON_CHILDREN["exits 3"]
    captured_with = {"nothing": {"profile": ["json"]}}
    readers = (in_program_readers.line_profiler,)
    lied = Lied(by="itself", children=PYTHON_CHILDREN, files=FILES_OF_ITSELF)
