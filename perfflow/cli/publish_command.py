"""``perfflow publish``: the only command that uses a token or the secret address of a webhook."""

from __future__ import annotations

import os
import re
from collections.abc import Callable
from pathlib import Path

import click

from perfflow.cli.output import say
from perfflow.jobs.export.export import read_result
from perfflow.jobs.publish.github_api import GitHub, PostTarget, commit_of, post_check, post_comment
from perfflow.jobs.publish.webhook import Webhook
from perfflow.model.errors import UserError
from perfflow.model.result import Result
from perfflow.report.payloads.message import JSON, Message, message, own_message
from perfflow.report.sanitize import visible
from perfflow.store.run_folder import find
from perfflow.trees import repository


@click.group("publish")
def command() -> None:
    """Post a run's result to a code review or a chat. Only these commands use a token or a secret address."""


def _repository(_ctx: click.Context, _param: click.Parameter, value: str | None) -> str | None:
    if value is not None and not re.fullmatch(r"[A-Za-z0-9-]+/[A-Za-z0-9._-]+", value):
        raise click.BadParameter("write OWNER/NAME")
    return value


def _sha(_ctx: click.Context, _param: click.Parameter, value: str | None) -> str | None:
    if value is not None and not re.fullmatch(r"[0-9a-f]{40}(?:[0-9a-f]{24})?", value):
        raise click.BadParameter("write the full hash of a commit")
    return value


RUN = click.option(
    "--run", default="latest", show_default=True, metavar="RUN", help="A folder, an id, or a result.json."
)


@command.command("github")
@RUN
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
    result = _result(run)
    target = PostTarget(sha, pr, author, always, unproven)
    if only != "comment":
        commit_of(result, sha)
    api = GitHub(os.environ.get("GITHUB_API_URL") or "https://api.github.com", where, token)
    lines = [] if only == "check" else [*post_comment(api, result, target)]
    lines += [] if only == "comment" else [post_check(api, result, target)]
    for line in lines:
        say(visible(line))


def _result(run: str) -> Result:
    return read_result(find(repository.project_here(), run))


def _variable(_ctx: click.Context, _param: click.Parameter, value: str) -> str:
    # The message does not repeat the value, which may be the address itself.
    if not re.fullmatch(r"[A-Za-z_]\w*", value, re.ASCII):
        raise click.BadParameter("write the name of an environment variable, not the address")
    return value


def _link(_ctx: click.Context, _param: click.Parameter, value: str) -> str:
    is_plain = value.isascii() and value.isprintable() and not set(value) & set(' <>|\\"')
    if value and (not is_plain or len(value) > 2000 or not value.startswith(("https://", "http://"))):
        raise click.BadParameter("write an address that begins with https://, of at most 2,000 ASCII letters")
    return value


def _content_type(_ctx: click.Context, _param: click.Parameter, value: str) -> str:
    if not re.fullmatch(r"[\w.+-]+/[\w.+-]+(?:; *[\w.+-]+=[\w.+-]+)*", value, re.ASCII):
        raise click.BadParameter("write a type of content, such as text/plain; charset=utf-8")
    return value


def _url_from(default: str) -> Callable[[Callable[..., None]], Callable[..., None]]:
    about = "Environment variable with the address. It is a secret, and never printed."
    return click.option(
        "--url-from", callback=_variable, default=default, show_default=True, metavar="NAME", help=about
    )


LINK = click.option("--link", callback=_link, default="", metavar="URL", help="Where the report is, for the message.")
DRY_RUN = click.option("-n", "--dry-run", is_flag=True, help="Print the message and send nothing. Needs no address.")


@command.command("slack")
@RUN
@_url_from("SLACK_WEBHOOK_URL")
@LINK
@DRY_RUN
def slack(run: str, url_from: str, link: str, dry_run: bool) -> None:
    """Post a run to a channel of Slack by an incoming webhook: verdict, reasons, changes and the next step.

    Exit: 0 posted, whatever the verdict is; 2 bad usage; 3 Slack refuses the message or cannot be reached.
    """
    _post(message("slack.json.j2", _result(run), link), url_from, dry_run)


@command.command("teams")
@RUN
@_url_from("TEAMS_WEBHOOK_URL")
@LINK
@DRY_RUN
def teams(run: str, url_from: str, link: str, dry_run: bool) -> None:
    """Post a run to a channel of Microsoft Teams by a webhook of its app Workflows, as an adaptive card.

    Exit: 0 posted, whatever the verdict is; 2 bad usage; 3 Teams refuses the message or cannot be reached.
    """
    _post(message("teams.json.j2", _result(run), link), url_from, dry_run)


@command.command("webhook")
@click.option(
    "--template",
    type=click.Path(path_type=Path),
    required=True,
    metavar="FILE",
    help="A Jinja2 template of the message. `perfflow report --template-help` lists what it may use.",
)
@RUN
@_url_from("WEBHOOK_URL")
@click.option(
    "--content-type",
    callback=_content_type,
    default=JSON,
    show_default=True,
    metavar="TYPE",
    help="What the message is. JSON is checked before it is sent.",
)
@LINK
@DRY_RUN
def webhook(template: Path, run: str, url_from: str, content_type: str, link: str, dry_run: bool) -> None:
    """Post a run to any service by a template of your own. A template that gives no text sends nothing.

    Exit: 0 posted, whatever the verdict is, or nothing to send; 2 bad usage, or the template gives no JSON; 3 the
    service refuses the message or cannot be reached.
    """
    _post(own_message(_result(run), template, content_type, link), url_from, dry_run)


def _post(text: Message, variable: str, dry_run: bool) -> None:
    if not text.text.strip():
        say("nothing to send: the template gives no text for this run")
    elif dry_run:
        say(text.text.rstrip("\n"))
    else:
        say(f"message posted: {Webhook.read(variable, os.environ).post(text)}")
