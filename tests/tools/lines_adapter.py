"""The text of an adapter that a stranger might write, and a program for it."""

from __future__ import annotations

ADAPTER = '''\
"""``lines``: how long a program says that it took."""

import json

from perfflow.errors import ToolOutputError
from perfflow.samples.readings import Parsed, Reading
from perfflow.tools import tool_files
from perfflow.tools.protocol import CommandOptions, Invocation, Role

NAME, ROLE, DETERMINISTIC = "{name}", Role.MEASURE, False
PROGRAM, VERSION_ARGV, INSTALL = "", (), ""
METRICS, INTERPRETER, OPTIONS = frozenset({{"time"}}), "", CommandOptions


def invocations(call):
    return (Invocation(call.command, stdout="out.json"),)


def outputs(call):
    return (call.folder / "out.json",)


def parse(call, usage):
    data = tool_files.read_json(call.folder / "out.json")
    if not isinstance(data, dict):
        raise ToolOutputError("out.json is no map")
    return Parsed((Reading("time", tool_files.positive(data.get("time"), "time")),))


def enumerate(call):
    return None
'''
GOOD = "import json; print(json.dumps({'time': 0.5}))"
