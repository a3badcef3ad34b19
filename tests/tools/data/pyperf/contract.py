import sys

from perfflow.testing import AdapterContract
from perfflow.testing.mutations import Figures, Files
from tests.mutate import plain_readers
from tests.tools.harness import tool
from tests.tools.lies import FILES, Lied


def read(files: Files) -> Figures:
    """Parse the output of a statement without a name; pyperf calls it ``timeit``."""
    names = {"timeit": ""} if b"timeit_" in files["pyperf.json"] else {}
    return {(names.get(name, name), metric): values for (name, metric), values in plain_readers.pyperf(files).items()}


class TestPyperf(AdapterContract):
    adapter = tool("pyperf")
    samples = "2.10.0/plain"
    captured = "."
    options = {"python": sys.executable, "script": "bench.py", "args": ["-p1", "-n3", "--min-time=0.001"]}
    failing_options = {"script": "none.py"}
    captured_with = {"": {"script": "bench.py"}, "stmt": {"stmt": "sum(values)"}}
    files = {"bench.py": "import pyperf\npyperf.Runner().timeit('total', 'sum([1] * 99)')\n"}
    unread = ("check.txt",)
    readers = (read,)
    lied = Lied(files=(*FILES, "later"), keys={"runs": 2}, children={}, by="python")
