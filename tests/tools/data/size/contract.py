from perfflow.testing import AdapterContract
from tests.tools.harness import tool
from tests.tools.lies import Lied


class TestSize(AdapterContract):
    adapter = tool("size")
    samples = "2.40/file"
    captured = "."
    options = {"file": "a.txt"}
    failing_options = {"file": "none.txt"}
    captured_with = {"": {"file": "/tmp/demo/hot"}}
    files = {"a.txt": "hello"}
    lied = Lied(children={})
