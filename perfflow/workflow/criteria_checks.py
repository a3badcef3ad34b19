"""Read targets, thresholds, accepted regressions and peaks of a file into the criteria of its verdict."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from datetime import date
from functools import partial
from typing import Any

from perfflow.model.criteria import (
    THRESHOLD_KEYS,
    Accepted,
    Criteria,
    MemoryThresholds,
    OwnThresholds,
    Thresholds,
    order_problem,
    read_share,
    read_threshold,
)
from perfflow.model.metrics import COMPARED_STATISTICS, METRICS, Better, Metric, meant_by
from perfflow.model.peaks import read_peak_key
from perfflow.model.similar import did_you_mean
from perfflow.model.targets import Target, read_key, target_of
from perfflow.model.units import Dimension, Relation, UnitError, parse_as
from perfflow.workflow import model, route_checks
from perfflow.workflow.document import Loc
from perfflow.workflow.expression_text import OPEN, ExpressionError
from perfflow.workflow.expressions import render
from perfflow.workflow.load import Draft
from perfflow.workflow.step_checks import BLOCK_HINT, BLOCK_TEXT


def read(draft: Draft, metrics: Mapping[str, Metric], params: Mapping[str, Any]) -> Criteria:
    """Return the criteria that could be read, and add the problems of the others to the draft."""
    written = draft.workflow.thresholds
    own = _own(draft, written, ("thresholds",), params, Criteria())
    everywhere = Criteria(
        thresholds=Thresholds(**own.shares), memory=None if own.memory is None else MemoryThresholds(**own.memory)
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
        routes=tuple(route_checks.read(draft)),
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
        wanted = target.requirement.text
        message = f"`{wanted}` requires this exact value, but a measured {target.metric.name} varies from run to run"
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
