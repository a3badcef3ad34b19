import pytest

from perfflow.testing import AdapterContract
from tests.tools.harness import tool
from tests.tools.lies import FILES, Lied


class TestCudaBench(AdapterContract):
    adapter = tool("cuda-bench")
    samples = "cpu/plain"
    captured = "."
    command = ["kernels_cpu", "--bench", "--n=32", "--repeats=5", "--kernel=sum/lanes"]
    lied = Lied(by="command", keys={"runs": 2}, files=(*FILES, "later"))

    @pytest.fixture(autouse=True)
    def _built(self, kernels_cpu: str) -> None:
        self.command = [kernels_cpu, *type(self).command[1:]]
