"""Post a stored result: create or update the pull request's one comment, and create the check run."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from perfflow.jobs.publish.github_api import GitHub, RefusedError
from perfflow.model.errors import UserError
from perfflow.model.result import Result
from perfflow.report.payloads.check_run import requests
from perfflow.report.payloads.comment import comment, marker
from perfflow.report.payloads.revision import revision_of
from perfflow.report.payloads.run_log import earlier_hops

ACTIONS = "github-actions[bot]"
"""The author of comments that a job's own token posts. GitHub does not return the login of such a token."""


@dataclass(frozen=True)
class Target:
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


def post_check(github: GitHub, result: Result, target: Target) -> str:
    """Create the check run with all its annotations; return a line about it."""
    if result.verdict is None:
        return "no check run: a comparison of two stored sets has no verdict"
    first, *others = requests(result, target.unproven)
    created = github.send("POST", "check-runs", {**first, "head_sha": commit_of(result, target.sha)})
    for body in others:
        github.send("PATCH", f"check-runs/{created['id']}", body)
    return f"check run {first['name']}: {first['conclusion']}"


def post_comment(github: GitHub, result: Result, target: Target) -> Sequence[str]:
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
