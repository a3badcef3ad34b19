"""Tidy rows as data frames of pandas or polars, which perfflow does not require."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from importlib import import_module
from typing import Any, Literal, get_args

from perfflow.api.columns import DecisionRow, SampleRow
from perfflow.model.errors import UserError

Library = Literal["pandas", "polars"]
Rows = Sequence[SampleRow] | Sequence[DecisionRow]


def frame(rows: Rows, columns: Mapping[str, type], library: Library | None = None) -> Any:
    """Return rows as a data frame of ``library``, or of the first that is installed: pandas, polars.

    ``columns``: names and types, also used if there are no rows. Raises UserError if the library is not installed.
    """
    known: tuple[Library, ...] = get_args(Library)
    if library is not None and library not in known:
        raise UserError.of(f"unknown library {library!r}", f"write one of: {', '.join(known)}")
    for name in [library] if library else known:
        try:
            module = import_module(name)
        except ImportError:
            continue
        return _MAKERS[name](module, rows, columns)
    wanted = library or " nor ".join(known)
    text = f"{wanted} is not installed" if library else f"neither {wanted} is installed"
    hint = f"install one with `python -m pip install {library or known[0]}`; to_rows() and decisions() need none"
    raise UserError.of(text, hint)


def _pandas(module: Any, rows: Rows, columns: Mapping[str, type]) -> Any:
    found = module.DataFrame.from_records(list(rows), columns=list(columns))
    # Int64 and string have missing values; plain integer columns with missing values would become floats.
    return found.astype({name: _OF_PANDAS[kind] for name, kind in columns.items()})


def _polars(module: Any, rows: Rows, columns: Mapping[str, type]) -> Any:
    return module.DataFrame(list(rows), schema=dict(columns))


_OF_PANDAS: Mapping[type, str] = {str: "string", int: "Int64", float: "float64", bool: "bool"}
_MAKERS: Mapping[str, Callable[[Any, Rows, Mapping[str, type]], Any]] = {"pandas": _pandas, "polars": _polars}
