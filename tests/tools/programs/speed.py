"""Benchmarks for pytest-benchmark, of every kind that a suite may hold; not collected unless it is named."""

from typing import Any

import pytest


def fibonacci(number: int) -> int:
    return number if number < 2 else fibonacci(number - 1) + fibonacci(number - 2)


@pytest.fixture(name="timed")
def _timed(benchmark: Any) -> Any:
    return benchmark


@pytest.mark.parametrize("number", [5, 12], ids=["small", "a b::[c]/ü"])
def test_fibonacci(benchmark: Any, number: int) -> None:
    assert benchmark(fibonacci, number)


class TestGroup:
    def test_through_a_fixture(self, timed: Any) -> None:
        timed(sum, range(20_000))


def test_once(benchmark: Any) -> None:
    benchmark.pedantic(fibonacci, args=(10,), rounds=1)


def test_without_timing() -> None:
    assert fibonacci(10) == 55


@pytest.mark.skip
def test_skipped(benchmark: Any) -> None:
    benchmark(len, [])


@pytest.mark.skipif("1 > 0", reason="always")
def test_skipped_here(benchmark: Any) -> None:
    benchmark(len, [])
