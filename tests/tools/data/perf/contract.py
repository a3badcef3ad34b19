from perfflow.testing import AdapterContract
from tests.tools.harness import tool
from tests.tools.lies import HOT


class TestPerf(AdapterContract):
    adapter = tool("perf")
    samples = "6.1.192/dwarf"
    captured = "."
    command = HOT
