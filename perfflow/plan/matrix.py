"""A step's matrix -> its cells, in the order written."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Mapping
from typing import Any

from perfflow.workflow.expression_text import OPEN, ExpressionError
from perfflow.workflow.expressions import render
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


def rendered(matrix: Matrix, params: Mapping[str, Any]) -> Matrix:
    """Return the matrix with the values of its expressions, a list's items in the place of the expression.

    Raises ExpressionError where one is not a value of a matrix, and where no cell or too many of them come out.
    """
    if not any(isinstance(value, str) and OPEN in value for value in _values(matrix)):
        return matrix
    context = {"params": params}
    axes = {key: list(_items(key, values, context)) for key, values in matrix.axes.items()}
    for key, values in axes.items():
        if not values:
            raise ExpressionError(f"matrix key `{key}` has no values", hint="give the parameter at least one")
    if (count := math.prod(len(values) for values in axes.values())) > MAX_CELLS:
        raise ExpressionError(f"the matrix has {count} cells, more than {MAX_CELLS}", hint="leave out values")
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
    hint = "a text, a number or a boolean, or a parameter of the type list"
    raise ExpressionError(f"matrix key `{key}`: {type(value).__name__} is not a value of a matrix", str(text), hint)


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
