from pathlib import Path

from perfflow.testing import AdapterContract
from tests.tools.harness import tool
from tests.tools.lies import Lied
from tests.tools.mojo_sources import OLD

HERE = Path(__file__).parent


class TestMojoBench(AdapterContract):
    adapter = tool("mojo-bench")
    samples = "1.2.0/table"
    captured = "."
    command = ["sh", "-c", f"cat {HERE / '1.2.0/plain/printed.txt'}"]
    captured_with = {f"old-{case}": {"file": "old.mojo"} for case in OLD}
    ends = False
    stand_in = "/opt/mojo/bin/mojo"
    lied = Lied(keys={"runs": 3})
