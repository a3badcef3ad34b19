from perfflow.testing import AdapterContract
from tests.mutate import probe_readers
from tests.tools.harness import tool


class TestNvidiaSmi(AdapterContract):
    adapter = tool("nvidia-smi")
    samples = "595-synthetic/query"
    captured = "."
    command = ["/bin/sleep", "2"]
    ends = False
    readers = (probe_readers.nvidia_smi,)
    stand_in = "/usr/bin/nvidia-smi"
