from perfflow.testing import AdapterContract
from tests.tools.harness import tool


class TestDhat(AdapterContract):
    adapter = tool("dhat")
    samples = "3.19.0/c"
    captured = "."
    captured_with = {"heap": {"report": "dhat-heap.json"}, "ad-hoc": {"report": "dhat-ad-hoc.json"}}
    command = ["/bin/ls", "/"]
