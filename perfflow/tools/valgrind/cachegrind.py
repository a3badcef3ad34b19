"""``cachegrind``: instructions executed, and the misses of simulated caches and branch predictors, by valgrind.

The simulated processor has caches of fixed sizes, never those of the machine at hand, so that figures compare between
machines. Counts repeat to the digit; what a real processor would miss is another figure.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, cast

from pydantic import AliasChoices, Field

from perfflow.errors import ToolOutputError
from perfflow.samples.metrics import of_perfflow
from perfflow.samples.readings import Parsed, Profile, Reading, Usage
from perfflow.tools import python_command
from perfflow.tools.adapter import Adapter, Call, CommandOptions, Invocation, Role
from perfflow.tools.valgrind import valgrind_costs, valgrind_hotspots, valgrind_run

NAME = "cachegrind"

_LAST_LEVEL = ("ILmr", "DLmr", "DLmw")
_DATA_FIRST_LEVEL = ("D1mr", "D1mw")
_DATA = ("Dr", "Dw")
_BRANCHES = ("Bcm", "Bim")
_BRANCHED = ("Bc", "Bi")
_Cache = Annotated[str, Field(pattern=r"^[0-9]{1,12},[0-9]{1,6},[0-9]{1,6}$")]


class Options(CommandOptions):
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
    hash_seed: bool = Field(default=True, description="Run Python with PYTHONHASHSEED=0, so that its counts repeat.")


def invocations(call: Call) -> tuple[Invocation, ...]:
    """Run the command and its children under valgrind."""
    options = cast(Options, call.options)
    flags = (
        *(f"--cache-sim={_yes(options.cache)}", f"--branch-sim={_yes(options.branches)}"),
        *(f"--I1={options.i1}", f"--D1={options.d1}", f"--LL={options.ll}"),
    )
    env = {"PYTHONHASHSEED": "0"} if options.hash_seed else {}
    return (valgrind_run.invocation(call, NAME, *flags, env=env),)


def outputs(call: Call) -> tuple[Path, ...]:
    """The files that the processes left; ``parse`` misses them if there are none."""
    return valgrind_run.files(call, NAME)


def parse(call: Call, usage: Usage) -> Parsed:
    """Read the sums over all processes, and the functions that executed the instructions.

    Raises ToolOutputError if there is no file, or if one is cut, nonsense or does not add up.
    """
    found = [valgrind_costs.read(path) for path in valgrind_run.files_of_a_run(call, NAME)]
    if not _sum(found, ("Ir",)):
        raise ToolOutputError("cachegrind counted no instruction: the program turned its instrumentation off")
    sums = {metric: _sum(found, events) for metric, events in _events(call).items()}
    largest = max(found, key=lambda costs: (costs.total("Ir"), costs.path.name))
    return Parsed(
        tuple(Reading(metric, value) for metric, value in {**sums, **_rates(found, call)}.items()),
        valgrind_hotspots.hotspots_of(found, NAME, _misses(call)),
        (Profile(largest.path.name, NAME),),
        (*_simulated(call), *_summed(found, call)),
        valgrind_hotspots.costs_of(found),
    )


def _yes(flag: bool) -> str:
    return "yes" if flag else "no"


def _sum(found: Sequence[valgrind_costs.Costs], events: Sequence[str]) -> float:
    return sum(costs.total(*events) for costs in found)


def _events(call: Call) -> dict[str, tuple[str, ...]]:
    """Return the file's events that make up each metric that is a count."""
    options = cast(Options, call.options)
    events: dict[str, tuple[str, ...]] = {"instructions": ("Ir",)}
    if options.cache:
        events |= {"cache_misses": _LAST_LEVEL, "cache_misses_i1": ("I1mr",), "cache_misses_d1": _DATA_FIRST_LEVEL}
    if options.branches:
        events["branch_misses"] = _BRANCHES
    return events


def _rates(found: Sequence[valgrind_costs.Costs], call: Call) -> dict[str, float]:
    """Return misses per access or per branch, as cachegrind's own report has them; none where there is nothing to miss.

    The last level is accessed, by that reckoning, by every instruction and every access to data.
    """
    options = cast(Options, call.options)
    parts: dict[str, tuple[Sequence[str], Sequence[str]]] = {}
    if options.cache:
        parts["cache_miss_rate"] = (_LAST_LEVEL, ("Ir", *_DATA))
        parts["cache_miss_rate_d1"] = (_DATA_FIRST_LEVEL, _DATA)
    if options.branches:
        parts["branch_miss_rate"] = (_BRANCHES, _BRANCHED)
    return {metric: _sum(found, missed) / whole for metric, (missed, of) in parts.items() if (whole := _sum(found, of))}


def _misses(call: Call) -> dict[str, tuple[str, ...]]:
    """What a hotspot may have much of, beside instructions, by how it is called."""
    events = _events(call)
    called = {"cache_misses": "last-level misses", "cache_misses_d1": "D1 misses", "branch_misses": "mispredictions"}
    return {f"simulated {name}": events[metric] for metric, name in called.items() if metric in events}


def _simulated(call: Call) -> tuple[str, ...]:
    options = cast(Options, call.options)
    found = []
    if options.cache:
        found.append(
            f"cache misses are simulated, of caches I1 {options.i1}, D1 {options.d1} and, which cache_misses counts, "
            f"LL {options.ll} (bytes, ways, line)"
        )
    if options.branches:
        found.append("branch_misses are simulated, of no real processor's predictor")
    return tuple(found)


def _summed(found: list[valgrind_costs.Costs], call: Call) -> tuple[str, ...]:
    fixed = cast(Options, call.options).hash_seed
    said = valgrind_run.sums_of([costs.command for costs in found], "the figures are")
    return (*said, *(python_command.random_hashes(call.command) if fixed else ()))


ADAPTER = Adapter(
    name=NAME,
    role=Role.MEASURE,
    options=Options,
    program=valgrind_run.VALGRIND,
    metrics=of_perfflow(
        *{"instructions", "cache_misses", "cache_misses_i1", "cache_misses_d1", "branch_misses"}
        | {"cache_miss_rate", "cache_miss_rate_d1", "branch_miss_rate"}
    ),
    deterministic=True,
    passes_stdout=True,
    invocations=invocations,
    outputs=outputs,
    parse=parse,
)
