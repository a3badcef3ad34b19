"""Post a stored result to GitHub: create or update the pull request's one comment, and create the check run.

- ``GitHub`` calls the REST and GraphQL APIs. The token is sent to one host only, and is in no message. Temporary errors
  (rate limits, server errors, missing responses) are retried. All calls together end within ``TOTAL`` seconds.
- ``post_check`` and ``post_comment`` post a result.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import urlencode, urlsplit
from urllib.request import Request

from perfflow.jobs.publish.http_request import (
    TOTAL,
    HttpResponse,
    NoAnswerError,
    RefusedError,
    ask,
    is_encrypted,
    retried,
    seconds_until,
    timeout,
)
from perfflow.model.errors import UserError
from perfflow.model.result import Result
from perfflow.model.secrets import Secrets, masked
from perfflow.report.payloads.comment import comment, marker, requests
from perfflow.report.payloads.escape import clipped
from perfflow.report.payloads.revision import revision_of
from perfflow.report.payloads.run_log import earlier_hops

PAGE = 100
_MOST_PAGES = 100
_LONG_PAUSE = 60.0
"""Seconds to wait after a rate limit without a stated time, as GitHub asks."""
_LIMITED = ("rate limit", "abuse detection", "too quickly")
"""Parts of GitHub's messages about rate limits, in lower case."""
_REMEDIES = {
    401: "the token in GITHUB_TOKEN is not accepted: has it expired?",
    403: "the token lacks permission: a pull request from a fork gets a read-only token, whatever `permissions:` say; "
    "post from a second workflow, on workflow_run, as docs/how-to/ci.md shows, or add `pull-requests: write` and "
    "`checks: write` to the job's permissions",
    404: "check the repository's name (--repo OWNER/NAME) and that the token may see it",
    422: "GitHub rejected the request: check that the commit exists there",
}


@dataclass(frozen=True)
class GitHub:
    """One repository, ``OWNER/NAME``, at an API ``url`` such as https://api.github.com."""

    url: str
    repository: str
    token: str = field(repr=False)
    ends: float = field(default_factory=lambda: time.monotonic() + TOTAL, repr=False)
    """The deadline for all calls, on the monotonic clock."""

    def __post_init__(self) -> None:
        if not is_encrypted(self.url):
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
        return retried(lambda: self._try(method, path, body), self.ends, made)

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
            answer = ask(request, timeout(self.ends))
            data = _decoded(answer)
        except NoAnswerError as error:
            what = self._without_token(f"cannot reach {self.url}: {error}")
            refused = RefusedError.because(what, "try again later, or post the files of `perfflow export`")
            refused.passing = refused.done = error.sent
            raise refused from None
        if 200 <= answer.status < 300:
            return data
        raise self._refused(f"{method} {urlsplit(path).path}", answer, data)

    def _refused(self, where: str, answer: HttpResponse, data: Any) -> RefusedError:
        message = data.get("message") if isinstance(data, dict) else None
        text = self._without_token(clipped(str(message or answer.reason), 300))
        if _is_limit(answer, text):
            after = _asked_pause(answer)
            hint = f"try again in {after:.0f} s; the token's permissions are not the reason"
            error = RefusedError.because(f"GitHub limits the rate of requests: {answer.status} {text}", hint)
            error.passing, error.after = True, after
        else:
            hint = _REMEDIES.get(answer.status, "try again later")
            error = RefusedError.because(f"GitHub refuses {where}: {answer.status} {text}", hint)
            error.passing = error.done = answer.status >= 500
            error.after = seconds_until(answer.headers.get("retry-after")) if error.passing else None
        error.status = answer.status
        return error

    def _without_token(self, text: str) -> str:
        return str(masked(text, Secrets((self.token,))))


def _decoded(answer: HttpResponse) -> Any:
    """Return the JSON of a response; None for an error without any, such as an HTML page. Raises NoAnswerError."""
    try:
        return json.loads(answer.body or b"null")
    except (ValueError, RecursionError):
        if answer.status < 300:
            raise NoAnswerError("the answer is not JSON") from None
        return None


def _is_limit(answer: HttpResponse, said: str) -> bool:
    """Return whether this is a rate limit, for which GitHub also uses status 403."""
    if answer.status == 403:
        signs = "retry-after" in answer.headers or answer.headers.get("x-ratelimit-remaining") == "0"
        return signs or any(text in said.lower() for text in _LIMITED)
    return answer.status == 429


def _asked_pause(answer: HttpResponse) -> float:
    """Return the seconds to wait after a rate limit."""
    asked = seconds_until(answer.headers.get("retry-after"))
    if asked is None and answer.headers.get("x-ratelimit-remaining") == "0":
        reset = answer.headers.get("x-ratelimit-reset", "")
        asked = max(0.0, int(reset) - time.time()) if reset.isdecimal() and len(reset) < 16 else None
    return _LONG_PAUSE if asked is None else asked


def _mapping(answer: object, path: str) -> dict[str, Any]:
    if not isinstance(answer, dict):
        raise RefusedError.because(f"GitHub's answer to {path} is not an object", "check GITHUB_API_URL")
    return answer


ACTIONS = "github-actions[bot]"
"""The author of comments that a job's own token posts. GitHub does not return the login of such a token."""


@dataclass(frozen=True)
class PostTarget:
    """Where to post. Without ``sha``, the commit comes from the result. Without ``pull``, it is found by the commit."""

    sha: str | None = None
    pull: int | None = None
    author: str | None = None
    always: bool = False
    """Whether a run that passed gets a first comment as well."""
    unproven: str = "fail"


def commit_of(result: Result, sha: str | None) -> str:
    """Return the commit of the check. Raises UserError if it is not known, or is not the measured one."""
    measured = revision_of(result)
    if sha and measured and sha != measured:
        text = f"the result is of commit {measured[:12]}, and --sha is {sha[:12]}"
        hint = "check out the pull request's head commit, not GitHub's merge of it, before `perfflow gate`"
        raise UserError.of(text, hint)
    if not (sha or measured):
        raise UserError.of("the result does not contain the commit that was measured", "name it with --sha")
    return sha or str(measured)


def post_check(github: GitHub, result: Result, target: PostTarget) -> str:
    """Create the check run with all its annotations; return a line about it."""
    if result.verdict is None:
        return "no check run: a comparison of two stored sets has no verdict"
    first, *others = requests(result, target.unproven)
    created = github.send("POST", "check-runs", {**first, "head_sha": commit_of(result, target.sha)})
    for body in others:
        github.send("PATCH", f"check-runs/{created['id']}", body)
    return f"check run {first['name']}: {first['conclusion']}"


def post_comment(github: GitHub, result: Result, target: PostTarget) -> Sequence[str]:
    """Create or update the comment; return lines about what was done, or why nothing was."""
    pull = target.pull or _pull_of(github, commit_of(result, target.sha))
    if pull is None:
        return ["no comment: no open pull request has this commit as its head"]
    author = target.author or _author(github)
    old = _own_comment(github, pull, marker(result), author)
    hops = earlier_hops(old["body"]) if old else ()
    text = comment(result, hops)

    def post() -> str:
        def made() -> dict[str, Any] | None:
            newest = _own_comment(github, pull, marker(result), author)
            return newest if newest and (old is None or int(newest["id"]) > int(old["id"])) else None

        posted = github.send("POST", f"issues/{pull}/comments", {"body": text}, made)
        return f"comment: {posted.get('html_url', 'made')}"

    if old is None:
        if result.verdict == "pass" and not target.always:
            return ["no comment: the run passed, and there is no earlier comment to update"]
        return [post()]
    before = next((hop.verdict for hop in reversed(hops) if hop.run != result.run.id), "")
    if before == "PASS" and result.verdict not in ("pass", None) and hops[-1].run != result.run.id:
        # GitHub notifies nobody of an edit, and a new failure needs a notification.
        return [post(), *_minimized(github, old)]
    changed = github.send("PATCH", f"issues/comments/{int(old['id'])}", {"body": text})
    return [f"comment updated: {changed.get('html_url', old['id'])}"]


def _pull_of(github: GitHub, sha: str) -> int | None:
    """Return the open pull request whose head is the commit, also from a fork; None if there is none."""
    heads = [
        int(pull["number"])
        for pull in github.every("pulls", state="open")
        if isinstance(pull.get("head"), dict) and pull["head"].get("sha") == sha
    ]
    if len(heads) > 1:
        listed = ", ".join(f"#{number}" for number in heads)
        raise UserError.of(f"several pull requests have this head commit: {listed}", "name one with --pr NUMBER")
    return heads[0] if heads else None


def _author(github: GitHub) -> str:
    try:
        return github.login() or ACTIONS
    except RefusedError as error:
        # Not after a temporary error: the owner's comment would not be found, and a second one would be created.
        if error.status in (403, 404) and not error.passing:
            return ACTIONS
        raise


def _own_comment(github: GitHub, pull: int, mark: str, author: str) -> dict[str, Any] | None:
    """Return this author's newest comment with the marker. The author is checked, since anyone can write the marker."""
    found = [
        item
        for item in github.every(f"issues/{pull}/comments")
        if (item.get("user") or {}).get("login") == author and str(item.get("body") or "").startswith(mark)
    ]
    return max(found, key=lambda item: int(item["id"]), default=None)


def _minimized(github: GitHub, old: dict[str, Any]) -> list[str]:
    try:
        done = bool(old.get("node_id")) and github.minimize(str(old["node_id"]))
    except RefusedError:
        done = False
    return [] if done else ["the earlier comment could not be minimized as outdated; it stays as it is"]
