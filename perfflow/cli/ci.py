"""Formats text for the log of a CI service: folded groups, and no outside text that acts as a command."""

from __future__ import annotations

import os
import re
import secrets
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Protocol

from perfflow.model.result import Result
from perfflow.report.sanitize import visible

MOST_ANNOTATIONS = 10
"""GitHub shows only a limited number of annotations for a step."""


class Dressing(Protocol):
    """How one service formats lines. A title is one line of visible text."""

    def lines(self, lines: Sequence[str]) -> list[str]:
        """Return lines that do not belong to a group."""

    def block(self, title: str, lines: Sequence[str]) -> list[str]:
        """Return lines that belong together, as one group."""


class Bare:
    """Leaves lines unchanged, for unknown CI services and terminals."""

    def lines(self, lines: Sequence[str]) -> list[str]:
        """Return the lines unchanged."""
        return list(lines)

    def block(self, _title: str, lines: Sequence[str]) -> list[str]:
        """Return the lines unchanged."""
        return list(lines)


class GitHubActions:
    """GitHub Actions, which executes every line that starts with ``::`` or contains ``##[``, whoever wrote it."""

    def __init__(self, token: Callable[[], str] = lambda: secrets.token_hex(16)) -> None:
        # Every block has its own token: a program that saw one token must not be able to end the next block.
        self._token = token

    def lines(self, lines: Sequence[str]) -> list[str]:
        """Return the lines, with workflow commands disabled if a line could be one."""
        return self._inert(lines) if any("::" in line or "##[" in line for line in lines) else list(lines)

    def block(self, title: str, lines: Sequence[str]) -> list[str]:
        """Return a group that can be folded. Groups cannot be nested."""
        return [f"::group::{escaped(title)}", *self._inert(lines), "::endgroup::"] if lines else []

    def _inert(self, lines: Sequence[str]) -> list[str]:
        token = self._token()
        return [f"::stop-commands::{token}", *lines, f"::{token}::"]


class GitLab:
    """GitLab CI, whose sections have a name and a start and end time."""

    def __init__(self, wall: Callable[[], float] = time.time) -> None:
        self._wall, self._count = wall, 0

    def lines(self, lines: Sequence[str]) -> list[str]:
        """Return the lines unchanged: section marks need control characters, which outside text never has here."""
        return list(lines)

    def block(self, title: str, lines: Sequence[str]) -> list[str]:
        """Return a section that can be folded."""
        if not lines:
            return []
        self._count += 1
        name = f"perfflow_{self._count}_{re.sub(r'[^A-Za-z0-9_.-]', '_', title)[:40]}"
        now = int(self._wall())
        start, end = (f"\x1b[0Ksection_{word}:{now}:{name}\r\x1b[0K" for word in ("start", "end"))
        return [f"{start}{title}", *lines, end]


def dressing(environ: Mapping[str, str] = os.environ) -> Dressing:
    """Return the format for the service that runs this job."""
    if in_github(environ):
        return GitHubActions()
    return GitLab() if environ.get("GITLAB_CI") == "true" else Bare()


def in_ci(environ: Mapping[str, str] = os.environ) -> bool:
    """Return whether this process runs in a CI service."""
    names = ("CI", "GITHUB_ACTIONS", "GITLAB_CI")
    return any(environ.get(name, "").lower() not in ("", "0", "false") for name in names)


def in_github(environ: Mapping[str, str] = os.environ) -> bool:
    """Return whether this process runs in GitHub Actions."""
    return environ.get("GITHUB_ACTIONS") == "true"


def escaped(text: str, *, title: bool = False) -> str:
    """Return text escaped as the message of a workflow command, or as the value of its ``title``."""
    codes = {"%": "%25", "\r": "%0D", "\n": "%0A"} | ({":": "%3A", ",": "%2C"} if title else {})
    return "".join(codes.get(letter, letter) for letter in text)


def without_commands(text: str) -> str:
    """Return text for the log in which no line can act as a workflow command."""
    lines = (re.sub(r"^(\s*):(?=:)", r"\1: ", line) for line in text.replace("##[", "## [").split("\n"))
    return "\n".join(lines)


def annotation_lines(result: Result) -> list[str]:
    """Return an annotation for each reason of a verdict. Warnings are included only if it passes."""
    kind = "error" if result.verdict in ("fail", "error") else "warning"
    texts = [item.text for item in (result.reasons if result.verdict in ("pass", None) else result.causes)]
    if len(texts) > MOST_ANNOTATIONS:
        left = len(texts) - MOST_ANNOTATIONS + 1
        texts = [*texts[: MOST_ANNOTATIONS - 1], f"{left} more reasons are in the report"]
    said = ": ".join(filter(None, [result.run.component, result.verdict]))
    title = escaped(visible(f"perfflow {said}"), title=True)
    return [f"::{kind} title={title}::{escaped(visible(text))}" for text in texts]
