"""Search for the user's patterns with a time limit, since backtracking can take practically forever.

A search with Python's ``re`` cannot be interrupted. A search that may take long therefore runs in another process,
which is started on demand and ends itself at the limit; a quick search runs in this process.
"""

from __future__ import annotations

import atexit
import json
import re
import signal
from collections.abc import Sequence
from subprocess import DEVNULL, PIPE, Popen
from typing import NamedTuple

from perfflow.model.errors import ToolOutputError
from perfflow.tools import python_command

PATIENCE = 60.0
"""Seconds for one search if the step has no timeout."""
_CHOICE = re.compile(r"(?<!\()[*+?{|]")
"""Characters that let a pattern match in several ways. Those in a class or after a backslash are counted as well."""
_REPEATED_GROUP = re.compile(r"\)[*+?{]")
_MOST_WAYS = 10**8
"""Ways to match that ``re`` tries within about a second."""


class PatternTimeoutError(ToolOutputError):
    """The search for a pattern did not end within its time limit."""


class PatternMatch(NamedTuple):
    """One match: its start, in characters from 0, and the texts of its named groups."""

    start: int
    groups: dict[str, str | None]


def search(
    pattern: str, texts: Sequence[str], seconds: float | None = None, flags: int | re.RegexFlag = re.MULTILINE
) -> list[PatternMatch]:
    """Return every match of a valid pattern in each of the texts.

    ``seconds`` is the time limit, by default PATIENCE. Raises PatternTimeoutError.
    """
    if _is_quick(pattern, max(map(len, texts), default=0)):
        compiled = re.compile(pattern, flags)
        return [PatternMatch(match.start(), match.groupdict()) for text in texts for match in compiled.finditer(text)]
    limit = PATIENCE if seconds is None else seconds
    request = {"pattern": pattern, "flags": int(flags), "texts": list(texts), "seconds": limit}
    answer = _answer_to(json.dumps(request).encode() + b"\n")
    if answer is None:
        text = f"the search for the pattern {pattern[:80]!r} did not end within {limit:g} s"
        raise PatternTimeoutError(f"{text}: it has too many ways to match; avoid nested repetition such as (a+)+")
    return [PatternMatch(start, groups) for start, groups in json.loads(answer)]


def time_left(timeout: float | None, used: float) -> float | None:
    """Return the seconds of a step's timeout that remain for the patterns, at least 1; None without a limit."""
    return None if timeout is None else max(timeout - used, 1.0)


def _is_quick(pattern: str, length: int) -> bool:
    """Whether a search in a text of this length has few enough ways to match.

    Without a repeated group, the start and each choice have at most one way for each position of the text.
    """
    if _REPEATED_GROUP.search(pattern):
        return False
    choices = len(_CHOICE.findall(pattern))
    return bool((length + 1) ** min(choices + 1, 100) <= _MOST_WAYS)


_idle: list[Popen[bytes]] = []
"""Processes that wait for a request, as many as there were simultaneous searches."""


def _answer_to(request: bytes) -> bytes | None:
    """Return the answer to a request, None after a timeout. Raises ToolOutputError if the process is killed twice."""
    for _ in range(2):
        child = _idle.pop() if _idle else _start_process()
        answer = _exchange(child, request)
        if answer.endswith(b"\n"):
            _idle.append(child)
            return answer
        child.communicate()
        if child.returncode == -signal.SIGALRM:
            return None
        # A process that was killed while it waited is replaced.
    raise ToolOutputError("the process that searches for patterns was killed")


def _exchange(child: Popen[bytes], request: bytes) -> bytes:
    if child.stdin is None or child.stdout is None:
        return b""
    try:
        child.stdin.write(request)
        child.stdin.flush()
        return child.stdout.readline()
    except OSError:
        return b""


def _start_process() -> Popen[bytes]:
    # A session of its own keeps ^C from it.
    argv = python_command.driver_command("pattern_search.py")
    return Popen(argv, stdin=PIPE, stdout=PIPE, stderr=DEVNULL, cwd="/", start_new_session=True)


def _end_processes() -> None:
    while _idle:
        _idle.pop().communicate()


atexit.register(_end_processes)
