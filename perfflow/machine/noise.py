"""How noisy this machine is right now: what the kernel tells without root, and a self-test of 60 fixed slices of work.

What cannot be seen is reported as unknown, never as ok: a virtual machine does not see its host's governor or heat.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import Any

from perfflow.statistics import quantile

SLICES = 60
"""Pieces of identical work in the self-test."""
_SLICE_SECONDS = 0.004
WATCHED_SECONDS = 1.0


class State(StrEnum):
    """What a fact means for measuring."""

    OK = "ok"
    WARN = "warn"
    BAD = "bad"
    UNKNOWN = "unknown"


class NoiseClass(StrEnum):
    """How to measure here: as always, with patience, or by CPU time and with a larger budget."""

    QUIET = "quiet"
    BUSY = "busy"
    HOSTILE = "hostile"


@dataclass(frozen=True, slots=True)
class Finding:
    """One fact about noise: what was seen, what it means, and the command that would improve it ('' where none can)."""

    name: str
    value: str
    state: State
    why: str = ""
    remedy: str = ""


@dataclass(frozen=True, slots=True)
class SelfTest:
    """Spread of identical work: ``spread`` is p95/p50 of wall time, ``cpu_share`` CPU time over wall time."""

    spread: float
    cpu_share: float


def self_test(now: Callable[[], float] = time.perf_counter, cpu: Callable[[], float] = time.process_time) -> SelfTest:
    """Time identical slices of a few milliseconds each."""
    count = _calibrated(now)
    walls = []
    start_cpu, start = cpu(), now()
    for _ in range(SLICES):
        began = now()
        _work(count)
        walls.append(now() - began)
    total = now() - start
    return SelfTest(quantile(walls, 0.95) / quantile(walls, 0.5), min(1.0, (cpu() - start_cpu) / total))


def _work(count: int) -> int:
    total = 0
    for number in range(count):
        total += number * number
    return total


def _calibrated(now: Callable[[], float]) -> int:
    """Iterations that take one slice when nothing disturbs: the best of a few tries."""
    tries = []
    for _ in range(5):
        began = now()
        _work(20_000)
        tries.append(now() - began)
    # Bounded for clocks that stand still or go back, as those of some virtual machines do.
    return min(10**6, max(1000, int(20_000 * _SLICE_SECONDS / max(min(tries), 1e-6))))


def examine(root: Path = Path("/"), pause: Callable[[float], None] = time.sleep) -> list[Finding]:
    """Look at everything that moves timings, over one second for what is a rate. ``root`` is for tests."""
    before = _counters(root)
    pause(WATCHED_SECONDS)
    after = _counters(root)
    return [*_activity(before, after), *_settings(root)]


def classify(findings: list[Finding], test: SelfTest) -> NoiseClass:
    """Hostile where identical work spreads by half or loses a quarter of the core; busy where something else runs."""
    if test.spread > 1.5 or test.cpu_share < 0.75 or any(item.state is State.BAD for item in findings):
        return NoiseClass.HOSTILE
    warned = any(item.state is State.WARN and item.name in _BUSY_FACTS for item in findings)
    return NoiseClass.BUSY if warned or test.spread > 1.1 or test.cpu_share < 0.95 else NoiseClass.QUIET


_BUSY_FACTS = ("other load", "steal", "cpu pressure", "quota", "swap")


def _text(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8", errors="replace")
    except OSError:
        return ""


def _counters(root: Path) -> dict[str, float]:
    """Cumulative counters by name: jiffies by kind, pages swapped, microseconds of pressure, periods throttled."""
    found: dict[str, float] = {"time": time.monotonic()}
    fields = _text(root / "proc/stat").partition("\n")[0].split()[1:9]
    names = ("user", "nice", "system", "idle", "iowait", "irq", "softirq", "steal")
    found |= {name: float(value) for name, value in zip(names, fields, strict=False)}
    for line in _text(root / "proc/vmstat").splitlines():
        name, _, value = line.partition(" ")
        if name in ("pswpin", "pswpout"):
            found[name] = float(value)
    pressure = _text(root / "proc/pressure/cpu").partition("\n")[0]
    if "total=" in pressure:
        found["pressure"] = float(pressure.rpartition("total=")[2])
    for line in _text(root / "sys/fs/cgroup/cpu.stat").splitlines():
        if line.startswith("nr_throttled"):
            found["throttled"] = float(line.split()[1])
    return found


def _activity(before: Mapping[str, float], after: Mapping[str, float]) -> Iterator[Finding]:
    """What happened in the second that was watched."""
    change = {name: after[name] - before[name] for name in before if name in after}
    seconds = max(change["time"], 1e-3)
    ticks = sum(change.get(name, 0) for name in ("user", "nice", "system", "idle", "iowait", "irq", "softirq", "steal"))
    if ticks:
        busy = (ticks - change.get("idle", 0) - change.get("iowait", 0)) / ticks
        state = State.WARN if busy > 0.1 else State.OK
        yield Finding(
            "other load", f"{busy:.0%} of all cores", state, "other work shares caches and cores", "stop other work"
        )
        steal = change.get("steal", 0) / ticks
        state = State.BAD if steal > 0.1 else State.WARN if steal > 0.01 else State.OK
        yield Finding("steal", f"{steal:.1%}", state, "the host gives this machine's cores to others")
    else:
        yield Finding("other load", "unknown", State.UNKNOWN)
        yield Finding("steal", "unknown", State.UNKNOWN)
    if "pressure" in change:
        share = change["pressure"] / 1e6 / seconds
        yield Finding(
            "cpu pressure", f"{share:.0%} of the time", State.WARN if share > 0.1 else State.OK, "tasks wait for a core"
        )
    else:
        yield Finding("cpu pressure", "unknown", State.UNKNOWN, "this kernel has no pressure stall information")
    swapped = change.get("pswpin", 0) + change.get("pswpout", 0)
    yield Finding(
        "swap", f"{swapped:.0f} pages", State.WARN if swapped else State.OK, "memory is short", "free some memory"
    )
    if "throttled" in change:
        state = State.BAD if change["throttled"] else State.OK
        yield Finding("quota", f"throttled {change['throttled']:.0f} times", state, "a cgroup limits the CPU time")


def _settings(root: Path) -> Iterator[Finding]:
    """What is set, and what the processor and the kernel are."""
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    yield Finding("cores", str(cores), State.OK if cores > 1 else State.WARN, "one core is shared with everything else")
    yield _governor(root)
    yield _turbo(root)
    yield Finding("thermal throttling", *_throttling(root))
    aslr = _text(root / "proc/sys/kernel/randomize_va_space").strip()
    remedy = "sysctl -w kernel.randomize_va_space=2"
    yield _expected("address randomization", aslr, {"2": "on"}, "off, one memory layout is measured for all", remedy)
    smt = _text(root / "sys/devices/system/cpu/smt/active").strip()
    yield _expected(
        "hyper-threads",
        smt,
        {"0": "off"},
        "two threads share one core",
        "echo off > /sys/devices/system/cpu/smt/control",
    )
    clock = _text(root / "sys/devices/system/clocksource/clocksource0/current_clocksource").strip()
    yield _expected(
        "clock source", clock, {name: name for name in ("tsc", "kvm-clock", "arch_sys_counter")}, "reading it is slow"
    )
    pages = _text(root / "sys/kernel/mm/transparent_hugepage/enabled")
    chosen = pages.partition("[")[2].partition("]")[0]
    yield Finding("transparent huge pages", chosen or "unknown", State.OK if chosen else State.UNKNOWN)
    counters = any(
        (root / "sys/bus/event_source/devices" / name).exists() for name in ("cpu", "cpu_core", "armv8_pmuv3_0")
    )
    yield Finding(
        "hardware counters", "yes" if counters else "none", State.OK, "" if counters else "perf samples by a timer"
    )
    queued = _text(root / "proc/self/schedstat").strip()
    state = State.OK if queued else State.WARN
    yield Finding(
        "schedstat", "yes" if queued else "none", state, "" if queued else "waiting for a core cannot be told apart"
    )
    yield from _power(root)


def _expected(name: str, value: str, good: Mapping[str, str], why: str, remedy: str = "") -> Finding:
    if not value:
        return Finding(name, "unknown", State.UNKNOWN)
    if value in good:
        return Finding(name, good[value], State.OK)
    return Finding(name, value, State.WARN, why, remedy)


def _governor(root: Path) -> Finding:
    value = _text(root / "sys/devices/system/cpu/cpu0/cpufreq/scaling_governor").strip()
    remedy = "perfflow doctor --fix (needs root): sets the performance governor"
    return _expected(
        "frequency governor", value, {"performance": "performance"}, "the clock rate follows the load", remedy
    )


def _turbo(root: Path) -> Finding:
    off = {"intel_pstate/no_turbo": "1", "cpufreq/boost": "0"}
    for name, wanted in off.items():
        value = _text(root / "sys/devices/system/cpu" / name).strip()
        if value:
            on = value != wanted
            return Finding(
                "turbo", "on" if on else "off", State.WARN if on else State.OK, "the clock rate follows the heat"
            )
    return Finding("turbo", "unknown", State.UNKNOWN)


def _throttling(root: Path) -> tuple[str, State, str]:
    text = _text(root / "sys/devices/system/cpu/cpu0/thermal_throttle/core_throttle_count").strip()
    if not text:
        return "unknown", State.UNKNOWN, ""
    return f"{text} times since boot", State.OK if text == "0" else State.WARN, "the processor got too hot"


def _power(root: Path) -> Iterator[Finding]:
    for supply in sorted((root / "sys/class/power_supply").glob("*")):
        if _text(supply / "status").strip() == "Discharging":
            yield Finding("power", "on battery", State.WARN, "the clock rate is limited", "plug it in")


def as_json(findings: list[Finding], test: SelfTest) -> dict[str, Any]:
    """Plain data for ``perfflow doctor --json`` and for results."""
    return {
        "class": classify(findings, test).value,
        "self_test": {"spread": round(test.spread, 3), "cpu_share": round(test.cpu_share, 3)},
        "findings": [{name: str(getattr(item, name)) for name in Finding.__slots__} for item in findings],
    }
