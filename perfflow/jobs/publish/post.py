"""A stored result, posted: the pull request's one comment is made or brought up to date, and the check run created."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from perfflow.jobs.publish.github_api import GitHub, RefusedError
from perfflow.model.errors import UserError
from perfflow.model.later import dataclass
from perfflow.model.result import Result
from perfflow.report.payloads.check_run import requests
from perfflow.report.payloads.comment import comment, marker
from perfflow.report.payloads.revision import revision_of
from perfflow.report.payloads.run_log import earlier_hops

ACTIONS = "github-actions[bot]"
"""Who writes what is posted with a job's own token, which cannot be asked whose it is."""


@dataclass(frozen=True)
class Target:
    """Where to post. ``sha`` and ``pull`` are None where they are to be found: of the result, and by the commit."""

    sha: str | None = None
    pull: int | None = None
    author: str | None = None
    always: bool = False
    """Whether a first comment is made for a run that passed, too."""
    unproven: str = "ask"


def commit_of(result: Result, sha: str | None) -> str:
    """The commit that a check is of. Raises UserError where it is not known, or not what was measured."""
    measured = revision_of(result)
    if sha and measured and sha != measured:
        text = f"the result is of commit {measured[:12]}, and --sha is {sha[:12]}"
        hint = "check out the pull request's head commit, not GitHub's merge of it, before `perfflow gate`"
        raise UserError.of(text, hint)
    if not (sha or measured):
        raise UserError.of("the result does not say which commit was measured", "name it with --sha")
    return sha or str(measured)


def post_check(github: GitHub, result: Result, target: Target) -> str:
    """Create the check run, with all its annotations; returns what was done."""
    if result.verdict is None:
        return "no check run: two stored sets were compared, and nothing is judged"
    first, *others = requests(result, target.unproven)
    created = github.send("POST", "check-runs", {**first, "head_sha": commit_of(result, target.sha)})
    for body in others:
        github.send("PATCH", f"check-runs/{created['id']}", body)
    return f"check run {first['name']}: {first['conclusion']}"


def post_comment(github: GitHub, result: Result, target: Target) -> Sequence[str]:
    """Make or update the comment; returns what was done, and why where nothing was."""
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
            return ["no comment: the run passed, and there is none to bring up to date"]
        return [post()]
    before = next((hop.verdict for hop in reversed(hops) if hop.run != result.run.id), "")
    if before == "PASS" and result.verdict not in ("pass", None) and hops[-1].run != result.run.id:
        # An edit notifies nobody, and this is something to be told of.
        return [post(), *_minimized(github, old)]
    changed = github.send("PATCH", f"issues/comments/{int(old['id'])}", {"body": text})
    return [f"comment updated: {changed.get('html_url', old['id'])}"]


def _pull_of(github: GitHub, sha: str) -> int | None:
    """The open pull request whose head is the commit, also of a fork; None where there is none."""
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
        # Not where the question was refused for now: the owner's comment would not be found, and a second one made.
        if error.status in (403, 404) and not error.passing:
            return ACTIONS
        raise


def _own_comment(github: GitHub, pull: int, mark: str, author: str) -> dict[str, Any] | None:
    """The newest comment of this author that begins with the marker: anyone can write the marker."""
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
    return [] if done else ["the comment before could not be folded as outdated; it stays as it is"]
