from __future__ import annotations

from pathlib import Path

from perfflow.testing import AdapterContract
from tests.mutate import probe_readers
from tests.tools.harness import tool
from tests.tools.lies import Lied

HERE = Path(__file__).parent


class TestStrace(AdapterContract):
    adapter = tool("strace")
    samples = HERE / "6.1" / "plain"
    captured = HERE
    command = ["/bin/ls", "/"]
    captured_with = {"files": {"files": True}}
    readers = (probe_readers.strace,)
    lied = Lied(by="program", keys={"runs": 1})
