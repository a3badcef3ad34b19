from perfflow.testing import AdapterContract
from tests.toolchains import needs_java
from tests.tools.harness import PROGRAMS, tool


@needs_java
class TestJfr(AdapterContract):
    adapter = tool("jfr")
    samples = "17.0.15/plain"
    captured = "."
    command = ["java", str(PROGRAMS / "Work.java")]
    failing_command = ["java", str(PROGRAMS / "Work.java"), "3"]
    captured_with = {"": {"command": ["java", "Work.java"]}}
    unread = ("java.txt", "stderr", "stacks.stderr")
