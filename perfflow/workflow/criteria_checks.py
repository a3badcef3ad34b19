"""Read targets, thresholds, accepted regressions, peaks and routes of a file into the criteria of its verdict.

- ``read`` reads the criteria.
- ``FACTS`` are the facts that rules under ``routes`` can use: names, kinds and meanings. The names are checked when a
  file is loaded; the values are computed when a run is judged.
- ``read_route`` reads and checks ``routes`` when the file is loaded; the rules are evaluated after a run is judged.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from datetime import date
from enum import StrEnum
from functools import partial
from types import MappingProxyType
from typing import Any, Self, SupportsIndex

from perfflow.model.criteria import (
    THRESHOLD_KEYS,
    Accepted,
    Criteria,
    MemoryThresholds,
    OwnThresholds,
    Route,
    Thresholds,
    order_problem,
    read_share,
    read_threshold,
)
from perfflow.model.metrics import COMPARED_STATISTICS, METRICS, Better, Metric, meant_by
from perfflow.model.peaks import read_peak_key
from perfflow.model.similar import did_you_mean
from perfflow.model.targets import Target, matches, read_key, target_of
from perfflow.model.units import Dimension, Relation, UnitError, parse_as
from perfflow.workflow import model
from perfflow.workflow.document import Loc
from perfflow.workflow.expression_text import OPEN, ExpressionError
from perfflow.workflow.expressions import Expression, render
from perfflow.workflow.load import Draft
from perfflow.workflow.model import Route as Written
from perfflow.workflow.step_checks import BLOCK_HINT, BLOCK_TEXT


def read(draft: Draft, metrics: Mapping[str, Metric], params: Mapping[str, Any]) -> Criteria:
    """Return the criteria that could be read, and add the problems of the others to the draft."""
    written = draft.workflow.thresholds
    of_file = _own(draft, written, ("thresholds",), params, Criteria())
    everywhere = Criteria(
        thresholds=Thresholds(**of_file.shares),
        memory=None if of_file.memory is None else MemoryThresholds(**of_file.memory),
    )
    return replace(
        everywhere,
        targets=tuple(_targets(draft, metrics)),
        per_glob={
            glob: _own(draft, values, ("thresholds", "for", glob), params, everywhere)
            for glob, values in written.for_.items()
        },
        ignore=tuple(draft.workflow.ignore),
        accepted=tuple(_accepted(draft, metrics)),
        metrics=metrics,
        peaks=dict(_peaks(draft, metrics)),
        routes=tuple(read_route(draft)),
    )


def _targets(draft: Draft, metrics: Mapping[str, Metric]) -> Iterator[Target]:
    for benchmark, requirements in draft.workflow.targets.items():
        seen: dict[tuple[str, str], str] = {}
        for key, text in requirements.items():
            loc: Loc = ("targets", benchmark, key)
            if draft.document.style(loc) in (">", "|"):
                draft.complain(loc, BLOCK_TEXT, BLOCK_HINT)
                continue
            target = _target(draft, benchmark, key, text, metrics)
            if target is None:
                continue
            same = seen.setdefault((target.metric.name, target.statistic), key)
            if same != key:
                message = f"`{key}` and `{same}` are the same figure"
                draft.complain(loc, message, f"write one key: {same}: {{min: ..., max: ...}}", key=True)
            yield target


def _target(draft: Draft, benchmark: str, key: str, text: object, metrics: Mapping[str, Metric]) -> Target | None:
    loc: Loc = ("targets", benchmark, key)
    try:
        figure = read_key(key, metrics)
    except UnitError as error:
        # An invalid step may define this metric.
        if not _adds_unknown_metrics(draft):
            draft.complain(loc, str(error), error.hint, key=True)
        return None
    try:
        target = target_of(benchmark, figure, text)
    except UnitError as error:
        draft.complain(loc, str(error), error.hint)
        return None
    instead = instead_of_equality(target)
    if instead:
        requirement = target.requirement.text
        message = (
            f"`{requirement}` requires this exact value, but a measured {target.metric.name} varies from run to run"
        )
        draft.complain(loc, message, f"write {instead}")
        return None
    return target


_NOISY = (Dimension.TIME, Dimension.THROUGHPUT, Dimension.RATE, Dimension.FLOPS)


def instead_of_equality(target: Target) -> str:
    """Return the bound to write instead of an exact value of a figure that varies from run to run, or ''.

    Relative figures (speedup, change) vary as well.
    """
    if target.requirement.relation is not Relation.EQUAL or target.metric.exact:
        return ""
    if target.statistic not in COMPARED_STATISTICS and target.metric.dimension not in _NOISY:
        return ""
    if target.requirement.growth or target.requirement.of_peak:
        return ""
    bare = target.requirement.text.lstrip("= ")
    higher = target.statistic == "speedup" or (target.metric.better is Better.HIGHER and target.statistic != "change")
    return f"≥{bare}" if higher else f"<{bare}"


def _adds_unknown_metrics(draft: Draft) -> bool:
    return any(loc[:1] == ("stages",) and (len(loc) < 5 or loc[4] in ("parse", "uses")) for loc in draft.wrong)


def _own(
    draft: Draft, written: model.OwnThresholds, loc: Loc, params: Mapping[str, Any], base: Criteria
) -> OwnThresholds:
    """Return the thresholds written at ``loc``; those of ``base`` hold where it sets none."""
    texts = {key: text for key in THRESHOLD_KEYS if (text := getattr(written, key)) is not None}
    shares = _shares(draft, texts, loc, params)
    _check_order(draft, replace(base.thresholds, **shares), shares, loc)
    if written.memory == "off":
        return OwnThresholds(shares, None)
    texts = written.memory.model_dump(exclude_none=True) if written.memory else {}
    memory = _shares(draft, texts, (*loc, "memory"), params)
    limits = replace(base.memory or MemoryThresholds(), **memory)
    _check_order(draft, Thresholds(limits.concern, limits.action), memory, (*loc, "memory"))
    return OwnThresholds(shares, memory)


def _shares(draft: Draft, texts: Mapping[str, str], loc: Loc, params: Mapping[str, Any]) -> dict[str, float]:
    read = {}
    for key, text in texts.items():
        share = _share(draft, text, (*loc, key), params, partial(read_threshold, key))
        if share is not None:
            read[key] = share
    return read


def _check_order(draft: Draft, thresholds: Thresholds, read: Mapping[str, float], loc: Loc) -> None:
    """Report thresholds in the wrong order; only those that the file sets are compared."""
    problem = order_problem(thresholds, read)
    if problem:
        draft.complain((*loc, problem.key), problem.message, problem.hint)


def _accepted(draft: Draft, metrics: Mapping[str, Metric]) -> Iterator[Accepted]:
    for index, item in enumerate(draft.workflow.accepted):
        loc: Loc = ("accepted", index)
        share = _share(draft, item.change, (*loc, "change"))
        try:
            date.fromisoformat(item.until)
        except ValueError:
            draft.complain((*loc, "until"), f"{item.until!r} is not a date", "write it as YYYY-MM-DD")
        _check_metric(draft, item.metric, loc, {**METRICS, **metrics})
        if share is not None:
            yield Accepted(item.benchmark, share, item.why, item.until, item.metric or "")


def _check_metric(draft: Draft, metric: str | None, loc: Loc, known: Mapping[str, Metric]) -> None:
    if metric is None:
        text = "without `metric`, this entry covers only the metric that decides the verdict of the benchmark"
        draft.warn(loc, text, "write `metric: time`, or the metric that may get worse")
    elif metric not in known and not _adds_unknown_metrics(draft):
        hint = meant_by(metric, known) or did_you_mean("", known, "metrics")
        draft.complain((*loc, "metric"), f"unknown metric `{metric}`", hint)


def _peaks(draft: Draft, metrics: Mapping[str, Metric]) -> Iterator[tuple[str, float]]:
    """Yield the peaks that ``of peak`` refers to: metric, or ``flops PRECISION``, and the value in base units."""
    known = {**METRICS, **metrics}
    for key, text in draft.workflow.peaks.items():
        loc: Loc = ("peaks", key)
        name, precision = read_peak_key(key)
        if precision and name != "flops":
            draft.complain(loc, f"`{name}` has no precision", f"write `{name}` or `flops {precision}`", key=True)
            continue
        if name not in known:
            hint = meant_by(name, known) or did_you_mean("", known, "metrics")
            draft.complain(loc, f"unknown metric `{name}` under `peaks`", hint, key=True)
            continue
        try:
            value = parse_as(text, known[name].dimension).value
        except UnitError as error:
            draft.complain(loc, str(error), error.hint)
            continue
        if value > 0:
            yield key, value
        else:
            message = f"a peak must be above 0, not {text}"
            draft.complain(loc, message, "write the most that the machine can do, such as 45 GiB/s")


def _share(
    draft: Draft,
    text: str,
    loc: Loc,
    params: Mapping[str, Any] | None = None,
    read: Callable[[str], float] = read_share,
) -> float | None:
    try:
        return read(str(render(text, {"params": params})) if params is not None and OPEN in text else text)
    except ExpressionError as error:
        # Syntax and unknown names have been reported by expression_checks.
        if loc not in draft.wrong:
            draft.complain(loc, str(error), error.hint or "thresholds can use only `params`", find=error.near)
        return None
    except UnitError as error:
        draft.complain(loc, str(error), error.hint)
        return None


class FactKind(StrEnum):
    """Type of a fact."""

    NAMES = "names"
    TRUTH = "truth"
    NUMBER = "number"
    TEXT = "text"


@dataclass(frozen=True)
class Fact:
    """A value that a rule can use."""

    kind: FactKind
    meaning: str


def _names(meaning: str) -> Fact:
    return Fact(FactKind.NAMES, meaning)


FACTS: Mapping[str, Fact] = MappingProxyType(
    {
        "verdict": Fact(FactKind.TEXT, "`pass`, `fail`, `unproven` or `error`"),
        "gate": Fact(FactKind.TEXT, "`pass` or `fail`"),
        "workflow": Fact(FactKind.TEXT, "the workflow's name"),
        "component": Fact(FactKind.TEXT, "the report's title"),
        "benchmarks": _names("benchmarks that were measured"),
        "regressions": _names("benchmarks with a regression of any level in a metric that gates"),
        "regressions.action": _names("benchmarks with a regression of level `action`, which fails the gate"),
        "regressions.concern": _names("benchmarks with a regression of level `concern`, which passes with a warning"),
        "regressions.worst": Fact(FactKind.NUMBER, "the largest regression, 0.25 for 25% worse; 0 without regressions"),
        "improvements": _names("benchmarks with an improvement in a metric that gates"),
        "unproven": _names("benchmarks with an unproven metric that gates and may hide a regression beyond `action`"),
        "new": _names("benchmarks that only the candidate has"),
        "removed": _names("benchmarks that only the baseline has"),
        "targets.met": _names("benchmarks with a target that is met"),
        "targets.not_met": _names("benchmarks with a target that is not met"),
        "targets.unproven": _names("benchmarks with a target that is unproven"),
        "targets.not_measured": _names("benchmarks with a target that was not measured"),
        "hotspots": _names("functions that got slower; without such profiles, the functions with the largest shares"),
        "hotspots.localized": Fact(
            FactKind.TRUTH,
            "whether one function, file or crate explains at least half of the slowdown of each regressed benchmark",
        ),
        "hotspots.localized_in": Fact(
            FactKind.TEXT,
            "`function`, `file` or `crate`: the widest level needed for `localized`; empty if not localized",
        ),
        "hotspots.top": Fact(
            FactKind.TEXT, "the function that slowed down most, else the costliest one; empty without a profile"
        ),
        "hotspots.file": Fact(FactKind.TEXT, "file of `hotspots.top`; empty if unknown"),
        "hotspots.crate": Fact(FactKind.TEXT, "crate or package of `hotspots.top`; empty if unknown"),
        "hotspots.region": Fact(FactKind.TEXT, "name under `regions` of `hotspots.top`; empty if none matches"),
        "hotspots.share": Fact(
            FactKind.NUMBER, "share of `hotspots.top` in the slowdown of its benchmark, else in the profile, 0 to 1"
        ),
        "hotspots.files": _names("files of the functions that got slower"),
        "hotspots.crates": _names("crates or packages of the functions that got slower"),
        "hotspots.regions": _names("names under `regions` of the functions that got slower"),
        "commits": _names("short revisions between base and head that touched the functions that got slower"),
        "baseline.missing": Fact(FactKind.TRUTH, "whether benchmarks were measured and none of them has a baseline"),
        "accepted.used": _names("benchmarks that pass only because of an entry under `accepted`"),
        "accepted.expired": _names("benchmarks that regressed and have an expired entry under `accepted`"),
        "correctness.failed": _names("checks that failed"),
        "errors": _names("other steps that failed or timed out, without `continue-on-error`"),
        "recommendations": _names("rules that gave a recommendation"),
    }
)
"""All facts by their names in an expression."""

MATCHING = "in"
"""Method of lists of names that filters by a glob: ``regressions.in("core/**")``."""


class FoundNames(int):
    """A list of names whose numeric and boolean value is the number of names.

    ``parts`` has the facts below it, such as ``action`` of ``regressions``.
    """

    names: tuple[str, ...]
    parts: Mapping[str, Any]

    def __new__(cls, names: Iterable[str] = (), parts: Mapping[str, Any] = MappingProxyType({})) -> Self:
        """Create the list without duplicates."""
        each = tuple(dict.fromkeys(names))
        found = super().__new__(cls, len(each))
        found.names, found.parts = each, parts
        return found

    def __getattr__(self, name: str) -> Any:
        """Return a fact below this one, or the method ``in``, which is a keyword in Python."""
        if name == MATCHING:
            return self.matching
        try:
            return self.__dict__["parts"][name]
        except KeyError:
            raise AttributeError(name) from None

    def __iter__(self) -> Iterator[str]:
        return iter(self.names)

    def __len__(self) -> int:
        return len(self.names)

    def __contains__(self, name: object) -> bool:
        return name in self.names

    def __getitem__(self, index: SupportsIndex) -> str:
        return self.names[index]

    def matching(self, glob: str) -> FoundNames:
        """Return the names that a glob matches: ``*`` matches within one part of a name, ``**`` across parts.

        Parts are separated by ``/``, in names of functions by ``::``. Raises TypeError unless ``glob`` is a string.
        """
        if not isinstance(glob, str):
            raise TypeError(f'`in` takes a glob, such as .in("core/**"), not {glob!r}')
        return FoundNames(name for name in self.names if matches(_as_path(glob), _as_path(name)))


def _as_path(name: str) -> str:
    return re.sub("::", "/", name)


def context(values: Mapping[str, Any]) -> dict[str, Any]:
    """Return the facts in nested form for expressions: ``{"targets.met": x}`` becomes ``{"targets": {"met": x}}``.

    Raises KeyError if ``values`` lacks a fact.
    """
    nested: dict[str, Any] = {}
    for name in FACTS:
        root, _, below = name.partition(".")
        if not below:
            parts = {other.partition(".")[2]: values[other] for other in FACTS if other.startswith(f"{name}.")}
            nested[name] = FoundNames(values[name], parts) if parts else values[name]
        elif root not in FACTS:
            nested.setdefault(root, {})[below] = values[name]
    return nested


def examples() -> Iterator[dict[str, Any]]:
    """Yield the facts of a run without findings and of a run with one finding of each kind, to test conditions."""
    for names in ((), ("a/b",)):
        values: Mapping[FactKind, Any] = {
            FactKind.NAMES: FoundNames(names),
            FactKind.TRUTH: bool(names),
            FactKind.NUMBER: float(len(names)),
            FactKind.TEXT: "".join(names),
        }
        yield context({name: values[fact.kind] for name, fact in FACTS.items()})


def read_route(draft: Draft) -> Iterator[Route]:
    """Yield the valid rules, and add the problems of the others to the draft."""
    for index, written in enumerate(draft.workflow.routes):
        loc: Loc = ("routes", index)
        before = len(draft.wrong)
        _check_condition(draft, written, (*loc, "if"))
        if not written.to.strip():
            draft.complain((*loc, "to"), "`to` is empty", "name the recipient or next step: to: performance-review")
        if len(draft.wrong) == before:
            yield Route(condition_of(written), written.to.strip(), written.why)


def condition_of(written: Written) -> str:
    """Return the condition as text; the YAML boolean ``true`` is a rule that always matches."""
    return str(written.if_).lower() if isinstance(written.if_, bool) else written.if_.strip()


def holds(condition: str, facts: dict[str, object]) -> bool:
    """Return whether a rule matches. Numbers and lists of names are true unless 0 or empty.

    Raises ExpressionError, also if the value is a string.
    """
    value = Expression(condition).value(facts)
    if isinstance(value, str):
        hint = "write a comparison, such as verdict == 'fail'"
        raise ExpressionError(f"`if: {condition}` is a string, not true or false", condition, hint)
    return bool(value)


def _check_condition(draft: Draft, written: Written, loc: Loc) -> None:
    condition = condition_of(written)
    if OPEN in condition:
        hint = "write the expression alone, such as `if: regressions.action > 0`"
        draft.complain(loc, "`if` must not contain ${{ }}", hint, find=OPEN)
        return
    try:
        unknown = next(filter(None, (_unknown(path) for path in Expression(condition).names())), None)
        if unknown:
            name, message, hint = unknown
            draft.complain(loc, message, hint, find=name if name in condition else condition)
            return
        for facts in examples():
            holds(condition, facts)
    except ExpressionError as error:
        reason = str(error).replace("${{ ", "").replace(" }}", "").replace("'FoundNames'", "names")
        draft.complain(loc, reason, error.hint, find=error.near)


def _unknown(path: tuple[str, ...]) -> tuple[str, str, str] | None:
    """Return the text, message and hint for an invalid dotted name, or None if the name is valid."""
    written = ".".join(path)
    name = next((part for size in range(len(path), 0, -1) if (part := ".".join(path[:size])) in FACTS), "")
    rest = path[name.count(".") + 1 :] if name else path
    if name and not rest:
        return None
    kind = FACTS[name].kind if name else None
    if kind is FactKind.NAMES and rest == (MATCHING,):
        return None
    below = [other for other in FACTS if other.startswith(f"{written}.")]
    if below:
        return written, f"`{written}` has no value", f"use one of {', '.join(below)}"
    if kind is FactKind.TEXT and len(rest) == 1:
        return None  # a method of strings, which is checked at evaluation
    if kind is FactKind.NAMES and rest[0] == MATCHING:
        return written, f"unknown fact `{written}`", f'write {name}.{MATCHING}("core/**") > 0'
    return written, f"unknown fact `{written}`", did_you_mean(written, _known(path[0]), "facts")


def _known(root: str) -> list[str]:
    """Return the facts that may have been meant: those below the same name if there are several, else all."""
    own = [name for name in FACTS if name.partition(".")[0] == root]
    return own if len(own) > 1 else list(FACTS)
