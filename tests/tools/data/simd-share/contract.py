from __future__ import annotations

from pathlib import Path

from perfflow.testing import AdapterContract
from tests.mutate import plain_readers
from tests.tools.harness import tool
from tests.tools.lies import HOT, Lied

HERE = Path(__file__).parent


class TestSimdShare(AdapterContract):
    adapter = tool("simd-share")
    samples = HERE / "6.1.192" / "scalar"
    captured = HERE
    command = HOT
    readers = (plain_readers.hot_code,)
    lied = Lied(by="program")
