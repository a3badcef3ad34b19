"""``callgrind``: instructions executed, counted one by one by valgrind, and the functions that execute them.

Counts repeat to the digit, whatever else the machine does, so one run is a measurement; they do not see caches,
branches or waiting. Python's hashes of strings differ from run to run; PYTHONHASHSEED=0 fixes them.
"""

from __future__ import annotations

from pathlib import Path
from typing import cast

from pydantic import Field

from perfflow.errors import ToolOutputError
from perfflow.samples.metrics import of_perfflow
from perfflow.samples.readings import Parsed, Profile, Reading, Usage
from perfflow.tools import python_command
from perfflow.tools.adapter import Adapter, Call, CommandOptions, Invocation, Role
from perfflow.tools.valgrind import valgrind_costs, valgrind_hotspots, valgrind_run

NAME = "callgrind"

# A forked child inherits its parent's counts; writing and clearing them first leaves nothing to be counted twice.
_FORKS = tuple(
    f"--dump-before={name}{version}" for name in ("fork", "__fork", "__libc_fork", "_Fork") for version in ("", "@*")
)
_AT_FORK = "--dump-before="


class Options(CommandOptions):
    """``with`` keys of ``uses: callgrind``."""

    hash_seed: bool = Field(default=True, description="Run Python with PYTHONHASHSEED=0, so that its counts repeat.")


def invocations(call: Call) -> tuple[Invocation, ...]:
    """Run the command and its children under valgrind."""
    env = {"PYTHONHASHSEED": "0"} if cast(Options, call.options).hash_seed else {}
    return (valgrind_run.invocation(call, NAME, *_FORKS, env=env),)


def outputs(call: Call) -> tuple[Path, ...]:
    """The files that the processes left; ``parse`` misses them if there are none."""
    return valgrind_run.files(call, NAME)


def parse(call: Call, usage: Usage) -> Parsed:
    """Read ``instructions``, the sum over all processes, and the functions that executed them.

    Raises ToolOutputError if there is no file, or if one is cut, nonsense or does not add up.
    """
    found = [valgrind_costs.read(path) for path in valgrind_run.files_of_a_run(call, NAME)]
    total = sum(costs.total("Ir") for costs in found)
    if not total:
        raise ToolOutputError("callgrind counted no instruction: the program turned its instrumentation off")
    largest = max(found, key=lambda costs: (costs.total("Ir"), costs.path.name))
    warnings = [*_summed(found), *(python_command.random_hashes(call.command) if _fixes_hashes(call) else ())]
    return Parsed(
        (Reading("instructions", total),),
        valgrind_hotspots.hotspots_of(found, NAME),
        (Profile(largest.path.name, NAME),),
        tuple(warnings),
        valgrind_hotspots.costs_of(found),
    )


def _fixes_hashes(call: Call) -> bool:
    return cast(Options, call.options).hash_seed


def _summed(found: list[valgrind_costs.Costs]) -> tuple[str, ...]:
    """Say that several processes ran, and that counts are doubled where callgrind did not see the fork."""
    # A process's parts are in files of one number: callgrind.12.out.1, callgrind.12.out.
    commands = {costs.path.name.split(".")[1]: costs.command for costs in found}
    said = valgrind_run.sums_of(list(commands.values()), "instructions are")
    seen = any(trigger.startswith(_AT_FORK) for costs in found for trigger in costs.triggers)
    return said[:1] if seen else said


ADAPTER = Adapter(
    name=NAME,
    role=Role.MEASURE,
    options=Options,
    program=valgrind_run.VALGRIND,
    metrics=of_perfflow("instructions"),
    deterministic=True,
    passes_stdout=True,
    invocations=invocations,
    outputs=outputs,
    parse=parse,
)
