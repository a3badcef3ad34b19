"""Programs on PATH: where they are, which version, and whether a step's ``requires`` are met."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from functools import cache
from pathlib import Path

from perfflow.execute import gpus
from perfflow.machine.program_path import lies_in, outside
from perfflow.model.lazy import dataclass, lazy_pattern
from perfflow.tools import registry
from perfflow.tools.adapter import Adapter, Program
from perfflow.workflow.model import Requires

_REQUIREMENT = lazy_pattern(r"^\s*(?P<name>[^\s<>=]+)\s*(?:(?P<relation>>=|==|>)\s*(?P<version>[\d.]+))?\s*$")
_VERSION = lazy_pattern(r"\d+(?:\.\d+)+")


NOT_ASKED = "not asked: lies in the project"
_QUESTIONS = frozenset({("--version",), ("-version",), ("-V",), ("version",)})
"""Arguments with which any program does nothing but print its version, where a tool file of a project names them."""


@dataclass(frozen=True)
class ProgramFacts:
    """What is known of a tool's program without running anything of the project.

    ``version`` is '' where there is none, and where it was not asked for, which ``remark`` then says.
    """

    available: bool
    version: str = ""
    remark: str = ""


@dataclass(frozen=True)
class Looking:
    """How programs are asked for their versions while somebody's project is looked at, which starts nothing of it.

    ``project`` is None where what lies around the current folder is no project.
    """

    project: Path | None

    @property
    def path(self) -> str:
        """Perfflow's own PATH without what lies in the project."""
        return outside(os.environ.get("PATH", os.defpath), self.project)

    def may_ask(self, path: str, name: str) -> bool:
        """Whether a program may be started: it has a bare name, and is what perfflow's own PATH means by that.

        A step's PATH may be anything.
        """
        return os.sep not in name and not lies_in(path, self.project) and path == locate(name, self.path)

    def version(self, path: str, arguments: tuple[str, ...] = ("--version",)) -> str:
        """The version that a program prints in an empty corner: it finds no settings, modules or helpers there."""
        return version(path, arguments, self.path)


@cache
def version(program: str, arguments: tuple[str, ...] = ("--version",), alone: str | None = None) -> str:
    """The version a program prints of itself, '' when it does not say. Raises nothing.

    ``alone`` is the PATH of a program that must not find anything of the current folder: cargo, for one, runs the
    toolchain that a file there names, and a script the interpreter that PATH or PYTHONPATH leads to.
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
    """Absolute path of a program on PATH, or beside the interpreter that runs perfflow.

    The extra `tools` puts Python's tools there, and ``.venv/bin/perfflow`` is often called without activating.
    """
    return shutil.which(program, path=env_path) or shutil.which(program, path=str(Path(sys.executable).parent))


def located(program: Program, env_path: str) -> str | None:
    """Absolute path of a tool's own program: on PATH, else in its ``places``.

    In these ``$NAME`` stands for a variable of the environment; of several folders the last, by name, is taken.
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
    """A key that sorts ``cuda-9.2`` before ``cuda-12.0``."""
    return tuple((int(digits or 0), text) for text, digits in re.findall(r"(\D+)(\d*)", path))


def version_of(tool: Adapter) -> str | None:
    """Version of the program behind a tool; None when it is missing, '' when there is no program or no version."""
    if not tool.program:
        return ""
    path = located(tool.program, os.environ.get("PATH", os.defpath))
    if path is None:
        return None
    return version(path, tool.program.version) if tool.program.version else ""


def seen(tool: Adapter, looking: Looking) -> ProgramFacts:
    """The program behind a tool, as far as it is known while a project is looked at."""
    program = tool.program
    if not program:
        return ProgramFacts(available=True)
    path = located(program, os.environ.get("PATH", os.defpath))
    if path is None:
        return ProgramFacts(available=False)
    own = located(program, looking.path)
    if not program.version:
        return ProgramFacts(available=True)
    if path != own or lies_in(path, looking.project):
        return ProgramFacts(available=True, remark=NOT_ASKED)
    if tool.is_of_file and program.version not in _QUESTIONS:
        return ProgramFacts(available=True, remark="not asked: `version` is more than --version")
    return ProgramFacts(available=True, version=looking.version(path, program.version))


def unmet(requires: Requires | None, env_path: str) -> str:
    """Why a step's requirements are not met, '' when they are."""
    return "; ".join(lacking(requires, env_path))


def lacking(requires: Requires | None, env_path: str, looking: Looking | None = None) -> list[str]:
    """What a step requires and is not here, each with its reason.

    While a project is looked at, a program that is there and is not asked for its version counts as new enough.
    """
    if requires is None:
        return []
    reasons = [_tool_unmet(text, env_path, looking) for text in _listed(requires.tool)]
    labels = os.environ.get("PERFFLOW_LABELS", "").replace(",", " ").split()
    reasons += [
        f"label {label!r} is not in PERFFLOW_LABELS" for label in _listed(requires.label) if label not in labels
    ]
    if requires.gpu:
        found = gpus.visible(looking.path if looking else env_path)
        if found.count < requires.gpu:
            wanted = f"needs {requires.gpu} GPU{'s' if requires.gpu > 1 else ''}, {found.count or 'none'} found"
            reasons.append(f"{wanted}: {found.why}" if found.why else wanted)
    return [reason for reason in reasons if reason]


def _listed(value: list[str] | str | None) -> list[str]:
    return [value] if isinstance(value, str) else value or []


def _tool_unmet(text: str, env_path: str, looking: Looking | None) -> str:
    match = _REQUIREMENT.match(text)
    if not match:
        return f"cannot read the requirement {text!r}; write it as perf>=6"
    path = locate(match["name"], env_path) or _of_own_tools(match["name"], env_path)
    if path is None:
        install = install_command(match["name"])
        return f"{match['name']} is not on PATH" + (f"; install it: {install}" if install else "")
    if not match["relation"]:
        return ""
    if looking and not looking.may_ask(path, match["name"]):
        return ""
    have = looking.version(path) if looking else version(path)
    wanted, actual = _numbers(match["version"]), _numbers(have)
    holds = {">=": actual >= wanted, "==": actual == wanted, ">": actual > wanted}[match["relation"]]
    return "" if have and holds else f"needs {text}, found {have or 'no version'}"


def _of_own_tools(program: str, env_path: str) -> str | None:
    """Absolute path of a program which one of perfflow's own adapters drives, in the places that it names."""
    return located(_own_program(program), env_path)


def install_command(program: str) -> str:
    """The command that installs a program which one of perfflow's own adapters drives, '' for others."""
    return _own_program(program).install


def _own_program(name: str) -> Program:
    """The program called ``name`` as one of perfflow's own adapters knows it, else the bare name."""
    tools = (registry.find(name) for name in registry.MODULES)
    return next((tool.program for tool in tools if tool and tool.program.name == name), Program(name))


def _numbers(text: str) -> tuple[int, ...]:
    return tuple(int(part) for part in text.split(".") if part)
