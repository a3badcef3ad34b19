from __future__ import annotations

from pathlib import Path

from perfflow.testing import AdapterContract
from tests.mutate import plain_readers
from tests.tools.harness import tool
from tests.tools.lies import HOT, Lied

HERE = Path(__file__).parent


class TestPerf(AdapterContract):
    adapter = tool("perf")
    samples = HERE / "6.1.192" / "dwarf"
    captured = HERE
    command = HOT
    ends = False
    readers = (plain_readers.perf_script,)
    lied = Lied(by="program")
