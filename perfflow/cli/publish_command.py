"""``perfflow publish``: the only command that uses a token."""

from __future__ import annotations

import os
import re
from pathlib import Path

import click

from perfflow.cli.output import say
from perfflow.jobs.export.export import read_result
from perfflow.jobs.publish.github_api import GitHub, PostTarget, commit_of, post_check, post_comment
from perfflow.model.errors import UserError
from perfflow.report.sanitize import visible
from perfflow.store.run_folder import find
from perfflow.trees import repository


@click.group("publish")
def command() -> None:
    """Post a run's result to a code review. Only these commands use a token."""


def _repository(_ctx: click.Context, _param: click.Parameter, value: str | None) -> str | None:
    if value is not None and not re.fullmatch(r"[A-Za-z0-9-]+/[A-Za-z0-9._-]+", value):
        raise click.BadParameter("write OWNER/NAME")
    return value


def _sha(_ctx: click.Context, _param: click.Parameter, value: str | None) -> str | None:
    if value is not None and not re.fullmatch(r"[0-9a-f]{40}(?:[0-9a-f]{24})?", value):
        raise click.BadParameter("write the full hash of a commit")
    return value


@command.command("github")
@click.option("--run", default="latest", show_default=True, metavar="RUN", help="A folder, an id, or a result.json.")
@click.option("--repo", callback=_repository, metavar="OWNER/NAME", help="Repository (default: GITHUB_REPOSITORY).")
@click.option("--sha", callback=_sha, metavar="SHA", help="The head commit (default: the commit in the result).")
@click.option(
    "--pr", type=click.IntRange(1), metavar="NUMBER", help="Pull request (default: found by the head commit)."
)
@click.option("--author", metavar="LOGIN", help="Author of the comment (default: the owner of the token).")
@click.option("--only", type=click.Choice(["comment", "check"]), help="Post only the comment or only the check run.")
@click.option("--always", is_flag=True, help="Create a comment even if the run passed.")
@click.option(
    "--unproven",
    type=click.Choice(["fail", "pass"]),
    default="fail",
    show_default=True,
    help="How the check run shows an unproven verdict. fail: a failure. pass: neutral.",
)
def github(
    run: str,
    repo: str | None,
    sha: str | None,
    pr: int | None,
    author: str | None,
    only: str | None,
    always: bool,
    unproven: str,
) -> None:
    """Post a run to GitHub: a check run, and one comment on its pull request that is kept up to date.

    The token is read from GITHUB_TOKEN, the address from GITHUB_API_URL. The first run that does not pass creates a
    comment, and later runs edit it. If a run does not pass after one that passed, the old comment is collapsed and a
    new one is created, because GitHub notifies nobody of an edit.

    Exit: 0 posted, whatever the verdict is; 2 bad usage; 3 GitHub rejects the request or cannot be reached.
    """
    token = os.environ.get("GITHUB_TOKEN", "").strip()
    where = repo or os.environ.get("GITHUB_REPOSITORY", "")
    if not token or not token.isascii() or not token.isprintable():
        hint = "in a job, add `env: {GITHUB_TOKEN: ${{ github.token }}}` to this step only"
        raise UserError.of("GITHUB_TOKEN is not set", hint)
    if not re.fullmatch(r"[A-Za-z0-9-]+/[A-Za-z0-9._-]+", where):
        raise UserError.of("the repository is unknown", "name it with --repo OWNER/NAME")
    here = Path.cwd()
    result = read_result(find(repository.root_of(here) or here, run))
    target = PostTarget(sha, pr, author, always, unproven)
    if only != "comment":
        commit_of(result, sha)
    api = GitHub(os.environ.get("GITHUB_API_URL") or "https://api.github.com", where, token)
    lines = [] if only == "check" else [*post_comment(api, result, target)]
    lines += [] if only == "comment" else [post_check(api, result, target)]
    for line in lines:
        say(visible(line))
