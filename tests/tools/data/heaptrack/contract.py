from __future__ import annotations

from pathlib import Path

from perfflow.testing import AdapterContract
from tests.mutate import plain_readers
from tests.tools.harness import tool
from tests.tools.lies import Lied

HERE = Path(__file__).parent


class TestHeaptrack(AdapterContract):
    adapter = tool("heaptrack")
    samples = HERE / "1.4.0" / "rust"
    captured = HERE
    command = ["/bin/ls", "/"]
    readers = (plain_readers.heaptrack,)
    lied = Lied(by="program")
