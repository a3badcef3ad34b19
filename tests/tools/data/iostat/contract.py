from __future__ import annotations

from pathlib import Path

from perfflow.testing import AdapterContract
from tests.mutate import probe_readers
from tests.tools.harness import tool
from tests.tools.lies import Lied

HERE = Path(__file__).parent


class TestIostat(AdapterContract):
    adapter = tool("iostat")
    samples = HERE / "12.6.1" / "plain"
    captured = HERE
    command = ["/bin/sleep", "1.7"]
    readers = (probe_readers.iostat,)
    lied = Lied(by="program")
