"""The evidence of a run for one condition of a rule, as text: hotspots, slower functions, metrics."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache

from perfflow.model.criteria import Criteria
from perfflow.model.readings import FEW_SAMPLES
from perfflow.model.result import Benchmark, HotspotResult
from perfflow.model.units import Dimension, format_change, format_quantity, format_together, significant
from perfflow.tools import own_code
from perfflow.tools.linux.costly_calls import parse_cause
from perfflow.verdict.attribution import loss_share_text
from perfflow.verdict.counted import read_count
from perfflow.verdict.findings import Findings, worse_by
from perfflow.verdict.kernel_evidence import LowOccupancy, Stalled, Wasted, current_kernels, of_kernel
from perfflow.verdict.localization import current

_NAMED = 3
"""Number of places named per profile."""


@dataclass(frozen=True)
class Calls:
    """Functions, and calls of a kind below other functions, with together at least ``share`` of a profile of ``of``.

    All functions of files that match ``files`` count.
    """

    share: float
    of: tuple[str, ...]
    functions: tuple[str, ...] = ()
    calls: str = ""
    files: tuple[str, ...] = ()


@dataclass(frozen=True)
class Place:
    """One hotspot that alone has at least ``share`` of a profile of ``of`` by one of the profilers in ``by``.

    It must match one of ``functions``, if given. Its source must show all of ``code`` and one of ``any_code``, and its
    profiler must have counted it at least ``count`` times (calls, hits, blocks or opens).
    """

    share: float
    of: tuple[str, ...]
    by: tuple[str, ...]
    functions: tuple[str, ...] = ()
    code: tuple[str, ...] = ()
    any_code: tuple[str, ...] = ()
    count: int = 0


@dataclass(frozen=True)
class Growth:
    """A metric that is proven worse than on the baseline by at least a share."""

    metric: tuple[str, ...]
    grew: float


@dataclass(frozen=True)
class Rate:
    """A metric of the latest side, divided by the metric ``per`` if given, that is over a number.

    The metric itself must be at least ``least``, because the rate of a tiny count means nothing.
    """

    metric: tuple[str, ...]
    over: float
    per: str = ""
    least: float = 0.0


@dataclass(frozen=True)
class Low:
    """A metric of the latest side that is under a number.

    For GPU kernels, these must have at least ``time``, a share of all kernels' time.
    """

    metric: tuple[str, ...]
    under: float
    time: float = 0.0


Condition = Calls | Place | Growth | Rate | Low | LowOccupancy | Wasted | Stalled


def evidence(condition: Condition, found: Findings, benchmark: str) -> Iterator[str]:
    """Yield the evidence for one benchmark, a text per profile or metric; nothing if the condition does not hold."""
    match condition:
        case Calls():
            yield from _in_profiles(condition, found, benchmark)
            yield from _in_losses(condition, found, benchmark)
        case Place():
            yield from _in_places(condition, found, benchmark)
        case Growth():
            yield from _grown(condition, found, benchmark)
        case Rate():
            yield from _rates(condition, found, benchmark)
        case Low():
            yield from _low(condition, found, benchmark)
        case LowOccupancy() | Wasted() | Stalled():
            for item in current_kernels(found.kernels):
                if item.benchmark == benchmark:
                    yield from of_kernel(condition, item)


def _in_profiles(condition: Calls, found: Findings, benchmark: str) -> Iterator[str]:
    """Yield the total share per profile: shares are of disjoint parts. Profiles with few samples are skipped."""
    profiles: dict[tuple[str, str, str], list[tuple[float, str]]] = defaultdict(list)
    for spot in current(found.hotspots):
        if spot.benchmark == benchmark and spot.unit in condition.of and not _is_thin(found, spot.step):
            part = _part(condition, spot)
            if part:
                profiles[spot.step, spot.source, spot.unit].append(part)
    for (_, source, unit), parts in profiles.items():
        whole = sum(share for share, _ in parts)
        if whole >= condition.share:
            first = sorted(parts, key=lambda part: (-part[0], part[1]))[:_NAMED]
            yield f"{source}: {whole:.0%} of {unit} ({'; '.join(text for _, text in first)})"


def _is_thin(found: Findings, step: str) -> bool:
    """Return whether the profiler warned that it took too few samples for reliable shares."""
    said = [*found.record.outcome_of(step).warnings, *found.record.warnings.get(step, [])]
    return any(FEW_SAMPLES in warning for warning in said)


def _part(condition: Calls, spot: HotspotResult) -> tuple[float, str] | None:
    """Return the share that a hotspot adds: all of it if its own name matches, else the measured part below it."""
    place = f" ({spot.file}:{spot.line})" if spot.file and spot.line else ""
    of_file = condition.files and _pattern(condition.files).fullmatch(spot.file)
    if of_file or _named(condition.functions, spot.location, spot.file):
        return spot.share, f"{spot.location}{place} {spot.share:.0%}"
    told = parse_cause(spot.cause)
    if told and told.kind == condition.calls:
        share = spot.share * told.share
        return share, f"{spot.location}{place} {spot.share:.0%}, {told.share:.0%} of it {told.kind}, by {told.through}"
    return None


def _in_places(condition: Place, found: Findings, benchmark: str) -> Iterator[str]:
    """Yield each hotspot that matches, the largest of each profile first."""
    for spot in current(found.hotspots):
        if spot.benchmark != benchmark or spot.unit not in condition.of or spot.source not in condition.by:
            continue
        count = read_count(spot.cause)
        if spot.share < condition.share or count < condition.count or _is_thin(found, spot.step):
            continue
        if condition.functions and not _named(condition.functions, spot.location, spot.file):
            continue
        shown = [use for use in (*condition.code, *condition.any_code) if use in spot.uses]
        if set(condition.code) <= set(shown) and (not condition.any_code or set(condition.any_code) & set(shown)):
            place = f" ({spot.file}:{spot.line})" if spot.file and spot.line else ""
            counted = [f"{count:,} times"] if count else []
            said = "; ".join([f"{spot.share:.0%} of {spot.unit}", *counted, *shown])
            yield f"{spot.source}: {spot.location}{place}: {said}"


def _in_losses(condition: Calls, found: Findings, benchmark: str) -> Iterator[str]:
    for item in found.blamed:
        lost = item.benchmark == benchmark and item.share is not None and item.share >= condition.share
        if lost and _named(condition.functions, item.function, item.file):
            held = loss_share_text(item.share or 0.0)
            yield f"{item.tool}: {item.function} accounts for {held} of the regression of {benchmark} {item.metric}"


@cache
def _pattern(globs: tuple[str, ...]) -> re.Pattern[str]:
    """Return a pattern for globs in which brackets and slashes are ordinary characters: ``sync.(*Mutex).Lock``."""
    texts = ("".join({"*": ".*", "?": "."}.get(letter) or re.escape(letter) for letter in glob) for glob in globs)
    return re.compile("|".join(f"(?:{text})" for text in texts), re.DOTALL)


_BARE = re.compile(r"\w+")
_OF_PYTHON = re.compile(r".*/(?:lib/python\d|site-packages/|dist-packages/|Python-\d)")


def _named(globs: tuple[str, ...], name: str, file: str) -> bool:
    """Return whether a glob matches a name, also without its parameters, its version or its library.

    A bare name in the project's own code never matches: debug information shortens methods to names such as `write`,
    which is not the system call.
    """
    if _BARE.fullmatch(name) and own_code.is_own(file) and not _OF_PYTHON.match(file):
        return False
    forms = (name, re.sub(r" \([^()]*\)$", "", name), name.partition("@")[0], name.partition("(")[0])
    return any(_pattern(globs).fullmatch(form) for form in forms)


def _grown(condition: Growth, found: Findings, benchmark: str) -> Iterator[str]:
    for row in found.rows:
        if row.name != benchmark or row.metric not in condition.metric or row.decision != "regressed":
            continue
        worse = worse_by(row)
        if worse is not None and worse < condition.grew:
            continue
        dimension = found.criteria.metric(row.metric).dimension
        known = [side.value for side in (row.baseline, row.candidate) if side and side.value is not None]
        values = format_together(known, dimension)
        yield f"{row.metric}: {' → '.join(values)}" + (f" ({format_change(worse)})" if worse is not None else "")


def _rates(condition: Rate, found: Findings, benchmark: str) -> Iterator[str]:
    values = {row.metric: value for row in found.rows if row.name == benchmark and (value := _value(row)) is not None}
    for metric in condition.metric:
        value, other = values.get(metric), values.get(condition.per)
        if value is None or (condition.per and other is None) or value < condition.least:
            continue
        if not condition.per:
            if value > condition.over:
                yield f"{metric}: {_plain(metric, value, found)} (over {_plain(metric, condition.over, found)})"
        elif other is not None and value > condition.over * other:
            figures = f"{_figure(metric, value, found.criteria)} to {_figure(condition.per, other, found.criteria)}"
            yield f"{metric}: {figures} {condition.per}"


def _low(condition: Low, found: Findings, benchmark: str) -> Iterator[str]:
    shares = [item.share or 0.0 for item in current_kernels(found.kernels) if item.benchmark == benchmark]
    if shares and sum(shares) < condition.time:
        return
    for row in found.rows:
        value = _value(row) if row.name == benchmark and row.metric in condition.metric else None
        if value is not None and value < condition.under:
            least = _plain(row.metric, condition.under, found)
            yield f"{row.metric}: {_plain(row.metric, value, found)} (under {least})"


def _figure(metric: str, value: float, criteria: Criteria) -> str:
    return format_quantity(value, criteria.metric(metric).dimension)


def _plain(metric: str, value: float, found: Findings) -> str:
    """Return a ratio as a percentage, and any other value with its unit."""
    is_ratio = found.criteria.metric(metric).dimension is Dimension.RATIO
    return f"{significant(value * 100)}%" if is_ratio else _figure(metric, value, found.criteria)


def _value(row: Benchmark) -> float | None:
    """Return the current value: that of the candidate, or of the baseline if only that was measured."""
    side = row.candidate or row.baseline
    return side.value if side else None
