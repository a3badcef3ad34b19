from perfflow.testing import AdapterContract
from tests.tools.harness import tool
from tests.tools.lies import FILES_OF_ITSELF, GROWS, PYTHON_CHILDREN, Lied


class TestTracemalloc(AdapterContract):
    adapter = tool("tracemalloc")
    samples = "3.11.2/plain"
    captured = "."
    command = GROWS
    lied = Lied(by="itself", children=PYTHON_CHILDREN, files=FILES_OF_ITSELF)
