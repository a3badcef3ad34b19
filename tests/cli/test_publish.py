"""``perfflow publish github`` against a server that plays the part of GitHub's interface that is used."""

from __future__ import annotations

import json
import re
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from subprocess import CompletedProcess
from typing import Any
from urllib.parse import parse_qs, urlsplit

import pytest

from perfflow.report.payloads.comment import comment, marker
from perfflow.result import Result
from perfflow.result_file import to_text
from tests.cli.shell import perfflow
from tests.report.exported import HEAD, blamed, gated

TOKEN = "ghs_secret0123456789"  # noqa: S105 (of the server below)
OWNER = "github-actions[bot]"


class Hub:
    """What the server holds, and what it was asked. ``closed`` maps a method and path to a status that refuses."""

    def __init__(self) -> None:
        self.comments: list[dict[str, Any]] = []
        self.checks: list[dict[str, Any]] = []
        self.patches: list[dict[str, Any]] = []
        self.folded: list[str] = []
        self.asked: list[str] = []
        self.pulls = [{"number": 200 + number, "head": {"sha": f"{number:040x}"}} for number in range(130)]
        self.pulls.append({"number": 7, "head": {"sha": HEAD}})
        self.login = ""
        self.closed: dict[str, int] = {}
        self.location = ""

    def add(self, body: str, login: str = OWNER) -> dict[str, Any]:
        number = 1000 + len(self.comments)
        made = {"id": number, "node_id": f"N{number}", "body": body, "user": {"login": login}, "html_url": f"u{number}"}
        self.comments.append(made)
        return made

    def answer(self, method: str, path: str, page: int, body: Any) -> tuple[int, Any]:
        if path == "/user":
            return (200, {"login": self.login}) if self.login else (403, {"message": "Resource not accessible"})
        if path == "/graphql":
            self.folded.append(body["variables"]["id"])
            return 200, {"data": {}}
        where = path.removeprefix("/repos/o/r/")
        if method == "GET" and where in ("pulls", "issues/7/comments"):
            items = self.pulls if where == "pulls" else self.comments
            return 200, items[(page - 1) * 100 : page * 100]
        if (method, where) == ("POST", "issues/7/comments"):
            return 201, self.add(body["body"])
        if method == "PATCH" and (match := re.fullmatch(r"issues/comments/(\d+)", where)):
            (found,) = (item for item in self.comments if item["id"] == int(match[1]))
            found["body"] = body["body"]
            return 200, found
        if (method, where) == ("POST", "check-runs"):
            self.checks.append(body)
            return 201, {"id": 55}
        if (method, where) == ("PATCH", "check-runs/55"):
            self.patches.append(body)
            return 200, {"id": 55}
        return 404, {"message": "Not Found"}


@pytest.fixture
def hub() -> Iterator[tuple[Hub, str]]:
    state = Hub()

    class Handler(BaseHTTPRequestHandler):
        def _serve(self) -> None:
            parts = urlsplit(self.path)
            text = self.rfile.read(int(self.headers.get("Content-Length") or 0))
            state.asked.append(f"{self.command} {parts.path}")
            page = int(parse_qs(parts.query).get("page", ["1"])[0])
            status, answer = state.answer(self.command, parts.path, page, json.loads(text or b"null"))
            if self.headers["Authorization"] != f"Bearer {TOKEN}":
                status, answer = 401, {"message": f"Bad credentials {self.headers['Authorization']}"}
            status = state.closed.get(f"{self.command} {parts.path}", status)
            self.send_response(status)
            if state.location:
                self.send_header("Location", state.location)
            self.end_headers()
            self.wfile.write(json.dumps(answer).encode())

        do_GET = do_POST = do_PATCH = _serve  # noqa: N815 (the names that the server looks for)

        def log_message(self, format: str, *args: object) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05})
    thread.start()
    yield state, f"http://127.0.0.1:{server.server_port}"
    server.shutdown()
    thread.join()
    server.server_close()


def as_run(result: Result, name: str, verdict: str | None = None) -> Result:
    run = result.run.model_copy(update={"id": name})
    return result.model_copy(update={"run": run, "verdict": verdict or result.verdict})


def publish(result: Result, folder: Path, url: str, *words: str, **env: str) -> CompletedProcess[str]:
    (folder / "perf.json").write_text(to_text(result))
    known = {"GITHUB_TOKEN": TOKEN, "GITHUB_API_URL": url, "GITHUB_REPOSITORY": "o/r", "no_proxy": "127.0.0.1"}
    done = perfflow("publish", "github", "--run", "perf.json", *words, cwd=folder, env=known | env)
    assert TOKEN not in done.stdout + done.stderr
    return done


def test_a_failing_run_gets_a_comment_and_a_check(hub: tuple[Hub, str], tmp_path: Path) -> None:
    state, url = hub
    functions = [blamed(f"f{number}", "src/lib.rs", number + 1) for number in range(60)]
    done = publish(gated().model_copy(update={"attributions": functions}), tmp_path, url)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout == "comment: u1000\ncheck run review:gate:perf: failure\n"
    assert [item["body"].splitlines()[0] for item in state.comments] == [marker(gated())]
    assert (state.checks[0]["head_sha"], len(state.checks[0]["output"]["annotations"])) == (HEAD, 50)
    assert [len(item["output"]["annotations"]) for item in state.patches] == [11]


def test_the_comment_is_brought_up_to_date_in_place(hub: tuple[Hub, str], tmp_path: Path) -> None:
    state, url = hub
    for number in range(105):
        state.add(f"talk {number}", "someone")
    state.add(comment(as_run(gated(), "run-0")))
    state.add(comment(gated()), "mallory")
    state.add(f"quoting {marker(gated())}")
    done = publish(gated(), tmp_path, url, "--only", "comment")
    assert (done.returncode, done.stdout) == (0, "comment updated: u1105\n")
    assert len(state.comments) == 108
    assert "- `run-0` at" in state.comments[105]["body"]
    assert "- `run-1` at" in state.comments[105]["body"]
    assert state.comments[106]["body"] == comment(gated()), "someone else's stays as it is"
    assert state.checks == []


def test_when_pass_turns_into_fail_there_is_a_new_comment(hub: tuple[Hub, str], tmp_path: Path) -> None:
    state, url = hub
    state.add(comment(as_run(gated(), "run-0", "pass")))
    assert publish(gated(), tmp_path, url).stdout.startswith("comment: u1001\n")
    assert state.folded == ["N1000"]
    assert "- `run-0` at" in state.comments[1]["body"]
    # Once more, such as a job that is started again: that one is changed.
    assert publish(gated(), tmp_path, url).stdout.startswith("comment updated: u1001\n")
    assert len(state.comments) == 2
    assert publish(as_run(gated(), "run-2", "pass"), tmp_path, url).stdout.startswith("comment updated: u1001\n")


def test_a_comment_that_cannot_be_folded_is_no_failure(hub: tuple[Hub, str], tmp_path: Path) -> None:
    state, url = hub
    state.add(comment(as_run(gated(), "run-0", "pass")))
    state.closed["POST /graphql"] = 403
    done = publish(gated(), tmp_path, url)
    assert done.returncode == 0
    assert "could not be folded" in done.stdout


def test_a_run_that_passes_makes_no_first_comment_unless_told(hub: tuple[Hub, str], tmp_path: Path) -> None:
    state, url = hub
    passed = as_run(gated(), "run-1", "pass")
    assert publish(passed, tmp_path, url).returncode == 0
    assert (state.comments, len(state.checks)) == ([], 1)
    assert publish(passed, tmp_path, url, "--always", "--only", "comment").returncode == 0
    assert len(state.comments) == 1


def test_a_token_of_ones_own_knows_its_owner(hub: tuple[Hub, str], tmp_path: Path) -> None:
    state, url = hub
    state.login = "perf-team"
    state.add(comment(gated()), "perf-team")
    assert publish(gated(), tmp_path, url).stdout.startswith("comment updated: u1000\n")


def test_the_pull_request_is_that_of_the_commit_and_nothing_else(hub: tuple[Hub, str], tmp_path: Path) -> None:
    state, url = hub
    other = "b" * 40
    done = publish(gated(), tmp_path, url, "--sha", other)
    assert done.returncode == 2
    assert "check out the pull request's head commit" in done.stderr
    assert state.asked == []
    state.pulls = [item for item in state.pulls if item["number"] != 7]
    done = publish(gated(), tmp_path, url, "--only", "comment")
    assert (done.returncode, done.stdout) == (0, "no comment: no open pull request has this commit as its head\n")
    state.pulls += [{"number": 7, "head": {"sha": HEAD}}, {"number": 8, "head": {"sha": HEAD}}]
    assert "name one with --pr" in publish(gated(), tmp_path, url).stderr
    assert publish(gated(), tmp_path, url, "--pr", "7").returncode == 0


def test_a_fork_is_told_what_to_do(hub: tuple[Hub, str], tmp_path: Path) -> None:
    state, url = hub
    state.closed["POST /repos/o/r/issues/7/comments"] = 403
    done = publish(gated(), tmp_path, url)
    assert done.returncode == 3
    assert "403" in done.stderr
    assert "workflow_run" in done.stderr


def test_what_is_refused_or_out_of_reach_is_no_pass(hub: tuple[Hub, str], tmp_path: Path) -> None:
    state, url = hub
    wrong = publish(gated(), tmp_path, url, GITHUB_TOKEN="ghs_other")  # noqa: S106
    assert wrong.returncode == 3
    assert "Bad credentials Bearer ***" in wrong.stderr
    assert publish(gated(), tmp_path, "http://127.0.0.1:1").returncode == 3
    state.closed["GET /repos/o/r/pulls"] = 302
    state.location = f"{url}/elsewhere"
    assert publish(gated(), tmp_path, url).returncode == 3
    assert not any("elsewhere" in item for item in state.asked), "the token follows no redirect"


@pytest.mark.parametrize(
    ("words", "env", "said"),
    [
        ([], {"GITHUB_TOKEN": ""}, "GITHUB_TOKEN holds no token"),
        ([], {"GITHUB_REPOSITORY": ""}, "--repo OWNER/NAME"),
        (["--repo", "../x"], {}, "write OWNER/NAME"),
        (["--sha", "main"], {}, "full hash"),
        ([], {"GITHUB_API_URL": "http://example.org"}, "over https alone"),
        ([], {"GITHUB_API_URL": "file:///etc"}, "over https alone"),
    ],
)
def test_bad_usage_sends_nothing(words: list[str], env: dict[str, str], said: str, tmp_path: Path) -> None:
    done = publish(gated(), tmp_path, "http://127.0.0.1:1", *words, **env)
    assert done.returncode == 2
    assert said in done.stderr
