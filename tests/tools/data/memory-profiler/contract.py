from perfflow.testing import AdapterContract
from tests.tools.harness import tool
from tests.tools.lies import GROWS, PYTHON_CHILDREN, Lied


class TestMemoryProfiler(AdapterContract):
    adapter = tool("memory-profiler")
    samples = "0.61.0/lines"
    captured = "."
    command = GROWS
    captured_with = {"lines": {"profile": ["__main__"]}}
    ends = False
    lied = Lied(by="program", children=PYTHON_CHILDREN)
