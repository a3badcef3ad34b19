from __future__ import annotations

from pathlib import Path

from perfflow.testing import AdapterContract
from tests.mutate import plain_readers
from tests.tools.harness import tool
from tests.tools.lies import Lied

HERE = Path(__file__).parent


class TestCachegrind(AdapterContract):
    adapter = tool("cachegrind")
    samples = HERE / "3.19.0" / "c"
    captured = HERE
    command = ["/bin/true"]
    captured_with = {"no-cache": {"cache": False, "branches": True}}
    readers = (plain_readers.cachegrind,)
    lied = Lied(by="program")
