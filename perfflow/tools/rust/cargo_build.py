"""``cargo-build``: what a crate builds, its executables' paths handed on to later steps.

An executable that was fresh is named like one that was built now. Which names there are is only known when cargo has
said what it built: a binary's own, and with ``bench-``, ``example-`` or ``test-`` before it that of the others.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from pathlib import Path

from pydantic import Field

from perfflow.model.errors import ToolOutputError
from perfflow.model.readings import Parsed, Usage
from perfflow.tools.adapter import Adapter, Call, Invocation, Role, may_leave
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


def invocations(call: Call[Options]) -> tuple[Invocation, ...]:
    """Build what is chosen. Raises ToolOutputError if nothing is."""
    options = call.options
    kinds = {"bin": options.bins, "bench": options.benches, "example": options.examples, "test": options.tests}
    selection = [word for kind, which in kinds.items() for word in _chosen(kind, which)]
    if not selection:
        raise ToolOutputError("nothing is to be built: say `bins`, `benches`, `examples` or `tests`")
    return (cargo_packages.cargo(call, options, "build", (f"--profile={options.profile}", *selection)),)


def _chosen(kind: str, which: Which) -> list[str]:
    if which is True:
        # A pattern and not --benches: that also means targets of other kinds, and no complaint if there is none.
        return ["--bins" if kind == "bin" else f"--{kind}=*"]
    return [f"--{kind}={name}" for name in cargo_packages.words(which or "")]


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
        own = item.name if times[item.kind, item.name] == 1 else f"{item.package}-{item.name}"
        name = f"{_PREFIXES[item.kind]}{own}"
        # Expressions would take hyphens for minus signs.
        for output in (name, name.replace("-", "_")):
            if named.setdefault(output, item.path) != item.path:
                alike = f"two executables would both be the output {output}"
                raise ToolOutputError(f"{alike}: build them in steps of their own")
    return dict(sorted(named.items()))


def made(call: Call) -> tuple[Path, ...]:
    """The executables: cargo names one that is up to date, and may have been removed since, like a new one."""
    return tuple(Path(item.path) for item in _built(call))


def _built(call: Call) -> tuple[Built, ...]:
    found = dict.fromkeys(item for item in cargo_packages.built(call.folder) if item.kind in _PREFIXES)
    if not found:
        raise ToolOutputError("cargo built no executable: the crate has none of the chosen kinds")
    return tuple(found)


ADAPTER = Adapter(
    "cargo-build",
    Role.WORK,
    invocations,
    parse,
    options=Options,
    program=CARGO,
    outputs=may_leave(cargo_packages.MESSAGES),
    made=made,
    results=results,
)
