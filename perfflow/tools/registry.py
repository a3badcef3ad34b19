"""Find adapters by the word after ``uses:``, first those of perfflow, then those of installed distributions.

A distribution names its adapters in the entry-point group ``perfflow.tools``. perfflow finds them by the metadata and
imports them when they are used. They never replace adapters of perfflow.
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
from pathlib import Path
from types import ModuleType

from perfflow.tools.adapter import INTERFACES, Adapter, ProfilingMethod

_FAMILIES: Mapping[str, str] = {
    "shell": "command hyperfine same-output",
    "linux": "perf perf-stat simd-share cargo-flamegraph strace iostat stream",
    "valgrind": "massif callgrind cachegrind dhat heaptrack",
    "python": "py-spy py-spy-dump scalene cprofile line-profiler memory-profiler memray tracemalloc slow-callbacks "
    "sql-log pytest-benchmark timeit pyperf asv",
    "rust": "cargo-build cargo-bench",
    "cpp": "google-benchmark catch2 nanobench",
    "go": "go-bench go-pprof",
    "node": "node-bench node-profile",
    "jvm": "jmh jfr",
    "torch": "torch-profiler",
    "nvidia": "nsys nvidia-smi ncu nvcc cuda-bench compute-sanitizer triton-bench",
    "mojo": "mojo-bench",
    "load": "oha vegeta wrk pgbench sqlite3",
    "size": "size build-time",
}
"""The tools of each family. A module has the name of its tool, with _ for -."""
FILES: Mapping[str, Path] = {
    name: Path(__file__).parent / family / f"{name}.yaml"
    for family in ("load", "size")
    for name in _FAMILIES[family].split()
}
"""The tools of perfflow that are tool files."""
MODULES: Mapping[str, str] = {
    name: f"{__package__}.{family}.{name.replace('-', '_')}"
    for family, names in _FAMILIES.items()
    for name in names.split()
}
_READER = "perfflow.workflow.declared_tool"
GROUP = "perfflow.tools"
OWN = "perfflow"
"""The origin of the adapters in MODULES."""


@dataclass(frozen=True)
class Provided:
    """An adapter of an installed distribution, known from its metadata and not imported."""

    name: str
    distribution: str
    entry: EntryPoint


def find(name: str) -> Adapter | None:
    """Return the adapter called ``name``; None if it does not exist, or cannot be used (see ``trouble``)."""
    found = _imported(name)
    return found if isinstance(found, Adapter) else None


def profilers(metric: str, *, python: bool = False) -> tuple[Adapter, ...]:
    """Return perfflow's profilers of a metric, the best first; with ``python`` those of a Python program's time."""
    ranked = []
    for adapter in filter(None, map(find, MODULES)):
        known = adapter.profiler
        rank = (known.python if python else known.follows.get(metric)) if known else None
        if rank is not None:
            ranked.append((rank, adapter))
    return tuple(adapter for _, adapter in sorted(ranked, key=lambda item: item[0]))


def profiling_method(name: str) -> ProfilingMethod | None:
    """Return the method of the profiler called ``name``; None if it is unknown or not a profiler."""
    adapter = find(name)
    return adapter.profiler.method if adapter and adapter.profiler else None


def trouble(name: str) -> str:
    """Return why the adapter of an installed distribution cannot be used; '' if it can be used or is unknown."""
    found = None if name in MODULES else _imported(name)
    return found if isinstance(found, str) else ""


def known() -> tuple[str, ...]:
    """Return the names of all adapters, those of perfflow first, without importing those of distributions."""
    return (*MODULES, *dict.fromkeys(item.name for item in provided() if item.name not in MODULES))


def origin(name: str) -> str:
    """Return the origin of an adapter: ``perfflow``, or distributions with their versions."""
    return OWN if name in MODULES else ", ".join(item.distribution for item in provided() if item.name == name)


def about(adapter: Adapter) -> str:
    """Return what an adapter says of itself, else the first paragraph of its module's docstring; '' if it has none."""
    if adapter.description:
        return adapter.description
    text = (inspect.getdoc(inspect.getmodule(adapter.parse)) or "").split("\n\n")[0]
    return " ".join(text.split()).removeprefix(f"``{adapter.name}``: ")


def shadowed() -> tuple[Provided, ...]:
    """Return adapters of distributions that are ignored because an adapter of perfflow has the same name."""
    return tuple(item for item in provided() if item.name in MODULES)


@cache
def provided() -> tuple[Provided, ...]:
    """Return every adapter that the metadata of installed distributions names."""
    found = entry_points(group=GROUP)
    return tuple(sorted((_provided(entry) for entry in found), key=lambda item: (item.name, item.distribution)))


def _provided(entry: EntryPoint) -> Provided:
    dist = entry.dist
    return Provided(entry.name, f"{dist.name} {dist.version}" if dist else "an unknown distribution", entry)


@cache
def _imported(name: str) -> Adapter | str | None:
    """Import an adapter and return it, or the reason why that of a distribution cannot be used, or None if unknown."""
    if name in MODULES:
        # Tool files have expressions, so what reads them is above this package.
        module = import_module(_READER if name in FILES else MODULES[name])
        adapter: Adapter = module.of_perfflow(name).adapter if name in FILES else module.ADAPTER
        return adapter
    offers = {item.entry.value: item for item in provided() if item.name == name}
    if not offers:
        return None
    if len(offers) > 1:
        return f"both {' and '.join(item.distribution for item in offers.values())} provide it: uninstall one of them"
    (offer,) = offers.values()
    who = f"it comes from {offer.distribution} ({offer.entry.value})"
    try:
        with redirect_stdout(sys.stderr):  # stdout is for perfflow's verdicts and JSON only
            provided_adapter = offer.entry.load()
    except (Exception, SystemExit) as error:  # noqa: BLE001 (a third-party module may raise anything when imported)
        return f"{who}, whose import fails: {type(error).__name__}: {error}"
    if not isinstance(provided_adapter, Adapter):
        kind = "a module" if isinstance(provided_adapter, ModuleType) else f"a {type(provided_adapter).__name__}"
        return f"{who}, which is {kind} and not a perfflow.tools.adapter.Adapter: name it as `MODULE:ADAPTER`"
    if provided_adapter.interface not in INTERFACES:
        known = " and ".join(map(str, INTERFACES))
        return f"{who}, which is written for interface {provided_adapter.interface}: this perfflow supports {known}"
    return provided_adapter if provided_adapter.name == name else f"{who}, whose name is {provided_adapter.name!r}"
