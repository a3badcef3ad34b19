from perfflow.testing import AdapterContract
from tests.tools.harness import tool
from tests.tools.lies import Lied


class TestStrace(AdapterContract):
    adapter = tool("strace")
    samples = "6.1/plain"
    captured = "."
    command = ["/bin/ls", "/"]
    captured_with = {"files": {"files": True}}
    lied = Lied(by="program", keys={"runs": 1})
