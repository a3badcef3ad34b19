from __future__ import annotations

from pathlib import Path

from perfflow.testing import AdapterContract
from tests.mutate import probe_readers
from tests.tools.harness import tool
from tests.tools.lies import FILES_OF_ITSELF, PYTHON_CHILDREN, SHOWN, Lied

HERE = Path(__file__).parent


class TestSlowCallbacks(AdapterContract):
    adapter = tool("slow-callbacks")
    samples = HERE / "3.11.2" / "plain"
    captured = HERE
    command = SHOWN
    failing_command = PYTHON_CHILDREN["exits 3"]
    readers = (probe_readers.slow_callbacks,)
    lied = Lied(by="itself", keys={"runs": 1}, children=PYTHON_CHILDREN, files=FILES_OF_ITSELF)
