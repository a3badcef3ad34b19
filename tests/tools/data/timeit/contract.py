import sys

from perfflow.testing import AdapterContract
from tests.tools.harness import tool
from tests.tools.lies import FILES, Lied


class TestTimeit(AdapterContract):
    adapter = tool("timeit")
    samples = "3.11.2/plain"
    captured = "."
    options = {"python": sys.executable, "stmt": "sum([1] * 99)"}
    failing_options = {"stmt": "1 / 0"}
    captured_with = {"": {"stmt": "pass"}}
    lied = Lied(files=(*FILES, "later"), keys={"runs": 2}, children={}, by="python")
