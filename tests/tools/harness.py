"""Runs an adapter's invocations for real, as the run layer does, and shows what it parsed as JSON."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import sysconfig
from dataclasses import asdict, dataclass
from importlib import import_module
from pathlib import Path
from typing import Any, cast

from perfflow.samples.readings import Parsed, Usage
from perfflow.tools.protocol import Call, Tool
from perfflow.tools.registry import MODULES

HERE = Path(__file__).parent
PROGRAMS = HERE / "programs"
DATA = HERE / "data"
USAGE = Usage(wall=1.0)
PYTHON = sys.executable


def tools() -> dict[str, Tool]:
    """Return every adapter of the registry whose module is there."""
    found = {}
    for name, module in MODULES.items():
        if Path(*module.split(".")).with_suffix(".py").exists():
            found[name] = cast(Tool, import_module(module))
    return found


def tool(name: str) -> Tool:
    return cast(Tool, import_module(MODULES[name]))


def call_of(name: str, folder: Path, *command: str, **options: Any) -> Call:
    """Return a call with the program found as an installation would find it."""
    adapter = tool(name)
    words = () if options.get("shell") else command
    text = command[0] if options.get("shell") else ""
    known = adapter.OPTIONS.model_validate({"command": list(command), **options})
    program = ""
    if adapter.PROGRAM:
        scripts = sysconfig.get_path("scripts")
        program = shutil.which(adapter.PROGRAM, path=os.pathsep.join([scripts, os.environ["PATH"]])) or ""
        assert program, f"{adapter.PROGRAM} is not installed: {adapter.INSTALL}"
    argv = words or ("/bin/bash", "-c", text)
    return Call(known, folder, program, argv, text)


@dataclass(frozen=True, slots=True)
class Ran:
    """What came of the processes: status of the first that failed, else 0."""

    status: int
    call: Call
    adapter: Tool

    def parse(self) -> Parsed:
        return self.adapter.parse(self.call, USAGE)


def run(name: str, folder: Path, *command: str, env: dict[str, str] | None = None, **options: Any) -> Ran:
    """Run all invocations in order until one fails."""
    adapter, call = tool(name), call_of(name, folder, *command, **options)
    folder.mkdir(exist_ok=True)
    status = 0
    with (folder / "stderr").open("wb") as stderr:
        for step in adapter.invocations(call):
            with (folder / step.stdout if step.stdout else Path(os.devnull)).open("wb") as stdout:
                added = {**os.environ, **(env or {}), **step.env}
                done = subprocess.run(step.argv, stdout=stdout, stderr=stderr, env=added, check=False, timeout=120)
            if status := done.returncode:
                break
    return Ran(status, call, adapter)


def shown(parsed: Parsed) -> str:
    """Return what was parsed as JSON, for a golden file."""
    return json.dumps(asdict(parsed), indent=1, ensure_ascii=False, default=str) + "\n"


def check_sane(parsed: Parsed) -> None:
    """Assert what every Parsed must keep, however strange its input was."""
    assert parsed.readings or parsed.hotspots or parsed.profiles
    for reading in parsed.readings:
        assert 0 <= reading.value < 2.0**63
        assert all(0 <= value < 2.0**63 for value in reading.inner.values())
    for spot in parsed.hotspots:
        assert 0 < spot.share <= 1 + 1e-9
        assert spot.location
        assert spot.line >= 0
        assert f"{spot.location}{spot.file}{spot.cause}".isprintable()
    assert sum(spot.share for spot in parsed.hotspots) <= 1 + 1e-6
    json.dumps(asdict(parsed), allow_nan=False).encode()
