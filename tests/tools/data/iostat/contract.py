from perfflow.testing import AdapterContract
from tests.mutate import probe_readers
from tests.tools.harness import tool


class TestIostat(AdapterContract):
    adapter = tool("iostat")
    samples = "12.6.1/plain"
    captured = "."
    command = ["/bin/sleep", "1.7"]
    readers = (probe_readers.iostat,)
