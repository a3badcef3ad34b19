import pytest

from perfflow.testing import AdapterContract
from tests.toolchains import needs_node, node_project
from tests.tools.harness import tool
from tests.tools.lies import Lied


@needs_node
class TestNodeBench(AdapterContract):
    adapter = tool("node-bench")
    samples = "20.20.2/tinybench"
    captured = "."
    options = {"file": "bench/words.js"}
    failing_options = {"file": "none.js"}
    captured_with = {
        "": {"file": "bench/words.js"},
        "mitata": {"file": "bench/words.mitata.js"},
        "failing": {"file": "bench/failing.js"},
        "broken": {"file": "bench/broken.js"},
        "none": {"file": "bench/none.js"},
        "several": {"file": "bench/words.js bench/words.mitata.js"},
        "vitest": {"file": ""},
    }
    lied = Lied(by="program", keys={"runs": 2}, children={}, files=("idle", "gone", "empty", "cut", "other"))

    @pytest.fixture(autouse=True)
    def _there(self, tmp_path_factory: pytest.TempPathFactory) -> None:
        folder = node_project(tmp_path_factory.mktemp("node") / "project")
        self.options = {**type(self).options, "file": str(folder / "bench/words.js")}
