from perfflow.testing import AdapterContract
from tests.tools.harness import tool
from tests.tools.lies import LONG, LOOKED_INTO, PYTHON_CHILDREN, Lied


class TestPySpy(AdapterContract):
    adapter = tool("py-spy")
    samples = "0.4.3/plain"
    captured = "."
    command = LONG
    captured_with = {
        "speedscope": {"format": "speedscope"},
        "speedscope-processes": {"format": "speedscope", "subprocesses": True, "native": True},
        "attached": {"pid": 4711, "duration": "1s"},
        "attached-gil": {"pid": 4711, "gil": True},
        "not-allowed": {"pid": 4711, "duration": "1s"},
        "not-there": {"pid": 4711, "duration": "1s"},
        "not-python": {"pid": 4711, "duration": "1s"},
    }
    unread = ("py-spy.out",)
    ends = False
    lied = Lied(by="program", children=PYTHON_CHILDREN)


class TestPySpyAttached(TestPySpy):
    command = ["sleep", "0.7"]
    options = {"pid": LOOKED_INTO, "idle": True}
    lied = Lied(by="program")
