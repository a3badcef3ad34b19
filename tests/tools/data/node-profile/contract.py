from perfflow.testing import AdapterContract
from tests.toolchains import needs_node
from tests.tools.harness import tool
from tests.tools.lies import FILES, Lied

WORK = (
    "let sum = 0; const kept = []; for (let i = 0; i < 3e7; i++) { sum += i % 7; if (i % 1000 == 0) kept.push({i}); }"
)


@needs_node
class TestNodeProfile(AdapterContract):
    adapter = tool("node-profile")
    samples = "20.20.2/plain"
    captured = "."
    command = ["node", "-e", WORK]
    captured_with = {"": {"command": ["node", "-e", WORK]}}
    unread = ("node.txt",)
    lied = Lied(by="command", files=FILES)
