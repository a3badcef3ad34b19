from perfflow.testing import AdapterContract
from tests.tools.harness import tool


class TestNvidiaSmi(AdapterContract):
    adapter = tool("nvidia-smi")
    samples = "595-synthetic/query"
    captured = "."
    command = ["/bin/sleep", "2"]
    ends = False
    stand_in = "/usr/bin/nvidia-smi"
