from perfflow.testing import AdapterContract
from tests.tools.harness import tool
from tests.tools.lies import FILES_OF_ITSELF, PYTHON_CHILDREN, SHOWN, Lied


class TestSqlLog(AdapterContract):
    adapter = tool("sql-log")
    samples = "3.11.2/plain"
    captured = "."
    command = SHOWN
    captured_with = {
        "echo": {"log": "stdout"},
        "debug": {"log": "stderr"},
        "log-statement": {"log": "stderr"},
        "psql": {"log": "file"},
    }
    lied = Lied(by="itself", children=PYTHON_CHILDREN, files=FILES_OF_ITSELF)
