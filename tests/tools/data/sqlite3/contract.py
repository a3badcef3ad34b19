import sqlite3

import pytest

from perfflow.testing import AdapterContract
from tests.tools.harness import tool


class TestSqlite3(AdapterContract):
    adapter = tool("sqlite3")
    options = {"database": "shop.db", "script": "total.sql"}
    captured_with = {"": options}
    failing_options = {"script": "broken.sql"}
    files = {"total.sql": "update sales set price = 2; select sum(price) from sales;", "broken.sql": "selec;"}
    stand_in = "/usr/bin/true"  # not on every machine

    @pytest.fixture(autouse=True)
    def _database(self, _place: None) -> None:
        with sqlite3.connect(self.place / "shop.db") as database:
            database.execute("create table sales(price)")
