"""Searching for the user's patterns, with a limit of time: some try more ways than there are seconds.

Python's ``re`` keeps the whole process busy until it is done. What may take long is therefore left to another process,
which is started when it is first needed and ends itself; what cannot take long is done here.
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
"""Seconds for one search, where the step has no timeout."""
_CHOICE = re.compile(r"(?<!\()[*+?{|]")
"""What lets a pattern match in several ways; in a class or after a backslash it is counted in vain."""
_REPEATED_GROUP = re.compile(r"\)[*+?{]")
_MOST_WAYS = 10**8
"""Ways that are tried within a second or so."""


class PatternTimeoutError(ToolOutputError):
    """A pattern that was still tried when the time was over."""


class Found(NamedTuple):
    """One match: where it starts, in characters from 0, and what its named groups hold."""

    start: int
    groups: dict[str, str | None]


def search(
    pattern: str, texts: Sequence[str], seconds: float | None = None, flags: int | re.RegexFlag = re.MULTILINE
) -> list[Found]:
    """Return every match in each of the texts. The pattern compiles.

    ``seconds`` is how long it may take, PATIENCE by default. Raises PatternTimeoutError.
    """
    if _is_quick(pattern, max(map(len, texts), default=0)):
        compiled = re.compile(pattern, flags)
        return [Found(match.start(), match.groupdict()) for text in texts for match in compiled.finditer(text)]
    limit = PATIENCE if seconds is None else seconds
    request = {"pattern": pattern, "flags": int(flags), "texts": list(texts), "seconds": limit}
    answer = _asked(json.dumps(request).encode() + b"\n")
    if answer is None:
        text = f"the pattern {pattern[:80]!r} was still tried after {limit:g} s"
        raise PatternTimeoutError(f"{text}; it has too many ways to match: do not repeat what is repeated, as in (a+)+")
    return [Found(start, groups) for start, groups in json.loads(answer)]


def time_left(timeout: float | None, used: float) -> float | None:
    """Seconds of a step's timeout that its process has left to the patterns; a second at least, None for any time."""
    return None if timeout is None else max(timeout - used, 1.0)


def _is_quick(pattern: str, length: int) -> bool:
    """Whether a text of this length has too few ways to match for it to take long.

    Without a repeated group each choice has at most one way for each place of the text, as has where to begin.
    """
    if _REPEATED_GROUP.search(pattern):
        return False
    choices = len(_CHOICE.findall(pattern))
    return bool((length + 1) ** min(choices + 1, 100) <= _MOST_WAYS)


_idle: list[Popen[bytes]] = []
"""Processes that wait for a request; as many as searches went on at once."""


def _asked(request: bytes) -> bytes | None:
    """The answer to a request, None where it took too long. Raises ToolOutputError where there is no process for it."""
    for _ in range(2):
        child = _idle.pop() if _idle else _started()
        answer = _told(child, request)
        if answer.endswith(b"\n"):
            _idle.append(child)
            return answer
        child.communicate()
        if child.returncode == -signal.SIGALRM:
            return None
        # One that somebody ended while it waited is replaced.
    raise ToolOutputError("the process that searches for patterns was ended")


def _told(child: Popen[bytes], request: bytes) -> bytes:
    if child.stdin is None or child.stdout is None:
        return b""
    try:
        child.stdin.write(request)
        child.stdin.flush()
        return child.stdout.readline()
    except OSError:
        return b""


def _started() -> Popen[bytes]:
    # In a session of its own, so that ^C is for perfflow alone.
    argv = python_command.bare("pattern_search.py")
    return Popen(argv, stdin=PIPE, stdout=PIPE, stderr=DEVNULL, cwd="/", start_new_session=True)


def _end() -> None:
    while _idle:
        _idle.pop().communicate()


atexit.register(_end)
