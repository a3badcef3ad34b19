from perfflow.testing import AdapterContract
from tests.tools.harness import tool


class TestHeaptrack(AdapterContract):
    adapter = tool("heaptrack")
    samples = "1.4.0/rust"
    captured = "."
    command = ["/bin/ls", "/"]
