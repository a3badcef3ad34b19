from __future__ import annotations

from pathlib import Path

from perfflow.testing import AdapterContract
from tests.mutate import plain_readers
from tests.tools.harness import tool
from tests.tools.lies import LOOKED_INTO, Lied

HERE = Path(__file__).parent


class TestPySpyDump(AdapterContract):
    adapter = tool("py-spy-dump")
    samples = HERE / "0.4.3" / "plain"
    captured = HERE
    options = {"pid": LOOKED_INTO}
    failing_options = {"pid": 2**22 - 1}
    captured_with = {"": {"pid": 4711}}
    readers = (plain_readers.py_spy_dump,)
    lied = Lied(by="program", children={})
