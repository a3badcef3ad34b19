"""``perfflow publish github`` against a fake server for the used part of GitHub's API."""

from __future__ import annotations

import json
import re
import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, redirect_stderr, redirect_stdout, suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from io import StringIO
from pathlib import Path
from socketserver import StreamRequestHandler, TCPServer, ThreadingTCPServer
from subprocess import CompletedProcess
from typing import Any
from urllib.parse import parse_qs, urlsplit

import pytest

from perfflow.cli.main import main
from perfflow.jobs.publish import http_request
from perfflow.jobs.publish.github_api import GitHub
from perfflow.jobs.publish.http_request import RefusedError
from perfflow.model.result import Result
from perfflow.report.payloads.comment import comment, marker
from perfflow.store.result_file import to_text
from tests.cli.shell import perfflow
from tests.long import rest_long
from tests.report.exported import HEAD, blamed, gated

TOKEN = "ghs_secret0123456789"  # noqa: S105 (of the server below)
OWNER = "github-actions[bot]"
SHORT = (0.01, 0.01, 0.01, 0.01)
Reply = tuple[int, dict[str, str], bytes]


class Hub:
    """The state and the requests of the server. ``closed`` maps a method and path to an error status.

    ``scripted`` maps them to answers, used one after the other. Requests in ``lost`` are executed, but not answered.
    """

    def __init__(self, folder: Path) -> None:
        self.folder, self.url = folder, ""
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
        self.scripted: dict[str, list[Reply]] = {}
        self.lost: list[str] = []

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

    def publish(
        self, *words: str, result: Result | None = None, env: Mapping[str, str] | None = None
    ) -> CompletedProcess[str]:
        """Publish a result, that of a gate unless another is given."""
        (self.folder / "perf.json").write_text(to_text(result or gated()))
        done = perfflow(
            "publish", "github", "--run", "perf.json", *words, cwd=self.folder, env=self._env() | dict(env or {})
        )
        assert TOKEN not in done.stdout + done.stderr
        return done

    def publish_at_once(self, *words: str) -> CompletedProcess[str]:
        """Run it in this process, with short pauses before retries."""
        (self.folder / "perf.json").write_text(to_text(gated()))
        argv = ["publish", "github", "--run", str(self.folder / "perf.json"), *words]
        out, err = StringIO(), StringIO()
        with pytest.MonkeyPatch.context() as patch, redirect_stdout(out), redirect_stderr(err):
            patch.setattr(http_request, "PAUSES", SHORT)
            for name, value in self._env().items():
                patch.setenv(name, value)
            with pytest.raises(SystemExit) as ended:
                main(argv)
        return CompletedProcess(argv, int(str(ended.value.code)), out.getvalue(), err.getvalue())

    def _env(self) -> dict[str, str]:
        known = {"GITHUB_TOKEN": TOKEN, "GITHUB_API_URL": self.url, "GITHUB_REPOSITORY": "o/r"}
        return known | {"no_proxy": "127.0.0.1"}


@contextmanager
def served(server: TCPServer) -> Iterator[str]:
    """Let a server answer, at the address that is yielded."""
    with server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05})
        thread.start()
        yield f"http://127.0.0.1:{server.server_address[1]}"
        server.shutdown()
        thread.join()


@pytest.fixture
def hub(tmp_path: Path) -> Iterator[Hub]:
    state = Hub(tmp_path)

    class Handler(BaseHTTPRequestHandler):
        def _serve(self) -> None:
            parts = urlsplit(self.path)
            text = self.rfile.read(int(self.headers.get("Content-Length") or 0))
            key = f"{self.command} {parts.path}"
            state.asked.append(key)
            if state.scripted.get(key):
                self._reply(*state.scripted[key].pop(0))
                return
            page = int(parse_qs(parts.query).get("page", ["1"])[0])
            status, answer = state.answer(self.command, parts.path, page, json.loads(text or b"null"))
            if self.headers["Authorization"] != f"Bearer {TOKEN}":
                status, answer = 401, {"message": f"Bad credentials {self.headers['Authorization']}"}
            status = state.closed.get(key, status)
            if key in state.lost:
                state.lost.remove(key)
                status, answer = 502, {}
            self._reply(status, {"Location": state.location} if state.location else {}, json.dumps(answer).encode())

        def _reply(self, status: int, headers: dict[str, str], body: bytes) -> None:
            self.send_response(status)
            for name, value in headers.items():
                self.send_header(name, value)
            self.end_headers()
            self.wfile.write(body)

        do_GET = do_POST = do_PATCH = _serve  # noqa: N815 (the names that the server looks for)

        def log_message(self, format: str, *args: object) -> None:
            pass

    with served(ThreadingHTTPServer(("127.0.0.1", 0), Handler)) as state.url:
        yield state


def as_run(result: Result, name: str, verdict: str | None = None) -> Result:
    run = result.run.model_copy(update={"id": name})
    return result.model_copy(update={"run": run, "verdict": verdict or result.verdict})


def test_a_failing_run_gets_a_comment_and_a_check(hub: Hub) -> None:
    functions = [blamed(f"f{number}", "src/lib.rs", number + 1) for number in range(60)]
    done = hub.publish(result=gated().model_copy(update={"attributions": functions}))
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout == "comment: u1000\ncheck run review:gate:perf: failure\n"
    assert [item["body"].splitlines()[0] for item in hub.comments] == [marker(gated())]
    assert (hub.checks[0]["head_sha"], len(hub.checks[0]["output"]["annotations"])) == (HEAD, 50)
    assert [len(item["output"]["annotations"]) for item in hub.patches] == [11]


def test_the_comment_is_brought_up_to_date_in_place(hub: Hub) -> None:
    for number in range(105):
        hub.add(f"talk {number}", "someone")
    hub.add(comment(as_run(gated(), "run-0")))
    hub.add(comment(gated()), "mallory")
    hub.add(f"quoting {marker(gated())}")
    done = hub.publish("--only", "comment")
    assert (done.returncode, done.stdout) == (0, "comment updated: u1105\n")
    assert len(hub.comments) == 108
    assert "- `run-0` at" in hub.comments[105]["body"]
    assert "- `run-1` at" in hub.comments[105]["body"]
    assert hub.comments[106]["body"] == comment(gated()), "someone else's stays as it is"
    assert hub.checks == []


def test_when_pass_turns_into_fail_there_is_a_new_comment(hub: Hub) -> None:
    hub.add(comment(as_run(gated(), "run-0", "pass")))
    assert hub.publish().stdout.startswith("comment: u1001\n")
    assert hub.folded == ["N1000"]
    assert "- `run-0` at" in hub.comments[1]["body"]
    # Publish again, as a restarted job does: the check run is updated.
    assert hub.publish().stdout.startswith("comment updated: u1001\n")
    assert len(hub.comments) == 2
    assert hub.publish(result=as_run(gated(), "run-2", "pass")).stdout.startswith("comment updated: u1001\n")


def test_a_comment_that_cannot_be_folded_is_no_failure(hub: Hub) -> None:
    hub.add(comment(as_run(gated(), "run-0", "pass")))
    hub.closed["POST /graphql"] = 403
    done = hub.publish()
    assert done.returncode == 0
    assert "could not be minimized" in done.stdout


def test_a_run_that_passes_makes_no_first_comment_unless_told(hub: Hub) -> None:
    passed = as_run(gated(), "run-1", "pass")
    assert hub.publish(result=passed).returncode == 0
    assert (hub.comments, len(hub.checks)) == ([], 1)
    assert hub.publish("--always", "--only", "comment", result=passed).returncode == 0
    assert len(hub.comments) == 1


def test_a_token_of_ones_own_knows_its_owner(hub: Hub) -> None:
    hub.login = "perf-team"
    hub.add(comment(gated()), "perf-team")
    assert hub.publish().stdout.startswith("comment updated: u1000\n")


def test_the_pull_request_is_that_of_the_commit_and_nothing_else(hub: Hub) -> None:
    other = "b" * 40
    done = hub.publish("--sha", other)
    assert done.returncode == 2
    assert "check out the pull request's head commit" in done.stderr
    assert hub.asked == []
    hub.pulls = [item for item in hub.pulls if item["number"] != 7]
    done = hub.publish("--only", "comment")
    assert (done.returncode, done.stdout) == (0, "no comment: no open pull request has this commit as its head\n")
    hub.pulls += [{"number": 7, "head": {"sha": HEAD}}, {"number": 8, "head": {"sha": HEAD}}]
    assert "name one with --pr" in hub.publish().stderr
    assert hub.publish("--pr", "7").returncode == 0


def test_a_fork_is_told_what_to_do(hub: Hub) -> None:
    hub.closed["POST /repos/o/r/issues/7/comments"] = 403
    done = hub.publish()
    assert done.returncode == 3
    assert "403" in done.stderr
    assert "workflow_run" in done.stderr


def test_what_is_refused_or_out_of_reach_is_no_pass(hub: Hub) -> None:
    wrong = hub.publish(env={"GITHUB_TOKEN": "ghs_other"})
    assert wrong.returncode == 3
    assert "Bad credentials Bearer ***" in wrong.stderr
    assert hub.publish(env={"GITHUB_API_URL": "http://127.0.0.1:1"}).returncode == 3
    hub.closed["GET /repos/o/r/pulls"] = 302
    hub.location = f"{hub.url}/elsewhere"
    assert hub.publish().returncode == 3
    assert not any("elsewhere" in item for item in hub.asked), "the token follows no redirect"


@pytest.mark.parametrize(
    ("words", "env", "said"),
    [
        ([], {"GITHUB_TOKEN": ""}, "GITHUB_TOKEN is not set"),
        ([], {"GITHUB_REPOSITORY": ""}, "--repo OWNER/NAME"),
        (["--repo", "../x"], {}, "write OWNER/NAME"),
        (["--sha", "main"], {}, "full hash"),
        ([], {"GITHUB_API_URL": "http://example.org"}, "only sent over https"),
        ([], {"GITHUB_API_URL": "file:///etc"}, "only sent over https"),
    ],
)
def test_bad_usage_sends_nothing(words: list[str], env: dict[str, str], said: str, hub: Hub) -> None:
    done = hub.publish(*words, env=env)
    assert hub.asked == []
    assert done.returncode == 2
    assert said in done.stderr


LIMIT: Reply = (403, {"X-RateLimit-Remaining": "0", "Retry-After": "0"}, b'{"message": "API rate limit exceeded"}')
SECONDARY: Reply = (403, {"Retry-After": "1"}, b'{"message": "You have exceeded a secondary rate limit"}')
TOO_MANY: Reply = (429, {"Retry-After": "Wed, 21 Oct 2015 07:28:00 GMT"}, b"slow down")
BROKEN: Reply = (502, {}, b"<html>Bad Gateway</html>")
PULLS, USER = "GET /repos/o/r/pulls", "GET /user"
COMMENTS, CHECKS = "POST /repos/o/r/issues/7/comments", "POST /repos/o/r/check-runs"


@pytest.mark.parametrize(
    "reply",
    rest_long([LIMIT, BROKEN, SECONDARY, TOO_MANY], keep=2, one_name=True),
    ids=["limit", "502", "secondary", "429"],
)
@pytest.mark.parametrize("where", [PULLS, USER, COMMENTS, CHECKS])
def test_what_passes_by_itself_is_tried_again(hub: Hub, reply: Reply, where: str) -> None:
    hub.scripted[where] = [reply]
    done = hub.publish_at_once()
    assert (done.returncode, done.stderr) == (0, "")
    # The pull requests are two pages.
    assert hub.asked.count(where) == (3 if where == PULLS else 2)
    assert (len(hub.comments), len(hub.checks)) == (1, 1)


def test_a_limit_on_the_question_whose_the_token_is_makes_no_second_comment(hub: Hub) -> None:
    hub.login = "perf-team"
    hub.add(comment(gated()), "perf-team")
    hub.scripted[USER] = [LIMIT]
    assert hub.publish().stdout.startswith("comment updated: u1000\n")
    later = str(int(time.time()) + 3000)
    for headers in ({"Retry-After": "3000"}, {"X-RateLimit-Remaining": "0", "X-RateLimit-Reset": later}):
        hub.scripted[USER] = [(403, headers, b'{"message": "API rate limit exceeded for user ID 1."}')]
        done = hub.publish()
        assert done.returncode == 3
        assert "GitHub limits the rate of requests: 403 API rate limit exceeded" in done.stderr
        assert re.search("try again in (3000|29[0-9][0-9]) s; the token's permissions are not the reason", done.stderr)
        assert "workflow_run" not in done.stderr, "nothing is said of missing rights"
    assert len(hub.comments) == 1


def test_a_comment_whose_answer_is_lost_is_not_made_twice(hub: Hub) -> None:
    hub.lost = [COMMENTS]
    done = hub.publish_at_once("--only", "comment")
    assert (done.returncode, done.stdout) == (0, "comment: u1000\n")
    assert len(hub.comments) == 1
    # The same with a comment of an earlier run that passed.
    hub.comments.clear()
    hub.add(comment(as_run(gated(), "run-0", "pass")))
    hub.lost = [COMMENTS]
    assert hub.publish_at_once("--only", "comment").stdout.startswith("comment: u1001\n")
    assert len(hub.comments) == 2


@pytest.fixture
def api(monkeypatch: pytest.MonkeyPatch) -> type[GitHub]:
    """The API client with short pauses and time limits."""
    monkeypatch.setenv("no_proxy", "127.0.0.1")
    monkeypatch.setattr(http_request, "PAUSES", SHORT)
    monkeypatch.setattr(http_request, "TIMEOUT", 0.3)
    return GitHub


def test_errors_that_stay_end_after_a_few_tries(hub: Hub, api: type[GitHub]) -> None:
    hub.scripted[PULLS] = [BROKEN] * 50
    with pytest.raises(RefusedError, match="502 Bad Gateway"):
        list(api(hub.url, "o/r", TOKEN).every("pulls"))
    assert len(hub.asked) == 5


@contextmanager
def raw_server(*parts: bytes, endless: bytes = b"", pause: float = 0.0) -> Iterator[str]:
    """Answers each request with the same bytes, then sends ``endless`` bytes until the client disconnects."""

    class Handler(StreamRequestHandler):
        def handle(self) -> None:
            with suppress(OSError):
                self.request.recv(65536)
                for part in parts:
                    self.request.sendall(part)
                while endless:
                    self.request.sendall(endless)
                    time.sleep(pause)

    with served(ThreadingTCPServer(("127.0.0.1", 0), Handler)) as url:
        yield url


OK = b"HTTP/1.1 200 OK\r\n"
MUCH = b" " * 2**20


@pytest.mark.parametrize(
    ("start", "endless", "pause"),
    rest_long(
        [
            (b"", b"x", 0.05),
            (OK + b"X-Drip: ", b"x", 0.05),
            (OK + b"\r\n[", b" ", 0.05),
            (OK + b"Content-Length: 1000000000000\r\n\r\n[", b" ", 0.05),
            (OK + b"Transfer-Encoding: chunked\r\n\r\n", b"1\r\n \r\n", 0.05),
            (OK + b"\r\n[", MUCH, 0.0),
            (OK + b"Content-Length: 1000000000000\r\n\r\n[", MUCH, 0.0),
            (OK + b"Transfer-Encoding: chunked\r\n\r\n", b"100000\r\n" + MUCH + b"\r\n", 0.0),
        ],
        keep=2,
    ),
)
def test_an_answer_without_end_is_given_up(api: type[GitHub], start: bytes, endless: bytes, pause: float) -> None:
    with raw_server(start, endless=endless, pause=pause) as url, pytest.raises(RefusedError, match="cannot reach"):
        api(url, "o/r", TOKEN).login()


def test_all_calls_together_have_an_end(api: type[GitHub]) -> None:
    began = time.monotonic()
    with raw_server(OK + b"\r\n[", endless=b" ", pause=0.05) as url, pytest.raises(RefusedError, match="cannot reach"):
        api(url, "o/r", TOKEN, began + 1.5).login()


@pytest.mark.parametrize("body", [b"{", b"[" * 100_000, b"\xff\xfe", b"<html>", b'"text"', b"[1]"])
def test_an_answer_that_is_not_what_it_should_be_is_an_error(api: type[GitHub], body: bytes) -> None:
    answer = OK + b"Content-Length: %d\r\n\r\n" % len(body) + body
    with raw_server(answer) as url, pytest.raises(RefusedError) as caught:
        api(url, "o/r", TOKEN).login()
    assert TOKEN not in str(caught.value)
