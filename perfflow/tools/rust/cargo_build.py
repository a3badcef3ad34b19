"""``cargo-build``: build a crate and pass the paths of its executables to later steps.

Executables that were up to date are included. The names of the outputs are only known after the build: the name of a
binary, or of other targets with the prefix ``bench-``, ``example-`` or ``test-``.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from pathlib import Path

from pydantic import Field

from perfflow.model.errors import ToolOutputError
from perfflow.model.readings import Parsed, Usage
from perfflow.tools.adapter import Adapter, Builder, Call, Invocation, Parts, Role, Suite, may_leave
from perfflow.tools.rust import cargo_bench
from perfflow.tools.rust.cargo_bench import CARGO, CargoExecutable

_PREFIXES: Mapping[str, str] = {"bin": "", "bench": "bench-", "example": "example-", "test": "test-"}

Which = bool | list[str] | str


class CargoBuildOptions(cargo_bench.CargoOptions):
    """``with`` keys of ``uses: cargo-build``."""

    bins: Which = Field(default=True, description="Binaries: all (`true`), none (`false`), or their names.")
    benches: Which = Field(default=False, description="Bench targets: all (`true`), none (`false`), or their names.")
    examples: Which = Field(default=False, description="Examples: all (`true`), none (`false`), or their names.")
    tests: Which = Field(default=False, description="Integration tests: all (`true`), none (`false`), or their names.")
    profile: str = Field(default="release", min_length=1, description="Cargo's profile for all targets.")


def invocations(call: Call[CargoBuildOptions]) -> tuple[Invocation, ...]:
    """Build the selected targets. Raises ToolOutputError if none is selected."""
    options = call.options
    kinds = {"bin": options.bins, "bench": options.benches, "example": options.examples, "test": options.tests}
    selection = [word for kind, which in kinds.items() for word in _chosen(kind, which)]
    if not selection:
        raise ToolOutputError("no target is selected: set `bins`, `benches`, `examples` or `tests`")
    return (cargo_bench.cargo(call, options, "build", (f"--profile={options.profile}", *selection)),)


def _chosen(kind: str, which: Which) -> list[str]:
    if which is True:
        # A pattern, since --benches also selects targets of other kinds and accepts that there is none.
        return ["--bins" if kind == "bin" else f"--{kind}=*"]
    return [f"--{kind}={name}" for name in cargo_bench.cargo_words(which or "")]


def parse(call: Call, usage: Usage) -> Parsed:
    """Check cargo's messages and return no figures. Raises ToolOutputError."""
    results(call)
    return Parsed()


def results(call: Call) -> Mapping[str, str]:
    """Return the absolute path of each executable by the name of its output. Raises ToolOutputError."""
    executables = _built(call)
    # Several packages of a workspace may have executables of the same name.
    times = Counter((executable.kind, executable.name) for executable in executables)
    named: dict[str, str] = {}
    for executable in executables:
        target = (
            executable.name
            if times[executable.kind, executable.name] == 1
            else f"{executable.package}-{executable.name}"
        )
        name = f"{_PREFIXES[executable.kind]}{target}"
        # In expressions a hyphen is a minus sign, so names with underscores are added.
        for output in (name, name.replace("-", "_")):
            if named.setdefault(output, executable.path) != executable.path:
                alike = f"two executables have the same output name {output}"
                raise ToolOutputError(f"{alike}: build them in separate steps")
    return dict(sorted(named.items()))


def made(call: Call) -> tuple[Path, ...]:
    """Return the executables. They are checked since cargo also lists files that were up to date but then removed."""
    return tuple(Path(item.path) for item in _built(call))


def _built(call: Call) -> tuple[CargoExecutable, ...]:
    found = dict.fromkeys(item for item in cargo_bench.built_benches(call.folder) if item.kind in _PREFIXES)
    if not found:
        raise ToolOutputError("cargo built no executable: the crate has no target of the selected kinds")
    return tuple(found)


ADAPTER = Adapter(
    "cargo-build",
    Role.WORK,
    invocations,
    parse,
    options=CargoBuildOptions,
    program=CARGO,
    outputs=may_leave(cargo_bench.MESSAGES),
    build=Builder(made=made, results=results),
    suite=Suite(parts=Parts("benches", cargo_bench.has_bench)),
)
