from perfflow.testing import AdapterContract
from tests.tools.harness import tool
from tests.tools.lies import FILES, Lied


class TestHyperfine(AdapterContract):
    adapter = tool("hyperfine")
    samples = "1.15.0/plain"
    captured = "."
    command = ["/bin/true"]
    lied = Lied(by="program", keys={"runs": 3}, files=(*FILES, "later"))
