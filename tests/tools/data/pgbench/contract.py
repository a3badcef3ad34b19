from collections.abc import Iterator

import pytest

from perfflow.testing import AdapterContract
from tests.store.history import databases
from tests.tools.harness import EXAMPLES, tool

SCRIPT = str(EXAMPLES / "postgres-load" / "total.sql")
NOWHERE = {"database": "postgresql://127.0.0.1:1/none"}


class TestPgbench(AdapterContract):
    adapter = tool("pgbench")
    samples = "15.18/plain"
    captured = "."
    options = NOWHERE
    failing_options = NOWHERE
    captured_with = {"": NOWHERE}
    stand_in = "/usr/bin/true"  # the server is not on every machine

    @pytest.fixture(autouse=True, scope="class")
    @classmethod
    def _server(cls) -> Iterator[None]:
        if not databases.has_server():
            pytest.skip("PostgreSQL is not installed: apt-get install postgresql")
        with databases.server() as address:
            cls.options = {"database": address, "script": SCRIPT, "duration": "1"}
            yield
