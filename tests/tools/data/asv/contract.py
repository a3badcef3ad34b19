import sys

from perfflow.testing import AdapterContract
from tests.tools.harness import tool
from tests.tools.lies import FILES, Lied


class TestAsv(AdapterContract):
    adapter = tool("asv")
    samples = "0.3.2/plain"
    captured = "."
    options = {"python": sys.executable, "bench": "mem"}
    failing_options = {"bench": "none"}
    captured_with = {"": {}}
    files = {
        "asv.conf.json": '{"benchmark_dir": "benches"}\n',
        "benches/__init__.py": "",
        "benches/it.py": "def mem_it():\n    return [1]\n",
    }
    lied = Lied(files=(*FILES, "later"), keys={"runs": 2}, children={}, by="python")
