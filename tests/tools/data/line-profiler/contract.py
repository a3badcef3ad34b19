from perfflow.testing import AdapterContract
from tests.mutate import in_program_readers
from tests.tools.harness import tool
from tests.tools.lies import FILES_OF_ITSELF, HOT, PYTHON_CHILDREN, Lied


class TestLineProfiler(AdapterContract):
    adapter = tool("line-profiler")
    samples = "5.1.0/plain"
    captured = "."
    command = HOT
    captured_with = {"nothing": {"profile": ["json"]}}
    readers = (in_program_readers.line_profiler,)
    lied = Lied(by="itself", children=PYTHON_CHILDREN, files=FILES_OF_ITSELF)
