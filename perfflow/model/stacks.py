"""Folded stacks, the input format of flame graphs: ``main;parse;memcpy 42`` per line, root first.

``is_own`` tells files of the project from those of libraries, toolchains and the system. Debug information has only the
names of files, so their folder decides. Rust's standard library is compiled below ``/rustc/HASH``, crates below cargo's
registry, and Mojo's standard library below ``Mojo/stdlib``. Distributions remove their build folders, which leaves
names such as ``./malloc/malloc.c``. For Python and Node.js, foreign code is what is installed or comes with the
interpreter.

``StackProfile`` is one profile with stacks, from which flame graphs and exported profiles are made.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import TypeVar

from perfflow.model.readings import HOTSPOT, MOST_HOTSPOTS, NEARLY_ALL, Cost, Hotspot

K = TypeVar("K", bound=Hashable)
Stack = tuple[str, ...]
_LONGEST_COUNT = 18


@dataclass(frozen=True)
class Frame:
    """The name of a frame and, if the profiler knows it, its source position."""

    name: str
    file: str = ""
    line: int = 0

    def is_of(self, pattern: str) -> bool:
        """Return whether ``FUNCTION`` or ``FILE:FUNCTION`` begins with what a regular expression matches."""
        return bool(re.match(pattern, self.name) or re.match(pattern, f"{self.file}:{self.name}"))


def summed(counts: Iterable[tuple[K, int]]) -> Counter[K]:
    """Add up counts by key, in the order in which keys first occur."""
    sums: Counter[K] = Counter()
    for key, count in counts:
        sums[key] += count
    return sums


def write_folded(stacks: Mapping[Stack, int]) -> str:
    """Return folded text, sorted so that the same profile gives the same bytes. ``;`` inside a name becomes ``:``.

    An empty stack is written as ``?``, because a line needs a name.
    """
    rows = [(";".join(_clean(name) for name in stack) or "?", count) for stack, count in stacks.items()]
    return "".join(f"{row} {count}\n" for row, count in sorted(rows))


def _clean(name: str) -> str:
    return " ".join(name.replace(";", ":").split()) or "?"


def read_folded(text: str) -> Counter[Stack]:
    """Read folded text; raises ValueError with the line number for a line without a count."""
    stacks: Counter[Stack] = Counter()
    for number, line in enumerate(text.splitlines(), 1):
        if not line.strip():
            continue
        names, _, count = line.rstrip().rpartition(" ")
        # No real count is this long. Python converts long numbers slowly, and refuses more than 4300 digits.
        if not names or not count.isascii() or not count.isdecimal() or len(count) > _LONGEST_COUNT:
            raise ValueError(f"line {number}: {line[:80]!r} is not a folded stack")
        stacks[tuple(names.split(";"))] += int(count)
    return stacks


def share_below(stacks: Mapping[Stack, int], is_wanted: Callable[[str], bool]) -> float:
    """Return the share of a profile in the wanted functions and their callees: the largest possible saving."""
    whole = sum(stacks.values())
    return sum(count for stack, count in stacks.items() if any(map(is_wanted, stack))) / whole if whole else 0.0


def hotspots_of(
    leaves: Iterable[tuple[Frame, int]],
    *,
    source: str,
    unit: str = "time",
    keep: int = MOST_HOTSPOTS,
    inclusive: Iterable[tuple[Frame, int]] = (),
) -> tuple[Hotspot, ...]:
    """Rank frames by their own (self) count; ``share`` is of the whole profile. Ties are broken by name.

    ``inclusive``: each function of each stack once, with the count of the stack. Functions of the project that spend
    more than HOTSPOT with what they call then follow, the largest first, also if they spend nothing themselves. Those
    that call all of the rest are left out.
    """
    ranked = costs_of(leaves, unit)
    whole = sum(cost.count for cost in ranked)
    own, below = ({(cost.function, cost.file): cost for cost in costs} for costs in (ranked, costs_of(inclusive, unit)))
    places = list(own)[:keep]
    large = (place for place, cost in below.items() if leads_to_a_part(cost.file, cost.count / whole))
    places += [place for place in islice(large, keep) if place not in places]
    return tuple(
        Hotspot(
            *(name, own[name, file].count / whole if (name, file) in own else 0.0, unit, source, file),
            (own.get((name, file)) or below[name, file]).line,
            inclusive_share=below[name, file].count / whole if (name, file) in below else None,
        )
        for name, file in places
    )


def leads_to_a_part(file: str, inclusive_share: float) -> bool:
    """Whether a function is the project's own, and has more than noise and less than all with what it calls."""
    return is_own(file) and HOTSPOT < inclusive_share < NEARLY_ALL


def callers_and_callees(frames: Iterable[Frame]) -> Iterable[Frame]:
    """Return each function of a stack once, root first, with the place of its innermost call."""
    return {(frame.name, frame.file): frame for frame in frames}.values()


def costs_of(leaves: Iterable[tuple[Frame, float]], metric: str) -> tuple[Cost, ...]:
    """Sum the costs of frames by function and file, the largest first; ``line`` is the first of the costliest lines."""
    totals: dict[tuple[str, str], float] = {}
    lines: dict[tuple[str, str], dict[int, float]] = {}
    for frame, count in leaves:
        key = (frame.name, frame.file)
        totals[key] = totals.get(key, 0) + count
        of_key = lines.setdefault(key, {})
        of_key[frame.line] = of_key.get(frame.line, 0) + count
    ranked = sorted(totals.items(), key=lambda item: (-item[1], item[0]))
    return tuple(
        Cost(metric, name, count, file, max(lines[name, file].items(), key=lambda item: (item[1], -item[0]))[0])
        for (name, file), count in ranked
        if count
    )


@dataclass(frozen=True)
class StackProfile:
    """Stacks of one profile, root first, each with its own count.

    ``unit`` of counts is ``samples``, ``ns``, ``instructions``, ``bytes`` or ``allocations``. ``threads`` maps
    the name of a thread to its stacks, '' if threads are unknown. ``per_operation`` is the cost of one operation
    in ``cost_unit`` (``ns``, ``instructions``, ``bytes``, ``allocations``), None if it was not measured; a count is
    worth ``per_operation / sum of all counts``. Several profiles of one step, benchmark and side differ in ``number``.
    ``is_call_pairs`` marks a profile that contains only direct callers, such as cProfile's.
    """

    step: str
    benchmark: str
    side: str
    tool: str
    unit: str
    threads: Mapping[str, Mapping[Stack, int]]
    number: int = 0
    per_operation: float | None = None
    cost_unit: str = "ns"
    is_call_pairs: bool = False


_FOREIGN = re.compile(
    r"""(?:
      (?:[^/]+/)?\./ | /rustc/ | /rust/deps/ | library/(?:alloc|core|std|panic_unwind|proc_macro|test)/src/
      | .*/library/(?:alloc|core|std|panic_unwind|test)/src/
      | .*/\.?cargo/(?:registry|git)/ | .*/\.rustup/toolchains/
      | /usr/(?:include|lib|lib64|libexec|share)/ | /usr/local/(?:include|lib|go)/ | /usr/src/debug/
      | .*/include/c\+\+/ | .*/c\+\+/v1/ | .*/(?:sysdeps|bits)/
      | /build/(?:glibc|gcc|llvm|python) | .*/python-build\.[^/]*/ | Mojo/stdlib/
      | \$GOROOT/ | .*/go/pkg/mod/
      | .*/lib/python3\.\d+/ | .*/(?:site-packages|dist-packages|node_modules)/ | node:
    )""",
    re.VERBOSE,
)


def is_own(file: str) -> bool:
    """Whether a source file, as debug information names it, may be the project's own."""
    return file not in {"", "???"} and not file.startswith("<") and not _FOREIGN.match(file)


def innermost_own(frames: Sequence[Frame]) -> int | None:
    """Return the index of the first frame, leaf first, of the project's own code; None if there is none."""
    return next((index for index, frame in enumerate(frames) if is_own(frame.file)), None)
