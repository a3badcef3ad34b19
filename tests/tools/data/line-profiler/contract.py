from perfflow.testing import AdapterContract
from tests.tools.harness import tool
from tests.tools.lies import FILES_OF_ITSELF, HOT, PYTHON_CHILDREN, Lied


class TestLineProfiler(AdapterContract):
    adapter = tool("line-profiler")
    samples = "5.1.0/plain"
    captured = "."
    command = HOT
    captured_with = {"nothing": {"profile": ["json"]}}
    lied = Lied(by="itself", children=PYTHON_CHILDREN, files=FILES_OF_ITSELF)
