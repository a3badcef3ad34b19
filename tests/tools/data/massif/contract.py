from perfflow.testing import AdapterContract
from tests.tools.harness import tool


class TestMassif(AdapterContract):
    adapter = tool("massif")
    samples = "3.19.0/c"
    captured = "."
    command = ["/bin/ls", "/"]
    ends = False
