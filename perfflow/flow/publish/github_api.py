"""A few calls of GitHub's REST and GraphQL interfaces. The token goes to one host only, and into no message."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from http.client import HTTPException
from typing import Any
from urllib.error import HTTPError, URLError
from urllib.parse import urlencode, urlsplit
from urllib.request import HTTPRedirectHandler, Request, build_opener

from perfflow.errors import Exit, UserError
from perfflow.report.payloads.inert import clipped

PAGE = 100
_MOST_PAGES = 100
_TIMEOUT = 30
"""Seconds for one answer."""
_LOOPBACK = ("127.0.0.1", "::1", "localhost")
_REMEDIES = {
    401: "the token in GITHUB_TOKEN is not accepted: has it expired?",
    403: "the token may not do this: a pull request from a fork gets one that only reads, whatever `permissions:` say; "
    "post from a second workflow, on workflow_run, as docs/ci.md shows, or add `pull-requests: write` and "
    "`checks: write` to the job's permissions",
    404: "is the repository's name right, and may the token see it? name it with --repo OWNER/NAME",
    422: "GitHub does not take what was sent: does the commit exist there?",
}


class RefusedError(UserError):
    """GitHub answered with an error, or not at all; ``status`` is that of HTTP, 0 where there was no answer."""

    status: int = 0

    @classmethod
    def because(cls, what: str, hint: str, status: int = 0) -> RefusedError:
        """Build the error, with the exit status of what could not be done."""
        error = cls(UserError.of(what, hint).problems, Exit.UNMEASURED)
        error.status = status
        return error


class _NoRedirects(HTTPRedirectHandler):
    """urllib would send the token on to wherever an answer points."""

    def redirect_request(self, *_parts: object, **_named: object) -> None:
        """Follow none: what points elsewhere is an error."""


@dataclass(frozen=True, slots=True)
class GitHub:
    """One repository, ``OWNER/NAME``, at the interface ``url``, such as https://api.github.com."""

    url: str
    repository: str
    token: str = field(repr=False)

    def __post_init__(self) -> None:
        parts = urlsplit(self.url)
        if parts.scheme != "https" and not (parts.scheme == "http" and parts.hostname in _LOOPBACK):
            text = f"{self.url}: a token is sent over https alone"
            raise UserError.of(text, "set GITHUB_API_URL to an address such as https://api.github.com")

    def every(self, path: str, **query: str) -> Iterator[dict[str, Any]]:
        """Entries of a list, page by page. ``path`` is below the repository."""
        for page in range(1, _MOST_PAGES + 1):
            words = urlencode({**query, "per_page": str(PAGE), "page": str(page)})
            found = self._call("GET", f"{self._repository}/{path}?{words}", None)
            if not isinstance(found, list):
                raise RefusedError.because(f"GitHub's answer to {path} is no list", "is GITHUB_API_URL right?")
            yield from (item for item in found if isinstance(item, dict))
            if len(found) < PAGE:
                return

    def send(self, method: str, path: str, body: Mapping[str, Any]) -> dict[str, Any]:
        """Create (POST) or change (PATCH) something of the repository; returns what it is now."""
        return _mapping(self._call(method, f"{self._repository}/{path}", body), path)

    def login(self) -> str:
        """The login of the token's owner. Raises RefusedError where it is none's, such as that of a job."""
        return str(_mapping(self._call("GET", "/user", None), "/user").get("login", ""))

    def minimize(self, node: str) -> bool:
        """Fold a comment as outdated; whether that was done."""
        query = "mutation($id: ID!) {minimizeComment(input: {subjectId: $id, classifier: OUTDATED}) {clientMutationId}}"
        answer = self._call("POST", "/graphql", {"query": query, "variables": {"id": node}})
        return isinstance(answer, dict) and not answer.get("errors")

    @property
    def _repository(self) -> str:
        return f"/repos/{self.repository}"

    def _call(self, method: str, path: str, body: Mapping[str, Any] | None) -> Any:
        headers = {
            "Accept": "application/vnd.github+json",
            "Authorization": f"Bearer {self.token}",
            "User-Agent": "perfflow",
            "X-GitHub-Api-Version": "2022-11-28",
        }
        data = None if body is None else json.dumps(body).encode()
        # A server of one's own has its REST interface at /api/v3, and GraphQL beside it.
        base = self.url.rstrip("/")
        base = base.removesuffix("/v3") if path == "/graphql" else base
        request = Request(base + path, data, headers, method=method)  # noqa: S310 (the scheme is checked above)
        try:
            with build_opener(_NoRedirects).open(request, timeout=_TIMEOUT) as answer:
                return json.loads(answer.read() or b"null")
        except HTTPError as error:
            with error:
                raise self._refused(method, path, error) from None
        except (URLError, HTTPException, OSError, ValueError) as error:
            what = self._without_token(f"cannot reach {self.url}: {getattr(error, 'reason', error)}")
            raise RefusedError.because(
                what, "nothing more was sent; the files of `perfflow export` can be posted later"
            ) from None

    def _refused(self, method: str, path: str, error: HTTPError) -> RefusedError:
        try:
            said = json.loads(error.read(1 << 16))["message"]
        except (OSError, ValueError, LookupError, TypeError, HTTPException):
            said = error.reason
        where = f"{method} {urlsplit(path).path}"
        what = self._without_token(f"GitHub refuses {where}: {error.code} {clipped(str(said), 300)}")
        return RefusedError.because(what, _REMEDIES.get(error.code, "try again later"), error.code)

    def _without_token(self, text: str) -> str:
        return text.replace(self.token, "***")


def _mapping(answer: object, path: str) -> dict[str, Any]:
    if not isinstance(answer, dict):
        raise RefusedError.because(f"GitHub's answer to {path} is not what it should be", "is GITHUB_API_URL right?")
    return answer
