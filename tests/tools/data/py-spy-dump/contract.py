from perfflow.testing import AdapterContract
from tests.tools.harness import tool
from tests.tools.lies import LOOKED_INTO, Lied


class TestPySpyDump(AdapterContract):
    adapter = tool("py-spy-dump")
    samples = "0.4.3/plain"
    captured = "."
    options = {"pid": LOOKED_INTO}
    failing_options = {"pid": 2**22 - 1}
    captured_with = {"": {"pid": 4711}}
    lied = Lied(by="program", children={})
