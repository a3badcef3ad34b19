"""The rules of a background step: a command that says when it is ready, and measures nothing itself."""

from __future__ import annotations

import re
from urllib.parse import urlsplit

from perfflow.workflow.document import Loc
from perfflow.workflow.load import Draft
from perfflow.workflow.model import Ready, Step
from perfflow.workflow.roles import CANDIDATES_STAGE

_WAYS = ("port", "url", "regex")
_EXAMPLE = 'ready: {port: 8080}, {url: "http://127.0.0.1:8080/"} or {regex: "listening on (?P<port>[0-9]+)"}'
_REFUSED = {
    "uses": "a service is a command of its own: `run` or `argv`",
    "parse": "a service is not measured itself: a later step measures it",
    "assert_": "a later step checks what it answers",
    "benchmark": "a service is not measured itself: a later step measures it",
    "candidate": "make it two services",
    "ops": "a service is not measured itself: a later step measures it",
    "work": "a service is not measured itself: a later step measures it",
    "runs": "a service is not measured itself: a later step measures it",
    "warmup": "a service is not measured itself: a later step measures it",
    "budget": "a service is not measured itself: a later step measures it",
    "retries": "`timeout` says how long it may take to be ready",
    "alone": "it runs beside the steps that have the machine to themselves",
    "artifacts": "what it prints is kept anyway; a later step can keep its files",
    "compare": "make it two steps",
}
"""Keys that make no sense beside ``background``, and what to do instead."""


def check(draft: Draft, stage: str, step: Step, loc: Loc) -> None:
    """Add the problems of a background step, and a ``ready`` without one."""
    if not step.background:
        if step.ready is not None and "background" not in draft.wrong_keys(loc):
            hint = "add `background: true`"
            draft.complain((*loc, "ready"), "`ready`, but the step is not in the background", hint, key=True)
        return
    if stage == CANDIDATES_STAGE:
        hint = "start it in the `setup` stage"
        draft.complain((*loc, "background"), "a candidate cannot be a service", hint, key=True)
        return
    for name, hint in _REFUSED.items():
        # `alone: false` says what is so anyway.
        if getattr(step, name) not in (None, False, []):
            key = name.rstrip("_")
            draft.complain((*loc, key), f"`{key}` on a background step", hint, key=True)
    if step.ready is not None:
        _check_ready(draft, step.ready, (*loc, "ready"))
    elif "ready" not in draft.wrong_keys(loc):
        message = f"nothing says when the service `{step.id}` is ready"
        draft.complain((*loc, "background"), message, _EXAMPLE, key=True)


def _check_ready(draft: Draft, ready: Ready, loc: Loc) -> None:
    if draft.wrong_keys(loc):
        return
    given = [way for way in _WAYS if getattr(ready, way) is not None]
    if len(given) != 1:
        draft.complain(loc, "`ready` has one of port, url and regex", _EXAMPLE, key=True)
        return
    if ready.url is not None and "${{" not in ready.url:
        wrong = url_mistake(ready.url)
        if wrong:
            draft.complain((*loc, "url"), wrong, "write it as in http://127.0.0.1:8080/health")
    if ready.regex is not None and "${{" not in ready.regex:
        wrong = pattern_mistake(ready.regex)
        if wrong:
            draft.complain(
                (*loc, "regex"), wrong, "write what it prints once it is ready, as a Python regular expression"
            )


def url_mistake(url: str) -> str:
    """Why a text is no address that can be asked; '' where it is one."""
    try:
        parts = urlsplit(url)
        usable = parts.scheme == "http" and parts.hostname and parts.port != 0
    except ValueError:
        usable = False
    return "" if usable and url.isprintable() and " " not in url else f"{url!r} is no http address"


def pattern_mistake(pattern: str) -> str:
    """Why a text is no pattern that can be searched for; '' where it is one."""
    try:
        compiled = re.compile(pattern)
    except (re.error, OverflowError, RecursionError) as error:
        return f"the pattern does not compile: {getattr(error, 'msg', error)}"
    # It would be found before the service has said anything.
    return f"{pattern!r} matches an empty line" if compiled.search("") else ""
