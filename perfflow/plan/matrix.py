"""Expand the matrix of a step into cells, in the order of the file."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from perfflow.workflow.expression_text import OPEN, ExpressionError
from perfflow.workflow.expressions import render
from perfflow.workflow.model import MAX_CELLS, Matrix, Scalar

Cell = Mapping[str, Scalar]


def cells(matrix: Matrix | None) -> list[Cell]:
    """Return all combinations without ``exclude`` and with ``include``; one empty cell if there is no matrix.

    As in GitHub Actions, an include extends every original cell whose values it does not change, or else becomes a new
    cell. At most MAX_CELLS combinations are created; larger matrices are reported elsewhere.
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


def rendered(matrix: Matrix, params: Mapping[str, Any]) -> Matrix:
    """Return the matrix with its expressions rendered; the items of a list replace its expression.

    Raises ExpressionError if a value is not a scalar, or if there are no cells or too many.
    """
    if not any(isinstance(value, str) and OPEN in value for value in _values(matrix)):
        return matrix
    context = {"params": params}
    axes = {key: list(_items(key, values, context)) for key, values in matrix.axes.items()}
    for key, values in axes.items():
        if not values:
            raise ExpressionError(f"matrix key `{key}` has no values", hint="give the parameter at least one value")
    if (count := math.prod(len(values) for values in axes.values())) > MAX_CELLS:
        raise ExpressionError(f"the matrix has {count} cells, more than {MAX_CELLS}", hint="remove values")
    cells = {
        name: [{key: _one(key, value, context) for key, value in cell.items()} for cell in given]
        for name, given in (("include", matrix.include), ("exclude", matrix.exclude))
    }
    return Matrix.model_validate({**axes, **cells})


def _values(matrix: Matrix) -> Iterator[Scalar]:
    for values in (*matrix.axes.values(), *(cell.values() for cell in (*matrix.include, *matrix.exclude))):
        yield from values


def _items(key: str, values: list[Scalar], context: Mapping[str, Any]) -> Iterator[Scalar]:
    for value in values:
        found = render(value, context) if isinstance(value, str) else value
        for item in found if isinstance(found, list) else [found]:
            yield _scalar(key, value, item)


def _one(key: str, value: Scalar, context: Mapping[str, Any]) -> Scalar:
    return _scalar(key, value, render(value, context) if isinstance(value, str) else value)


def _scalar(key: str, text: Scalar, value: object) -> Scalar:
    if isinstance(value, str | int | float | bool):
        return value
    hint = "use a string, a number, a boolean, or a parameter of the type list"
    message = f"matrix key `{key}`: a value of type {type(value).__name__} is not allowed"
    raise ExpressionError(message, str(text), hint)


def _agrees(cell: Cell, other: Cell) -> bool:
    # True equals 1 in Python, but not in a workflow.
    return all(key in cell and text(cell[key]) == text(value) for key, value in other.items())


def suffix(cell: Cell) -> str:
    """Return ``[k=v,l=w]``, or '' for an empty cell."""
    return f"[{','.join(f'{key}={text(value)}' for key, value in cell.items())}]" if cell else ""


def first_of(key: str, cell: Cell, cells: Sequence[Cell]) -> Cell | None:
    """Return the first cell that differs from ``cell`` only in ``key``; None if it is this one, or without a key."""
    bare = _without(key, cell)
    first = next((other for other in cells if key in other and _without(key, other) == bare), cell)
    return None if not key or first == cell else first


def _without(key: str, cell: Cell) -> Cell:
    return {name: value for name, value in cell.items() if name != key}


def text(value: Scalar) -> str:
    """Return a value as the names of cells show it."""
    return str(value).lower() if isinstance(value, bool) else str(value)


def shared(cell: Cell, other: Cell) -> bool:
    """Return whether two cells have equal values for the keys that both have."""
    return all(other[key] == value for key, value in cell.items() if key in other)
