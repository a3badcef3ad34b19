from perfflow.testing import AdapterContract
from tests.tools.harness import tool
from tests.tools.lies import Lied


class TestBuildTime(AdapterContract):
    adapter = tool("build-time")
    command = ["/bin/true"]
    options = {"clean": "true"}
    lied = Lied(keys={"runs": 3})
