from perfflow.testing import AdapterContract
from tests.mutate import cuda_readers
from tests.tools.harness import tool


class TestTritonBench(AdapterContract):
    adapter = tool("triton-bench")
    samples = "3.9.0/cpu"
    captured = "."
    options = {"script": "bench.py"}
    failing_options = {"script": "none.py"}
    captured_with = {"": {"script": "bench.py"}}
    readers = (cuda_readers.triton_bench,)
    # Where Triton is, test_real_torch runs it.
