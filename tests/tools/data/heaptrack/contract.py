from perfflow.testing import AdapterContract
from tests.mutate import plain_readers
from tests.tools.harness import tool


class TestHeaptrack(AdapterContract):
    adapter = tool("heaptrack")
    samples = "1.4.0/rust"
    captured = "."
    command = ["/bin/ls", "/"]
    readers = (plain_readers.heaptrack,)
