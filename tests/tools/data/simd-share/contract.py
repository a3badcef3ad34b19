from perfflow.testing import AdapterContract
from tests.tools.harness import tool
from tests.tools.lies import HOT


class TestSimdShare(AdapterContract):
    adapter = tool("simd-share")
    samples = "6.1.192/scalar"
    captured = "."
    command = HOT
