"""Marks variants of a slow test, which only ``sh scripts/test long`` runs."""

from __future__ import annotations

from collections.abc import Iterable

import pytest
from _pytest.mark import ParameterSet


def rest_long(values: Iterable[object], keep: int = 1, *, one_name: bool = False) -> list[object]:
    """Return the values for ``parametrize``: the first of them also run in CI.

    A tuple has the values of several names, unless it is the value of ``one_name``. One of ``pytest.param`` keeps its
    marks and its name.
    """
    return [_marked(value, one_name=one_name) if number >= keep else value for number, value in enumerate(values)]


def _marked(value: object, *, one_name: bool) -> ParameterSet:
    if isinstance(value, ParameterSet):
        return value._replace(marks=[*value.marks, pytest.mark.long])
    return pytest.param(*(value if isinstance(value, tuple) and not one_name else (value,)), marks=pytest.mark.long)
