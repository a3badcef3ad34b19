"""SQL without its values, and statements from logs."""

from __future__ import annotations

import pytest

from perfflow.tools.python import sql_log


@pytest.mark.parametrize(
    ("statement", "shape"),
    [
        ("SELECT 1", "SELECT ?"),
        ("select  *\n from t1 where a=-1.5e3 and b = 'it''s; -- no comment';", "select * from t1 where a=? and b = ?"),
        ("SELECT * FROM t WHERE id IN (1, 2,3)", "SELECT * FROM t WHERE id IN (?…)"),
        ("SELECT * FROM t WHERE id IN (?)", "SELECT * FROM t WHERE id IN (?)"),
        ("INSERT INTO t VALUES (1, 'a'), (2, 'b'), (3, 'c')", "INSERT INTO t VALUES (?…)…"),
        ("SELECT a -- the first\nFROM t /* of\nmany */ WHERE b = $1", "SELECT a FROM t WHERE b = ?"),
        ("SELECT %s, %(name)s, :name, ?1, x::int FROM t", "SELECT ?, ?, ?, ?, x::int FROM t"),
        ('SELECT "col 1", `2` FROM "t 3" WHERE c1 = 0xFF', 'SELECT "col 1", `2` FROM "t 3" WHERE c1 = ?'),
        ("SELECT a - 1, b-2 FROM t", "SELECT a - ?, b-? FROM t"),
        ("-- nothing else", ""),
        ("", ""),
    ],
)
def test_shape(statement: str, shape: str) -> None:
    assert sql_log.shape(statement) == shape


def test_a_shape_has_a_shape_of_its_own() -> None:
    text = "SELECT a FROM t WHERE b IN (1, 2) AND c = 'x'"
    assert sql_log.shape(sql_log.shape(text).replace("?…", "?, ?")) == sql_log.shape(text)


def test_what_opens_a_transaction_asks_for_no_data() -> None:
    assert not any(map(sql_log.asks_for_data, ("BEGIN", "COMMIT", "SAVEPOINT a", "PRAGMA x", "SET a = ?")))
    assert all(map(sql_log.asks_for_data, ("SELECT ?", "(SELECT ?)", "with a as (b) select c", "UPDATE t SET a = ?")))


def test_a_format_is_told_by_its_marks() -> None:
    assert sql_log.format_of(["(0.001) SELECT 1; args=(); alias=default"]) == "django"
    assert sql_log.format_of(["2026-01-31 INFO sqlalchemy.engine.Engine SELECT 1"]) == "sqlalchemy"
    assert sql_log.format_of(["[3] LOG:  statement: SELECT 1"]) == "postgres"
    assert sql_log.format_of(["SELECT 1"]) == "plain"


def test_lines_that_are_no_statement_end_one() -> None:
    log = ["[3] LOG:  statement: SELECT a", "\tFROM t", "[3] LOG:  connection lost", "\tFROM u"]
    assert list(sql_log.statements(log, "postgres")) == ["SELECT a\n\tFROM t"]
