import sys

from perfflow.testing import AdapterContract
from tests.tools.harness import tool
from tests.tools.lies import FILES, Lied


class TestPyperf(AdapterContract):
    adapter = tool("pyperf")
    samples = "2.10.0/plain"
    captured = "."
    options = {"python": sys.executable, "script": "bench.py", "args": ["-p1", "-n3", "--min-time=0.001"]}
    failing_options = {"script": "none.py"}
    captured_with = {"": {"script": "bench.py"}, "stmt": {"stmt": "sum(values)"}}
    files = {"bench.py": "import pyperf\npyperf.Runner().timeit('total', 'sum([1] * 99)')\n"}
    unread = ("check.txt",)
    lied = Lied(files=(*FILES, "later"), keys={"runs": 2}, children={}, by="python")
