from perfflow.testing import AdapterContract
from tests.mutate import plain_readers
from tests.tools.harness import tool
from tests.tools.lies import FILES, HOT, Lied


class TestPerfStat(AdapterContract):
    adapter = tool("perf-stat")
    samples = "6.1.192/no-pmu"
    captured = "."
    command = HOT
    captured_with = {"": {"command": ["/tmp/demo/crash"]}}
    readers = (plain_readers.perf_stat,)
    lied = Lied(by="program", keys={"runs": 3}, files=(*FILES, "later"))
