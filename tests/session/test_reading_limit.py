"""The limit on CPU time to read a workflow, and how to raise it on a slow machine."""

from __future__ import annotations

import pytest

from perfflow.model.errors import UserError
from perfflow.session.reading_limit import NAME, within_time


def spin() -> None:
    while True:
        pass


def test_the_environment_sets_the_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(NAME, "0.02")
    with (
        pytest.raises(UserError, match=r"reading it takes more than 0.02 s of CPU time") as caught,
        within_time("reading it"),
    ):
        spin()
    assert NAME in str(caught.value)


def test_a_part_has_a_share_of_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(NAME, "0.04")
    with pytest.raises(UserError, match=r"more than 0.02 s"), within_time("a part", 0.5):
        spin()


@pytest.mark.parametrize("text", ["0", "-1", "nan", "inf", "soon"])
def test_what_is_no_number_of_seconds_is_an_error(text: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(NAME, text)
    with pytest.raises(UserError, match=f"{NAME}={text} is not a number of seconds"), within_time("reading it"):
        pass
