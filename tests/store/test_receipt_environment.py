"""Differences between the environments of two runs."""

from __future__ import annotations

from typing import Any

from perfflow.store.receipts.manifest import MachineDifference, environment_differences

HERE: dict[str, Any] = {
    "machine": {"cpu": "one", "cores": 2, "load": [0.1], "identity": "a", "python": "3.11"},
    "versions": {"perf": "6.1"},
}


def test_equal_surroundings_do_not_differ() -> None:
    assert list(environment_differences(HERE, HERE)) == []


def test_another_processor_is_another_machine_and_another_version_is_not() -> None:
    there = {"machine": HERE["machine"] | {"cpu": "two", "load": [9.0], "identity": "b"}, "versions": {"perf": "6.2"}}
    assert list(environment_differences(HERE, there)) == [
        MachineDifference("cpu", "one", "two", decisive=True),
        MachineDifference("version of perf", "6.1", "6.2", decisive=False),
    ]


def test_what_only_one_of_them_knows_says_nothing() -> None:
    assert list(environment_differences(HERE, {"machine": {"cpu": "one"}, "versions": {"valgrind": "3.19"}})) == []
