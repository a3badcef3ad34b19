"""Advice from the rules in ``rules/recommendations.yaml``, each with its evidence from this run."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

from perfflow.model.criteria import read_share
from perfflow.model.result import Benchmark, HotspotResult, Recommendation
from perfflow.model.result_kernels import KernelResult
from perfflow.verdict import rule_files
from perfflow.verdict.findings import Findings
from perfflow.verdict.kernel_evidence import LowOccupancy, Stalled, Wasted
from perfflow.verdict.rule_evidence import Calls, Condition, Growth, Low, Place, Rate, evidence


@dataclass(frozen=True)
class Rule:
    """One rule; ``reason`` explains the thresholds of its conditions."""

    id: str
    finding: str
    conditions: tuple[Condition, ...]
    advice: str
    reason: str


def recommendations(found: Findings) -> Iterator[Recommendation]:
    """Yield the advice of each rule with evidence, in the order of the rules, then of the benchmarks."""
    every: list[Sequence[Benchmark | HotspotResult | KernelResult]] = [found.rows, found.hotspots, found.kernels]
    names = dict.fromkeys(
        item.name if isinstance(item, Benchmark) else item.benchmark for part in every for item in part
    )
    for rule in rules():
        for name in names:
            shown = [text for condition in rule.conditions for text in evidence(condition, found, name)]
            if shown:
                yield Recommendation(
                    finding=rule.finding,
                    advice=rule.advice,
                    evidence="; ".join(dict.fromkeys(shown)),
                    rule=rule.id,
                    benchmark=name,
                )


@cache
def rules() -> tuple[Rule, ...]:
    """Return all built-in rules in the order of their file."""
    return tuple(
        Rule(
            item["id"],
            item["finding"],
            tuple(_condition(written) for written in item["when"]),
            " ".join(item["advice"].split()),
            " ".join(item["reason"].split()),
        )
        for item in rule_files.read("recommendations")
    )


def _condition(written: dict[str, Any]) -> Condition:
    """Read one condition. Raises TypeError for an unknown key."""
    keys: dict[str, Any] = {**written}
    for key in _LISTS & keys.keys():
        keys[key] = (keys[key],) if isinstance(keys[key], str) else tuple(keys[key])
    for key in _NUMBERS & keys.keys():
        keys[key] = keys[key] if isinstance(keys[key], int | float) else read_share(keys[key])
    told: dict[str, type[Condition]] = {"by": Place, "share": Calls, "grew": Growth, "under": Low}
    told |= {"occupancy": LowOccupancy, "uncoalesced": Wasted, "stalls": Stalled}
    return next((kind for key, kind in told.items() if key in keys), Rate)(**keys)


_LISTS = {"functions", "files", "of", "by", "code", "any_code", "metric", "limiter", "stalls"}
_NUMBERS = {"share", "grew", "over", "under", "least", "occupancy", "busy", "uncoalesced", "waiting", "time"}
