"""Gates to render: a fixed one with each kind of row and finding, one with hostile text everywhere, and a large one."""

from __future__ import annotations

from typing import Any

from perfflow.model.criteria import Accepted
from perfflow.model.result import Attribution, Brief, CommitInfo, Recommendation, Result, RouteTaken
from tests.report.results import wave
from tests.verdict.records import criteria, ended, judged, pairs, planned, reading

TREES: dict[str, dict[str, Any]] = {
    "baseline": {"kind": "revision", "revision": "a" * 40, "name": "origin/main"},
    "candidate": {"kind": "working tree", "revision": "b" * 40, "name": "HEAD", "dirty": True},
}
SLOWER = CommitInfo(revision="3fa2c1d" + "0" * 33, subject="Parse twice, to be sure", author="Ada")
EARLIER = CommitInfo(revision="77e01aa" + "0" * 33, subject="Inline the scanner", author="Grace")
_KNOWN: dict[str, Any] = {"benchmark": "core/encode", "metric": "time", "step": "cpu", "tool": "perf"}
_KNOWN |= {"crate": "codec", "unit": "s"}
_PARSED = {"region": "decode", "line": 214, "baseline": 0.0021, "candidate": 0.00255, "change": 0.214, "share": 0.75}
_CHECKED = {"baseline": 0.0, "candidate": 0.00012, "change": None, "share": 0.2}
_UNCOMMITTED = CommitInfo(revision="", subject="uncommitted changes")
_FEW = "212 samples on the base are few"
BLAMED = [
    Attribution(**_KNOWN | _PARSED, function="parse_object", file="src/parse.rs", commits=[SLOWER, EARLIER]),
    Attribution(**_KNOWN | _CHECKED, function="check", file="src/check.rs", commits=[_UNCOMMITTED], note=_FEW),
]
ADVICE = Recommendation(
    finding="memory is allocated in a hot path",
    advice="Allocate once outside of the loop.",
    evidence="malloc takes 31% of the time of core/encode, 4% on the base",
    rule="allocation-in-hot-path",
    benchmark="core/encode",
)
ROUTE = RouteTaken(
    rule="routes: hotspots.share > 0.5",
    to="author",
    why="one function holds 75% of what was lost",
    next="look at parse_object (src/parse.rs:214)",
    command="git show 3fa2c1d",
    brief=Brief(
        regressed=["core/encode time +15.0% [+15.0%, +15.0%]"],
        thresholds=["core/encode: concern 5%, action 10%"],
        hotspots=["parse_object src/parse.rs:214, 75%, 3fa2c1d"],
        commands=["perfflow gate flow.yaml --base origin/main --only encode"],
    ),
)


def as_gate(result: Result, **parts: Any) -> Result:
    """Return the result with both revisions, and with the parts that other rules fill."""
    return result.model_copy(update={"trees": TREES} | parts)


def gated() -> Result:
    """Return a gate with a failing, a warning, an accepted and a small regression, and each other kind of row."""
    targets = {"core/*": {"time": "<5ms", "speedup": "≥0.5x"}}
    wanted = criteria(
        {**targets, "io/read": {"throughput": "≥1GB/s"}, "io/lost": {"time": "<1s"}},
        per_glob={"io/**": {"action": 0.2, "concern": 0.1}},
        accepted=[Accepted("io/accepted", 0.4, "checksums are worth it", "2026-06-30")],
        concern=0.05,
        action=0.10,
    )
    every = {"core/encode": 1.15, "core/warned": 1.07, "core/slightly": 1.045, "core/same": 1.0, "core/better": 0.7}
    every |= {"io/accepted": 1.3, "io/warned": 1.15}
    steps = [planned(name) for name in [*every, "io/read", "noisy", "lost"]]
    steps += [
        planned("expected", benchmark="*", expect=["suite/gone"]),
        planned("broken", benchmark="broken"),
        planned("tests", role="check", stage="verify", tool="run", benchmark=""),
        planned("same-output", role="check", stage="verify", tool="same-output", benchmark=""),
    ]
    events: list[dict[str, Any]] = []
    for name, factor in every.items():
        events += [*pairs(name, wave(0.004, 1, 0.02), wave(0.004, factor, 0.05)), ended(name)]
    events += pairs("io/read", wave(2e9, 1, 0.02), wave(2e9, 0.7, 0.02), "throughput")
    events += [ended("io/read"), *pairs("noisy", wave(0.001, 1, 1.5), wave(0.001, 1, 1.2)), ended("noisy")]
    events += pairs("lost", wave(0.001, 1, 0.1), wave(0.001, 1, 0.1))
    for event in events[-14:]:
        event["baseline"].append(reading("time", 0.002, benchmark="suite/removed"))
        event["candidate"].append(reading("time", 0.002, benchmark="suite/new"))
    events += [ended("lost"), ended("expected"), ended("broken", "failed", "broken: exit status 1")]
    events += [ended("tests"), ended("same-output", "failed", "1 of 2 outputs differs")]
    result = judged(*events, wanted=wanted, steps=steps, component="JSON codec")
    confirmed = [
        {"benchmark": "core/encode", "metric": "time", "decision": "regressed", "pairs": 20},
        {"benchmark": "core/same", "metric": "time", "decision": "same", "pairs": 20},
    ]
    parts = {"attributions": BLAMED, "recommendations": [ADVICE], "routes": [ROUTE], "confirmations": confirmed}
    return as_gate(result, **parts)


def passed() -> Result:
    """Return a gate in which nothing changed."""
    events = [*pairs("b", wave(0.004, 1, 0.02), wave(0.004, 1, 0.02)), ended("b")]
    return as_gate(
        judged(*events),
        routes=[RouteTaken(rule="all-passed", to="merge", why="nothing regressed", next="it can be merged")],
    )


def advised() -> Result:
    """Return a run that compared nothing, with recommendations and a route."""
    result = judged(*pairs("b", wave(0.004, 1, 0.02), None), ended("b"))
    return result.model_copy(update={"recommendations": [ADVICE], "routes": [ROUTE]})


def hostile_gate(name: str) -> Result:
    """Return a gate with ``name`` in every field that can hold text from outside."""
    wanted = criteria(
        {"**": {"time p50": "<0.5s"}, name or "none": {"rss": "<1MB"}},
        per_glob={name or "*": {"action": 0.3}},
        accepted=[Accepted("accepted" + name, 9.0, name, "2999-12-31" + name)],
    )
    events = pairs("b", wave(1, 1, 0.01), wave(1, 1.5, 0.01))
    for event in events:
        for benchmark in (name or "x", name + "/x", "accepted" + name):
            event["baseline"].append(reading("time", event["baseline"][0]["value"], benchmark=benchmark))
            event["candidate"].append(reading("time", event["candidate"][0]["value"], benchmark=benchmark))
        event["baseline"].append(reading("time", 1.0, benchmark="removed" + name))
    events += [ended("b"), ended("w", "failed", name), ended("t", "failed", name)]
    steps = [
        planned("b", benchmark=name, tool=name, expect=["expected" + name]),
        planned("w", benchmark="broken" + name),
        planned("t", role="check", benchmark=""),
    ]
    result = judged(*events, wanted=wanted, steps=steps, component=name)
    commits = [CommitInfo(revision=name, subject=name, author=name) for _ in range(5)]
    words = dict.fromkeys(("step", "tool", "function", "file", "crate", "region", "unit", "note"), name)
    cost = {"baseline": 1.0, "candidate": 2.0, "change": 1.0, "share": 0.5, "line": 3, "commits": commits}
    blamed = [
        Attribution.model_validate(words | cost | {"benchmark": row.name, "metric": row.metric})
        for row in result.benchmarks
    ]
    brief = Brief(regressed=[name], thresholds=[name], hotspots=[name], commands=[name])
    return as_gate(
        result,
        trees={side: {**told, "name": name, "revision": name} for side, told in TREES.items()},
        attributions=blamed,
        recommendations=[Recommendation(finding=name, advice=name, evidence=name, rule=name, benchmark=name)],
        routes=[RouteTaken(rule=name, to=name, why=name, brief=brief)],
        confirmations=[{"benchmark": row.name, "metric": row.metric, "pairs": 9} for row in result.benchmarks],
    )
