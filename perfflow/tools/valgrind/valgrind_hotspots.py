"""The functions that execute the most instructions by callgrind and cachegrind, and what else they cost."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import TypeVar

from perfflow.samples.readings import Cost, Hotspot
from perfflow.tools import own_code, symbol_names, tool_files
from perfflow.tools.valgrind.valgrind_costs import Costs, Function, Place

_UNKNOWN = re.compile(r"0x[0-9A-Fa-f]+\Z|\?\?\?\Z")
_KEPT = 20
_TELLING = 0.1
"""The share of another event, such as cache misses, from which on it is part of the cause."""

_Key = tuple[str, str]


def hotspots_of(
    found: Iterable[Costs], source: str, others: Mapping[str, Sequence[str]] | None = None
) -> tuple[Hotspot, ...]:
    """Rank the functions of all processes by their own instructions, the files' first event.

    ``others`` are sums of further events by what they are called: a function that has a good part of one says so.
    A function of C++ or Rust is one whatever sources were inlined into it, which cachegrind keeps apart.
    """
    functions, events = _summed(found)
    counts = {key: sum(places.values()) for key, places in functions.items()}
    whole = sum(counts.values())
    ranked = sorted((key for key in counts if counts[key]), key=lambda key: (-counts[key], key))[:_KEPT]
    return tuple(_hotspot(key, functions[key], whole, source, _told(key, events, others or {})) for key in ranked)


def costs_of(found: Iterable[Costs]) -> tuple[Cost, ...]:
    """Every function's own instructions, the largest first; what it calls in libraries is the libraries'."""
    functions, _ = _summed(found)
    counts = [(key, sum(places.values())) for key, places in functions.items()]
    return tuple(
        Cost("instructions", key[0], count, *_position(key, functions[key]))
        for key, count in sorted(counts, key=lambda item: (-item[1], item[0]))
        if count
    )


def _summed(found: Iterable[Costs]) -> tuple[dict[_Key, Counter[Place]], dict[_Key, Counter[str]]]:
    """Of all processes' functions the first event by source line, and all events."""
    functions: dict[_Key, Counter[Place]] = {}
    events: dict[_Key, Counter[str]] = {}
    for costs in found:
        for function, places in costs.functions.items():
            key = _shown(function)
            functions.setdefault(key, Counter()).update(places)
            counted = dict(zip(costs.events, costs.of_function[function], strict=True))
            events.setdefault(key, Counter()).update(counted)
    return _whole(functions), _whole(events)


_Counts = TypeVar("_Counts", Counter[Place], Counter[str])


def _whole(parts: Mapping[_Key, _Counts]) -> dict[_Key, _Counts]:
    """Put the parts of one qualified name together, under the first of its files that is the project's own."""
    named: dict[str, list[_Key]] = {}
    for key in parts:
        if "::" in key[0] and key[1]:
            named.setdefault(key[0], []).append(key)
    found = dict(parts)
    for keys in (keys for keys in named.values() if len(keys) > 1):
        first = min(keys, key=lambda key: (not own_code.is_own(key[1]), key[1]))
        whole = found[first].copy()
        for key in keys:
            if key != first:
                whole.update(found.pop(key))
        found[first] = whole
    return found


def _told(key: _Key, events: Mapping[_Key, Counter[str]], others: Mapping[str, Sequence[str]]) -> str:
    """Say which share of other events a function has, the largest share first."""
    shares = []
    for name, summed in others.items():
        whole = sum(found[event] for found in events.values() for event in summed)
        own = sum(events[key][event] for event in summed)
        if whole and own >= _TELLING * whole:
            shares.append((own / whole, name))
    return "".join(
        f", {share:.0%} of the {name}" for share, name in sorted(shares, key=lambda item: (-item[0], item[1]))
    )


def _shown(function: Function) -> _Key:
    """Return the location and file of a function; without a name or a source the library stands for them."""
    library, name = Path(function.object).name, symbol_names.plain(function.name)
    if _UNKNOWN.match(name):
        return tool_files.clean_name(f"[{library}]" if library else "???"), ""
    if function.file in {"", "???"}:
        return tool_files.clean_name(f"{name} ({library})" if library else name), ""
    return tool_files.clean_name(name), tool_files.clean_name(function.file)


def _hotspot(key: _Key, places: Mapping[Place, int], whole: int, source: str, told: str) -> Hotspot:
    """The place is the costliest of the function's own file; of one of C++ or Rust, of the project's own code.

    What was inlined from elsewhere and costs more is in the cause.
    """
    location = key[0]
    count = sum(places.values())
    hottest = _costliest(list(places.items()))
    file, line = _position(key, places)
    cause = f"measured: {count:,} instructions{told}"
    elsewhere = hottest and (tool_files.clean_name(hottest[0]), hottest[1]) != (file, line)
    if file and hottest and elsewhere and hottest[0] not in {"", "???"}:
        cause += f", most in inlined {tool_files.clean_name(Path(hottest[0]).name)}:{hottest[1]}"
    share = count / whole
    return Hotspot(location, share, "instructions", source, file, line, cause, share)


def _position(key: _Key, places: Mapping[Place, int]) -> tuple[str, int]:
    """Return the file and line that stand for a function; 0 where no line is known."""
    location, file = key
    if file and ("::" in location or not own_code.is_own(file)):
        mine = _costliest([item for item in places.items() if own_code.is_own(item[0][0])])
        file = tool_files.clean_name(mine[0]) if mine else file
    own = _costliest([item for item in places.items() if tool_files.clean_name(item[0][0]) == file])
    return file, own[1] if own and file else 0


def _costliest(items: Sequence[tuple[Place, int]]) -> Place | None:
    """Return the place with the highest cost, the first of equals."""
    return min(items, key=lambda item: (-item[1], item[0]))[0] if items else None
