"""Runs with an optimize stage to render: a fixed one with each kind of try, and one with hostile text everywhere."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from perfflow.model.judging import Code, Flag, Outcome
from perfflow.model.result import Result
from tests.report.results import spot, wave
from tests.verdict.records import criteria, ended, judged, pairs, planned

BRANCH = "perfflow/run-1/flow"
DIFF = """\
diff --git a/src/slab.c b/src/slab.c
index 1111111..2222222 100644
--- a/src/slab.c
+++ b/src/slab.c
@@ -1,4 +1,3 @@
 /* ```
  * not the end of a fence: ````
-\tslow(); </details>
 */
"""


def attempt(name: str, decision: str, reason: str, **keys: Any) -> dict[str, Any]:
    """Return an entry of the ledger as the optimize stage writes it."""
    known = {"id": name, "technique": "memory", "why": "one malloc per item", "decision": decision, "reason": reason}
    code = {"accepted": Code.PROVEN, "rejected": Code.NO_EFFECT, "skipped": Code.BOUNDED}[decision]
    known |= {"outcome": code.outcome, "code": code}
    return known | {"bound": None} | keys


def measured(value: float, low: float, high: float, **keys: Any) -> dict[str, Any]:
    known = {"benchmark": "decode", "metric": "cpu", "unit": "s", "pairs": 14, "before": 0.012, "after": 0.006}
    return known | {"effect": {"value": value, "low": low, "high": high}} | keys


def change(diff: str, file: str, **keys: Any) -> dict[str, Any]:
    return {"diff": diff, "diff_file": file, "files": ["src/slab.c"], "lines": 1, **keys}


def within(trial: str, events: Iterable[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return events of steps that ran on a candidate, or on the kept changes."""
    return [{**event, "trial": trial} for event in events]


def candidate(name: str, technique: str, why: str) -> dict[str, Any]:
    keys = {"role": "candidate", "stage": "optimize", "tool": "run", "benchmark": ""}
    return planned(name, technique=technique, why=why, **keys)


STEPS = [
    planned("decode"),
    planned("heap", benchmark="decode", tool="massif"),
    planned("cpu", role="profile", stage="profile", tool="perf", benchmark="decode"),
    candidate("lto", "configuration", "link-time optimization"),
    candidate("slab", "memory", "one malloc per item"),
    candidate("level[n=2]", "configuration", "optimise more"),
    candidate("level[n=3]", "configuration", "optimise more"),
    candidate("ideas", "algorithm", "whatever comes to mind"),
    candidate("simd", "vectorization", "eight at a time"),
    candidate("late", "caching", "remember the last one"),
    planned("tests", role="check", stage="verify", tool="run", benchmark=""),
    planned("after", role="compare", stage="verify", tool="run", benchmark="", compare=True),
]


def optimized(**run: Any) -> Result:
    """Return a run with a kept change, kept settings, and each kind of try that is not kept."""
    flags = {"flags": [Flag.MORE_CPU, Flag.MANY_ATTEMPTS], "attempts": 12, "surely": 0.08}
    slab = attempt("slab", "accepted", "decode +50.0% [+49.0%, +51.0%]", bound=0.6, **flags)
    slab |= measured(0.5, 0.49, 0.51) | change(DIFF, "steps/slab/change.diff")
    lto = attempt("lto", "accepted", "decode +12.5% [+11.0%, +14.0%]", technique="configuration", why="")
    lto |= measured(0.125, 0.11, 0.14) | {"env": {"LTO": "fat", "NAME": 'a "b"'}, "params": {"opt": 3, "fast": True}}
    lost = attempt("level[n=2]", "accepted", "decode +11.0% [+10.5%, +12.0%]", technique="configuration")
    best = attempt("level[n=3]", "accepted", "decode +30.0% [+29.0%, +31.0%]", technique="configuration")
    alike = attempt("ideas.1", "rejected", "same: decode -0.1% [-1.0%, +0.8%]", technique="algorithm", bound=0.25)
    alike |= measured(-0.001, -0.01, 0.008) | change(DIFF + " more\n" * 300, "steps/ideas.1/change.diff")
    wrong = attempt("ideas.2", "rejected", "needs approval: it touches tests/a.c", technique="algorithm", bound=0.25)
    wrong |= {"outcome": Outcome.FORBIDDEN, "code": Code.FORBIDDEN_FILE}
    wrong |= change("", "steps/ideas.2/change.diff")
    tiny = attempt("simd", "skipped", "its hotspot takes 0.5%", technique="vectorization", bound=0.005)
    events = [
        *pairs("decode", wave(0.012, 1, 0.02), None, "cpu"),
        ended("decode"),
        *pairs("heap", [120.0], None, "allocs", exact=True),
        ended("heap"),
        ended("cpu", hotspots=[spot("parse_object", 0.6, "baseline", "src/parse.rs", 214)]),
        ended("lto", optimizations=[lto]),
        {"event": "kept", "id": "lto", "revision": "a" * 40, "tree": "t"},
        *within(
            "level[n=3]",
            [ended("cpu", hotspots=[spot("parse_object", 0.2, "baseline"), spot("main", 0.5, "baseline")])],
        ),
        {"event": "kept", "id": "slab", "revision": "c" * 40, "tree": "v"},
        ended("slab", optimizations=[slab]),
        ended("level[n=2]", optimizations=[lost]),
        {"event": "kept", "id": "level[n=3]", "revision": "c" * 40, "tree": "u"},
        ended("level[n=3]", optimizations=[best | measured(0.3, 0.29, 0.31) | {"env": {"LEVEL": "3"}}]),
        ended("ideas", optimizations=[alike, wrong]),
        ended("simd", optimizations=[tiny]),
        ended("tests"),
        *within("after", pairs("decode", wave(0.012, 1, 0.02), wave(0.0055, 1, 0.02), "cpu")),
        *within("after", pairs("heap", [120.0], [7.0], "allocs", exact=True)),
        *within("after", [ended("decode"), ended("heap")]),
        ended("after"),
        {"event": "branch", "name": BRANCH, "revision": "c" * 40},
    ]
    wanted = criteria({"decode": {"cpu": "<10ms", "cpu speedup": "≥2x"}})
    ruled_out = {"data-structure": "the table is flat already", "io": "it reads nothing"}
    run = {"component": "JSON codec", "accept": 0.1, **run}
    result = judged(*events, wanted=wanted, steps=STEPS, ruled_out=ruled_out, **run)
    tree = {"kind": "working tree", "revision": "d" * 40, "branch": "main", "dirty": True}
    return result.model_copy(update={"trees": {**result.trees, "baseline": tree}})


def nothing_kept() -> Result:
    """Return a run whose only candidate had no measurable effect."""
    entry = attempt("slab", "rejected", "same: decode -0.1%") | measured(0, -0.01, 0.01) | change(DIFF, "x.diff")
    events = [
        *pairs("decode", wave(0.012, 1, 0.02), None, "cpu"),
        ended("decode"),
        ended("slab", optimizations=[entry]),
    ]
    return judged(*events, steps=[planned("decode"), candidate("slab", "memory", "")], accept=0.1)


def hostile_ledger(name: str, template: str = "report") -> Result:
    """Return a ledger with ``name`` in every field that can hold text from outside, and with long diffs."""
    diff = f"{name}\n" * 200 + name
    tries = []
    for number, decision in enumerate(("accepted", "rejected", "skipped")):
        entry = attempt(f"c{number}{name}", decision, name, technique=name, why=name, bound=0.3)
        entry |= measured(0.5, 0.4, 0.6, benchmark=name, metric=name)
        tries.append(entry | change(diff, name, env={name: name}, params={name: name, "list": [name, 1, True]}))
    steps = [planned("b", benchmark="b"), *(candidate(item["id"], name, name) for item in tries)]
    events = [*pairs("b", wave(1, 1, 0.01), wave(1, 1, 0.01)), ended("b")]
    for entry in tries:
        events.append(ended(entry["id"], optimizations=[entry]))
    events.append({"event": "kept", "id": f"c0{name}", "revision": name, "tree": name})
    events.append({"event": "branch", "name": name, "revision": name})
    ruled_out = {name: name}
    result = judged(*events, steps=steps, ruled_out=ruled_out, accept=0.1, file=name, template=template)
    return result.model_copy(update={"trees": {**result.trees, "baseline": {"branch": name, "dirty": True}}})
