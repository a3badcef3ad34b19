"""Values of a workflow's parameters: defaults, and ``--set NAME=VALUE`` in the type the parameter has."""

from __future__ import annotations

import difflib
from collections.abc import Mapping, Sequence
from typing import Any

from perfflow.errors import Problem
from perfflow.workflow.model import Param

_TYPES = {bool: "boolean", int: "integer", float: "number", str: "string", list: "list"}
_BOOLEANS = {"true": True, "yes": True, "on": True, "1": True, "false": False, "no": False, "off": False, "0": False}


def values(params: Mapping[str, Param], settings: Sequence[str]) -> tuple[dict[str, Any], list[Problem]]:
    """Return parameter -> value, and what is wrong with ``settings`` (texts of the form NAME=VALUE)."""
    problems: list[Problem] = []
    given: dict[str, str] = {}
    for setting in settings:
        name, equals, text = setting.partition("=")
        if not equals:
            problems.append(Problem(f"--set {setting}: not NAME=VALUE", "write --set name=value"))
        elif name not in params:
            near = difflib.get_close_matches(name, params, n=1, cutoff=0.5)
            hint = f"did you mean {near[0]!r}?" if near else f"parameters: {', '.join(params) or 'none'}"
            problems.append(Problem(f"--set {setting}: the workflow has no parameter {name!r}", hint))
        else:
            given[name] = text
    result: dict[str, Any] = {}
    for name, param in params.items():
        try:
            result[name] = _read(param, given[name]) if name in given else param.default
        except ValueError as error:
            problems.append(Problem(f"--set {name}={given[name]}: {error}"))
            continue
        if result[name] is None:
            problems.append(Problem(f"parameter {name!r} has no default", f"give it with --set {name}=VALUE"))
        elif param.enum is not None and result[name] not in param.enum:
            allowed = ", ".join(str(item) for item in param.enum)
            problems.append(Problem(f"parameter {name!r} is {result[name]!r}", f"allowed: {allowed}"))
    return result, problems


def _read(param: Param, text: str) -> Any:
    match param.type or _TYPES.get(type(param.default), "string"):
        case "boolean":
            if text.lower() not in _BOOLEANS:
                raise ValueError("not true or false")
            return _BOOLEANS[text.lower()]
        case "integer":
            return int(text)
        case "number":
            return float(text)
        case "list":
            return [item.strip() for item in text.split(",") if item.strip()]
        case _:
            return text
