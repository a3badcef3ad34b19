"""Shared parts of ``cargo-build`` and ``cargo-bench``: the selection of packages and features, and cargo's messages.

cargo runs in the crate's folder, since its settings, the toolchain and a relative CARGO_TARGET_DIR depend on the
working directory.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Annotated

from pydantic import AfterValidator, AliasPath, Field

from perfflow.model.errors import ToolOutputError
from perfflow.tools import adapter, python_command, tool_files, tool_json
from perfflow.tools.adapter import Call, Invocation, Program
from perfflow.tools.rust.drivers import cargo_suite
from perfflow.tools.tool_json import Json

CARGO = Program("cargo", "apt-get install cargo")

MESSAGES = "cargo.json"
"""cargo's messages about each build product, one JSON object per line."""

_QUIET = {"CARGO_TERM_COLOR": "never", "CARGO_TERM_PROGRESS_WHEN": "never"}
# rustc prints the place on the next line, or after a few continuation lines.
_ERROR = re.compile(
    r"^error(?:\[E\d+\])?: (?P<what>\S.*)(?:(?:\n(?!error|warning).*){0,4}?\n *--> (?P<place>\S.*:\d+:\d+)$)?",
    re.MULTILINE,
)
_FAILED_CRATE = re.compile(r"^error: (?P<what>could not compile .*)", re.MULTILINE)
# Since Rust 1.73 the message is on the next line; before, it was in quotes.
_PANIC = re.compile(r"^thread '.*' (?:\(\d+\) )?panicked at (?:'|[^'\n]*:\n)(\S.*?)(?:', \S+)?$", re.MULTILINE)
# Patterns of messages of cargo or the compiler, and remedies.
_REMEDIES: Mapping[str, str] = {
    r"--locked was passed": "commit the new Cargo.lock, or remove `locked`",
    r"--offline was (?:passed|specified)|without the offline flag|offline mode": (
        "run `cargo fetch` once with network access"
    ),
    r"Could(?:n't| not) resolve host|failed to download|network failure|spurious network error": (
        "without network access, run `cargo fetch` beforehand and add `offline: true`"
    ),
    r"may not be used on the (?:stable|beta) release channel": (
        '#[bench] needs a nightly toolchain, or `env: {RUSTC_BOOTSTRAP: "1"}`'
    ),
}
_AMBIGUOUS = re.compile(r"is ambiguous\.?\n.*following specifications:?\n(?P<names>(?: +\S+\n?)+)")
_TARGET = "--target-dir"
# The subfolder for builds with source lines for profilers.
_LINES = "/perfflow-lines"
_COPIER = python_command.driver_command("cargo_units.py", __file__)
_MOST_NAMED = 4
# Members of a workspace are usually at most two folders deep.
_MANIFESTS = ("Cargo.toml", "*/Cargo.toml", "*/*/Cargo.toml")
_LONGEST = 200


class Options(adapter.Options):
    """``with`` keys that select what cargo builds."""

    crate: str = Field(default=".", min_length=1, description="The folder with Cargo.toml.")
    package: list[str] | str = Field(default="", description="Packages of a workspace (default: cargo's default).")
    workspace: bool = Field(default=False, description="All packages of the workspace.")
    features: list[str] | str = Field(default="", description="Features to enable.")
    default_features: bool = Field(default=True, description="`false` disables the default features.")
    all_features: bool = Field(default=False, description="Enable all features.")
    locked: bool = Field(default=False, description="Require a Cargo.lock that is up to date.")
    offline: bool = Field(default=False, description="Do not use the network.")
    args: adapter.CommandText = Field(default="", description="Further arguments of cargo.")


class Built(Json):
    """An executable of a package from cargo's messages. ``kind`` is bin, bench, example, test or lib.

    The path must be absolute, as cargo prints it, and valid in a file system.
    """

    package: Annotated[str, AfterValidator(cargo_suite.package_name)] = Field(alias="package_id")
    name: str = Field(validation_alias=AliasPath("target", "name"))
    kind: str = Field(validation_alias=AliasPath("target", "kind", 0))
    path: str = Field(alias="executable", pattern=r"^/[^\x00]*$")


def cargo(
    call: Call, options: Options, command: str, selection: Sequence[str], lines: Sequence[str] = ()
) -> Invocation:
    """Return the process that builds and writes cargo's messages to MESSAGES; ``lines`` is from ``with_lines``."""
    args = words(options.args)
    argv = (
        *(call.program or CARGO.name, command, "--message-format=json-render-diagnostics"),
        *selection,
        *_switches(options),
        *(_without_target(args) if lines else args),
        *lines,
    )
    return Invocation(argv, _QUIET, stdout=MESSAGES, cwd=options.crate)


def with_lines(target: str, profile: str, outside: Sequence[str]) -> tuple[str, ...]:
    """Return cargo's arguments to build the same code with source lines, in a subfolder of ``target``.

    External crates stay without lines, so that their units of ``target`` can be reused. ``outside`` are packages of the
    tree outside the workspace. With ``line-tables-only`` instead of ``debug = 1``, inlined functions lose their crates
    and types.
    """
    settings = {
        "debug": "1",
        "strip": '"none"',
        'package."*".debug': "false",
        **{f'package."{name}".debug': "1" for name in outside},
    }
    options = (f"--config=profile.{profile}.{key}={value}" for key, value in settings.items())
    return (f"--target-dir={target}{_LINES}", *options)


def shared_units(target: str, crate: str) -> Invocation:
    """Return the process that copies the built units of external crates to the folder of the build with lines."""
    return Invocation((*_COPIER, target, target + _LINES, str(Path(target).parent)), cwd=crate)


def _without_target(args: Sequence[str]) -> Iterator[str]:
    """Remove the option for the target folder."""
    skipped = False
    for word in args:
        if not skipped and word != _TARGET and not word.startswith(f"{_TARGET}="):
            yield word
        skipped = word == _TARGET


def words(text: list[str] | str) -> tuple[str, ...]:
    """Split a text at spaces and commas; keep a list."""
    return tuple(text.replace(",", " ").split()) if isinstance(text, str) else tuple(text)


def has_bench(options: Options, name: str, folder: Path) -> bool:
    """Return whether a crate, or a package of a workspace, has a bench target: its file, or its name in Cargo.toml."""
    manifests = (path for glob in _MANIFESTS for path in (folder / options.crate).glob(glob))
    return any(
        (path.parent / "benches" / f"{name}.rs").is_file()
        or (path.parent / "benches" / name / "main.rs").is_file()
        or f'"{name}"' in path.read_text(errors="replace")
        for path in manifests
    )


def _switches(options: Options) -> Iterator[str]:
    yield from (f"--package={name}" for name in words(options.package))
    if chosen := words(options.features):
        yield f"--features={','.join(chosen)}"
    switches = {
        "--workspace": options.workspace,
        "--no-default-features": not options.default_features,
        "--all-features": options.all_features,
        "--locked": options.locked,
        "--offline": options.offline,
    }
    yield from (switch for switch, is_on in switches.items() if is_on)


def built(folder: Path) -> tuple[Built, ...]:
    """Read the executables that cargo built or found up to date.

    Raises ToolOutputError if cargo did not report success.
    """
    try:
        messages = list(cargo_suite.messages_in(tool_files.read_whole(folder / MESSAGES)))
    except (ToolOutputError, ValueError, RecursionError) as error:
        said = str(error) if isinstance(error, ToolOutputError) else f"{MESSAGES} is cut short or not valid JSON"
        raise ToolOutputError(why(folder) or said) from error
    artifacts = [each for each in messages if each.get("reason") == "compiler-artifact"]
    executables = [each for each in artifacts if each.get("executable") is not None]
    found = tuple(tool_json.checked(Built, message, MESSAGES) for message in executables)
    if any(each.name != tool_files.clean_name(each.name) for each in found):
        raise ToolOutputError(f"{MESSAGES} has an executable without a valid name")
    return found


def panic(folder: Path) -> str:
    """Return the message of the last panic; '' if there was none."""
    found = _PANIC.findall(tool_files.last_bytes(folder))
    return f"it panicked: {tool_files.clean_name(found[-1])[:_LONGEST]}" if found else ""


def why(folder: Path) -> str:
    """Return why cargo failed: the first error with its place and a remedy; '' if it printed no error."""
    said = tool_files.last_bytes(folder)
    # The first of many errors is the cause, and may be far from the end.
    gave_up, first = _FAILED_CRATE.search(said), _ERROR.search(tool_files.first_text(folder)) or _ERROR.search(said)
    if not first:
        return ""
    parts = list(dict.fromkeys(match["what"] for match in (gave_up, first) if match))
    reason = ": ".join(tool_files.clean_name(part)[:_LONGEST] for part in parts)
    reason += f" ({tool_files.clean_name(first['place'])})" if first["place"] else ""
    remedies = [remedy for pattern, remedy in _REMEDIES.items() if re.search(pattern, said)]
    if found := _AMBIGUOUS.search(said):
        names = [tool_files.clean_name(name)[:_LONGEST] for name in found["names"].split()[:_MOST_NAMED]]
        remedies.append(f"replace the name by one of these: {', '.join(names)}")
    return f"{reason}; {remedies[0]}" if remedies else reason
