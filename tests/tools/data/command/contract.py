from perfflow.testing import AdapterContract
from tests.tools.harness import tool
from tests.tools.lies import Lied


class TestCommand(AdapterContract):
    adapter = tool("command")
    command = ["/bin/true"]
    lied = Lied(keys={"runs": 3})
