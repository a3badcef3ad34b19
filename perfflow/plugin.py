"""The names that adapters and readers of other distributions may use; see docs/how-to/writing-a-tool.md.

All other modules may change in any version.
"""

from perfflow.model.errors import ToolOutputError
from perfflow.model.metrics import Better, Metric, builtin_metrics
from perfflow.model.readings import (
    Hotspot,
    Parsed,
    Profile,
    Reading,
    Usage,
    reading_of_distribution,
    reading_of_process,
)
from perfflow.model.units import Dimension
from perfflow.tools.adapter import (
    Adapter,
    Builder,
    Call,
    CommandOptions,
    Effort,
    Invocation,
    Options,
    Parts,
    Profiler,
    ProfilingMethod,
    Program,
    Role,
    Suite,
)
from perfflow.tools.tool_files import number, positive, read_json, read_text, whole

__all__ = [
    "Adapter",
    "Better",
    "Builder",
    "Call",
    "CommandOptions",
    "Dimension",
    "Effort",
    "Hotspot",
    "Invocation",
    "Metric",
    "Options",
    "Parsed",
    "Parts",
    "Profile",
    "Profiler",
    "ProfilingMethod",
    "Program",
    "Reading",
    "Role",
    "Suite",
    "ToolOutputError",
    "Usage",
    "builtin_metrics",
    "number",
    "positive",
    "read_json",
    "read_text",
    "reading_of_distribution",
    "reading_of_process",
    "whole",
]
