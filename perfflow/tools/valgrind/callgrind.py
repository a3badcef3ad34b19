"""``callgrind``: instructions executed, counted one by one by valgrind, and the functions that execute them.

Counts repeat to the digit, whatever else the machine does, so one run is a measurement; they do not see caches,
branches or waiting. Python's hashes of strings differ from run to run; PYTHONHASHSEED=0 fixes them.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import cast

from perfflow.samples.readings import Parsed, Usage
from perfflow.tools.adapter import Call, Invocation, Role
from perfflow.tools.valgrind import valgrind_hotspots, valgrind_run
from perfflow.tools.valgrind.valgrind_costs import Costs

NAME = "callgrind"

# A forked child inherits its parent's counts; writing and clearing them first leaves nothing to be counted twice.
_AT_FORK = "--dump-before="
_FORKS = tuple(
    f"{_AT_FORK}{name}{version}" for name in ("fork", "__fork", "__libc_fork", "_Fork") for version in ("", "@*")
)


class Options(valgrind_run.Seeded):
    """``with`` keys of ``uses: callgrind``."""


def invocations(call: Call) -> tuple[Invocation, ...]:
    """Run the command and its children under valgrind."""
    return (valgrind_run.invocation(call, NAME, *_FORKS, env=cast(Options, call.options).env),)


def parse(call: Call, usage: Usage) -> Parsed:
    """Read ``instructions``, the sum over all processes, and the functions that executed them.

    Raises ToolOutputError if there is no file, or if one is cut, nonsense or does not add up.
    """
    return valgrind_hotspots.parsed_of(call, NAME, _figures, {}, _summed)


def _figures(found: Sequence[Costs]) -> dict[str, float]:
    return {"instructions": sum(costs.total("Ir") for costs in found)}


def _summed(found: Sequence[Costs]) -> tuple[str, ...]:
    """Say that several processes ran, and that counts are doubled where callgrind did not see the fork."""
    # A process's parts are in files of one number: callgrind.12.out.1, callgrind.12.out.
    commands = {costs.path.name.split(".")[1]: costs.command for costs in found}
    said = valgrind_run.sums_of(list(commands.values()), "instructions are")
    seen = any(trigger.startswith(_AT_FORK) for costs in found for trigger in costs.triggers)
    return said[:1] if seen else said


ADAPTER = valgrind_run.adapter(NAME, Role.MEASURE, ("instructions",), Options, invocations, parse)
