from perfflow.testing import AdapterContract
from tests.tools.harness import tool


class TestCallgrind(AdapterContract):
    adapter = tool("callgrind")
    samples = "3.19.0/c"
    captured = "."
    command = ["/bin/true"]
