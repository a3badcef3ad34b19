"""Read the values of the parameters of a workflow: defaults, and ``--set NAME=VALUE`` with the parameter's type."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

from perfflow.model.errors import Problem
from perfflow.model.similar import did_you_mean
from perfflow.workflow import written_numbers
from perfflow.workflow.model import Param

MISSING = "missing-parameter"
"""Rule of the problem that a required parameter has no value: fatal for a run, but no error in the file."""
_BOOLEANS = {"true": True, "yes": True, "on": True, "1": True, "false": False, "no": False, "off": False, "0": False}
_PREFIXED = r"0x[0-9a-fA-F]{1,200}|0o[0-7]{1,300}"
"""Whole numbers with a prefix, as in YAML."""


def values(params: Mapping[str, Param], settings: Sequence[str]) -> tuple[dict[str, Any], list[Problem]]:
    """Return the value of each parameter, and the problems of ``settings`` (strings of the form NAME=VALUE).

    A parameter without a value gets a placeholder, so that its absence is reported only once.
    """
    given, problems = _given(params, settings)
    result: dict[str, Any] = {}
    for name, param in params.items():
        result[name] = param.default if param.default is not None else _placeholder(name, param)
        if name not in given:
            if param.default is None:
                problems.append(
                    Problem(f"parameter {name!r} has no value", f"set it with --set {name}=VALUE", rule=MISSING)
                )
            continue
        try:
            result[name] = _read(param, given[name])
        except ValueError as error:
            problems.append(Problem(f"--set {name}={given[name]}: {error}"))
    return result, problems


def _given(params: Mapping[str, Param], settings: Sequence[str]) -> tuple[dict[str, str], list[Problem]]:
    """Return the last setting of each parameter, and problems for invalid settings and unknown parameters."""
    given: dict[str, str] = {}
    problems: list[Problem] = []
    for setting in settings:
        name, equals, text = setting.partition("=")
        if not equals:
            problems.append(Problem(f"--set {setting} is not of the form NAME=VALUE", "write --set NAME=VALUE"))
        elif name not in params:
            hint = did_you_mean(name, params, "parameters")
            problems.append(Problem(f"--set {setting}: the workflow has no parameter {name!r}", hint))
        else:
            given[name] = text
    return given, problems


def _placeholder(name: str, param: Param) -> str | list[str]:
    text = f"<params.{name}>"
    return [text] if param.kind == "list" else text


def _read(param: Param, text: str) -> Any:
    """Convert a setting to the type of the parameter. Raises ValueError with a message for the user."""
    kind = param.kind
    value = _read_list(param, text) if kind == "list" else _read_scalar(kind, text)
    if param.enum is not None and value not in param.enum:
        raise ValueError(f"not one of {', '.join(str(item) for item in param.enum)}")
    return value


def _read_list(param: Param, text: str) -> list[Any]:
    """Return the comma-separated items, with the type of the first item of the default."""
    first = param.default[0] if isinstance(param.default, list) and param.default else ""
    return [_read_scalar(written_numbers.type_of(first), item.strip()) for item in text.split(",") if item.strip()]


def _read_scalar(kind: str, text: str) -> Any:
    match kind:
        case "boolean":
            if text.lower() not in _BOOLEANS:
                raise ValueError("not true or false")
            return _BOOLEANS[text.lower()]
        case "integer":
            if not re.fullmatch(rf"[+-]?[0-9]{{1,300}}|{_PREFIXED}", text):
                raise ValueError("not a whole number")
            return written_numbers.whole(text)
        case "number":
            if re.fullmatch(_PREFIXED, text):
                return written_numbers.whole(text)
            if not re.fullmatch(r"[+-]?([0-9]+(\.[0-9]*)?|\.[0-9]+)([eE][+-]?[0-9]{1,3})?", text):
                raise ValueError("not a number")
            return written_numbers.real(text)
        case _:
            return text
