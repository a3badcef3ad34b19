"""Secrets are known by the names of what holds them, and no text repeats them."""

from __future__ import annotations

import pytest

from perfflow.run.secrets import masked, secrets_in


@pytest.mark.parametrize(
    "name",
    ["GITHUB_TOKEN", "token", "db_password", "AWS_SECRET_ACCESS_KEY", "API_KEY", "npm-token", "GH_PAT", "apikey"],
)
def test_names_that_say_so(name: str) -> None:
    assert secrets_in({name: "correct horse"}) == ("correct horse",)


@pytest.mark.parametrize("name", ["PATH", "TOKENIZER", "MONKEY", "PATTERN", "KEYBOARD", "tokens_per_second"])
def test_names_that_do_not(name: str) -> None:
    assert secrets_in({name: "correct horse"}) == ()


@pytest.mark.parametrize("value", ["", "1", "short", "/run/secrets/token", "${{ env.GITHUB_TOKEN }}"])
def test_values_that_hide_nothing(value: str) -> None:
    assert secrets_in({"TOKEN": value}) == ()


def test_one_inside_another_leaves_no_part_of_it() -> None:
    secrets = secrets_in({"A_TOKEN": "12345678"}, {"B_TOKEN": "0123456789"})
    assert masked({"a": ["x 0123456789", ("12345678",)], "n": 12345678}, secrets) == {
        "a": ["x ***", ["***"]],
        "n": 12345678,
    }
