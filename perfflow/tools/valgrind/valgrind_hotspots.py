"""The functions that execute the most instructions by callgrind and cachegrind, and what else they cost."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import cast

from perfflow.errors import ToolOutputError
from perfflow.samples.readings import Cost, Hotspot, Parsed, Profile, Reading
from perfflow.tools import own_code, python_command, symbol_names, tool_files
from perfflow.tools.adapter import Call
from perfflow.tools.valgrind import valgrind_costs, valgrind_run
from perfflow.tools.valgrind.valgrind_costs import Costs, Function, Place

_UNKNOWN = re.compile(r"0x[0-9A-Fa-f]+\Z|\?\?\?\Z")
_QUALIFIED = re.compile(r"::|.\(")
_HEADER = re.compile(r".*\.(?:h|hh|hpp|hxx|inc|inl|ipp|tcc)\Z")
_KEPT = 20
_TELLING = 0.1
"""The share of another event, such as cache misses, from which on it is part of the cause."""


@dataclass(slots=True)
class _Part:
    """What a function costs, or what it does in one source file: the first event by line, and all events."""

    location: str
    file: str
    object: str
    places: Counter[Place] = field(default_factory=Counter)
    events: Counter[str] = field(default_factory=Counter)

    @property
    def count(self) -> int:
        return self.places.total()

    def add(self, places: Counter[Place], events: Mapping[str, int]) -> None:
        self.places.update(places)
        self.events.update(events)

    @property
    def position(self) -> tuple[str, int]:
        """The costliest place of its own file; of one of C++ or Rust, or of a library, of the project's own code."""
        file = self.file
        if file and ("::" in self.location or not own_code.is_own(file)):
            mine = _costliest(item for item in self.places.items() if own_code.is_own(item[0][0]))
            file = tool_files.clean_name(mine[0]) if mine else file
        own = _costliest(item for item in self.places.items() if tool_files.clean_name(item[0][0]) == file)
        return file, own[1] if own and file else 0


def parsed_of(
    call: Call,
    source: str,
    figures_of: Callable[[Sequence[Costs]], Mapping[str, float]],
    others: Mapping[str, Sequence[str]],
    said: Callable[[Sequence[Costs]], Iterable[str]],
) -> Parsed:
    """Read what all processes left: figures, functions, and what there is to say, ``said`` of this tool.

    Raises ToolOutputError if there is no file, or if one is cut, nonsense or does not add up.
    """
    found = [valgrind_costs.read(path) for path in valgrind_run.files_of_a_run(call, source)]
    if not sum(costs.total("Ir") for costs in found):
        raise ToolOutputError(f"{source} counted no instruction: the program turned its instrumentation off")
    largest = max(found, key=lambda costs: (costs.total("Ir"), costs.path.name))
    seeded = cast(valgrind_run.Seeded, call.options).hash_seed
    return Parsed(
        tuple(Reading(metric, value) for metric, value in figures_of(found).items()),
        hotspots_of(found, source, others),
        (Profile(largest.path.name, source),),
        (*said(found), *(python_command.random_hashes(call.command) if seeded else ())),
        costs_of(found),
    )


def hotspots_of(
    found: Iterable[Costs], source: str, others: Mapping[str, Sequence[str]] | None = None
) -> tuple[Hotspot, ...]:
    """Rank the functions of all processes by their own instructions, the files' first event.

    ``others`` are sums of further events by what they are called: a function that has a good part of one says so.
    """
    ranked = _ranked(found)
    whole = sum(part.count for part in ranked)
    wholes = {
        name: sum(part.events[event] for part in ranked for event in summed) for name, summed in (others or {}).items()
    }
    return tuple(_hotspot(part, whole, source, _told(part, wholes, others or {})) for part in ranked[:_KEPT])


def costs_of(found: Iterable[Costs]) -> tuple[Cost, ...]:
    """Every function's own instructions, the largest first; what it calls in libraries is the libraries'."""
    return tuple(Cost("instructions", part.location, part.count, *part.position) for part in _ranked(found))


def _ranked(found: Iterable[Costs]) -> list[_Part]:
    """The functions of all processes with a cost, the largest first."""
    named: dict[str, dict[str, _Part]] = {}
    for costs in found:
        for function, places in costs.functions.items():
            location, file = _shown(function)
            part = named.setdefault(location, {}).setdefault(file, _Part(location, file, function.object))
            part.add(places, dict(zip(costs.events, costs.of_function[function], strict=True)))
    whole = [part for parts in named.values() for part in _whole(parts) if part.count]
    return sorted(whole, key=lambda part: (-part.count, part.location, part.file))


def _whole(parts: dict[str, _Part]) -> Iterable[_Part]:
    """Put the parts of one function together, which cachegrind keeps apart by the sources inlined into it.

    A qualified name, or one with its parameters, is one function, under the first of its files that is the project's
    own. Of C two static functions may have one name: only what headers brought into a single one is put to it, and not
    where the object is known, as callgrind's is, which tells inlined source from functions.
    """
    files = [file for file in parts if file]
    bodies = [file for file in files if not _HEADER.match(file)]
    if len(files) > 1 and _QUALIFIED.search(parts[files[0]].location):
        bodies = bodies or files
    elif len(files) < 2 or len(bodies) != 1 or any(part.object for part in parts.values()):
        return parts.values()
    first = min(bodies, key=lambda file: (not own_code.is_own(file), file))
    for file in files:
        if file != first:
            part = parts.pop(file)
            parts[first].add(part.places, part.events)
    return parts.values()


def _told(part: _Part, wholes: Mapping[str, int], others: Mapping[str, Sequence[str]]) -> str:
    """Say which share of other events a function has, the largest share first."""
    own = {name: sum(part.events[event] for event in others[name]) for name in wholes}
    shares = sorted((-own[name] / whole, name) for name, whole in wholes.items() if whole)
    return "".join(f", {-share:.0%} of the {name}" for share, name in shares if -share >= _TELLING)


def _shown(function: Function) -> tuple[str, str]:
    """Return the location and file of a function; without a name or a source the library stands for them."""
    library, name = Path(function.object).name, symbol_names.plain(function.name)
    if _UNKNOWN.match(name):
        return tool_files.clean_name(f"[{library}]" if library else "???"), ""
    if function.file in {"", "???"}:
        return tool_files.clean_name(f"{name} ({library})" if library else name), ""
    return tool_files.clean_name(name), tool_files.clean_name(function.file)


def _hotspot(part: _Part, whole: int, source: str, told: str) -> Hotspot:
    """What was inlined from elsewhere and costs more than all at the function's own place is in the cause."""
    hottest = _costliest(part.places.items())
    cause = f"measured: {part.count:,} instructions{told}"
    elsewhere = hottest and (tool_files.clean_name(hottest[0]), hottest[1]) != part.position
    if part.file and hottest and elsewhere and hottest[0] not in {"", "???"}:
        cause += f", most in inlined {tool_files.clean_name(Path(hottest[0]).name)}:{hottest[1]}"
    share = part.count / whole
    return Hotspot(part.location, share, "instructions", source, *part.position, cause, share)


def _costliest(items: Iterable[tuple[Place, int]]) -> Place | None:
    """Return the place with the highest cost, the first of equals."""
    return min(items, key=lambda item: (-item[1], item[0]), default=(None, 0))[0]
