"""An adapter for programs written in a test: bash text in, one figure in a file out."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path

from perfflow.errors import ToolOutputError
from perfflow.samples.readings import Parsed, Reading, Usage
from perfflow.tools.protocol import Call, CommandOptions, Invocation, Options, Role


@dataclass
class BashTool:
    """Runs each text with bash; the figure is what ``figure`` holds, and ``status 0`` alone proves nothing."""

    texts: tuple[str, ...]
    NAME: str = "figures"
    ROLE: Role = Role.MEASURE
    DETERMINISTIC: bool = False
    PROGRAM: str = ""
    VERSION_ARGV: tuple[str, ...] = ()
    INSTALL: str = "apt-get install figures"
    METRICS: frozenset[str] = frozenset({"time"})
    INTERPRETER: str = ""
    OPTIONS: type[Options] = CommandOptions
    usages: list[Usage] = field(default_factory=list)

    def invocations(self, call: Call) -> tuple[Invocation, ...]:
        env = {"FOLDER": str(call.folder)}
        return tuple(Invocation(("bash", "-c", text, *call.command), env, "out") for text in self.texts)

    def outputs(self, call: Call) -> tuple[Path, ...]:
        return (call.folder / "figure",)

    def parse(self, call: Call, usage: Usage) -> Parsed:
        self.usages.append(usage)
        try:
            text = (call.folder / "figure").read_text().strip()
        except OSError as error:
            raise ToolOutputError("no figure") from error
        if not text.isdecimal():
            raise ToolOutputError(f"the figure is {text!r}")
        return Parsed((Reading("time", float(text)),))

    def enumerate(self, call: Call) -> None:
        """It is no suite, whatever the call."""
        assert call.options == CommandOptions()
