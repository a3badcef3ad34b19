"""An exception of any function of any adapter ends its step, and never the run."""

from __future__ import annotations

import sys
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from itertools import cycle
from pathlib import Path
from typing import Any

import pytest

from perfflow.model.errors import ToolOutputError
from perfflow.model.readings import Parsed, Reading, Usage
from perfflow.tools import registry
from perfflow.tools.adapter import (
    NO_SUITE,
    OPTIONAL_ROLES,
    Adapter,
    Builder,
    Call,
    CommandOptions,
    Invocation,
    Program,
    Role,
    Suite,
    _kinds,
)
from tests.long import rest_long
from tests.session.project import Project

PARTS = {"": Adapter, "suite": Suite, "build": Builder}
FUNCTIONS = [(part, name) for part, kind in PARTS.items() for name, type_ in _kinds(kind).items() if type_ is Callable]
"""Every function of an adapter, with the part that has it."""
STAGES = {Role.MEASURE: "baseline", Role.PROFILE: "profile", Role.MACHINE: "profile", Role.CHECK: "verify"}
ALWAYS = {"invocations", "parse", "outputs", "needs_program"}
"""Functions that every run of a step calls."""


def _one(call: Call) -> tuple[Invocation, ...]:
    return (Invocation(call.command),)


def _reading(_call: Call, usage: Usage) -> Parsed:
    return Parsed((Reading("time", max(usage.wall, 1e-9)),))


def _readings(_call: Call, _usage: Usage) -> Parsed:
    return Parsed((Reading("time", 1.0, "one"),))


def _ids(_call: Call) -> Invocation:
    return Invocation(("echo", "one"), stdout="ids")


def _working(own: Adapter) -> Adapter:
    """Return an adapter with the name, the role and the flags of ``own`` that times a command."""
    suite = replace(own.suite, iteration_counts=lambda _call, _seconds: (), iterated=lambda _call: "")
    if own.can_list:
        suite = replace(suite, listing=_ids)
    build = Builder(executed=lambda _call: (), made=lambda _call: (), results=lambda _call: {})
    if own.is_built_first:
        build = replace(build, preparations=lambda _call: (Invocation(("true",)),))
    return replace(
        own,
        invocations=_one,
        parse=_readings if own.can_list else _reading,
        outputs=lambda _call: (),
        options=own.options if own.role is Role.CHECK else CommandOptions,
        program=Program("true"),
        needs_program=lambda _values: True,
        attaches=(),
        suite=suite if own.is_suite else NO_SUITE,
        build=build,
        good_statuses=frozenset({0}),
    )


def _wrong(calls: list[str], error: Exception, *_args: object) -> None:
    calls.append("called")
    raise error


# Tool files share the functions of one adapter, and have options of their own.
@pytest.mark.parametrize("name", rest_long([name for name in registry.MODULES if name not in registry.FILES], keep=5))
def test_every_function_of_an_adapter_may_raise(name: str, project: Project, monkeypatch: pytest.MonkeyPatch) -> None:
    own = registry.find(name)
    assert own is not None
    working, find = _working(own), registry.find
    raised = set()
    for error, (part, function) in zip(cycle([KeyError("results"), ToolOutputError("nothing to read")]), FUNCTIONS):
        if part == "suite" and not own.is_suite:
            continue
        calls: list[str] = []
        change: dict[str, Any] = {function: partial(_wrong, calls, error)}
        broken = replace(working, **({part: replace(getattr(working, part), **change)} if part else change))
        monkeypatch.setattr(registry, "find", lambda asked, broken=broken: broken if asked == name else find(asked))
        keys = ", runs: 1, warmup: 0" if own.role is Role.MEASURE else ""
        stage, known = STAGES.get(own.role, "build"), Path(".perfflow/runs/latest/result.json")
        result = project.run(f"""
stages:
  {stage}:
    - {{id: broken, uses: {name}, with: {{command: {sys.executable} -c pass}}{keys}}}
""")
        assert known.read_text()
        (ended,) = result.steps
        if calls:
            raised.add(function)
            is_optional = own.role in OPTIONAL_ROLES and function == "needs_program"
            assert ended.status == ("skipped" if is_optional else "failed"), function
            assert str(error) in (ended.reason or ""), function
            if not isinstance(error, ToolOutputError):
                assert f"adapter of {name} failed in {function}" in (ended.reason or "")
    assert raised >= (ALWAYS - {"parse"} if own.role is Role.CHECK else ALWAYS)
