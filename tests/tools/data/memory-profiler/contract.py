from __future__ import annotations

from pathlib import Path

from perfflow.testing import AdapterContract
from tests.mutate import in_program_readers
from tests.tools.harness import tool
from tests.tools.lies import GROWS, PYTHON_CHILDREN, Lied

HERE = Path(__file__).parent


class TestMemoryProfiler(AdapterContract):
    adapter = tool("memory-profiler")
    samples = HERE / "0.61.0" / "lines"
    captured = HERE
    command = GROWS
    failing_command = PYTHON_CHILDREN["exits 3"]
    captured_with = {"lines": {"profile": ["__main__"]}}
    ends = False
    readers = (in_program_readers.memory_profiler,)
    lied = Lied(by="program", children=PYTHON_CHILDREN)
