"""Results to render: a fixed one with every kind of row, and one with hostile names."""

from __future__ import annotations

from typing import Any

import pytest

from perfflow.model.metrics import Better, Metric
from perfflow.model.result import Result
from perfflow.model.units import Dimension
from perfflow.store.calibrations import CalibrationFinding
from tests.verdict.gpu_kernels import kernel, profiled
from tests.verdict.records import criteria, ended, judged, pairs, planned, reading

HOSTILE = [
    *("a|b", "a\\|b", "a\\", "`code`", "``", "`", "a`` | `b"),
    *("</script><script>alert(1)</script>", "<img src=x onerror=alert(1)>", "<details>", "&lt;b&gt;", "<!-- x"),
    *("@team", "#12", "GH-12", "owner/repo#3", "https://example.org/x", "www.example.org", "a@example.org"),
    *("[link](javascript:alert(1))", "![i](x)", "[x]: http://example.org", "*bold* _em_ ~~gone~~ $x$ ^a^"),
    *("\u202egnp.exe", "\u2066x\u2069", "a\u200bb", "\ufeff", "\x1b[31mred\x1b[0m", "\x07\x00", "a\r\nb\n\n# head\n"),
    *("x" * 1000, "wörd/µs", "日本語" * 30, "e\u0301" * 40, "👩\u200d👩\u200d👧 ❤️", "\udce9"),
    *("1. one", "- dash", "+ plus", "> quote", "# head", "---", "===", "    indented", "```", "~~~", "|", "", " "),
]
JOINED = ["".join(HOSTILE), " ".join(reversed(HOSTILE)), ""]
"""All of them in one name, for code that treats a name letter by letter."""
JOINED_OR_EACH = [*JOINED, *(pytest.param(name, marks=pytest.mark.long) for name in HOSTILE if name)]
_FIGURES: dict[str, Any] = (
    {"noise": 0.0123, "trials": 20, "alarms": 1, "alarm_bound": 0.216, "same": 18, "pairs": 14.0, "seconds": 0.61}
    | {"smallest_change": 0.03, "replayed": 64, "within": 2.8, "judged": True}
    | {"why": "the program only computes, and CPU time is not disturbed by other processes"}
)
CALIBRATED = [
    CalibrationFinding("s", "decode", "cpu", **_FIGURES),
    CalibrationFinding("s", "decode", "uncontended", noise=0.2),
    CalibrationFinding("s", "count", "", exact=True),
    CalibrationFinding("s", "size", "binary_size", exact=True),
]


def wave(base: float, factor: float, spread: float, count: int = 14) -> list[float]:
    """Return values that are equal on every machine. Their last digits do not look like steps of a clock."""
    waves = ((number * 7) % count / count - 0.5 + 1e-6 * number * number for number in range(count))
    return [base * factor * (1 + spread * wave) for wave in waves]


def everything() -> Result:
    """Return a run with each kind of row, target, check and step."""
    frames = Metric("frames", Dimension.COUNT, Better.HIGHER)
    wanted = criteria(
        {
            "decode": {"time p50": "<10ms", "time p99": "<20ms", "speedup": "≥1.5x", "rss": "<64MiB"},
            "encode": {"time": "<4ms", "change": "<5%"},
            "parse": {"allocs": "0/op", "bandwidth": "≥70% of peak"},
            "gone": {"time": "<1s"},
        },
        metrics=[frames],
        peaks={"bandwidth": 45 * 2.0**30},
    )
    steps = [
        planned("build", role="work", stage="build", tool="run", benchmark=""),
        *(planned(name) for name in ("decode", "encode", "parse", "gone", "noisy")),
        planned("cpu", role="profile", stage="profile", tool="perf", benchmark="decode"),
        planned("tests", role="check", stage="verify", tool="run", benchmark=""),
        planned("same", role="check", stage="verify", tool="same-output", benchmark="decode"),
        planned("gpu", role="work", stage="verify", tool="run", benchmark=""),
    ]
    spots = [
        *[spot("parse_object", 0.31, "baseline", "src/parse.rs", 214), spot("memcpy", 0.12, "baseline")],
        *[spot("insert", 0.07, "baseline", "src/map.rs"), spot("memcpy", 0.44, "candidate")],
    ]
    inner = {"p50": 0.002, "p99": 0.0055, "n": 100.0}
    events: list[dict[str, Any]] = [
        ended("build"),
        *pairs("decode", wave(0.012, 1, 0.02), wave(0.006, 1, 0.03)),
        *pairs("decode", wave(14e6, 1, 0.01), wave(9e6, 1, 0), "rss", at_most=False),
        ended("decode", identical=True),
        *pairs("encode", wave(0.004, 1, 0.02), wave(0.004, 1.15, 0.02)),
        ended("encode", warnings=["this machine was busy"]),
        *pairs("parse", [12.0], None, "allocs"),
        *pairs("parse", wave(38 * 2.0**30, 1, 0.02), None, "bandwidth"),
        *pairs("parse", [0.002] * 7, None, inner=inner),
        *pairs("parse", [3.0] * 3, None, "frames"),
        ended("parse"),
        ended("gone", "failed", "gone exited with 1"),
        *pairs("noisy", wave(0.001, 1, 1.5), wave(0.001, 1, 1.2)),
        *pairs("noisy", wave(0.0005, 1, 1.9), wave(0.0005, 1, 1.9), "user"),
        ended("noisy"),
        ended("cpu", hotspots=spots),
        ended("tests", "failed", "tests exited with 1"),
        ended("same", detail="2 outputs the same as expected.txt"),
        ended("gpu", "skipped", "needs 1 GPU, 0 found"),
    ]
    params = {"size": 10, "fast": True, "words": ["a", "b c"]}
    return judged(*events, wanted=wanted, steps=steps, params=params, component="JSON codec")


def spot(location: str, share: float, tree: str, file: str = "", line: int = 0) -> dict[str, Any]:
    known = {"location": location, "share": share, "unit": "time", "source": "perf", "tree": tree}
    return known | {"file": file, "line": line, "cause": "measured: 40 samples" if file else ""}


def stored(name: str = "") -> Result:
    """Return a comparison of two stored results, with ``name`` in every field that can hold text from outside."""
    steps = [planned("compare", tool="hyperfine", benchmark="")]
    events = []
    for benchmark, factor in ((name or "decode", 0.5), ("encode", 1.0)):
        for metric, count in (("time", 14), ("cpu", 1)):
            known = {"event": "sample", "step": "compare", "design": "unpaired"}
            values = {"baseline": wave(0.1, 1, 0.02, count), "candidate": wave(0.1, factor, 0.02, count)}
            for side, found in values.items():
                events += [known | {side: [reading(metric, value, benchmark=benchmark)]} for value in found]
    told = {"label": name or "old.json", "tool": "hyperfine", "version": name, "started": name, "revision": name}
    old = told | {"kind": "stored", "dirty": False, "machine": name or "AMD EPYC, 2 cores"}
    new = old | {"label": name or "main", "tool": "perfflow", "version": "0.1.0", "revision": "0" * 40, "dirty": True}
    result = judged(
        *events,
        ended("compare", argv=[]),
        steps=steps,
        component=f"{old['label']} → {new['label']}",
        across_machines=True,
        warnings=["measured 26 h apart; drift between sessions is part of the difference", *([name] if name else [])],
        command=["perfflow", "compare", "--across-machines", old["label"], new["label"]],
    )
    return result.model_copy(update={"trees": {"baseline": old, "candidate": new}})


def kernels() -> Result:
    """Return a kernel on both sides of a change, one that was only measured, and their roof."""
    peaks = [{"metric": "flops", "value": 80e9, "precision": "f32", "how": "8 chains of fused | sums, 2 threads"}]
    steps = [
        planned("roof", role="machine", tool="stream", benchmark=""),
        planned("axpy", precision="f32"),
        planned("matmul"),
    ]
    return judged(
        ended("roof", peaks=peaks),
        *pairs("axpy", wave(1.5e9, 1, 0.01), wave(6e9, 1, 0.01), "flops"),
        *pairs("axpy", wave(9e9, 1, 0.01), wave(36e9, 1, 0.01), "throughput"),
        ended("axpy"),
        *pairs("matmul", wave(60e9, 1, 0.01), None, "flops"),
        *pairs("matmul", wave(1e9, 1, 0.01), None, "bandwidth"),
        ended("matmul"),
        wanted=criteria({"axpy": {"throughput": "≥70% of peak"}}, peaks={"bandwidth": 45 * 2.0**30}),
        steps=steps,
    )


def on_gpu(name: str = "") -> Result:
    """Return GPU kernels on both sides of a change, one on an unknown GPU, with ``name`` in every text."""
    stalls = {"long_scoreboard": 6.0, "wait": 2.0, "selected": 1.0, **({name: 3.0} if name else {})}
    advice = [
        {"rule": name or "CPIStall", "text": name or "Wait | less for `L1TEX`.", "gain": 0.3},
        {"rule": "SOLBottleneck", "text": "Memory is more heavily utilized than compute.", "gain": None},
    ]
    after = {"registers": 40, "occupancy": 0.95, "occupancy_theoretical": 1.0, "limiters": [], "seconds": 5e-4}
    after |= {"stalls": stalls | {"wait": 9.0, "drain": 4.0}, "tree": "candidate"}
    odd = kernel(name=name or "fill", benchmark=name or "fill", share=0.1, device=name or "GPU", capability="")
    kernels = [
        kernel(stalls=stalls, share=0.9, advice=advice, limiters=["registers"]),
        kernel(**after, share=0.9, advice=advice),
        odd,
        odd | {"tree": "candidate", "sm_share": 0.1, "memory_share": 0.2, "waves": 0.25},
    ]
    return profiled(*kernels, targets={"gemm": {"bandwidth": "≥60% of peak"}})


def single() -> Result:
    """Return a run with one side and few samples."""
    return judged(*pairs("nap", [0.02, 0.021, 0.02], None), ended("nap"), steps=[planned("nap")])


def hostile(name: str) -> Result:
    """Return a run with ``name`` in every field that can hold text from outside."""
    wanted = criteria({"**": {"time p50": "<10s", "time p99": "<1ms"}, name or "none": {"rss": "<1MB"}})
    steps = [
        planned("b", benchmark=name, tool=name),
        planned("p", role="profile", benchmark=name),
        planned("t", role="check", benchmark=""),
        planned("w", role="work", benchmark=""),
    ]
    spots = [
        {"location": name, "share": 0.5, "unit": name, "source": name, "file": name, "line": 3, "cause": name}
        | {"tree": tree}
        for tree in ("baseline", "candidate")
    ]
    events = pairs("b", wave(1, 1, 0.01), wave(1, 1, 0.01))
    for event in events:
        event["baseline"] += [reading("time", 1.0, benchmark=name + "/x"), reading(name or "odd", 2.0)]
        event["candidate"] += [reading("time", 1.0, benchmark=name + "/x"), reading(name or "odd", 2.0)]
    events += [
        ended("b", warnings=[name]),
        ended("p", hotspots=spots),
        ended("t", "failed", name),
        ended("w", "failed", name),
    ]
    machine = {"cpu": name, "system": name, "kernel_series": name, "python": name, "load": [name]}
    run = {"component": name, "workflow": name, "params": {"p": name}, "file": name, "version": name}
    result = judged(*events, wanted=wanted, steps=steps, **run)
    return result.model_copy(update={"machine": machine, "trees": {"baseline": {"revision": name, "dirty": True}}})
