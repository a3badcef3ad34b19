"""Measure the noise of this machine: kernel counters that need no root, and a self-test with slices of fixed work.

A value that cannot be read is reported as unknown, never as ok: a virtual machine does not see its host's governor or
temperature.
"""

from __future__ import annotations

import math
import os
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, fields
from enum import StrEnum
from pathlib import Path
from typing import Any

from perfflow.machine.noise_findings import FindingState, NoiseFinding, is_virtual, read, unknown
from perfflow.machine.settings import cgroup_folder, settings
from perfflow.stats.paired_test import quantile

SLICES = 60
"""Number of slices of identical work in the self-test."""
FEWEST_SLICES = 5
_SLICE_SECONDS = 0.004
WATCHED_SECONDS = 1.0
QUICK_CHECK_SECONDS = 0.24
"""Longest self-test (s) before a run measures: enough for all slices on a quiet machine; a noisy one does fewer."""
_KINDS = ("user", "nice", "system", "idle", "iowait", "irq", "softirq", "steal")


class NoiseClass(StrEnum):
    """How to measure here: as usual, with more time, or by CPU time and with a larger budget."""

    QUIET = "quiet"
    BUSY = "busy"
    HOSTILE = "hostile"


@dataclass(frozen=True)
class NoiseSelfTest:
    """Spread of identical work: ``spread`` is p95/p50 of wall time, ``cpu_share`` CPU time over wall time."""

    spread: float
    cpu_share: float


def self_test(
    now: Callable[[], float] = time.perf_counter,
    cpu: Callable[[], float] = time.process_time,
    limit: float = math.inf,
) -> NoiseSelfTest:
    """Time identical slices of a few milliseconds each; stop after ``limit`` seconds, but not before 5 slices."""
    count = _calibrated(now)
    walls: list[float] = []
    start_cpu, start = cpu(), now()
    while len(walls) < SLICES and (len(walls) < FEWEST_SLICES or now() - start < limit):
        began = now()
        _work(count)
        walls.append(now() - began)
    total = now() - start
    return NoiseSelfTest(quantile(walls, 0.95) / quantile(walls, 0.5), min(1.0, (cpu() - start_cpu) / total))


def _work(count: int) -> int:
    total = 0
    for number in range(count):
        total += number * number
    return total


def _calibrated(now: Callable[[], float]) -> int:
    """Return the iterations of one undisturbed slice, from the fastest of five tries."""
    tries = []
    for _ in range(5):
        began = now()
        _work(20_000)
        tries.append(now() - began)
    # Bounded, because the clocks of some virtual machines stand still or go back.
    return min(10**6, max(1000, int(20_000 * _SLICE_SECONDS / max(min(tries), 1e-6))))


def examine(root: Path = Path("/"), pause: Callable[[float], None] = time.sleep) -> list[NoiseFinding]:
    """Check everything that affects timings, rates over one second. ``root`` is for tests."""
    before = _counters(root)
    pause(WATCHED_SECONDS)
    after = _counters(root)
    return [*_activity(before, after, virtual=is_virtual(root)), *settings(root)]


def quick_check(
    root: Path = Path("/"), test: Callable[[], NoiseSelfTest] = lambda: self_test(limit=QUICK_CHECK_SECONDS)
) -> MachineNoise:
    """Check for a quarter of a second: run the self-test, and see what else ran meanwhile.

    The rates cover the self-test itself, without its own work, so they take no extra time. The load average is not
    used, because it includes the build before.
    """
    before, began = _counters(root), time.process_time()
    tested = test()
    own_cpu_time, after = time.process_time() - began, _counters(root)
    return MachineNoise(tested, tuple(_activity(before, after, own_cpu_time, virtual=is_virtual(root))))


@dataclass(frozen=True)
class MachineNoise:
    """The self-test and findings of a machine, and the resulting class."""

    test: NoiseSelfTest
    findings: Sequence[NoiseFinding]

    @property
    def kind(self) -> NoiseClass:
        """The noise class."""
        return classify(self.findings, self.test)


def classify(findings: Sequence[NoiseFinding], test: NoiseSelfTest) -> NoiseClass:
    """Return hostile if identical work spreads by half or loses a quarter of the core; busy if other work runs."""
    if test.spread > 1.5 or test.cpu_share < 0.75 or any(item.state is FindingState.BAD for item in findings):
        return NoiseClass.HOSTILE
    warned = any(item.state is FindingState.WARN and item.name in _BUSY_FACTS for item in findings)
    return NoiseClass.BUSY if warned or test.spread > 1.1 or test.cpu_share < 0.95 else NoiseClass.QUIET


_BUSY_FACTS = ("other load", "steal", "cpu pressure", "quota", "swap")


def _counters(root: Path) -> dict[str, float]:
    """Return cumulative counters by name: jiffies by kind, swapped pages, pressure (µs), throttled periods."""
    counters: dict[str, float] = {"time": time.monotonic()}
    fields = read(root / "proc/stat").partition("\n")[0].split()[1:9]
    counters |= {name: float(value) for name, value in zip(_KINDS, fields, strict=False)}
    for line in read(root / "proc/vmstat").splitlines():
        name, _, value = line.partition(" ")
        if name in ("pswpin", "pswpout"):
            counters[name] = float(value)
    pressure = read(root / "proc/pressure/cpu").partition("\n")[0]
    if "total=" in pressure:
        counters["pressure"] = float(pressure.rpartition("total=")[2])
    group = cgroup_folder(root, "cpu.stat")
    for line in read(group / "cpu.stat").splitlines() if group else ():
        if line.startswith("nr_throttled"):
            counters["throttled"] = float(line.split()[1])
    return counters


def _activity(
    before: Mapping[str, float], after: Mapping[str, float], own: float = 0.0, *, virtual: bool | None = None
) -> Iterator[NoiseFinding]:
    """Yield findings from the change of the counters, without the ``own`` CPU time (s) spent in between."""
    change = {name: after[name] - before[name] for name in before if name in after}
    seconds = max(change["time"], 1e-3)
    ticks = sum(change.get(name, 0) for name in _KINDS)
    yield _other_load(change, ticks, own)
    yield _steal(change, ticks, after.get("steal", 0), virtual=virtual)
    if "pressure" in change:
        share = change["pressure"] / 1e6 / seconds
        state = FindingState.WARN if share > 0.1 else FindingState.OK
        yield NoiseFinding("cpu pressure", f"{share:.0%} of the time", state, "tasks wait for a core", _BUSIEST)
    else:
        yield unknown("cpu pressure", "this kernel has no pressure stall information")
    if "pswpin" in change and "pswpout" in change:
        swapped = change["pswpin"] + change["pswpout"]
        remedy = "ps -eo rss,pid,comm --sort=-rss | head shows what to stop"
        yield NoiseFinding(
            "swap", f"{swapped:.0f} pages", FindingState.WARN if swapped else FindingState.OK, "memory is short", remedy
        )
    else:
        yield unknown("swap")
    if "throttled" in change:
        state = FindingState.BAD if change["throttled"] else FindingState.OK
        yield NoiseFinding("quota", f"throttled {change['throttled']:.0f} times", state, "a cgroup limits the CPU time")
    else:
        yield unknown("quota", "the control group of this process does not count throttling")


_BUSIEST = "ps -eo pcpu,pid,comm --sort=-pcpu | head shows what to stop"


def _other_load(change: Mapping[str, float], ticks: float, own: float) -> NoiseFinding:
    if not ticks:
        return unknown("other load")
    idle = change.get("idle", 0) + change.get("iowait", 0)
    busy = max(0.0, ticks - idle - own * os.sysconf("SC_CLK_TCK")) / ticks
    state = FindingState.WARN if busy > 0.1 else FindingState.OK
    return NoiseFinding("other load", f"{busy:.0%} of all cores", state, "other work shares caches and cores", _BUSIEST)


def _steal(change: Mapping[str, float], ticks: float, ever: float, *, virtual: bool | None) -> NoiseFinding:
    if not ticks or "steal" not in change:
        return unknown("steal")
    if virtual and not ever:
        return unknown("steal", "always 0 since boot, so the host may not report it")
    share = change["steal"] / ticks
    state = FindingState.BAD if share > 0.1 else FindingState.WARN if share > 0.01 else FindingState.OK
    return NoiseFinding("steal", f"{share:.1%}", state, "the host gives this machine's cores to others")


def in_words(spread: float, cpu_share: float) -> str:
    """Return the outcome of the self-test as text; see ``NoiseSelfTest``."""
    return f"slow runs of the same work take {spread:.2f}x as long as usual; it has a core {cpu_share:.0%} of the time"


def describe(seen: Mapping[str, Any]) -> str:
    """Return the data of ``as_json`` as text: the class, the reasons for it, and the unknown values."""
    test = seen["self_test"]
    stamp = "measured on a hostile machine" if seen["class"] == NoiseClass.HOSTILE.value else seen["class"]
    text = f"{stamp}: {in_words(test['spread'], test['cpu_share'])}"
    bad = (FindingState.WARN.value, FindingState.BAD.value)
    shown = [f"{item['name']} {item['value']}" for item in seen["findings"] if item["state"] in bad]
    hidden = [item["name"] for item in seen["findings"] if item["state"] == FindingState.UNKNOWN.value]
    return "; ".join((text, *shown, *([f"unknown: {', '.join(hidden)}"] if hidden else [])))


def as_json(findings: Sequence[NoiseFinding], test: NoiseSelfTest) -> dict[str, Any]:
    """Return plain data for ``perfflow doctor --json`` and for results."""
    return {
        "class": classify(findings, test).value,
        "self_test": {"spread": round(test.spread, 3), "cpu_share": round(test.cpu_share, 3)},
        "findings": [
            {about.name: str(getattr(item, about.name)) for about in fields(NoiseFinding)} for item in findings
        ],
    }
