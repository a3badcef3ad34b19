"""``cachegrind``: count executed instructions, and misses of simulated caches and branch predictors, with valgrind.

The simulated caches have fixed sizes, not those of the machine at hand, so that figures are comparable between
machines. Counts are exactly repeatable, but differ from the misses of a real processor.
"""

from __future__ import annotations

from functools import partial
from typing import Annotated

from pydantic import AliasChoices, Field

from perfflow.model.metrics import builtin_metrics
from perfflow.model.readings import Parsed, Usage
from perfflow.tools.adapter import Call, Invocation, Profiler, ProfilingMethod, Role
from perfflow.tools.valgrind import callgrind

NAME = "cachegrind"

# The events that a metric sums and, for a rate, the events of its denominator. Like cachegrind itself, rates of the
# last level count every instruction and data access as an access to it.
_INSTRUCTIONS = {"instructions": ("Ir", "")}
_CACHES = {
    "cache_misses": ("ILmr DLmr DLmw", ""),
    "cache_misses_i1": ("I1mr", ""),
    "cache_misses_d1": ("D1mr D1mw", ""),
    "cache_miss_rate": ("ILmr DLmr DLmw", "Ir Dr Dw"),
    "cache_miss_rate_d1": ("D1mr D1mw", "Dr Dw"),
}
_BRANCHES = {"branch_misses": ("Bcm Bim", ""), "branch_miss_rate": ("Bcm Bim", "Bc Bi")}
# Other events that can be part of a hotspot's cause.
_CAUSE_EVENTS = {"cache_misses": "last-level misses", "cache_misses_d1": "D1 misses", "branch_misses": "mispredictions"}
_Cache = Annotated[str, Field(pattern=r"^[0-9]{1,12},[0-9]{1,6},[0-9]{1,6}$")]


class CachegrindOptions(callgrind.Seeded):
    """``with`` keys of ``uses: cachegrind``."""

    cache: bool = Field(default=True, description="Simulate caches, for cache_misses.")
    branches: bool = Field(
        default=False,
        validation_alias=AliasChoices("branches", "branch_sim", "branch-sim"),
        description="Simulate branch predictors, for branch_misses.",
    )
    i1: _Cache = Field(default="32768,8,64", description="Simulated first-level instruction cache: bytes,ways,line.")
    d1: _Cache = Field(default="32768,8,64", description="Simulated first-level data cache: bytes,ways,line.")
    ll: _Cache = Field(default="8388608,16,64", description="Simulated last-level cache: bytes,ways,line.")


def invocations(call: Call[CachegrindOptions]) -> tuple[Invocation, ...]:
    """Run the command and its children under valgrind."""
    options = call.options
    simulated = {"cache": options.cache, "branch": options.branches}
    flags = (
        *(f"--{name}-sim={'yes' if wanted else 'no'}" for name, wanted in simulated.items()),
        *(f"--I1={options.i1}", f"--D1={options.d1}", f"--LL={options.ll}"),
    )
    return (callgrind.valgrind_invocation(call, NAME, *flags, env=options.env),)


def parse(call: Call[CachegrindOptions], usage: Usage) -> Parsed:
    """Read the sums over all processes, and the functions that executed the instructions.

    Raises ToolOutputError if there is no file, or if a file is cut, invalid or does not add up.
    """
    options = call.options
    costs_of_processes = callgrind.costs_of_a_run(call, NAME)
    figures_of = _INSTRUCTIONS | (_CACHES if options.cache else {}) | (_BRANCHES if options.branches else {})
    figures: dict[str, float] = {}
    for metric, (events, whole) in figures_of.items():
        count, of = (sum(costs.total(*text.split()) for costs in costs_of_processes) for text in (events, whole))
        # No rate if its denominator is 0.
        if of or not whole:
            figures[metric] = count / of if whole else count
    warnings = callgrind.sum_warnings([costs.command for costs in costs_of_processes], "the figures are")
    if options.branches:
        warnings = ("branch_misses are simulated and differ from those of a real processor", *warnings)
    if options.cache:
        caches = f"I1 {options.i1}, D1 {options.d1}, LL {options.ll} (bytes, ways, line); cache_misses are those of LL"
        warnings = (f"cache misses are simulated with caches {caches}", *warnings)
    others = {
        f"simulated {name}": figures_of[metric][0].split()
        for metric, name in _CAUSE_EVENTS.items()
        if metric in figures_of
    }
    return callgrind.parsed_of(call, costs_of_processes, figures, warnings, others)


ADAPTER = callgrind.valgrind_tool(
    name=NAME,
    role=Role.MEASURE,
    profiler=Profiler(method=ProfilingMethod.COUNTS, sees="instructions"),
    options=CachegrindOptions,
    metrics=builtin_metrics(*_INSTRUCTIONS, *_CACHES, *_BRANCHES),
    invocations=invocations,
    outputs=partial(callgrind.valgrind_files, tool=NAME),
    parse=parse,
)
