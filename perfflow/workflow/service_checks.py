"""Check background steps: a service is a command with a ``ready`` condition, and is not measured itself."""

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
    "uses": "start the service with `run` or `argv`",
    "parse": "measure the service in a later step",
    "assert_": "check its answers in a later step",
    "benchmark": "measure the service in a later step",
    "candidate": "write two background steps",
    "ops": "measure the service in a later step",
    "work": "measure the service in a later step",
    "runs": "measure the service in a later step",
    "warmup": "measure the service in a later step",
    "budget": "measure the service in a later step",
    "retries": "set `timeout`, the time it may take to become ready",
    "alone": "remove it: a service always runs beside the other steps",
    "artifacts": "its output is always kept; keep its files with a later step",
    "compare": "write two steps",
}
"""Keys that a background step cannot have, and what to do instead."""


def check(draft: Draft, stage: str, step: Step, loc: Loc) -> None:
    """Check a background step, and report ``ready`` on other steps."""
    if not step.background:
        if step.ready is not None and "background" not in draft.wrong_keys(loc):
            hint = "add `background: true`"
            draft.complain((*loc, "ready"), "`ready` needs `background: true`", hint, key=True)
        return
    if stage == CANDIDATES_STAGE:
        hint = "start it in the `setup` stage"
        draft.complain((*loc, "background"), "a candidate cannot be a service", hint, key=True)
        return
    for name, hint in _REFUSED.items():
        # `alone: false` is the default of a service.
        if getattr(step, name) not in (None, False, []):
            key = name.rstrip("_")
            draft.complain((*loc, key), f"a background step cannot have `{key}`", hint, key=True)
    if step.ready is not None:
        _check_ready(draft, step.ready, (*loc, "ready"))
    elif "ready" not in draft.wrong_keys(loc):
        message = f"the service `{step.id}` has no `ready` condition"
        draft.complain((*loc, "background"), message, _EXAMPLE, key=True)


def _check_ready(draft: Draft, ready: Ready, loc: Loc) -> None:
    if draft.wrong_keys(loc):
        return
    given = [way for way in _WAYS if getattr(ready, way) is not None]
    if len(given) != 1:
        draft.complain(loc, "`ready` must have exactly one of port, url and regex", _EXAMPLE, key=True)
        return
    if ready.url is not None and "${{" not in ready.url:
        wrong = url_mistake(ready.url)
        if wrong:
            draft.complain((*loc, "url"), wrong, "write a URL such as http://127.0.0.1:8080/health")
    if ready.regex is not None and "${{" not in ready.regex:
        wrong = pattern_mistake(ready.regex)
        if wrong:
            draft.complain(
                (*loc, "regex"), wrong, "write a Python regular expression for the line it prints when it is ready"
            )


def url_mistake(url: str) -> str:
    """Return the message for a URL that cannot be requested, or '' if it is valid."""
    try:
        parts = urlsplit(url)
        usable = parts.scheme == "http" and parts.hostname and parts.port != 0
    except ValueError:
        usable = False
    return "" if usable and url.isprintable() and " " not in url else f"{url!r} is not an http URL"


def pattern_mistake(pattern: str) -> str:
    """Return the message for an invalid ``regex`` of a service, or '' if it is valid."""
    try:
        compiled = re.compile(pattern)
    except (re.error, OverflowError, RecursionError) as error:
        return f"invalid regular expression: {getattr(error, 'msg', error)}"
    # Such a pattern would match before the service has printed anything.
    return f"{pattern!r} matches an empty line" if compiled.search("") else ""
