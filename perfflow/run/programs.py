"""Programs on PATH: where they are, which version, and whether a step's ``requires`` are met."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from functools import cache
from pathlib import Path

from perfflow.run import gpus
from perfflow.tools import registry
from perfflow.tools.protocol import Tool
from perfflow.workflow.model import Requires

_REQUIREMENT = re.compile(r"^\s*(?P<name>[^\s<>=]+)\s*(?:(?P<relation>>=|==|>)\s*(?P<version>[\d.]+))?\s*$")
_VERSION = re.compile(r"\d+(?:\.\d+)+")


@cache
def version(program: str, arguments: tuple[str, ...] = ("--version",)) -> str:
    """The version a program prints of itself, '' when it does not say. Raises nothing."""
    try:
        done = subprocess.run([program, *arguments], capture_output=True, text=True, timeout=20, check=False)
    except (OSError, subprocess.SubprocessError, ValueError):
        return ""
    found = _VERSION.search(done.stdout + done.stderr)
    return found[0] if found else ""


def locate(program: str, env_path: str) -> str | None:
    """Absolute path of a program on PATH, or beside the interpreter that runs perfflow.

    `pip install 'perfflow[tools]'` puts tools there, and ``.venv/bin/perfflow`` is often called without activating.
    """
    return shutil.which(program, path=env_path) or shutil.which(program, path=str(Path(sys.executable).parent))


def located(tool: Tool, env_path: str) -> str | None:
    """Absolute path of a tool's own program: on PATH, else in the places that its adapter names.

    An adapter of a program that is often installed apart from PATH has PLACES, folders as glob patterns in which
    ``$NAME`` stands for a variable of the environment; of several the last, by name, is taken.
    """
    path = locate(tool.PROGRAM, env_path)
    for pattern in () if path else getattr(tool, "PLACES", ()):
        place = os.path.expandvars(pattern)
        for folder in (
            () if "$" in place else sorted(map(str, Path("/").glob(place.lstrip("/"))), key=_by_version, reverse=True)
        ):
            path = path or shutil.which(tool.PROGRAM, path=folder)
    return path


def _by_version(path: str) -> tuple[tuple[int, str], ...]:
    """A key that sorts ``cuda-9.2`` before ``cuda-12.0``."""
    return tuple((int(digits or 0), text) for text, digits in re.findall(r"(\D+)(\d*)", path))


def version_of(tool: Tool) -> str | None:
    """Version of the program behind a tool; None when it is missing, '' when there is no program or no version."""
    if not tool.PROGRAM:
        return ""
    path = located(tool, os.environ.get("PATH", os.defpath))
    if path is None:
        return None
    return version(path, tool.VERSION_ARGV) if tool.VERSION_ARGV else ""


def unmet(requires: Requires | None, env_path: str) -> str:
    """Why a step's requirements are not met, '' when they are."""
    return "; ".join(lacking(requires, env_path))


def lacking(requires: Requires | None, env_path: str) -> list[str]:
    """What a step requires and is not here, each with its reason."""
    if requires is None:
        return []
    reasons = [_tool_unmet(text, env_path) for text in _listed(requires.tool)]
    labels = os.environ.get("PERFFLOW_LABELS", "").replace(",", " ").split()
    reasons += [
        f"label {label!r} is not in PERFFLOW_LABELS" for label in _listed(requires.label) if label not in labels
    ]
    if requires.gpu:
        found = gpus.visible(env_path)
        if found.count < requires.gpu:
            wanted = f"needs {requires.gpu} GPU{'s' if requires.gpu > 1 else ''}, {found.count or 'none'} found"
            reasons.append(f"{wanted}: {found.why}" if found.why else wanted)
    return [reason for reason in reasons if reason]


def _listed(value: list[str] | str | None) -> list[str]:
    return [value] if isinstance(value, str) else value or []


def _tool_unmet(text: str, env_path: str) -> str:
    match = _REQUIREMENT.match(text)
    if not match:
        return f"cannot read the requirement {text!r}; write it as perf>=6"
    path = locate(match["name"], env_path) or _of_own_tools(match["name"], env_path)
    if path is None:
        install = install_command(match["name"])
        return f"{match['name']} is not on PATH" + (f"; install it: {install}" if install else "")
    if not match["relation"]:
        return ""
    have = version(path)
    wanted, actual = _numbers(match["version"]), _numbers(have)
    holds = {">=": actual >= wanted, "==": actual == wanted, ">": actual > wanted}[match["relation"]]
    return "" if have and holds else f"needs {text}, found {have or 'no version'}"


def _of_own_tools(program: str, env_path: str) -> str | None:
    """Absolute path of a program which one of perfflow's own adapters drives, in the places that it names."""
    tools = (registry.find(name) for name in registry.MODULES)
    return next((located(tool, env_path) for tool in tools if tool and program == tool.PROGRAM), None)


def install_command(program: str) -> str:
    """The command that installs a program which one of perfflow's own adapters drives, '' for others."""
    tools = (registry.find(name) for name in registry.MODULES)
    return next((tool.INSTALL for tool in tools if tool and program == tool.PROGRAM), "")


def _numbers(text: str) -> tuple[int, ...]:
    return tuple(int(part) for part in text.split(".") if part)
