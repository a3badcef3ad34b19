from perfflow.testing import AdapterContract
from tests.tools.harness import tool


class TestNcu(AdapterContract):
    adapter = tool("ncu")
    samples = "2022.3.0/selected"
    captured = "."
    command = ["/bin/true"]
    ends = False
    stand_in = "/usr/bin/ncu"
