"""A shell in tmux, which wraps, scrolls and resizes like a real terminal."""

from __future__ import annotations

import itertools
import os
import re
import shlex
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

TMUX = shutil.which("tmux")
_NUMBERS = itertools.count()
_UNSET = ("CI", "NO_COLOR", "FORCE_COLOR", "COLUMNS", "GITHUB_ACTIONS", "GITLAB_CI", "TMUX", "LC_ALL")
_RUN_ID = r"\n?".join([*[r"\d"] * 8, "-", *[r"\d"] * 6, "-", *["[0-9a-f]"] * 6])
_VARYING = [
    # The id of a run may continue in the next row of the screen.
    (re.compile(_RUN_ID), lambda found: re.sub(r"[^\n]", "R", found[0])),
    (re.compile(r"\d\d:\d\d:\d\d"), lambda _: "HH:MM:SS"),
    # Another test may hold the machine.
    (re.compile(r" \(waited \S+ for the machine\)"), lambda _: ""),
    (re.compile(r"\b\d+(?:\.\d)?s\b"), lambda _: "Ns"),
]


class Shell:
    """An interactive shell with ``perfflow`` as the command under test, named by its tmux socket."""

    def __init__(self, name: str) -> None:
        self._name = name

    def type(self, *keys: str) -> None:
        """Send keys, by their tmux names."""
        self._tmux("send-keys", *keys)

    def resize(self, width: int) -> None:
        """Resize the window, and wait until the programs in it can notice."""
        self._tmux("resize-window", "-x", str(width))
        time.sleep(0.5)

    def screen(self) -> list[str]:
        """Return the visible lines without empty ones at the end."""
        return self._tmux("capture-pane", "-p").rstrip().split("\n")

    def everything(self) -> list[str]:
        """Return the lines that scrolled away, and the visible lines."""
        return self._tmux("capture-pane", "-p", "-S", "-").rstrip().split("\n")

    def wait(self, enough: Callable[[list[str]], bool], seconds: float = 30) -> list[str]:
        """Wait for a screen that fulfils the condition, and return it."""
        ends = time.monotonic() + seconds
        while time.monotonic() < ends:
            shown = self.screen()
            if enough(shown):
                return shown
            time.sleep(0.1)
        raise AssertionError("\n".join(["not seen:", *self.screen()]))

    def prompt(self) -> list[str]:
        """Wait until the shell shows a prompt after some output, and return the screen."""
        return self.wait(lambda lines: lines[-1] == "%" and len(lines) > 1)

    def _tmux(self, *words: str) -> str:
        command = [str(TMUX), "-L", self._name, *words]
        return subprocess.run(command, capture_output=True, text=True, encoding="utf-8", check=True).stdout


@contextmanager
def shell(folder: Path, width: int, height: int = 60) -> Iterator[Shell]:
    """Start a shell in a folder, on a terminal of the given size."""
    programs = folder / ".bin"
    programs.mkdir(exist_ok=True)
    program = programs / "perfflow"
    program.write_text(f'#!/bin/sh\nexec "{sys.executable}" -m perfflow "$@"\n')
    program.chmod(0o755)
    env = {key: value for key, value in os.environ.items() if key not in _UNSET and not key.startswith("COVERAGE")}
    # bash ignores a prompt in the environment if a non-interactive shell starts it.
    settings = programs / "bashrc"
    settings.write_text("PS1='% '\n")
    env |= {"PATH": f"{programs}{os.pathsep}{env['PATH']}", "LANG": "C.UTF-8", "TERM": "xterm"}
    name = f"perfflow-{os.getpid()}-{next(_NUMBERS)}"
    server = [str(TMUX), "-L", name, "-f", os.devnull]
    size = ["-x", str(width), "-y", str(height)]
    start = ["-u", "new-session", "-d", *size, f"exec bash --noprofile --rcfile {shlex.quote(str(settings))} -i"]
    subprocess.run([*server, *start], cwd=folder, env=env, check=True)
    try:
        found = Shell(name)
        found.wait(lambda lines: lines == ["%"])
        yield found
    finally:
        subprocess.run([*server, "kill-server"], check=False, capture_output=True)


def settled(lines: list[str]) -> str:
    """Return a screen with the text that differs between runs replaced."""
    text = "".join(f"{line}\n" for line in lines)
    for pattern, stand_in in _VARYING:
        text = pattern.sub(stand_in, text)
    return text
