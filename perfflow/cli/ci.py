"""How text is dressed for the log of a CI service: folded groups, and no text from outside that acts as a command."""

from __future__ import annotations

import os
import re
import secrets
import time
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Protocol

from perfflow.report.sanitize import visible

if TYPE_CHECKING:
    from perfflow.model.result import Result

MOST_ANNOTATIONS = 10
"""GitHub shows only a limited number of them for a step."""


class Dressing(Protocol):
    """What one service makes of lines. A title is visible text of one line."""

    def lines(self, lines: Sequence[str]) -> list[str]:
        """Lines that stand for themselves."""

    def block(self, title: str, lines: Sequence[str]) -> list[str]:
        """Lines that belong together."""


class Bare:
    """Nothing around anything: no CI service that is known."""

    def lines(self, lines: Sequence[str]) -> list[str]:
        """As they are."""
        return list(lines)

    def block(self, _title: str, lines: Sequence[str]) -> list[str]:
        """As they are."""
        return list(lines)


class GitHub:
    """GitHub Actions, which obeys every line that starts with ``::``, or has ``##[`` in it, whoever wrote it."""

    def __init__(self, token: Callable[[], str] = lambda: secrets.token_hex(16)) -> None:
        # A program that has seen the token of one block must not be able to end the next one.
        self._token = token

    def lines(self, lines: Sequence[str]) -> list[str]:
        """Without commands between them, where one could be."""
        return self._inert(lines) if any("::" in line or "##[" in line for line in lines) else list(lines)

    def block(self, title: str, lines: Sequence[str]) -> list[str]:
        """A group that can be folded; groups cannot be nested."""
        return [f"::group::{escaped(title)}", *self._inert(lines), "::endgroup::"] if lines else []

    def _inert(self, lines: Sequence[str]) -> list[str]:
        token = self._token()
        return [f"::stop-commands::{token}", *lines, f"::{token}::"]


class GitLab:
    """GitLab CI, whose sections are marked by names and times."""

    def __init__(self, wall: Callable[[], float] = time.time) -> None:
        self._wall, self._count = wall, 0

    def lines(self, lines: Sequence[str]) -> list[str]:
        """As they are: a section mark has control characters, which text from outside never has here."""
        return list(lines)

    def block(self, title: str, lines: Sequence[str]) -> list[str]:
        """A section that can be folded."""
        if not lines:
            return []
        self._count += 1
        name = f"perfflow_{self._count}_{re.sub(r'[^A-Za-z0-9_.-]', '_', title)[:40]}"
        now = int(self._wall())
        start, end = (f"\x1b[0Ksection_{word}:{now}:{name}\r\x1b[0K" for word in ("start", "end"))
        return [f"{start}{title}", *lines, end]


def dressing(environ: Mapping[str, str] = os.environ) -> Dressing:
    """What the service that runs this job understands."""
    if in_github(environ):
        return GitHub()
    return GitLab() if environ.get("GITLAB_CI") == "true" else Bare()


def in_github(environ: Mapping[str, str] = os.environ) -> bool:
    """Whether this runs in GitHub Actions."""
    return environ.get("GITHUB_ACTIONS") == "true"


def escaped(text: str, *, title: bool = False) -> str:
    """Text as the message of a workflow command, or as the value of its ``title``."""
    codes = {"%": "%25", "\r": "%0D", "\n": "%0A"} | ({":": "%3A", ",": "%2C"} if title else {})
    return "".join(codes.get(letter, letter) for letter in text)


def without_commands(text: str) -> str:
    """The verdict, which stands in the same log, with names in it that can start no workflow command."""
    lines = (re.sub(r"^(\s*):(?=:)", r"\1: ", line) for line in text.replace("##[", "## [").split("\n"))
    return "\n".join(lines)


def annotation_lines(result: Result) -> list[str]:
    """One line for each reason of a verdict, and where it passes for each warning."""
    from perfflow.model.result import WARNED

    kind = "error" if result.verdict in ("fail", "error") else "warning"
    texts = [text for text in result.reasons if result.verdict in ("pass", None) or not text.startswith(WARNED)]
    if len(texts) > MOST_ANNOTATIONS:
        left = len(texts) - MOST_ANNOTATIONS + 1
        texts = [*texts[: MOST_ANNOTATIONS - 1], f"{left} more reasons are in the report"]
    said = ": ".join(filter(None, [result.run.component, result.verdict]))
    title = escaped(visible(f"perfflow {said}"), title=True)
    return [f"::{kind} title={title}::{escaped(visible(text))}" for text in texts]
