"""Read a bisection back from bisect.json, which ``bisect_result`` writes, to render its page again."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

from perfflow.stats.paired_test import Interval
from perfflow.trees.bisection import Described
from perfflow.verdict.bisect_result import SCHEMA, Bisected, Outcome, Tried
from perfflow.verdict.bisection import Holds, Regression


def read(data: Mapping[str, Any]) -> Bisected:
    """Return the bisection in bisect.json. Raises LookupError, TypeError or ValueError if the data is damaged."""
    if data["schema"] != SCHEMA:
        raise ValueError(f"its schema is {data['schema']!r}, not {SCHEMA!r}")
    first = data["first_bad"]
    parents = {first["revision"]: tuple(parent["revision"] for parent in first["parents"])} if first else {}
    return Bisected(
        outcome=Outcome(data["outcome"]),
        workflow=data["workflow"],
        good=_commit(data["good"], parents),
        bad=_commit(data["bad"], parents),
        why=data["why"],
        regression=_regression(data["regression"]) if data["regression"] else None,
        tried=tuple(_tried(item) for item in data["tried"]),
        left=tuple(_commit(item, parents) for item in data["left"]),
        files=tuple(first["files"]) if first else (),
        others=tuple(map(_regression, data["others"])),
        notes=tuple(data["notes"]),
    )


def _commit(data: Mapping[str, Any], parents: Mapping[str, tuple[str, ...]]) -> Described:
    known = parents.get(data["revision"], ())
    return Described(data["revision"], known, data.get("author", ""), data.get("date", ""), data["subject"])


def _tried(data: Mapping[str, Any]) -> Tried:
    return Tried(
        commit=_commit(data, {}),
        holds=Holds(data["decision"]),
        change=_interval(data["change"]) if data["change"] else None,
        pairs=data["pairs"],
        reason=data["reason"],
        seconds=data["seconds"],
        built=data["built"],
    )


def _regression(data: Mapping[str, Any]) -> Regression:
    # The direction of the metric is not stored, and only a search needs it.
    change = _interval(data["change"])
    return Regression(data["benchmark"], data["metric"], data["step"], change, change, data["confidence"])


def _interval(data: Mapping[str, float | None]) -> Interval:
    """Read value and bounds; null is a value that was not finite."""
    ends = {"value": math.inf, "low": -math.inf, "high": math.inf}
    value, low, high = (end if (found := data[name]) is None else float(found) for name, end in ends.items())
    return Interval(value, low, high)
