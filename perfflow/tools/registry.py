"""Adapters by the word after ``uses:``: those that ship with perfflow, then those of installed distributions.

A distribution names its adapters in the entry-point group ``perfflow.tools``. They are found by its metadata, imported
when they are used, and never take the place of perfflow's own.
"""

from __future__ import annotations

import inspect
import sys
from collections.abc import Mapping
from contextlib import redirect_stdout
from dataclasses import dataclass
from functools import cache
from importlib import import_module
from importlib.metadata import EntryPoint, entry_points

from perfflow.tools.adapter import INTERFACES, Adapter

MODULES: Mapping[str, str] = {
    "command": "perfflow.tools.shell.command",
    "hyperfine": "perfflow.tools.shell.hyperfine",
    "massif": "perfflow.tools.valgrind.massif",
    "perf": "perfflow.tools.linux.perf_record",
    "perf-stat": "perfflow.tools.linux.perf_stat",
    "simd-share": "perfflow.tools.linux.simd_share",
    "cargo-flamegraph": "perfflow.tools.linux.cargo_flamegraph",
    "py-spy": "perfflow.tools.python.py_spy",
    "py-spy-dump": "perfflow.tools.python.py_spy_dump",
    "scalene": "perfflow.tools.python.scalene",
    "cprofile": "perfflow.tools.python.cprofile",
    "line-profiler": "perfflow.tools.python.line_profiler",
    "memory-profiler": "perfflow.tools.python.memory_profiler",
    "memray": "perfflow.tools.python.memray",
    "tracemalloc": "perfflow.tools.python.tracemalloc",
    "slow-callbacks": "perfflow.tools.python.slow_callbacks",
    "sql-log": "perfflow.tools.python.sql_log",
    "strace": "perfflow.tools.linux.strace",
    "iostat": "perfflow.tools.linux.iostat",
    "nsys": "perfflow.tools.nvidia.nsys",
    "nvidia-smi": "perfflow.tools.nvidia.nvidia_smi",
    "ncu": "perfflow.tools.nvidia.ncu",
    "same-output": "perfflow.tools.shell.same_output",
    "callgrind": "perfflow.tools.valgrind.callgrind",
    "cachegrind": "perfflow.tools.valgrind.cachegrind",
    "dhat": "perfflow.tools.valgrind.dhat",
    "heaptrack": "perfflow.tools.valgrind.heaptrack",
    "pytest-benchmark": "perfflow.tools.python.pytest_benchmark",
    "google-benchmark": "perfflow.tools.cpp.google_benchmark",
    "torch-profiler": "perfflow.tools.torch.torch_profiler",
    "timeit": "perfflow.tools.python.timeit_statement",
    "pyperf": "perfflow.tools.python.pyperf_runs",
    "asv": "perfflow.tools.python.asv_suite",
    "stream": "perfflow.tools.linux.stream",
    "cargo-build": "perfflow.tools.rust.cargo_build",
    "cargo-bench": "perfflow.tools.rust.cargo_bench",
    "nvcc": "perfflow.tools.nvidia.nvcc",
    "cuda-bench": "perfflow.tools.nvidia.cuda_bench",
    "compute-sanitizer": "perfflow.tools.nvidia.compute_sanitizer",
    "triton-bench": "perfflow.tools.nvidia.triton_bench",
    "mojo-bench": "perfflow.tools.mojo.mojo_bench",
}
GROUP = "perfflow.tools"
OWN = "perfflow"
"""Whose the adapters in MODULES are."""


@dataclass(frozen=True, slots=True)
class Provided:
    """An adapter of an installed distribution: known by its metadata, not imported."""

    name: str
    distribution: str
    entry: EntryPoint


def find(name: str) -> Adapter | None:
    """Return the adapter called ``name``; None where there is none, or ``trouble`` with it."""
    module = MODULES.get(name)
    if module:
        adapter: Adapter = import_module(module).ADAPTER
        return adapter
    found = _imported(name)
    return None if isinstance(found, str) else found


def trouble(name: str) -> str:
    """Why the adapter of an installed distribution cannot be used, '' where it can or is not known."""
    found = None if name in MODULES else _imported(name)
    return found if isinstance(found, str) else ""


def known() -> tuple[str, ...]:
    """Names of all adapters, perfflow's own first; those of distributions are not imported."""
    return (*MODULES, *dict.fromkeys(item.name for item in provided() if item.name not in MODULES))


def origin(name: str) -> str:
    """Whose an adapter is: ``perfflow``, or distributions with their versions."""
    return OWN if name in MODULES else ", ".join(item.distribution for item in provided() if item.name == name)


def shadowed() -> tuple[Provided, ...]:
    """Adapters of distributions that bear the name of perfflow's own, and are therefore left aside."""
    return tuple(item for item in provided() if item.name in MODULES)


@cache
def provided() -> tuple[Provided, ...]:
    """Every adapter that an installed distribution names, by the metadata alone."""
    found = entry_points(group=GROUP)
    return tuple(sorted((_provided(entry) for entry in found), key=lambda item: (item.name, item.distribution)))


def _provided(entry: EntryPoint) -> Provided:
    dist = entry.dist
    return Provided(entry.name, f"{dist.name} {dist.version}" if dist else "an unknown distribution", entry)


@cache
def _imported(name: str) -> Adapter | str | None:
    """Import a distribution's adapter: the adapter, what is wrong with it, or None where nobody names it."""
    offers = {item.entry.value: item for item in provided() if item.name == name}
    if not offers:
        return None
    if len(offers) > 1:
        return f"both {' and '.join(item.distribution for item in offers.values())} provide it: uninstall one of them"
    (offer,) = offers.values()
    who = f"it comes from {offer.distribution} ({offer.entry.value})"
    try:
        with redirect_stdout(sys.stderr):  # which carries verdicts and JSON, not what a stranger's module prints
            found = offer.entry.load()
    except (Exception, SystemExit) as error:  # noqa: BLE001 (a stranger's module may raise anything when imported)
        return f"{who}, whose import fails: {type(error).__name__}: {error}"
    if not isinstance(found, Adapter):
        kind = "a module" if inspect.ismodule(found) else f"a {type(found).__name__}"
        return f"{who}, which is {kind} and not a perfflow.tools.adapter.Adapter: name it as `MODULE:ADAPTER`"
    if found.interface not in INTERFACES:
        known = " and ".join(map(str, INTERFACES))
        return f"{who}, which is written for interface {found.interface}: this perfflow knows {known}"
    return found if found.name == name else f"{who}, whose name is {found.name!r}"
