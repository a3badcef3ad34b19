from perfflow.testing import AdapterContract
from tests.tools.harness import tool
from tests.tools.lies import FILES, HOT, Lied


class TestPerfStat(AdapterContract):
    adapter = tool("perf-stat")
    samples = "6.1.192/no-pmu"
    captured = "."
    command = HOT
    captured_with = {"": {"command": ["/tmp/demo/crash"]}}
    lied = Lied(by="program", keys={"runs": 3}, files=(*FILES, "later"))
