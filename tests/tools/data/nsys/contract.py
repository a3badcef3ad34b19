from perfflow.testing import AdapterContract
from tests.tools.harness import tool


class TestNsys(AdapterContract):
    adapter = tool("nsys")
    samples = "2022.4.2/ranges"
    captured = "."
    command = ["/bin/sleep", "0.05"]
    captured_with = {"gpu": {"report": "saxpy.sqlite"}}
    stand_in = "/opt/bin/nsys"
