from perfflow.testing import AdapterContract
from tests.tools.harness import tool
from tests.tools.lies import FILES_OF_ITSELF, HOT, PYTHON_CHILDREN, Lied


class TestCprofile(AdapterContract):
    adapter = tool("cprofile")
    samples = "3.11.2/plain"
    captured = "."
    command = HOT
    lied = Lied(by="itself", children=PYTHON_CHILDREN, files=FILES_OF_ITSELF)
