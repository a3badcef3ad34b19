from perfflow.testing import AdapterContract
from tests.tools import servers
from tests.tools.harness import tool


class TestVegeta(AdapterContract):
    adapter = tool("vegeta")
    samples = "12.13.0/plain"
    captured = "."
    options = {"url": f"{servers.address()}/", "rate": 100, "duration": "1s"}
    failing_options = {"url": servers.DEAD}
    captured_with = {"": {"url": servers.DEAD}}
    stand_in = "/usr/bin/true"  # not in Debian
