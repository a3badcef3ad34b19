from perfflow.testing import AdapterContract
from tests.toolchains import JMH_JAR, needs_jmh
from tests.tools.harness import tool
from tests.tools.lies import Lied


@needs_jmh
class TestJmh(AdapterContract):
    adapter = tool("jmh")
    samples = "17.0.15/plain"
    captured = "."
    options = {"jar": str(JMH_JAR), "filter": "OddBench.rate$"}
    failing_options = {"jar": "none.jar"}
    unread = ("jmh-0-0.txt",)
    captured_with = {"": {}, "alloc": {"alloc": True}}
    lied = Lied(by="program", keys={"runs": 2}, children={}, files=("idle", "gone", "empty", "cut", "other"))
