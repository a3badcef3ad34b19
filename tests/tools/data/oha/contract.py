from perfflow.testing import AdapterContract
from tests.tools import servers
from tests.tools.harness import tool


class TestOha(AdapterContract):
    adapter = tool("oha")
    samples = "1.16.0/plain"
    captured = "."
    options = {"url": f"{servers.address()}/", "rate": 100, "duration": "1s"}
    failing_options = {"url": servers.DEAD}
    captured_with = {"": {"url": servers.DEAD}}
    stand_in = "/usr/bin/true"  # it takes more than 10 minutes to build
