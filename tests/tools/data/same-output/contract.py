from perfflow.testing import AdapterContract
from tests.tools.harness import tool
from tests.tools.lies import Lied


class TestSameOutput(AdapterContract):
    adapter = tool("same-output")
    command = ["/bin/true"]
    options = {"expected": "expected.txt", "allow-empty": True}
    files = {"expected.txt": ""}
    lied = Lied(fails_with=1)
