from perfflow.testing import AdapterContract
from tests.mutate import probe_readers
from tests.tools.harness import tool


class TestNsys(AdapterContract):
    adapter = tool("nsys")
    samples = "2022.4.2/ranges"
    captured = "."
    command = ["/bin/sleep", "0.05"]
    captured_with = {"gpu": {"report": "saxpy.sqlite"}}
    readers = (probe_readers.nsys,)
    stand_in = "/opt/bin/nsys"
