"""Calls of GitHub's REST and GraphQL APIs. The token is sent to one host only, and is in no message.

Temporary errors (rate limits, server errors, missing responses) are retried, after growing pauses or the time that
GitHub asks for. All calls together end within ``TOTAL`` seconds.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from email.utils import parsedate_to_datetime
from typing import Any
from urllib.parse import urlencode, urlsplit
from urllib.request import Request

from perfflow.jobs.publish.bounded_http import Answer, NoAnswerError, ask
from perfflow.model.errors import Exit, UserError
from perfflow.model.secrets import Secrets, masked
from perfflow.report.payloads.escape import clipped

PAGE = 100
TOTAL = 240.0
"""Seconds for all calls and their pauses."""
_MOST_PAGES = 100
_TIMEOUT = 30.0
"""Seconds for one response."""
_PAUSES = (1.0, 2.0, 4.0, 8.0)
"""Seconds before each retry, unless the server names a time."""
_LONG_PAUSE = 60.0
"""Seconds to wait after a rate limit without a stated time, as GitHub asks."""
_LOOPBACK = ("127.0.0.1", "::1", "localhost")
_LIMITED = ("rate limit", "abuse detection", "too quickly")
"""Parts of GitHub's messages about rate limits, in lower case."""
_REMEDIES = {
    401: "the token in GITHUB_TOKEN is not accepted: has it expired?",
    403: "the token lacks permission: a pull request from a fork gets a read-only token, whatever `permissions:` say; "
    "post from a second workflow, on workflow_run, as docs/ci.md shows, or add `pull-requests: write` and "
    "`checks: write` to the job's permissions",
    404: "check the repository's name (--repo OWNER/NAME) and that the token may see it",
    422: "GitHub rejected the request: check that the commit exists there",
}


class RefusedError(UserError):
    """GitHub responded with an error, or not at all. ``status`` is the HTTP status, 0 without a response.

    ``passing``: whether a retry may succeed, as after a rate limit, which does not mean that the token lacks rights.
    ``after``: seconds until then, if known. ``done``: whether GitHub may have performed the request.
    """

    status: int = 0
    passing: bool = False
    after: float | None = None
    done: bool = False

    @classmethod
    def because(cls, what: str, hint: str) -> RefusedError:
        """Return the error with exit status ``Exit.UNMEASURED``."""
        return cls(UserError.of(what, hint).problems, Exit.UNMEASURED)


@dataclass(frozen=True)
class GitHub:
    """One repository, ``OWNER/NAME``, at an API ``url`` such as https://api.github.com."""

    url: str
    repository: str
    token: str = field(repr=False)
    ends: float = field(default_factory=lambda: time.monotonic() + TOTAL, repr=False)
    """The deadline for all calls, on the monotonic clock."""

    def __post_init__(self) -> None:
        parts = urlsplit(self.url)
        if parts.scheme != "https" and not (parts.scheme == "http" and parts.hostname in _LOOPBACK):
            text = f"{self.url}: a token is only sent over https"
            raise UserError.of(text, "set GITHUB_API_URL to an address such as https://api.github.com")

    def every(self, path: str, **query: str) -> Iterator[dict[str, Any]]:
        """Yield the entries of a list, page by page. ``path`` is below the repository."""
        for page in range(1, _MOST_PAGES + 1):
            words = urlencode({**query, "per_page": str(PAGE), "page": str(page)})
            found = self._call("GET", f"{self._repository}/{path}?{words}", None)
            if not isinstance(found, list):
                raise RefusedError.because(f"GitHub's answer to {path} is not a list", "check GITHUB_API_URL")
            yield from (item for item in found if isinstance(item, dict))
            if len(found) < PAGE:
                return

    def send(
        self, method: str, path: str, body: Mapping[str, Any], made: Callable[[], dict[str, Any] | None] = lambda: None
    ) -> dict[str, Any]:
        """Create (POST) or change (PATCH) an object of the repository; return its new state.

        ``made`` looks for an object that a try without a response created, so that it is not created twice.
        """
        return _mapping(self._call(method, f"{self._repository}/{path}", body, made), path)

    def login(self) -> str:
        """Return the login of the token's owner. Raises RefusedError if it has none, such as a job's token."""
        return str(_mapping(self._call("GET", "/user", None), "/user").get("login", ""))

    def minimize(self, node: str) -> bool:
        """Minimize a comment as outdated; return whether that succeeded."""
        query = "mutation($id: ID!) {minimizeComment(input: {subjectId: $id, classifier: OUTDATED}) {clientMutationId}}"
        answer = self._call("POST", "/graphql", {"query": query, "variables": {"id": node}})
        return isinstance(answer, dict) and not answer.get("errors")

    @property
    def _repository(self) -> str:
        return f"/repos/{self.repository}"

    def _call(
        self,
        method: str,
        path: str,
        body: Mapping[str, Any] | None,
        made: Callable[[], dict[str, Any] | None] = lambda: None,
    ) -> Any:
        """Send a request, with retries. Raises RefusedError if a retry cannot help or would take too long."""
        for pause in (*_PAUSES, None):
            try:
                return self._try(method, path, body)
            except RefusedError as error:
                wait = pause if error.after is None else error.after
                if not error.passing or pause is None or wait is None or time.monotonic() + wait > self.ends:
                    raise
                time.sleep(wait)
                found = made() if error.done else None
                if found is not None:
                    return found
        return None

    def _try(self, method: str, path: str, body: Mapping[str, Any] | None) -> Any:
        headers = {
            "Accept": "application/vnd.github+json",
            "Authorization": f"Bearer {self.token}",
            "User-Agent": "perfflow",
            "X-GitHub-Api-Version": "2022-11-28",
        }
        data = None if body is None else json.dumps(body).encode()
        # GitHub Enterprise Server has its REST API at /api/v3, and GraphQL at /api/graphql.
        base = self.url.rstrip("/")
        base = base.removesuffix("/v3") if path == "/graphql" else base
        request = Request(base + path, data, headers, method=method)  # noqa: S310 (the scheme is checked above)
        try:
            answer = ask(request, max(0.01, min(_TIMEOUT, self.ends - time.monotonic())))
        except NoAnswerError as error:
            what = self._without_token(f"cannot reach {self.url}: {error}")
            refused = RefusedError.because(what, "try again later, or post the files of `perfflow export`")
            refused.passing = refused.done = error.sent
            raise refused from None
        if 200 <= answer.status < 300:
            return answer.data
        raise self._refused(f"{method} {urlsplit(path).path}", answer)

    def _refused(self, where: str, answer: Answer) -> RefusedError:
        said = answer.data.get("message") if isinstance(answer.data, dict) else None
        text = self._without_token(clipped(str(said or answer.reason), 300))
        if _is_limit(answer, text):
            after = _asked_pause(answer)
            hint = f"try again in {after:.0f} s; the token's permissions are not the reason"
            error = RefusedError.because(f"GitHub limits the rate of requests: {answer.status} {text}", hint)
            error.passing, error.after = True, after
        else:
            hint = _REMEDIES.get(answer.status, "try again later")
            error = RefusedError.because(f"GitHub refuses {where}: {answer.status} {text}", hint)
            error.passing = error.done = answer.status >= 500
            error.after = _seconds_until(answer.headers.get("retry-after")) if error.passing else None
        error.status = answer.status
        return error

    def _without_token(self, text: str) -> str:
        return str(masked(text, Secrets((self.token,))))


def _is_limit(answer: Answer, said: str) -> bool:
    """Return whether this is a rate limit, for which GitHub also uses status 403."""
    if answer.status == 403:
        signs = "retry-after" in answer.headers or answer.headers.get("x-ratelimit-remaining") == "0"
        return signs or any(text in said.lower() for text in _LIMITED)
    return answer.status == 429


def _asked_pause(answer: Answer) -> float:
    """Return the seconds to wait after a rate limit."""
    asked = _seconds_until(answer.headers.get("retry-after"))
    if asked is None and answer.headers.get("x-ratelimit-remaining") == "0":
        reset = answer.headers.get("x-ratelimit-reset", "")
        asked = max(0.0, int(reset) - time.time()) if reset.isdecimal() and len(reset) < 16 else None
    return _LONG_PAUSE if asked is None else asked


def _seconds_until(text: str | None) -> float | None:
    """Return the seconds until the time in a ``Retry-After`` header, a number or a date; None if it has neither."""
    if text is None:
        return None
    if text.isdecimal():
        return float(text[:16])
    try:
        return max(0.0, parsedate_to_datetime(text).timestamp() - time.time())
    except (ValueError, OverflowError):
        return None


def _mapping(answer: object, path: str) -> dict[str, Any]:
    if not isinstance(answer, dict):
        raise RefusedError.because(f"GitHub's answer to {path} is not an object", "check GITHUB_API_URL")
    return answer
