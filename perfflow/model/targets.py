"""Targets: ``time p50: <10μs`` on a benchmark or a glob of benchmarks.

``Glob`` and ``Names`` find the benchmarks of a glob. ``SourcePlace`` is the source context of a line that a profiler
reports: the function around it, and the line's properties (``Use``).
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from functools import lru_cache
from itertools import islice
from typing import NamedTuple

from perfflow.model import similar
from perfflow.model.metrics import (
    COMPARED_STATISTICS,
    METRICS,
    OF_SIZES,
    STATISTICS,
    Metric,
    default_statistic,
    meant_by,
    statistic_dimension,
)
from perfflow.model.similar import nearest
from perfflow.model.units import GROWTH_CLASSES, Relation, Requirement, UnitError, parse_requirement


@dataclass(frozen=True)
class Target:
    """One requirement on one metric and statistic of every benchmark that ``benchmark`` (a glob) matches."""

    benchmark: str
    metric: Metric
    statistic: str
    requirement: Requirement


def parse_target(benchmark: str, key: str, requirement: object, metrics: Mapping[str, Metric]) -> Target:
    """Read the key ``[metric] [statistic]`` and its requirement. ``metrics`` holds those that the workflow adds.

    Raises UnitError for an unknown metric or statistic, and for a unit of the wrong dimension.
    """
    return target_of(benchmark, read_key(key, metrics), requirement)


_COMMON = (
    *("time", "cpu", "rss", "heap_peak", "alloc", "allocs", "instructions", "cache_misses", "syscalls"),
    *("throughput", "rate", "flops", "bandwidth", "binary_size"),
)
"""The most common metrics of targets, for the hint on an unknown metric without a similar name."""


class MetricStatistic(NamedTuple):
    """A metric and statistic; ``given``: the key names the statistic, else it is the metric's default."""

    metric: Metric
    statistic: str
    given: bool


def read_key(key: str, metrics: Mapping[str, Metric]) -> MetricStatistic:
    """Read ``[metric] [statistic]``; the metric is time by default. Raises UnitError if one of them is unknown."""
    known = {**METRICS, **metrics}
    words = [word if word in known else similar.STATISTICS.get(word, word) for word in key.split()]
    if words and words[0] not in known and words[0] in STATISTICS:
        words = ["time", *words]
    if not words or words[0] not in known:
        raise UnitError(f"unknown metric {(words or [key])[0]!r}", _nearest(words, known))
    metric = known[words[0]]
    if len(words) == 1:
        return MetricStatistic(metric, default_statistic(metric), given=False)
    statistic = " ".join(words[1:])
    if statistic not in STATISTICS:
        near = nearest(statistic, STATISTICS)
        hint = f"did you mean {near!r}?" if near else f"known: {', '.join(STATISTICS)}"
        raise UnitError(f"unknown statistic {statistic!r}", hint)
    return MetricStatistic(metric, statistic, given=True)


def target_of(benchmark: str, figure: MetricStatistic, requirement: object) -> Target:
    """Read the requirement on a figure; a growth class implies the statistic ``growth``.

    Raises UnitError for a unit of the wrong dimension, and for a requirement that does not suit the statistic.
    """
    statistic = "growth" if _is_growth(requirement) and not figure.given else figure.statistic
    read = parse_requirement(requirement, statistic_dimension(figure.metric, statistic))
    if bool(read.growth) != (statistic == "growth"):
        raise UnitError(
            "the statistic growth and a growth class go together", f"known classes: {', '.join(GROWTH_CLASSES)}"
        )
    if statistic == "speedup" and not read.unit and read.relation is Relation.EQUAL:
        raise UnitError(f"{read.text!r} would be an exact speedup", f"write ≥{read.text}x")
    if read.of_peak and statistic in (*COMPARED_STATISTICS, *OF_SIZES):
        raise UnitError(f"a {statistic} has no peak", "write a share or a factor, such as ≥1.5x")
    return Target(benchmark, figure.metric, statistic, read)


def _is_growth(requirement: object) -> bool:
    """Return whether a requirement is a growth class such as ``≤linear``."""
    words = str(requirement).lower().lstrip("<>=≤≥ ").replace(" ", "")
    return isinstance(requirement, str) and words in GROWTH_CLASSES


def _nearest(words: list[str], known: Mapping[str, Metric]) -> str:
    near = meant_by(words[0] if words else "", [*known, *STATISTICS])
    if near:
        return near
    shown = [*_COMMON, *(name for name in known if name not in METRICS)]
    return f"metrics: {', '.join(shown)} and others; `perfflow show TOOL` names those of a tool"


_MOST_STARS = 20
"""Most stars of a glob that are tried as ``**`` for a hint."""
LONGEST_GLOB = 1000
"""Most characters of a glob with stars; a longer one matches nothing."""


class Glob:
    """A pattern: ``?`` and ``*`` stay within one ``/`` part, ``**`` crosses them; nothing else is special.

    All ways to match are followed at once, with one bit per position in the pattern, so the time is linear in the
    length of the name. A regular expression tries one way after another, and a few stars give far too many ways.
    """

    def __init__(self, text: str) -> None:
        # Adjacent stars count as one token: `**` if there are several.
        parts = re.findall(r"\*\*+|\*|[^*]", text, re.DOTALL)
        self._letters: dict[str, int] = defaultdict(int)
        self._one = self._part = self._all = 0
        for number, part in enumerate(parts):
            place = 1 << number
            if part == "?":
                self._one |= place
            elif part == "*":
                self._part |= place
            elif part[0] == "*":
                self._all |= place
            else:
                self._letters[part] |= place
        self._end = 1 << len(parts)
        literal = re.split(r"[*?]", text)
        self._before, self._behind = literal[0], literal[-1]

    def matches(self, name: str) -> bool:
        """Return whether the whole name matches."""
        if not (name.startswith(self._before) and name.endswith(self._behind)):
            return False
        places = self._with_empty_stars(1 << len(self._before))
        for letter in name[len(self._before) :]:
            inside = letter != "/"
            passed = places & (self._letters.get(letter, 0) | (self._one if inside else 0))
            stayed = places & (self._all | (self._part if inside else 0))
            places = self._with_empty_stars(passed << 1 | stayed)
        return bool(places & self._end)

    def _with_empty_stars(self, places: int) -> int:
        """Return the places, also behind stars that match nothing."""
        return places | (places & (self._part | self._all)) << 1


_glob = lru_cache(maxsize=4096)(Glob)


class Names:
    """The names of benchmarks in their order, to find by glob. A text that is a name stands for this name only."""

    def __init__(self, names: Iterable[str]) -> None:
        self._names = tuple(dict.fromkeys(names))
        self._plain: dict[str, list[str]] = defaultdict(list)
        for name in self._names:
            self._plain[name].append(name)
            if _whole(name) != name:
                self._plain[_whole(name)].append(name)

    def matching(self, glob: str) -> list[str]:
        """Return the names that a glob matches, as ``matches`` decides, or only the one that is spelled like it."""
        if glob in self._plain or ("*" not in glob and "?" not in glob):
            return self._plain.get(glob, [])
        return [name for name in self._names if matches(glob, name)]


def matches(glob: str, name: str) -> bool:
    """Return whether a glob matches the whole name of a benchmark, case-sensitively.

    A glob for ``name`` also matches its cells ``name[k=v]``.
    """
    if is_named(glob, name):
        return True
    if ("*" not in glob and "?" not in glob) or len(glob) > LONGEST_GLOB:
        return False
    whole = _whole(name)
    pattern = _glob(glob)
    return pattern.matches(name) or (whole != name and pattern.matches(whole))


def is_named(text: str, name: str) -> bool:
    """Return whether a text is the name of a benchmark, or the name without its cell."""
    return text in (name, _whole(name))


def specificity(glob: str, name: str) -> tuple[bool, int, str]:
    """Return the key by which the most specific of several matching globs is the largest.

    The name itself comes first, also if it contains a wildcard, then the glob with the most literal characters.
    """
    return is_named(glob, name), len(glob.replace("*", "").replace("?", "")), glob


def is_chosen(globs: Sequence[str], name: str) -> bool:
    """Return whether a benchmark is among those that globs choose; without globs, all are."""
    return not globs or any(matches(glob, name) for glob in globs)


def _whole(name: str) -> str:
    """Return the name without its cell: ``name`` for ``name[k=v]``."""
    return name.rpartition("[")[0] if name.endswith("]") and "[" in name else name


def crossing_hint(glob: str, names: Sequence[str]) -> str:
    """Return a hint to write ``**`` for a ``*`` if the glob would then match one of the names; else ''."""
    stars = [found.span() for found in islice(re.finditer(r"(?<!\*)\*(?!\*)", glob), _MOST_STARS)]
    wider = [f"{glob[:start]}**{glob[end:]}" for start, end in stars]
    if len(stars) > 1:
        wider.append(re.sub(r"\*+", "**", glob))
    meant = next((text for text in wider if any(matches(text, name) for name in names)), "")
    return f"`*` does not cross `/`; write `{meant}`" if meant else ""


class Use(StrEnum):
    """Properties of a line of Python that are visible in its source; each value is also the text in evidence."""

    IN_LOOP = "in a loop"
    ELEMENTS = "indexes by a loop's variable"
    """For example ``a[i]`` in ``for i in range(n)``."""
    ARRAYS = "its module imports an array library"
    TEXT = "adds to a text in a loop"
    UNBOUNDED = "in a function cached without bound"
    CONTAINER = "fills a container of its module"


@dataclass(frozen=True)
class SourcePlace:
    """The function that contains a line, such as ``Store.keep``, and its first line; '' and 0 if unknown.

    ``begins`` distinguishes functions of the same name. It is 0 if ``function`` is ``<module>``.
    """

    function: str = ""
    begins: int = 0
    uses: tuple[Use, ...] = ()


NOWHERE = SourcePlace()
