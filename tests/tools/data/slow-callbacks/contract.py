from perfflow.testing import AdapterContract
from tests.tools.harness import tool
from tests.tools.lies import FILES_OF_ITSELF, PYTHON_CHILDREN, SHOWN, Lied


class TestSlowCallbacks(AdapterContract):
    adapter = tool("slow-callbacks")
    samples = "3.11.2/plain"
    captured = "."
    command = SHOWN
    lied = Lied(by="itself", keys={"runs": 1}, children=PYTHON_CHILDREN, files=FILES_OF_ITSELF)
