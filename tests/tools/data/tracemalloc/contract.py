from __future__ import annotations

from pathlib import Path

from perfflow.testing import AdapterContract
from tests.mutate import in_program_readers
from tests.tools.harness import tool
from tests.tools.lies import FILES_OF_ITSELF, GROWS, PYTHON_CHILDREN, Lied

HERE = Path(__file__).parent


class TestTracemalloc(AdapterContract):
    adapter = tool("tracemalloc")
    samples = HERE / "3.11.2" / "plain"
    captured = HERE
    command = GROWS
    failing_command = PYTHON_CHILDREN["exits 3"]
    readers = (in_program_readers.tracemalloc,)
    lied = Lied(by="itself", children=PYTHON_CHILDREN, files=FILES_OF_ITSELF)
