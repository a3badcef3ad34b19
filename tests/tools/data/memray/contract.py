from perfflow.testing import AdapterContract
from tests.tools.harness import tool
from tests.tools.lies import FILES_OF_ITSELF, GROWS, PYTHON_CHILDREN, Lied


class TestMemray(AdapterContract):
    adapter = tool("memray")
    samples = "1.20.0/plain"
    captured = "."
    command = GROWS
    lied = Lied(by="itself", children=PYTHON_CHILDREN, files=FILES_OF_ITSELF)
