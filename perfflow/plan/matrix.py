"""A step's matrix -> its cells, in the order written."""

from __future__ import annotations

import itertools
from collections.abc import Mapping

from perfflow.workflow.model import MAX_CELLS, Matrix, Scalar

Cell = Mapping[str, Scalar]


def cells(matrix: Matrix | None) -> list[Cell]:
    """Return every combination, less ``exclude``, with ``include`` added; one empty cell without a matrix.

    As in GitHub Actions: an include extends every original cell of whose keys it changes none, and is a cell of its
    own where there is no such cell. At most MAX_CELLS combinations are made; more are refused elsewhere.
    """
    if matrix is None:
        return [{}]
    keys = list(matrix.axes)
    combinations = itertools.islice(itertools.product(*matrix.axes.values()), MAX_CELLS)
    grid = [dict(zip(keys, combination, strict=True)) for combination in combinations if keys]
    grid = [cell for cell in grid if not any(_agrees(cell, out) for out in matrix.exclude)]
    alone: list[Cell] = []
    for extra in matrix.include:
        axes = {key: value for key, value in extra.items() if key in keys}
        extended = [cell for cell in grid if _agrees(cell, axes)]
        for cell in extended:
            cell.update(extra)
        if not extended:
            alone.append(dict(extra))
    return [*grid, *alone]


def _agrees(cell: Cell, other: Cell) -> bool:
    # True equals 1 in Python, but not in a workflow.
    return all(key in cell and _text(cell[key]) == _text(value) for key, value in other.items())


def suffix(cell: Cell) -> str:
    """``[k=v,l=w]``, or nothing for an empty cell."""
    return f"[{','.join(f'{key}={_text(value)}' for key, value in cell.items())}]" if cell else ""


def _text(value: Scalar) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


def shared(cell: Cell, other: Cell) -> bool:
    """Whether two cells agree on the keys that both have."""
    return all(other[key] == value for key, value in cell.items() if key in other)
