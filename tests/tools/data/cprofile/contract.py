from __future__ import annotations

from pathlib import Path

from perfflow.testing import AdapterContract
from tests.mutate import plain_readers
from tests.tools.harness import tool
from tests.tools.lies import FILES_OF_ITSELF, HOT, PYTHON_CHILDREN, Lied

HERE = Path(__file__).parent


class TestCprofile(AdapterContract):
    adapter = tool("cprofile")
    samples = HERE / "3.11.2" / "plain"
    captured = HERE
    command = HOT
    failing_command = PYTHON_CHILDREN["exits 3"]
    readers = (plain_readers.cprofile,)
    lied = Lied(by="itself", children=PYTHON_CHILDREN, files=FILES_OF_ITSELF)
