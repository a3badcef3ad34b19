from perfflow.testing import AdapterContract
from tests.mutate import plain_readers
from tests.tools.harness import tool


class TestCargoFlamegraph(AdapterContract):
    adapter = tool("cargo-flamegraph")
    samples = "0.6.15/rust"
    captured = "."
    command = ["/bin/true"]
    readers = (plain_readers.perf_script,)
    stand_in = "/opt/bin/flamegraph"

    @staticmethod
    def shown(name: str) -> str:
        return name
