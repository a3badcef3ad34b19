from perfflow.testing import AdapterContract
from tests.tools.harness import tool


class TestIostat(AdapterContract):
    adapter = tool("iostat")
    samples = "12.6.1/plain"
    captured = "."
    command = ["/bin/sleep", "1.7"]
