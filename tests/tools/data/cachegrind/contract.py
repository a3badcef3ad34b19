from perfflow.testing import AdapterContract
from tests.tools.harness import tool


class TestCachegrind(AdapterContract):
    adapter = tool("cachegrind")
    samples = "3.19.0/c"
    captured = "."
    command = ["/bin/true"]
    captured_with = {"inlined": {"cache": False}, "no-cache": {"cache": False, "branches": True}}
