from perfflow.testing import AdapterContract
from tests.tools.harness import tool


class TestCargoFlamegraph(AdapterContract):
    adapter = tool("cargo-flamegraph")
    samples = "0.6.15/rust"
    captured = "."
    command = ["/bin/true"]
    stand_in = "/opt/bin/flamegraph"
