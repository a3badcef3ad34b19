"""``callgrind``: count executed instructions with valgrind, in total and per function.

Counts are exactly repeatable whatever the load of the machine, so one run is enough. They do not include the effects of
caches, branches or waiting. Python's hashes of strings differ between runs; PYTHONHASHSEED=0 fixes them.
"""

from __future__ import annotations

from dataclasses import replace
from functools import partial

from perfflow.model.metrics import builtin_metrics
from perfflow.model.readings import Parsed, Profile, StackCounts, Usage
from perfflow.model.stacks import write_folded
from perfflow.tools.adapter import Call, Invocation, Profiler, ProfilingMethod, Role
from perfflow.tools.valgrind import valgrind_costs, valgrind_run

NAME = "callgrind"
_FOLDED = "stacks.folded"

# A forked child inherits its parent's counts. Writing and clearing them before the fork prevents counting them twice.
_AT_FORK = "--dump-before="
_FORKS = tuple(
    f"{_AT_FORK}{name}{version}" for name in ("fork", "__fork", "__libc_fork", "_Fork") for version in ("", "@*")
)


def invocations(call: Call[valgrind_run.Seeded]) -> tuple[Invocation, ...]:
    """Run the command and its children under valgrind."""
    return (valgrind_run.invocation(call, NAME, *_FORKS, env=call.options.env),)


def parse(call: Call, usage: Usage) -> Parsed:
    """Read ``instructions``, the sum over all processes, and the functions that executed them, with their callers.

    Raises ToolOutputError if there is no file, or if a file is cut, invalid or does not add up.
    """
    found = valgrind_costs.costs_of_a_run(call, NAME)
    # The parts of one process share its number: callgrind.12.out.1, callgrind.12.out.
    commands = {costs.path.name.split(".")[1]: costs.command for costs in found}
    said = valgrind_run.sum_warnings(list(commands.values()), "instructions are")
    if any(trigger.startswith(_AT_FORK) for costs in found for trigger in costs.triggers):
        # callgrind recognised the fork, so nothing is counted twice and the warning about that is dropped.
        said = said[:1]
    figures = {"instructions": sum(costs.total("Ir") for costs in found)}
    parsed = valgrind_costs.parsed_of(call, found, figures, said)
    (call.folder / _FOLDED).write_text(write_folded(valgrind_costs.stacks_of(found)), encoding="utf-8")
    stacks = StackCounts("instructions", "instructions", is_call_pairs=True)
    return replace(parsed, profiles=(*parsed.profiles, Profile(_FOLDED, "folded", stacks)))


ADAPTER = valgrind_run.valgrind_tool(
    name=NAME,
    role=Role.MEASURE,
    profiler=Profiler(method=ProfilingMethod.COUNTS, follows={"instructions": 0, "time": 1}, sees="instructions"),
    options=valgrind_run.Seeded,
    metrics=builtin_metrics("instructions"),
    invocations=invocations,
    outputs=partial(valgrind_run.files, tool=NAME),
    parse=parse,
)
