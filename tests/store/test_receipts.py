"""A run's manifest, the files that it lists, and differences between the environments of two runs."""

from __future__ import annotations

import hashlib
from pathlib import Path
from typing import Any

from perfflow.store.receipts import manifest
from perfflow.store.receipts.manifest import MachineDifference, environment_differences
from tests.verdict.records import ended, judged, pairs


def sha(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()


def test_every_file_of_the_run_is_hashed_but_the_receipt(tmp_path: Path) -> None:
    for name in ("result.json", "receipt.json", "events.jsonl", "steps/b/stdout", "steps/b/events.jsonl"):
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(name)
    result = judged(*pairs("b", [1.0], None), ended("b")).model_copy(update={"data": {"data": "x"}})
    made = manifest.make(result, tmp_path, {"perf": "6.1"})
    named = ("events.jsonl", "result.json", "steps/b/events.jsonl", "steps/b/stdout")
    assert made["files"] == {name: sha(name) for name in named}
    assert made["versions"]["perf"] == "6.1"
    assert made["steps"] == [{"id": "b", "tool": "command", "argv": ["./prog", "b"]}]
    assert made["run"]["id"] == "run-1"
    assert (made["verdict"], made["gate"]) == (result.verdict, result.gate and result.gate.model_dump())
    assert made["data"] == {"data": "x"}


def test_declared_data_inside_and_outside_of_the_tree(tmp_path: Path) -> None:
    root = tmp_path / "root"
    for path in (root / "a" / "1.txt", root / "a" / "b" / "2.txt", tmp_path / "out.txt"):
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(path.name)
    assert manifest.data_hashes(root, ["a/*.txt", "a/**/*.txt"]) == {"a/1.txt": sha("1.txt"), "a/b/2.txt": sha("2.txt")}
    assert manifest.data_hashes(root, [str(tmp_path / "*.txt")]) == {str(tmp_path / "out.txt"): sha("out.txt")}
    assert manifest.data_hashes(root, ["", "none/*", "a"]) == {}
    assert manifest.unmatched(root, ["", "none/*", "a", "a/*.txt"]) == ["", "none/*", "a"]


HERE: dict[str, Any] = {
    "machine": {"cpu": "one", "cores": 2, "load": [0.1], "identity": "a", "python": "3.11"},
    "versions": {"perf": "6.1"},
}


def test_another_processor_is_another_machine_and_another_version_is_not() -> None:
    there = {"machine": HERE["machine"] | {"cpu": "two", "load": [9.0], "identity": "b"}, "versions": {"perf": "6.2"}}
    assert list(environment_differences(HERE, there)) == [
        MachineDifference("cpu", "one", "two", decisive=True),
        MachineDifference("version of perf", "6.1", "6.2", decisive=False),
    ]


def test_equal_surroundings_do_not_differ_and_what_only_one_of_them_knows_says_nothing() -> None:
    assert list(environment_differences(HERE, HERE)) == []
    assert list(environment_differences(HERE, {"machine": {"cpu": "one"}, "versions": {"valgrind": "3.19"}})) == []
