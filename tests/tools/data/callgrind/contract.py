from __future__ import annotations

from pathlib import Path

from perfflow.testing import AdapterContract
from tests.mutate import plain_readers
from tests.tools.harness import tool
from tests.tools.lies import Lied

HERE = Path(__file__).parent


class TestCallgrind(AdapterContract):
    adapter = tool("callgrind")
    samples = HERE / "3.19.0" / "c"
    captured = HERE
    command = ["/bin/true"]
    readers = (plain_readers.callgrind,)
    lied = Lied(by="program")
