"""A step's matrix -> its cells, in the order written."""

from __future__ import annotations

import itertools
from collections.abc import Mapping

from perfflow.workflow.model import Matrix, Scalar

Cell = Mapping[str, Scalar]


def cells(matrix: Matrix | None) -> list[Cell]:
    """Return every combination, less ``exclude``, with ``include`` added; one empty cell without a matrix.

    As in GitHub Actions, an include that agrees with a cell on all axes it names extends that cell.
    """
    if matrix is None:
        return [{}]
    keys = list(matrix.axes)
    found: list[dict[str, Scalar]] = [
        dict(zip(keys, combination, strict=True)) for combination in itertools.product(*matrix.axes.values())
    ]
    found = [cell for cell in found if keys and not any(_agrees(cell, out) for out in matrix.exclude)]
    grid = list(found)
    for extra in matrix.include:
        axes = {key: value for key, value in extra.items() if key in keys}
        extended = [cell for cell in grid if axes and _agrees(cell, axes)]
        for cell in extended:
            cell.update(extra)
        if not extended:
            found.append(dict(extra))
    return list(found)


def _agrees(cell: Cell, other: Cell) -> bool:
    return all(cell.get(key) == value for key, value in other.items())


def suffix(cell: Cell) -> str:
    """``[k=v,l=w]``, or nothing for an empty cell."""
    return f"[{','.join(f'{key}={_text(value)}' for key, value in cell.items())}]" if cell else ""


def _text(value: Scalar) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


def shared(cell: Cell, other: Cell) -> bool:
    """Whether two cells agree on the keys that both have."""
    return all(other[key] == value for key, value in cell.items() if key in other)
