"""Marks variants of a slow test, which only ``sh scripts/test long`` runs."""

from __future__ import annotations

from collections.abc import Iterable

import pytest
from _pytest.mark import ParameterSet


def rest_long(values: Iterable[object], keep: int = 1, *, one_name: bool = False) -> list[ParameterSet]:
    """Return the values for ``parametrize``: the first of them also run in CI.

    A tuple has the values of several names, unless it is the value of ``one_name``.
    """
    return [
        pytest.param(
            *(value if isinstance(value, tuple) and not one_name else (value,)),
            marks=[pytest.mark.long] if number >= keep else [],
        )
        for number, value in enumerate(values)
    ]
