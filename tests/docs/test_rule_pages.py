"""The pages of routing and recommendations against the code: every fact and rule, and nothing that is not there."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

from perfflow.model.targets import Use
from perfflow.model.units import significant
from perfflow.verdict.kernels import LowOccupancy, Stalled, Wasted
from perfflow.verdict.routing import CallShare, Condition, HotPlace, Low, ProvenGrowth, Rate, Rule, built_in, rules
from perfflow.workflow.criteria_checks import FACTS

DOCS = Path(__file__).parents[2] / "docs" / "reference"


def table(page: str, first: str) -> list[list[str]]:
    """The cells of the table whose head begins with a word."""
    lines = iter((DOCS / page).read_text().splitlines())
    next(line for line in lines if line.startswith(f"| {first} |"))
    next(lines)
    return [[cell.strip() for cell in line.strip("| ").split(" | ")] for line in _until_blank(lines)]


def _until_blank(lines: Iterator[str]) -> Iterator[str]:
    for line in lines:
        if not line:
            return
        yield line


def test_the_page_lists_each_fact_with_its_type_and_meaning() -> None:
    assert table("routing.md", "fact") == [[f"`{name}`", fact.kind.value, fact.meaning] for name, fact in FACTS.items()]


def test_the_page_lists_the_built_in_routes_in_their_order() -> None:
    assert table("routing.md", "rule") == [
        [f"`{name}`", f"`{route.condition}`", f"`{route.to}`", route.why] for name, route in built_in()
    ]


SAID = {
    CallShare: ("share", "calls of"),
    HotPlace: ("share count?", "of by code any_code"),
    ProvenGrowth: ("grew", "metric"),
    Rate: ("over least?", "metric per"),
    Low: ("under time?", "metric"),
    LowOccupancy: ("occupancy busy time", "limiter"),
    Wasted: ("uncoalesced time", ""),
    Stalled: ("waiting time", "stalls"),
}
"""What the page says of a condition: its thresholds, those with a `?` if they are not 0, and its names."""


def numbers(rule: Rule) -> list[str]:
    """The thresholds of a rule as the page writes them."""
    asked = [(condition, name) for condition in rule.conditions for name in SAID[type(condition)][0].split()]
    values = [(getattr(condition, name.rstrip("?")), name) for condition, name in asked]
    return [shown(value) for value, name in values if value or not name.endswith("?")]


def shown(value: float) -> str:
    return f"{value:,g}" if value >= 1 or value == 0 else f"{float(significant(value * 100)):g}%"


def named(condition: Condition) -> list[str]:
    """What the page says by name of a condition."""
    values = [getattr(condition, name) for name in SAID[type(condition)][1].split()]
    return [text for value in values for text in ([value] if isinstance(value, str) else value)]


_NUMBER = re.compile(r"[\d.]+%|(?:(?<=over )|(?<=counted )|(?<=at least ))[\d,.]*\d(?![\d%])")


def test_the_page_lists_each_rule_with_its_thresholds() -> None:
    rows = table("recommendations.md", "rule")
    assert [[row[0], row[1], row[3], row[4]] for row in rows] == [
        [f"`{rule.id}`", rule.finding, rule.reason, rule.advice] for rule in rules()
    ]
    for row, rule in zip(rows, rules(), strict=True):
        assert _NUMBER.findall(row[2]) == numbers(rule)
        assert all(name in row[2] for condition in rule.conditions for name in named(condition))


def test_the_page_says_what_is_read_off_the_source() -> None:
    text = " ".join((DOCS / "recommendations.md").read_text().split())
    assert [use for use in Use if f"*{use}*" not in text.partition("| rule |")[0]] == []
    used = {word for rule in rules() for item in rule.conditions if isinstance(item, HotPlace) for word in item.code}
    assert used <= set(Use)
