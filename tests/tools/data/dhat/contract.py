from __future__ import annotations

from pathlib import Path

from perfflow.testing import AdapterContract
from tests.mutate import plain_readers
from tests.tools.harness import tool
from tests.tools.lies import Lied

HERE = Path(__file__).parent


class TestDhat(AdapterContract):
    adapter = tool("dhat")
    samples = HERE / "3.19.0" / "c"
    captured = HERE
    command = ["/bin/ls", "/"]
    readers = (plain_readers.dhat,)
    lied = Lied(by="program")
