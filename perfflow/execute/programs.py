"""Locate programs, read their versions, and check a step's ``requires``."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from perfflow.execute import gpus
from perfflow.machine.program_path import lies_in, outside
from perfflow.tools import registry
from perfflow.tools.adapter import Adapter, Program
from perfflow.workflow.model import Requires

_REQUIREMENT = re.compile(r"^\s*(?P<name>[^\s<>=]+)\s*(?:(?P<relation>>=|==|>)\s*(?P<version>[\d.]+))?\s*$")
_VERSION = re.compile(r"\d+(?:\.\d+)+")


LABELS = "PERFFLOW_LABELS"
"""Environment variable with the labels of the machine, separated by spaces or commas."""
NOT_ASKED = "not asked: lies in the project"
_VERSION_ARGUMENTS = frozenset({("--version",), ("-version",), ("-V",), ("version",)})
"""Version arguments that a project's tool file may use: with them, any program only prints its version."""


@dataclass(frozen=True)
class ProgramFacts:
    """Facts about a tool's program, found without running any program of the project.

    ``version`` is '' if it has none, or if perfflow did not ask; ``remark`` then gives the reason.
    """

    available: bool
    version: str = ""
    remark: str = ""


@dataclass(frozen=True)
class Inspection:
    """Rules for reading versions while perfflow inspects a project, when it must not start programs of the project.

    ``project`` is None if the current folder is not in a project.
    """

    project: Path | None

    @property
    def path(self) -> str:
        """PATH of perfflow without folders in the project."""
        return outside(os.environ.get("PATH", os.defpath), self.project)

    def may_ask(self, path: str, name: str) -> bool:
        """Return whether a program may be started: it has a bare name, and perfflow's own PATH finds the same file.

        A step's PATH is not trusted.
        """
        return os.sep not in name and not lies_in(path, self.project) and path == locate(name, self.path)

    def version(self, path: str, arguments: tuple[str, ...] = ("--version",)) -> str:
        """Return the version that a program prints without access to the project's settings, modules or helpers."""
        return version(path, arguments, self.path)


@cache
def version(program: str, arguments: tuple[str, ...] = ("--version",), alone: str | None = None) -> str:
    """Return the version that a program prints, '' if it prints none. Raises nothing.

    alone: PATH for a program that must not use the current folder. For example, cargo runs the toolchain named in a
    file there, and a script may run an interpreter from PATH or load modules from PYTHONPATH.
    """
    lent = None
    if alone is not None:
        lent = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"} | {"PATH": alone}
    try:
        done = subprocess.run(
            [program, *arguments],
            capture_output=True,
            text=True,
            errors="replace",
            timeout=20,
            check=False,
            stdin=subprocess.DEVNULL,
            cwd=os.sep if lent else None,
            env=lent,
        )
    except (OSError, subprocess.SubprocessError, ValueError):
        return ""
    found = _VERSION.search(done.stdout + done.stderr)
    return found[0] if found else ""


def locate(program: str, env_path: str) -> str | None:
    """Return the absolute path of a program on PATH, or beside perfflow's interpreter; None if there is none.

    The extra `tools` installs Python tools there, and ``.venv/bin/perfflow`` is often called without activation.
    """
    return shutil.which(program, path=env_path) or shutil.which(program, path=str(Path(sys.executable).parent))


def located(program: Program, env_path: str) -> str | None:
    """Return the absolute path of a tool's program, from PATH or else its ``places``; None if there is none.

    ``places`` may hold ``$NAME`` for environment variables. If several folders match, the highest version is used.
    """
    path = locate(program.name, env_path)
    for pattern in () if path else program.places:
        place = os.path.expandvars(pattern)
        for folder in (
            () if "$" in place else sorted(map(str, Path("/").glob(place.lstrip("/"))), key=_by_version, reverse=True)
        ):
            path = path or shutil.which(program.name, path=folder)
    return path


def _by_version(path: str) -> tuple[tuple[int, str], ...]:
    """Return a sort key that puts ``cuda-9.2`` before ``cuda-12.0``."""
    return tuple((int(digits or 0), text) for text, digits in re.findall(r"(\D+)(\d*)", path))


def version_of(tool: Adapter) -> str | None:
    """Return the version of a tool's program; None if it is missing, '' if there is no program or no version."""
    if not tool.program:
        return ""
    path = located(tool.program, os.environ.get("PATH", os.defpath))
    if path is None:
        return None
    return version(path, tool.program.version) if tool.program.version else ""


def facts_of(tool: Adapter, inspection: Inspection) -> ProgramFacts:
    """Return the facts about a tool's program that are known without starting programs of the project."""
    program = tool.program
    if not program:
        return ProgramFacts(available=True)
    path = located(program, os.environ.get("PATH", os.defpath))
    if path is None:
        return ProgramFacts(available=False)
    own = located(program, inspection.path)
    if not program.version:
        return ProgramFacts(available=True)
    if path != own or lies_in(path, inspection.project):
        return ProgramFacts(available=True, remark=NOT_ASKED)
    if tool.is_of_file and program.version not in _VERSION_ARGUMENTS:
        return ProgramFacts(available=True, remark="not asked: `version` is more than --version")
    return ProgramFacts(available=True, version=inspection.version(path, program.version))


def unmet(requires: Requires | None, env_path: str) -> str:
    """Return why a step's requirements are not met, '' if they are met."""
    return "; ".join(lacking(requires, env_path))


def lacking(requires: Requires | None, env_path: str, inspection: Inspection | None = None) -> list[str]:
    """Return the reasons why a step's requirements are not met, one for each.

    With ``inspection``, a program whose version perfflow may not read counts as new enough.
    """
    if requires is None:
        return []
    reasons = [_tool_unmet(text, env_path, inspection) for text in _listed(requires.tool)]
    labels = given_labels()
    reasons += [f"label {label!r} is not in {LABELS}" for label in _listed(requires.label) if label not in labels]
    if requires.gpu:
        found = gpus.visible(inspection.path if inspection else env_path)
        if found.count < requires.gpu:
            wanted = f"needs {requires.gpu} GPU{'s' if requires.gpu > 1 else ''}, {found.count or 'none'} found"
            reasons.append(f"{wanted}: {found.why}" if found.why else wanted)
    return [reason for reason in reasons if reason]


def given_labels() -> list[str]:
    """Return the labels in PERFFLOW_LABELS."""
    return os.environ.get(LABELS, "").replace(",", " ").split()


def _listed(value: list[str] | str | None) -> list[str]:
    return [value] if isinstance(value, str) else value or []


def _tool_unmet(text: str, env_path: str, inspection: Inspection | None) -> str:
    match = _REQUIREMENT.match(text)
    if not match:
        return f"cannot read the requirement {text!r}; write it as perf>=6"
    path = locate(match["name"], env_path) or _in_known_places(match["name"], env_path)
    if path is None:
        install = install_command(match["name"])
        return f"{match['name']} is not on PATH" + (f"; install it: {install}" if install else "")
    if not match["relation"]:
        return ""
    if inspection and not inspection.may_ask(path, match["name"]):
        return ""
    have = inspection.version(path) if inspection else version(path)
    wanted, actual = _numbers(match["version"]), _numbers(have)
    holds = {">=": actual >= wanted, "==": actual == wanted, ">": actual > wanted}[match["relation"]]
    return "" if have and holds else f"needs {text}, found {have or 'no version'}"


def _in_known_places(program: str, env_path: str) -> str | None:
    """Return the absolute path of a program that a built-in adapter uses, searched in its ``places`` too."""
    return located(_own_program(program), env_path)


def install_command(program: str) -> str:
    """Return the command that installs a program of a built-in adapter, '' for other programs."""
    return _own_program(program).install


def _own_program(name: str) -> Program:
    """Return the program called ``name`` as a built-in adapter defines it, else one with only this name."""
    tools = (registry.find(name) for name in registry.MODULES)
    return next((tool.program for tool in tools if tool and tool.program.name == name), Program(name))


def _numbers(text: str) -> tuple[int, ...]:
    return tuple(int(part) for part in text.split(".") if part)
