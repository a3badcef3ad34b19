"""The reported state of cheaper techniques when a costlier one was tried."""

from __future__ import annotations

from tests.report.optimized import attempt, candidate
from tests.report.results import wave
from tests.verdict.records import ended, judged, pairs, planned


def told(*tries: tuple[str, str, str], **ruled_out: str) -> dict[str, list[tuple[str, str, str]]]:
    """Return the state of the cheaper techniques before each try (id, technique, decision)."""
    steps = [planned("b"), *(candidate(name, technique, "") for name, technique, _ in tries)]
    events = [*pairs("b", wave(1, 1, 0.01), None), ended("b")]
    for name, technique, decision in tries:
        events.append(ended(name, optimizations=[attempt(name, decision, f"why of {name}", technique=technique)]))
        if decision == "accepted":
            events.append({"event": "kept", "id": name, "revision": "a" * 40, "tree": name})
    result = judged(*events, steps=steps, ruled_out=ruled_out, accept=0.1)
    return {
        item.id: [(cheap.technique, cheap.status, cheap.detail) for cheap in item.cheaper]
        for item in result.optimizations
    }


def test_each_try_knows_what_was_tried_or_ruled_out_before_it() -> None:
    tries = (("sort", "algorithm", "accepted"), ("hash", "algorithm", "rejected"), ("batch", "io", "skipped"))
    ruled_out = {"data-structure": "flat already", "concurrency": "one thread"}
    assert told(*tries, ("slab", "memory", "rejected"), **ruled_out) == {
        "sort": [],
        "hash": [],
        "batch": [
            ("algorithm", "tried", "sort kept, hash reverted"),
            ("data-structure", "ruled out", "flat already"),
        ],
        "slab": [
            ("algorithm", "tried", "sort kept, hash reverted"),
            ("data-structure", "ruled out", "flat already"),
            ("io", "open", "batch: why of batch"),
        ],
    }


def test_what_was_tried_later_was_not_tried_before() -> None:
    assert told(("slab", "memory", "accepted"), ("sort", "algorithm", "accepted"))["slab"] == [
        (name, "open", "") for name in ("algorithm", "data-structure", "io")
    ]


def test_configuration_stands_outside() -> None:
    assert told(("lto", "configuration", "accepted"), ("sort", "algorithm", "rejected")) == {"lto": [], "sort": []}
