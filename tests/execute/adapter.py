"""An adapter that runs bash scripts of a test and reads one figure from a file."""

from __future__ import annotations

from pathlib import Path

from perfflow.model.errors import ToolOutputError
from perfflow.model.metrics import builtin_metrics
from perfflow.model.readings import Parsed, Reading, Usage
from perfflow.tools.adapter import Adapter, Call, Invocation, Role


def bash_tool(*texts: str, python: bool = False) -> Adapter:
    """Return an adapter that runs each script with bash and parses the file ``figure``."""

    def invocations(call: Call) -> tuple[Invocation, ...]:
        env = {"FOLDER": str(call.folder)}
        return tuple(Invocation(("bash", "-c", text, *call.command), env, "out") for text in texts)

    def outputs(call: Call) -> tuple[Path, ...]:
        return (call.folder / "figure",)

    def parse(call: Call, _usage: Usage) -> Parsed:
        try:
            text = (call.folder / "figure").read_text().strip()
        except OSError as error:
            raise ToolOutputError("no figure") from error
        if not text.isdecimal():
            raise ToolOutputError(f"the figure is {text!r}")
        return Parsed((Reading("time", float(text)),))

    return Adapter(
        name="figures",
        role=Role.MEASURE,
        metrics=builtin_metrics("time"),
        python=python,
        invocations=invocations,
        outputs=outputs,
        parse=parse,
    )
