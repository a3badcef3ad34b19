from __future__ import annotations

from pathlib import Path

from perfflow.testing import AdapterContract
from tests.mutate import plain_readers
from tests.tools.harness import tool
from tests.tools.lies import FILES_OF_ITSELF, LONG, SCRIPT_CHILDREN, Lied

HERE = Path(__file__).parent


class TestScalene(AdapterContract):
    adapter = tool("scalene")
    samples = HERE / "2.4.0" / "plain"
    captured = HERE
    command = LONG
    failing_command = SCRIPT_CHILDREN["exits 3"]
    readers = (plain_readers.scalene,)
    lied = Lied(by="itself", children=SCRIPT_CHILDREN, files=FILES_OF_ITSELF)
