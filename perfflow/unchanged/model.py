"""What a benchmark executes and reads on one side, and the comparison of both sides.

A benchmark whose traces are equal cannot have changed, so it is not timed. A trace is stored as JSON
(``model.plain_data``) and can be kept by the tree and the toolchain that it belongs to.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Literal

ABSENT = ""
"""The digest of a path that was looked up and does not exist."""
_SHOWN = 12
"""Number of differences that are stored."""


@dataclass(frozen=True)
class BenchmarkTrace:
    """One benchmark on one side.

    Paths inside the tree are relative to it, so that they are equal on both sides; others are absolute. Digests are of
    contents, in hexadecimal.
    """

    loaded: Mapping[str, str] = field(default_factory=dict)
    """Files whose code was executed: programs, libraries, modules. The digest by path."""
    inputs: Mapping[str, str] = field(default_factory=dict)
    """What else it read: contents of files, names in listed folders (a path with a final ``/``), and look-ups that
    failed (``ABSENT``)."""
    functions: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    """The digests of the executed functions by name. Several functions can have one name."""
    unseen: tuple[str, ...] = ()
    """Why not all executed code is known, such as code compiled at run time. Equal files still prove that nothing
    changed."""
    unknown: tuple[str, ...] = ()
    """Why nothing is known for certain, such as a process that was not traced."""
    lines: Mapping[str, tuple[int, ...]] = field(default_factory=dict)
    """The source lines of the executed functions by file, if the tracer tells them. They are not compared."""


@dataclass(frozen=True)
class Unchanged:
    """Both sides execute the same: the same files, or the same functions; with the numbers of what was compared."""

    by: Literal["files", "code"]
    files: int
    functions: int = 0


@dataclass(frozen=True)
class Differs:
    """The sides differ, or it is not known whether they do: the first reasons, for people."""

    reasons: tuple[str, ...]


def compare(base: BenchmarkTrace, head: BenchmarkTrace) -> Unchanged | Differs:
    """Compare both sides of a benchmark. Traces without any executed code are never equal."""
    if reasons := tuple(dict.fromkeys([*base.unknown, *head.unknown])):
        return Differs(reasons[:_SHOWN])
    inputs = tuple(_differing(base.inputs, head.inputs))
    loaded = tuple(_differing(base.loaded, head.loaded))
    if base.loaded and not inputs and not loaded:
        return Unchanged("files", len(base.loaded) + len(base.inputs))
    reasons = tuple(dict.fromkeys([*inputs, *base.unseen, *head.unseen]))
    if reasons:
        return Differs(reasons[:_SHOWN])
    functions = tuple(_differing(base.functions, head.functions))
    if functions or not base.functions:
        return Differs(functions[:_SHOWN] or ("no executed function is known",))
    return Unchanged("code", len(base.inputs), len(base.functions))


def _differing(base: Mapping[str, object], head: Mapping[str, object]) -> Iterator[str]:
    """Yield the names that are not equal on both sides."""
    for name in dict.fromkeys([*base, *head]):
        if name not in base or name not in head or base[name] != head[name]:
            yield name
