from perfflow.testing import AdapterContract
from tests.tools import servers
from tests.tools.harness import tool


class TestWrk(AdapterContract):
    adapter = tool("wrk")
    samples = "4.1.0/plain"
    captured = "."
    options = {"url": f"{servers.address()}/", "duration": "1s"}
    failing_options = {"url": servers.DEAD}
    captured_with = {"": {"url": servers.DEAD}}
    stand_in = "/usr/bin/true"  # not on every machine
