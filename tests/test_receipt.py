"""A run's manifest."""

from __future__ import annotations

import hashlib
from pathlib import Path

from perfflow import receipt
from tests.verdict.records import ended, judged, pairs


def sha(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()


def test_every_file_of_the_run_is_hashed_but_the_two_that_still_change(tmp_path: Path) -> None:
    for name in ("result.json", "receipt.json", "events.jsonl", "steps/b/stdout", "steps/b/events.jsonl"):
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(name)
    result = judged(*pairs("b", [1.0], None), ended("b")).model_copy(update={"data": {"data": "x"}})
    made = receipt.make(result, tmp_path, {"perf": "6.1"})
    assert made["files"] == {name: sha(name) for name in ("result.json", "steps/b/stdout", "steps/b/events.jsonl")}
    assert made["versions"]["perf"] == "6.1"
    assert made["steps"] == [{"id": "b", "tool": "command", "argv": ["./prog", "b"]}]
    assert made["run"]["id"] == "run-1"
    assert made["data"] == {"data": "x"}


def test_declared_data_inside_and_outside_of_the_tree(tmp_path: Path) -> None:
    root = tmp_path / "root"
    for path in (root / "a" / "1.txt", root / "a" / "b" / "2.txt", tmp_path / "out.txt"):
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(path.name)
    assert receipt.data_hashes(root, ["a/*.txt", "a/**/*.txt"]) == {"a/1.txt": sha("1.txt"), "a/b/2.txt": sha("2.txt")}
    assert receipt.data_hashes(root, [str(tmp_path / "*.txt")]) == {str(tmp_path / "out.txt"): sha("out.txt")}
    assert receipt.data_hashes(root, ["", "none/*", "a"]) == {}
    assert receipt.unmatched(root, ["", "none/*", "a", "a/*.txt"]) == ["", "none/*", "a"]
