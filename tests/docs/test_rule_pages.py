"""The page of recommendations against the code; its table is generated."""

from __future__ import annotations

from pathlib import Path

from perfflow.model.targets import Use
from perfflow.verdict.routing import HotPlace, rules

PAGE = Path(__file__).parents[2] / "docs" / "reference" / "recommendations.md"


def test_the_page_says_what_is_read_off_the_source() -> None:
    text = " ".join(PAGE.read_text().split())
    assert [use for use in Use if f"*{use}*" not in text.partition("<!-- rules")[0]] == []
    used = {word for rule in rules() for item in rule.conditions if isinstance(item, HotPlace) for word in item.code}
    assert used <= set(Use)
