"""``cargo-build``: what a crate builds, its executables' paths handed on to later steps.

An executable that was fresh is named like one that was built now. Which names there are is only known when cargo has
said what it built: a binary's own, and with ``bench-``, ``example-`` or ``test-`` before it that of the others.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import cast

from pydantic import Field

from perfflow.errors import ToolOutputError
from perfflow.samples.readings import Parsed, Usage
from perfflow.tools import tool_files
from perfflow.tools.adapter import Adapter, Call, Invocation, Role
from perfflow.tools.rust import cargo_packages
from perfflow.tools.rust.cargo_packages import CARGO, Built

_PREFIXES: Mapping[str, str] = {"bin": "", "bench": "bench-", "example": "example-", "test": "test-"}

Which = bool | list[str] | str


class Options(cargo_packages.Options):
    """``with`` keys of ``uses: cargo-build``."""

    bins: Which = Field(default=True, description="Binaries: all (true), none, or their names.")
    benches: Which = Field(default=False, description="Bench targets: all (true), none, or their names.")
    examples: Which = Field(default=False, description="Examples: all (true), none, or their names.")
    tests: Which = Field(default=False, description="Integration tests: all (true), none, or their names.")
    profile: str = Field(default="release", min_length=1, description="Cargo's profile for all of them.")


def invocations(call: Call) -> tuple[Invocation, ...]:
    """Build what is chosen. Raises ToolOutputError if nothing is."""
    options = cast(Options, call.options)
    selection = (
        *_chosen("bin", options.bins),
        *_chosen("bench", options.benches),
        *_chosen("example", options.examples),
        *_chosen("test", options.tests),
    )
    if not selection:
        raise ToolOutputError("nothing is to be built: say `bins`, `benches`, `examples` or `tests`")
    return (cargo_packages.cargo(call, options, "build", (f"--profile={options.profile}", *selection)),)


def _chosen(kind: str, which: Which) -> Iterator[str]:
    if isinstance(which, bool):
        # A pattern and not --bins and --benches: those also mean targets of other kinds, and no complaint if none is.
        yield from (f"--{kind}=*",) if which and kind != "bin" else ("--bins",) if which else ()
    else:
        yield from (f"--{kind}={name}" for name in cargo_packages.words(which))


def outputs(call: Call) -> tuple[Path, ...]:
    """What cargo says if it is there; ``parse`` says why it is not."""
    return tool_files.left(call.folder / cargo_packages.MESSAGES)


def parse(call: Call, usage: Usage) -> Parsed:
    """Check that cargo said what it built; it has no figures. Raises ToolOutputError."""
    results(call)
    return Parsed()


def results(call: Call) -> Mapping[str, str]:
    """Return the absolute path of each executable by its output's name. Raises ToolOutputError."""
    found = _built(call)
    # Packages of a workspace may each have one of the same name.
    times = Counter((item.kind, item.name) for item in found)
    named: dict[str, str] = {}
    for item in found:
        for name in dict.fromkeys(_names(item, alone=times[item.kind, item.name] == 1)):
            if named.setdefault(name, str(item.path)) != str(item.path):
                raise ToolOutputError(
                    f"two executables would both be the output {name}: build them in steps of their own"
                )
    return dict(sorted(named.items()))


def made(call: Call) -> tuple[Path, ...]:
    """The executables: cargo names one that is up to date, and may have been removed since, like a new one."""
    return tuple(item.path for item in _built(call))


def _built(call: Call) -> tuple[Built, ...]:
    found = dict.fromkeys(item for item in cargo_packages.built(call.folder) if item.kind in _PREFIXES)
    if not found:
        raise ToolOutputError("cargo built no executable: the crate has none of the chosen kinds")
    return tuple(found)


def _names(item: Built, *, alone: bool) -> Iterator[str]:
    """Yield the output's name, and one without hyphens, which expressions would take for minus signs."""
    name = f"{_PREFIXES[item.kind]}{item.name}" if alone else f"{_PREFIXES[item.kind]}{item.package}-{item.name}"
    yield name
    yield name.replace("-", "_")


ADAPTER = Adapter(
    name="cargo-build",
    role=Role.WORK,
    options=Options,
    program=CARGO,
    invocations=invocations,
    outputs=outputs,
    parse=parse,
    made=made,
    results=results,
)
