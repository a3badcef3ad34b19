from __future__ import annotations

from pathlib import Path

from perfflow.testing import AdapterContract
from tests.mutate import probe_readers
from tests.tools.harness import tool

HERE = Path(__file__).parent


class TestNsys(AdapterContract):
    adapter = tool("nsys")
    samples = HERE / "2022.4.2" / "ranges"
    captured = HERE
    command = ["/bin/true"]
    captured_with = {"gpu": {"report": "saxpy.sqlite"}}
    readers = (probe_readers.nsys,)
    stand_in = "/opt/bin/nsys"
