import sys

from perfflow.testing import AdapterContract
from tests.tools.harness import tool
from tests.tools.lies import FILES, Lied


class TestPytestBenchmark(AdapterContract):
    adapter = tool("pytest-benchmark")
    samples = "5.3.1/plain"
    captured = "."
    options = {"python": sys.executable, "paths": "test_it.py"}
    failing_options = {"paths": "none.py"}
    captured_with = {"": {}}
    files = {"test_it.py": "def test_it(benchmark):\n    benchmark.pedantic(sum, args=([1] * 999,), rounds=9)\n"}
    unread = ("pytest.out",)
    lied = Lied(files=(*FILES, "later"), keys={"runs": 2}, children={}, by="python")
