"""Find the program that a launcher starts, to start and time it directly.

Shims of version managers are shell scripts that choose a version, in several processes, and then exec it. Launchers
such as ``uv run`` prepare an environment and start a program in it. Both cost 10 to 500 ms for each run, and hide which
process does the work. A launcher is only asked where the program behind it is the same thing: with options of its own,
or a program that it would have to install first, it is started as it is written.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from perfflow.execute.child import MARK, find_program

_MOST = 4096
_LEVELS = 3
"""Most launchers one behind the other, such as a script that starts ``uv run`` behind a shim."""
# The last line of shims of pyenv, rbenv and their relatives, and of asdf.
_SHIM = re.compile(
    r'^exec "?(?P<manager>[^"\s]*\b(?P<name>pyenv|rbenv|nodenv|goenv|jenv|plenv|phpenv|asdf))"? exec '
    r'"(?P<program>[^"\n]+)" "\$@"'
)
_SHEBANG = re.compile(r"#!\s*/usr/bin/env\s+(?P<program>[^\s=-]\S*)\s*$")
_LAUNCHERS: Mapping[tuple[str, ...], tuple[str, ...]] = {
    ("uv", "run"): ("uv", "run", "env", "-0"),
    ("poetry", "run"): ("poetry", "run", "env", "-0"),
    ("bundle", "exec"): ("bundle", "exec", "env", "-0"),
    ("nvm-exec",): ("nvm-exec", "env", "-0"),
    # As a command of its own, npx would install a package called env.
    ("npx",): ("npx", "-c", "env -0"),
}
"""First words of a launcher, and the command that prints the environment in which it starts programs."""
_INSTALLED = "/node_modules/.bin/"
_OF_SHELLS = frozenset({"_", "SHLVL", "PWD", "OLDPWD", MARK})

Ask = Callable[[Sequence[str], Mapping[str, str]], str]
"""Runs a command in an environment, in the folder of the launcher; returns its output, '' if it failed."""


@dataclass(frozen=True)
class UnwrappedCommand:
    """A command, the variables that its launchers set, and their names in the order in which they were left out."""

    argv: tuple[str, ...]
    env: Mapping[str, str]
    launchers: tuple[str, ...] = ()

    @property
    def note(self) -> str:
        """The sentence about it for the result."""
        return f"{self.argv[0]} is started and timed directly, without {' and '.join(self.launchers)}"


def behind(argv: Sequence[str], env: Mapping[str, str], cwd: Path, ask: Ask) -> UnwrappedCommand:
    """Return the command behind a command; the same one, without ``launchers``, if there is none to leave out."""
    found = UnwrappedCommand(tuple(argv), {})
    for _ in range(_LEVELS):
        following = _one_behind(found, {**env, **found.env}, cwd, ask)
        if following is None:
            break
        found = following
    # A script is no launcher, but the interpreter that its first line names may be a shim.
    return found if found.launchers else UnwrappedCommand(tuple(argv), {})


def _one_behind(launcher: UnwrappedCommand, env: Mapping[str, str], cwd: Path, ask: Ask) -> UnwrappedCommand | None:
    path = env.get("PATH", os.defpath)
    program = find_program(launcher.argv[0], path, cwd)
    if program is None:
        return None
    for words, question in _LAUNCHERS.items():
        rest = launcher.argv[len(words) :]
        if (Path(program).name, *launcher.argv[1 : len(words)]) == words and rest and not rest[0].startswith("-"):
            return _launched(launcher, " ".join(words), rest, env, ask((program, *question[1:]), env), cwd)
    head = _head(program)
    if shim := next((match for line in head.splitlines() if (match := _SHIM.match(line))), None):
        return _behind_shim(launcher, shim["manager"], shim["name"], Path(program).name, env, ask, cwd)
    script = _SHEBANG.match(head.split("\n", 1)[0])
    interpreter = find_program(script["program"], path, cwd) if script else None
    return replace(launcher, argv=(interpreter, program, *launcher.argv[1:])) if interpreter else None


def _head(program: str) -> str:
    """Return the beginning of a script, '' of another file."""
    try:
        with open(program, "rb") as stream:  # noqa: PTH123 (called for each step)
            data = stream.read(_MOST)
    except OSError:
        return ""
    return data.decode("utf-8", "replace") if data.startswith(b"#!") else ""


def _behind_shim(
    shim: UnwrappedCommand, manager: str, name: str, program: str, env: Mapping[str, str], ask: Ask, cwd: Path
) -> UnwrappedCommand | None:
    path = env.get("PATH", os.defpath)
    manager = find_program(manager, path, cwd) or manager
    real = ask((manager, "which", program), env).strip()
    if not os.access(real, os.X_OK) or Path(real).is_dir():
        return None
    launchers = (*shim.launchers, f"the {name} shim `{program}`")
    changed = dict(shim.env)
    if name == "asdf":
        changed |= _changes(env, ask((manager, "env", program, "env", "-0"), env))
    else:
        changed[f"{name.upper()}_VERSION"] = ask((manager, "version-name"), env).strip()
        if f"/{name}/versions/" in real or f"/.{name}/versions/" in real:
            changed["PATH"] = f"{Path(real).parent}{os.pathsep}{path}"
    return UnwrappedCommand((real, *shim.argv[1:]), changed, launchers)


def _launched(
    found: UnwrappedCommand, launcher: str, rest: tuple[str, ...], env: Mapping[str, str], printed: str, cwd: Path
) -> UnwrappedCommand | None:
    changed = _changes(env, printed)
    real = find_program(rest[0], changed.get("PATH", env.get("PATH", os.defpath)), cwd) if changed else None
    if real is None or (launcher == "npx" and _INSTALLED not in real):
        return None
    return UnwrappedCommand((real, *rest[1:]), {**found.env, **changed}, (*found.launchers, f"`{launcher}`"))


def _changes(env: Mapping[str, str], printed: str) -> dict[str, str]:
    """Return the variables of a printed environment (``env -0``) that differ from ``env``."""
    pairs = (item.partition("=") for item in printed.split("\0") if "=" in item)
    return {name: value for name, _, value in pairs if name not in _OF_SHELLS and env.get(name) != value}
