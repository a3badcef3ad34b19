from perfflow.testing import AdapterContract
from tests.tools.harness import tool
from tests.tools.lies import Lied


class TestStream(AdapterContract):
    adapter = tool("stream")
    samples = "12.2.0/plain"
    captured = "."
    options = {"seconds": "10ms", "size": "8MiB", "precisions": ["f64"]}
    failing_options = {"size": "1000TiB"}
    captured_with = {"": {}, "sizes": {"precisions": ["f64", "f16"]}}
    lied = Lied(by="program", children={}, files=("idle", "gone", "empty", "cut", "other"))
