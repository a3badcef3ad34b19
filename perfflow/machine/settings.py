"""Check, change and restore settings of the processor and the kernel that affect timings.

``settings`` reads settings and properties that do not change by themselves. ``fix`` changes them on request to make a
machine quieter, and ``restore`` restores them exactly, also after a crash: the original values are on disk before
anything is changed. A second ``fix`` adds to that file and never replaces values, so ``restore`` always writes the
originals. Values that it could not restore stay in the file.
"""

from __future__ import annotations

import itertools
import json
import os
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path

from perfflow.machine.noise_findings import FindingState, NoiseFinding, chosen, expected, is_virtual, read, unknown
from perfflow.model.errors import UserError

_CPUS = "sys/devices/system/cpu"
_PAGES = "sys/kernel/mm/transparent_hugepage/enabled"
_CLOCK = "sys/devices/system/clocksource/clocksource0"
_FIX = "sudo perfflow doctor --fix"
_GOOD_CLOCKS = ("tsc", "kvm-clock", "arch_sys_counter")
_COARSE = 1_000
"""Largest step of a clock (ns) that can tell short programs apart."""
_OPEN_TO_ALL = 2
"""Highest kernel.perf_event_paranoid at which users may profile their own programs."""


def settings(root: Path) -> Iterator[NoiseFinding]:
    """Yield a finding for each setting. ``root`` is for tests."""
    virtual = is_virtual(root)
    yield _cores()
    yield _load(root)
    yield _quota(root)
    yield _hypervisor(virtual)
    yield _governor(root)
    yield _turbo(root)
    yield _throttling(root)
    yield _hyper_threads(root, virtual)
    yield expected(
        "address randomization",
        read(root / "proc/sys/kernel/randomize_va_space"),
        {"2": "on"},
        "if off, all runs measure the same memory layout",
        "sudo sysctl -w kernel.randomize_va_space=2",
    )
    yield expected(
        "transparent huge pages",
        chosen(read(root / _PAGES)),
        {"madvise": "madvise", "never": "never"},
        "whether a process gets huge pages depends on how fragmented memory is",
        f"echo madvise | sudo tee /{_PAGES}",
    )
    yield _clock_source(root)
    yield timer_step()
    yield _counters(root)
    yield _access(root)
    yield _schedstat(root)
    yield _power(root, virtual)


def _cores() -> NoiseFinding:
    total = os.cpu_count() or 1
    usable = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else total
    if usable == 1:
        return NoiseFinding("cores", f"1 of {total}", FindingState.WARN, "all programs share one core")
    return NoiseFinding("cores", f"{usable} of {total}", FindingState.OK)


def _load(root: Path) -> NoiseFinding:
    first = read(root / "proc/loadavg").partition(" ")[0]
    try:
        load = float(first)
    except ValueError:
        return unknown("load average")
    busy = load > (os.cpu_count() or 1)
    why = "in the last minute more tasks were ready to run than there are cores"
    remedy = "ps -eo pcpu,pid,comm --sort=-pcpu | head shows what runs"
    return NoiseFinding("load average", f"{load:.2f}", FindingState.WARN if busy else FindingState.OK, why, remedy)


def cgroup_folder(root: Path, file: str) -> Path | None:
    """Return the folder of this process's CPU cgroup (version 2 or 1) that has ``file``, None if there is none."""
    for line in read(root / "proc/self/cgroup").splitlines():
        _, controllers, path = [*line.split(":", 2), "", ""][:3]
        if controllers and "cpu" not in controllers.split(","):
            continue
        for mount in ("", "unified") if not controllers else (controllers, "cpu"):
            folder = root / "sys/fs/cgroup" / mount / path.lstrip("/")
            if (folder / file).is_file():
                return folder
    return None


def _quota(root: Path) -> NoiseFinding:
    """Return the CPU limit of the control group. The root group of version 2 has no limit and no such file."""
    folder = cgroup_folder(root, "cpu.max")
    if folder:
        quota, _, period = read(folder / "cpu.max").partition(" ")
        return _limit(quota, period, f"echo max | sudo tee {folder / 'cpu.max'}")
    folder = cgroup_folder(root, "cpu.cfs_quota_us")
    if folder:
        quota, period = (read(folder / name) for name in ("cpu.cfs_quota_us", "cpu.cfs_period_us"))
        return _limit("max" if quota == "-1" else quota, period, f"echo -1 | sudo tee {folder / 'cpu.cfs_quota_us'}")
    lines = read(root / "proc/self/cgroup").splitlines()
    return NoiseFinding("cpu limit", "none", FindingState.OK) if lines == ["0::/"] else unknown("cpu limit")


def _limit(quota: str, period: str, remedy: str) -> NoiseFinding:
    if quota == "max":
        return NoiseFinding("cpu limit", "none", FindingState.OK)
    try:
        cores = float(quota) / float(period)
    except (ValueError, ZeroDivisionError):
        return unknown("cpu limit")
    why = "a control group pauses programs that have used up their share"
    return NoiseFinding("cpu limit", f"{cores:.2g} cores", FindingState.WARN, why, remedy)


def _hypervisor(virtual: bool | None) -> NoiseFinding:
    if virtual is None:
        return unknown("hypervisor")
    if virtual:
        why = "the host's clock rate, temperature and other guests are not visible from here"
        return NoiseFinding("hypervisor", "virtual machine", FindingState.WARN, why)
    return NoiseFinding("hypervisor", "none", FindingState.OK)


def _governor(root: Path) -> NoiseFinding:
    """Return the governor of the first core that does not have the wanted one."""
    values = [read(path) for path in sorted((root / _CPUS).glob("cpu*/cpufreq/scaling_governor"))]
    values = [value for value in values if value]
    worst = next((value for value in values if value != "performance"), values[0] if values else "")
    return expected(
        "frequency governor", worst, {"performance": "performance"}, "the clock rate changes with the load", _FIX
    )


def _turbo(root: Path) -> NoiseFinding:
    for name, off in {"intel_pstate/no_turbo": "1", "cpufreq/boost": "0"}.items():
        value = read(root / _CPUS / name)
        if value == off:
            return NoiseFinding("turbo", "off", FindingState.OK)
        if value:
            return NoiseFinding("turbo", "on", FindingState.WARN, "the clock rate changes with the temperature", _FIX)
    return unknown("turbo")


def _throttling(root: Path) -> NoiseFinding:
    text = read(root / _CPUS / "cpu0/thermal_throttle/core_throttle_count")
    if not text:
        return unknown("thermal throttling")
    state = FindingState.OK if text == "0" else FindingState.WARN
    return NoiseFinding("thermal throttling", f"{text} times since boot", state, "the processor got too hot")


def _hyper_threads(root: Path, virtual: bool | None) -> NoiseFinding:
    active = read(root / _CPUS / "smt/active")
    if active == "1":
        remedy = f"echo off | sudo tee /{_CPUS}/smt/control"
        return NoiseFinding("hyper-threads", "on", FindingState.WARN, "two threads share one core", remedy)
    if active == "0" and virtual:
        # A guest sees no siblings. Only the host knows whether the guest's cores are threads of one core.
        return unknown("hyper-threads", "a virtual machine cannot see whether its cores share a physical core")
    return NoiseFinding("hyper-threads", "off", FindingState.OK) if active == "0" else unknown("hyper-threads")


def _clock_source(root: Path) -> NoiseFinding:
    value = read(root / _CLOCK / "current_clocksource")
    available = read(root / _CLOCK / "available_clocksource").split()
    better = next((name for name in _GOOD_CLOCKS if name in available), "")
    remedy = f"echo {better} | sudo tee /{_CLOCK}/current_clocksource" if better else ""
    return expected("clock source", value, {name: name for name in _GOOD_CLOCKS}, "reading the clock is slow", remedy)


def timer_step(now: Callable[[], int] = time.perf_counter_ns) -> NoiseFinding:
    """Return the smallest step of the clock in 1000 readings."""
    looks = [now() for _ in range(1000)]
    steps = [after - before for before, after in itertools.pairwise(looks) if after > before]
    if not steps:
        return NoiseFinding("timer step", "stands still", FindingState.BAD, "the clock did not change in 1000 readings")
    step = min(steps)
    why = "too coarse to compare short programs"
    return NoiseFinding("timer step", f"{step} ns", FindingState.OK if step <= _COARSE else FindingState.WARN, why)


def _counters(root: Path) -> NoiseFinding:
    devices = root / "sys/bus/event_source/devices"
    if not devices.is_dir():
        return unknown("hardware counters")
    if any((devices / name).exists() for name in ("cpu", "cpu_core", "armv8_pmuv3_0")):
        return NoiseFinding("hardware counters", "yes", FindingState.OK)
    why = "no cycles or cache misses, and perf samples by a timer; use cachegrind to count"
    return NoiseFinding("hardware counters", "none", FindingState.WARN, why)


def _access(root: Path) -> NoiseFinding:
    text = read(root / "proc/sys/kernel/perf_event_paranoid")
    if not text.lstrip("-").isdigit():
        return unknown("perf access")
    closed = int(text) > _OPEN_TO_ALL
    state = FindingState.WARN if closed else FindingState.OK
    return NoiseFinding("perf access", f"level {text}", state, "users are not allowed to profile", _FIX)


def _schedstat(root: Path) -> NoiseFinding:
    if read(root / "proc/self/schedstat"):
        return NoiseFinding("schedstat", "yes", FindingState.OK)
    return NoiseFinding("schedstat", "none", FindingState.WARN, "the time spent waiting for a core is unknown")


def _power(root: Path, virtual: bool | None) -> NoiseFinding:
    supplies = sorted((root / "sys/class/power_supply").glob("*"))
    if any(read(supply / "status") == "Discharging" for supply in supplies):
        return NoiseFinding("power", "on battery", FindingState.WARN, "the clock rate is limited", "plug it in")
    if supplies:
        return NoiseFinding("power", "mains", FindingState.OK)
    # A machine without a battery lists no supply, but neither does a virtual machine on a laptop.
    seen = (root / "sys/class/power_supply").is_dir() and virtual is False
    return NoiseFinding("power", "no battery", FindingState.OK) if seen else unknown("power")


WANTED: Mapping[str, str] = {
    "sys/devices/system/cpu/cpu*/cpufreq/scaling_governor": "performance",
    "sys/devices/system/cpu/intel_pstate/no_turbo": "1",
    "sys/devices/system/cpu/cpufreq/boost": "0",
    "sys/kernel/mm/transparent_hugepage/enabled": "madvise",
    "proc/sys/kernel/randomize_va_space": "2",
    "proc/sys/kernel/perf_event_paranoid": "1",
}
"""Globs of files below the root, and the value for each. Cores are never disabled: that would be another machine."""
_ALSO_FINE: Mapping[str, tuple[str, ...]] = {
    "sys/kernel/mm/transparent_hugepage/enabled": ("never",),
    "proc/sys/kernel/perf_event_paranoid": ("0", "-1"),
}
STATE = Path("/var/lib/perfflow/tuning.json")
_AS_ROOT = "run it as root, on the machine itself: sudo perfflow doctor"


def wanted(root: Path = Path("/")) -> list[tuple[Path, str, str]]:
    """Return (file, value, wanted value) of each setting that makes this machine noisy. Changes nothing."""
    return [
        (path, before, after)
        for pattern, after in WANTED.items()
        for path in sorted(root.glob(pattern))
        # A value that cannot be read (the governor of a core that is off) could not be restored.
        if (before := chosen(read(path))) not in ("", after, *_ALSO_FINE.get(pattern, ()))
    ]


def fix(changes: Sequence[tuple[Path, str, str]], state: Path = STATE) -> None:
    """Make the changes that ``wanted`` returned. Raises UserError if a value cannot be set."""
    if changes:
        _remember({**{str(path): before for path, before, _ in changes}, **_remembered(state)}, state)
    failed = [said for path, _, after in changes if (said := _set(path, after))]
    if failed:
        raise UserError.of("; ".join(failed), f"{_AS_ROOT} --fix (--restore undoes the values that were set)")


def restore(state: Path = STATE) -> list[tuple[Path, str]]:
    """Restore the values from before ``fix``; return (file, value). Empty if there is no state file.

    Raises UserError with the values that could not be restored, which stay in the state file.
    """
    originals = _remembered(state)
    failed = {name: said for name, value in originals.items() if (said := _set(Path(name), value))}
    if failed:
        _remember({name: originals[name] for name in failed}, state)
        raise UserError.of("; ".join(failed.values()), f"{_AS_ROOT} --restore")
    if originals:
        state.unlink()
    return [(Path(name), value) for name, value in originals.items()]


def _remember(known: Mapping[str, str], state: Path) -> None:
    fresh = state.with_suffix(".new")
    try:
        state.parent.mkdir(parents=True, exist_ok=True)
        with fresh.open("w", encoding="utf-8") as stream:
            stream.write(json.dumps(known, indent=1) + "\n")
            stream.flush()
            os.fsync(stream.fileno())
        fresh.replace(state)
    except OSError as error:
        raise UserError.of(f"{state}: {error.strerror}", f"{_AS_ROOT} --fix") from error


def _remembered(state: Path) -> dict[str, str]:
    try:
        text = state.read_text(encoding="utf-8")
    except FileNotFoundError:
        return {}
    except OSError as error:
        raise UserError.of(f"{state}: {error.strerror}", f"{_AS_ROOT} --restore") from error
    damaged = UserError.of(f"{state}: damaged, so the original values are unknown", f"check it, then: sudo rm {state}")
    try:
        known = json.loads(text)
    except ValueError as error:
        raise damaged from error
    if not isinstance(known, dict):
        raise damaged
    return {str(name): str(value) for name, value in known.items()}


def _set(path: Path, value: str) -> str:
    """Write one value; return '' or why it failed."""
    try:
        path.write_text(value, encoding="utf-8")
    except OSError as error:
        return f"{path}: {error.strerror}"
    return ""
