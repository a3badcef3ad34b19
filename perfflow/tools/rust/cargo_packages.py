"""What ``cargo-build`` and ``cargo-bench`` share: which packages with which features, and what cargo says.

cargo runs in the crate's folder, as a person would run it there, since its own settings, the toolchain's and a
relative CARGO_TARGET_DIR hold from where it starts.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from pydantic import Field

from perfflow.errors import ToolOutputError
from perfflow.tools import adapter, tool_files
from perfflow.tools.adapter import Call, Invocation, Program

CARGO = Program("cargo", "apt-get install cargo")

MESSAGES = "cargo.json"
"""What cargo prints of each thing it built, an object a line."""

_QUIET = {"CARGO_TERM_COLOR": "never", "CARGO_TERM_PROGRESS_WHEN": "never"}
# rustc says where on the next line, or after a few that go on with the message.
_ERROR = re.compile(
    r"^error(?:\[E\d+\])?: (?P<what>\S.*)(?:(?:\n(?!error|warning).*){0,4}?\n *--> (?P<place>\S.*:\d+:\d+)$)?",
    re.MULTILINE,
)
_GAVE_UP = re.compile(r"^error: (?P<what>could not compile .*)", re.MULTILINE)
# The message follows on a line of its own since Rust 1.73, and stood between quotes before.
_PANIC = re.compile(r"^thread '.*' (?:\(\d+\) )?panicked at (?:'|[^'\n]*:\n)(\S.*?)(?:', \S+)?$", re.MULTILINE)
# What cargo or the compiler says, and what helps.
_REMEDIES: Sequence[tuple[re.Pattern[str], str]] = [
    (re.compile(r"--locked was passed"), "commit the new Cargo.lock, or drop `locked`"),
    (
        re.compile(r"--offline was (?:passed|specified)|without the offline flag|offline mode"),
        "run `cargo fetch` where there is a network",
    ),
    (
        re.compile(r"Could(?:n't| not) resolve host|failed to download|network failure|spurious network error"),
        "without a network run `cargo fetch` before, and add `offline: true`",
    ),
    (
        re.compile(r"may not be used on the (?:stable|beta) release channel"),
        '#[bench] needs a nightly toolchain, or `env: {RUSTC_BOOTSTRAP: "1"}`',
    ),
]
_AMBIGUOUS = re.compile(r"is ambiguous\.?\n.*following specifications:?\n(?P<names>(?: +\S+\n?)+)")
_MOST_NAMED = 4
_LONGEST = 200


class Options(adapter.Options):
    """``with`` keys that say what cargo builds."""

    crate: str = Field(default=".", min_length=1, description="The folder with Cargo.toml.")
    package: list[str] | str = Field(default="", description="Packages of a workspace; else as cargo chooses.")
    workspace: bool = Field(default=False, description="All packages of the workspace.")
    features: list[str] | str = Field(default="", description="Features to switch on.")
    default_features: bool = Field(default=True, description="false leaves out the default features.")
    all_features: bool = Field(default=False, description="All features.")
    locked: bool = Field(default=False, description="Cargo.lock must be there and up to date.")
    offline: bool = Field(default=False, description="Do without the network.")
    args: adapter.CommandText = Field(default="", description="Further arguments of cargo.")


@dataclass(frozen=True, slots=True)
class Built:
    """An executable of a package: ``kind`` is cargo's (bin, bench, example, test, lib)."""

    package: str
    name: str
    kind: str
    path: Path


def cargo(call: Call, options: Options, command: str, selection: Sequence[str]) -> Invocation:
    """Return the process that builds, and prints what it built into MESSAGES."""
    argv = (
        *(call.program or CARGO.name, command, "--message-format=json-render-diagnostics"),
        *selection,
        *_packages(options),
        *_features(options),
        *(("--locked",) if options.locked else ()),
        *(("--offline",) if options.offline else ()),
        *words(options.args),
    )
    return Invocation(argv, _QUIET, stdout=MESSAGES, cwd=options.crate)


def words(text: list[str] | str) -> tuple[str, ...]:
    """Return a list, or what a text says between its spaces and commas."""
    return tuple(text.replace(",", " ").split()) if isinstance(text, str) else tuple(text)


def _packages(options: Options) -> Iterator[str]:
    for name in words(options.package):
        yield f"--package={name}"
    if options.workspace:
        yield "--workspace"


def _features(options: Options) -> Iterator[str]:
    if chosen := words(options.features):
        yield f"--features={','.join(chosen)}"
    if not options.default_features:
        yield "--no-default-features"
    if options.all_features:
        yield "--all-features"


def built(folder: Path) -> tuple[Built, ...]:
    """Read the executables that cargo built, or found to be as they should.

    Raises ToolOutputError if it did not say that all went well.
    """
    found, finished = [], False
    try:
        text = tool_files.read_whole(folder / MESSAGES)
    except ToolOutputError as error:
        raise ToolOutputError(why(folder) or str(error)) from error
    for line in text.splitlines():
        message = _message(line)
        finished = finished or (message.get("reason") == "build-finished" and message.get("success") is True)
        if message.get("reason") == "compiler-artifact" and isinstance(message.get("executable"), str):
            found.append(_built(message))
    if not finished:
        raise ToolOutputError(why(folder) or f"{MESSAGES} is cut short")
    return tuple(found)


def _message(line: str) -> Mapping[str, object]:
    # Build scripts and wrappers of the compiler may print between the messages.
    if not line.startswith("{"):
        return {}
    try:
        message = json.loads(line)
    except (ValueError, RecursionError) as error:
        raise ToolOutputError(f"{MESSAGES} is cut short or no JSON") from error
    return message if isinstance(message, dict) else {}


def _built(message: Mapping[str, object]) -> Built:
    target, identity = message.get("target"), message.get("package_id")
    kinds = target.get("kind") if isinstance(target, dict) else None
    kind = kinds[0] if isinstance(kinds, list) and kinds else None
    name = target.get("name") if isinstance(target, dict) else None
    named = isinstance(name, str) and name == tool_files.clean_name(name)
    if not named or not isinstance(identity, str) or not isinstance(kind, str):
        raise ToolOutputError(f"{MESSAGES} holds an executable without a name")
    path = str(message["executable"])
    # No file system takes these, and cargo names none without its folder.
    if not path.startswith("/") or "\0" in path or path != path.encode(errors="replace").decode():
        raise ToolOutputError(f"{MESSAGES} holds an executable without a path")
    return Built(package_name(identity), str(name), kind, Path(path))


def package_name(identity: str) -> str:
    """Return the package's name from its id: ``path+file:///a/b#name@0.1.0``, ``..b#0.1.0``, old: ``b 0.1.0 (..)``."""
    if "#" not in identity:
        return identity.partition(" ")[0]
    where, _, what = identity.partition("#")
    return what.split("@")[0] if "@" in what else where.rstrip("/").rpartition("/")[2].partition("?")[0]


def panic(folder: Path) -> str:
    """Return what a program that panicked last said; '' where none did."""
    found = _PANIC.findall(tool_files.last_bytes(folder))
    return f"it panicked: {tool_files.clean_name(found[-1])[:_LONGEST]}" if found else ""


def _one_of(said: str) -> list[str]:
    """What to write in place of a package's name that several packages have."""
    found = _AMBIGUOUS.search(said)
    names = [tool_files.clean_name(name)[:_LONGEST] for name in found["names"].split()] if found else []
    return [f"write one of them in place of the name: {', '.join(names[:_MOST_NAMED])}"] if names else []


def why(folder: Path) -> str:
    """Return why cargo failed: the first error with its place, and what helps; '' where it printed none."""
    said = tool_files.last_bytes(folder)
    # Of hundreds of errors the first is the cause, and long before the end.
    gave_up, first = _GAVE_UP.search(said), _ERROR.search(tool_files.first_text(folder)) or _ERROR.search(said)
    if not first:
        return ""
    parts = list(dict.fromkeys(match["what"] for match in (gave_up, first) if match))
    reason = ": ".join(tool_files.clean_name(part)[:_LONGEST] for part in parts)
    reason += f" ({tool_files.clean_name(first['place'])})" if first["place"] else ""
    remedies = [remedy for pattern, remedy in _REMEDIES if pattern.search(said)] + _one_of(said)
    return f"{reason}; {remedies[0]}" if remedies else reason
