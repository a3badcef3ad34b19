"""``perfflow publish slack``, ``teams`` and ``webhook`` against a server that takes whatever is posted."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from subprocess import CompletedProcess
from typing import Any

import pytest

from perfflow.jobs.publish import http_request
from perfflow.jobs.publish.http_request import RefusedError
from perfflow.jobs.publish.webhook import Webhook
from perfflow.model.result import Result
from perfflow.report.payloads.message import MOST_ROWS, Message, message
from perfflow.store.result_file import to_text
from tests.cli.shell import perfflow
from tests.cli.test_publish import SHORT, Reply, served
from tests.report.exported import gated, large
from tests.report.results import hostile

ROOT = Path(__file__).parents[2]
TEMPLATE = ROOT / "workflows" / "chat-message.json.j2"
SECRET = "T0SECRET00/B0SECRET00/x0SECRET0000x"  # noqa: S105 (the path of the server below)


@dataclass
class Service:
    """What was posted to the server: type of content and body. ``replies`` come first, then 200."""

    folder: Path
    url: str = ""
    taken: list[tuple[str, bytes]] = field(default_factory=list)
    paths: list[str] = field(default_factory=list)
    replies: list[Reply] = field(default_factory=list)

    @property
    def address(self) -> str:
        return f"{self.url}/services/{SECRET}?sig=s0SECRET0000s"

    def publish(self, *words: str, result: Result | None = None, **env: str) -> CompletedProcess[str]:
        """Publish a result, that of a gate unless another is given. The address is in no output and no file."""
        (self.folder / "perf.json").write_text(to_text(result or gated()))
        known = {f"{name}_URL": self.address for name in ("SLACK_WEBHOOK", "TEAMS_WEBHOOK", "WEBHOOK")}
        env = {**known, "no_proxy": "127.0.0.1", **env}
        done = perfflow("publish", *words, "--run", "perf.json", cwd=self.folder, env=env)
        files = [path.read_text() for path in self.folder.rglob("*") if path.is_file()]
        assert not [text for text in (done.stdout, done.stderr, *files) if "SECRET" in text]
        return done

    def template(self, text: str) -> str:
        (self.folder / "own.j2").write_text(text)
        return "own.j2"

    @property
    def body(self) -> Any:
        ((_, body),) = self.taken
        return json.loads(body)


@pytest.fixture
def service(tmp_path: Path) -> Iterator[Service]:
    state = Service(tmp_path)

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["Content-Length"]))
            state.taken.append((self.headers["Content-Type"], body))
            state.paths.append(self.path)
            status, headers, answer = state.replies.pop(0) if state.replies else (200, {}, b"ok")
            if not status:
                return  # without an answer
            self.send_response(status)
            for name, value in headers.items():
                self.send_header(name, value)
            self.end_headers()
            self.wfile.write(answer)

        def log_message(self, format: str, *args: object) -> None:
            pass

    with served(ThreadingHTTPServer(("127.0.0.1", 0), Handler)) as state.url:
        yield state


def texts(blocks: list[dict[str, Any]]) -> Iterator[tuple[str, str]]:
    """Yield kind and text of all texts in blocks of Slack."""
    for block in blocks:
        for item in block.get("elements", [block.get("text")]):
            yield item["type"], item["text"]


def runs(card: dict[str, Any]) -> list[str]:
    """Return the texts of a message for Teams."""
    (attachment,) = card["attachments"]
    assert attachment["contentType"] == "application/vnd.microsoft.card.adaptive"
    return [run["text"] for block in attachment["content"]["body"] for run in block["inlines"]]


def test_slack_gets_verdict_reasons_changes_and_link(service: Service) -> None:
    done = service.publish("slack", "--link", "https://ci.example.com/7?a=1&b=2")
    assert (done.returncode, done.stdout, done.stderr) == (0, "message posted: 200\n", "")
    assert service.paths == [f"/services/{SECRET}?sig=s0SECRET0000s"]
    assert service.taken[0][0] == "application/json"
    assert service.body["text"] == "❌ FAIL JSON codec"
    found = list(texts(service.body["blocks"]))
    assert found[0] == ("plain_text", "❌ FAIL JSON codec")
    rows = found[3][1].splitlines()
    assert rows[0] == "encode time: 3.98 ms → 4.58 ms, +15.0%, regressed (over 10%)"
    assert ("mrkdwn", "<https://ci.example.com/7?a=1&amp;b=2|Open the report>") in found


def test_teams_gets_a_card_with_the_same_texts(service: Service) -> None:
    service.replies = [(202, {}, b"")]
    done = service.publish("teams", "--link", "https://ci.example.com/7")
    assert (done.returncode, done.stdout) == (0, "message posted: 202\n")
    slack = json.loads(message("slack.json.j2", gated()).text)
    assert runs(service.body) == [line for _, text in texts(slack["blocks"]) for line in text.splitlines()]
    content = service.body["attachments"][0]["content"]
    assert content["actions"] == [
        {"type": "Action.OpenUrl", "title": "Open the report", "url": "https://ci.example.com/7"}
    ]


NAMES = ["<!channel> *bold* [x](https://evil.example) `", '"}]},\\', "😀" * 300, "a\u0301" * 200, "x\n::error::\u202e"]


@pytest.mark.parametrize(
    "result",
    [
        hostile("<script>&\u202e"),
        large([name * 3 for name in NAMES] * 400, ["not met"], [("regressed", "action")], '<>&"' * 500),
    ],
    ids=["hostile", "2000 rows"],
)
def test_no_result_is_too_large_for_a_service_or_a_command_in_it(result: Result) -> None:
    slack = json.loads(message("slack.json.j2", result, "https://ci.example.com/7").text)
    found = list(texts(slack["blocks"]))
    assert len(slack["blocks"]) <= 50
    assert len(found[0][1]) <= 150
    assert max(len(text) for _, text in found) <= 3000
    assert [text for kind, text in found if kind != "plain_text"] == ["<https://ci.example.com/7|Open the report>"]
    assert not set("<>") & set(slack["text"])
    written = message("teams.json.j2", result, "https://ci.example.com/7").text
    assert len(written.encode()) < 28 * 1024
    assert {block["type"] for block in json.loads(written)["attachments"][0]["content"]["body"]} == {"RichTextBlock"}
    assert all(text.isprintable() for text in runs(json.loads(written)))
    assert "##[" not in written


def test_long_lists_say_how_many_more_there_are() -> None:
    names = [f"bench-{number}" for number in range(25)]
    slack = json.loads(message("slack.json.j2", large(names, ["met"], [("regressed", "action")], "")).text)
    (rows,) = (text for _, text in texts(slack["blocks"]) if "bench-0" in text)
    assert len(rows.splitlines()) == MOST_ROWS + 1
    assert rows.endswith("\nand 15 more")


def test_a_dry_run_prints_what_would_be_sent_and_needs_no_address(service: Service) -> None:
    for words in (["slack"], ["teams"], ["webhook", "--template", str(TEMPLATE), "--link", "https://x.example"]):
        service.taken.clear()
        shown = service.publish(*words, "--dry-run", SLACK_WEBHOOK_URL="", TEAMS_WEBHOOK_URL="", WEBHOOK_URL="")
        assert (shown.returncode, shown.stderr, service.taken) == (0, "", [])
        assert service.publish(*words).returncode == 0
        assert service.body == json.loads(shown.stdout)


def test_a_template_makes_any_message(service: Service) -> None:
    done = service.publish("webhook", "--template", str(TEMPLATE), "--url-from", "MINE", MINE=service.address)
    assert (done.returncode, done.stdout) == (0, "message posted: 200\n")
    assert service.body["title"] == "JSON codec: fail"
    assert service.body["slower"][0]["name"] == "encode"
    page = (ROOT / "docs" / "how-to" / "messages.md").read_text()
    assert TEMPLATE.read_text().split("#}\n")[1] in page
    service.taken.clear()
    name = service.template('é "{{ result.run.component }}"')
    assert service.publish("webhook", "--template", name, "--content-type", "text/plain; charset=utf-8").returncode == 0
    assert service.taken == [("text/plain; charset=utf-8", 'é "JSON codec"\n'.encode())]


def test_a_template_without_text_sends_nothing(service: Service) -> None:
    passed = gated().model_copy(update={"verdict": "pass"})
    done = service.publish("webhook", "--template", str(TEMPLATE), result=passed)
    assert (done.returncode, done.stdout) == (0, "nothing to send: the template gives no text for this run\n")
    assert service.taken == []


def test_tojson_writes_all_parts_of_a_result(service: Service) -> None:
    name = service.template(
        '{"text": {{ section("verdict")|tojson }}, "run": {{ result.run|tojson }}, "all": {{ result.targets|tojson }}}'
    )
    assert service.publish("webhook", "--template", name).returncode == 0
    assert service.body["text"].startswith("**❌ FAIL** targets: 4 met")
    assert service.body["run"]["component"] == "JSON codec"
    assert [item["status"] for item in service.body["all"]] == [item.status for item in gated().targets]


@pytest.mark.parametrize(
    ("template", "said"),
    [
        ('{\n"a": {{ result.run.component }}}', 'in line 2, column 6 of what it gives: "a": JSON codec}'),
        ('{"a": NaN}', "NaN is no number of JSON"),
        ("[" * 100_000, "own.j2 gives no JSON"),
        ('{"a": {{ result.nothing|tojson }}}', "has no attribute 'nothing'"),
        ('{"a": {{ section|tojson }}}', "neither a text nor part of a result"),
        ("{{ result.__class__.__mro__ }}", "unsafe"),
        ('{% include "/etc/passwd" %}', "/etc/passwd"),
        ("{{ environ }}", "'environ' is undefined"),
    ],
)
def test_a_template_that_fails_sends_nothing(service: Service, template: str, said: str) -> None:
    done = service.publish("webhook", "--template", service.template(template))
    assert (done.returncode, done.stdout, service.taken) == (2, "", [])
    assert said in done.stderr
    assert "hint: " in done.stderr


@pytest.mark.parametrize("status", [429, 500, 503])
def test_a_temporary_error_is_tried_again_at_the_time_that_the_service_names(service: Service, status: int) -> None:
    service.replies = [(status, {"Retry-After": "0"}, b"slow down")] * 2
    assert service.publish("slack").stdout == "message posted: 200\n"
    assert len(service.taken) == 3
    assert len(set(service.taken)) == 1


def test_a_pause_that_is_too_long_is_named(service: Service) -> None:
    service.replies = [(429, {"Retry-After": "3000"}, b"slow down")]
    done = service.publish("slack")
    assert (done.returncode, len(service.taken)) == (3, 1)
    assert "refuses the message: 429 slow down" in done.stderr
    assert "try again in 3000 s" in done.stderr


def test_errors_that_stay_end_after_a_few_tries(service: Service, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(http_request, "PAUSES", SHORT)
    monkeypatch.setenv("no_proxy", "127.0.0.1")
    service.replies = [(502, {}, b"<html>Bad Gateway</html>")] * 50
    with pytest.raises(RefusedError, match="the webhook in X refuses the message: 502 Bad Gateway") as caught:
        Webhook(service.address, "X").post(Message("{}"))
    assert (len(service.taken), caught.value.exit) == (5, 3)


@pytest.mark.parametrize(
    ("reply", "said"),
    [
        ((400, {}, b"invalid_payload"), ["400 invalid_payload", "--dry-run prints it"]),
        (
            (404, {}, f"no_service at /services/{SECRET}?sig=s0SECRET0000s".encode()),
            ["404 no_service at ***", "make a new"],
        ),
        ((403, {}, SECRET.split("/")[2].encode()), ["403 ***", "make a new webhook"]),
        ((413, {}, b""), ["413 ", "too large"]),
        ((302, {"Location": "/elsewhere"}, b""), ["302 Found"]),
        ((418, {}, b"\x1b[31m\xff" + b"x" * 10_000), ["418 \\u001b[31m"]),
    ],
)
def test_what_a_service_refuses_is_not_sent_again(service: Service, reply: Reply, said: list[str]) -> None:
    service.replies = [reply]
    done = service.publish("slack")
    assert (done.returncode, done.stdout, len(service.taken)) == (3, "", 1)
    assert [text for text in said if text not in done.stderr] == []
    assert len(done.stderr) < 1000


def test_a_service_out_of_reach_is_named_by_its_variable(service: Service) -> None:
    done = service.publish("slack", SLACK_WEBHOOK_URL="http://127.0.0.1:1/T0SECRET00")
    assert done.returncode == 3
    assert "cannot reach the webhook in SLACK_WEBHOOK_URL: " in done.stderr
    assert "Connection refused" in done.stderr
    assert "may have arrived" not in done.stderr


def test_a_message_without_an_answer_is_sent_once(monkeypatch: pytest.MonkeyPatch, service: Service) -> None:
    monkeypatch.setenv("no_proxy", "127.0.0.1")
    service.replies = [(0, {}, b"")]
    with pytest.raises(RefusedError, match="cannot reach the webhook in X") as caught:
        Webhook(service.address, "X").post(Message("{}"))
    assert "may have arrived" in str(caught.value)
    assert len(service.taken) == 1


@pytest.mark.parametrize(
    ("url", "said"),
    [
        ("", "it is empty or not set"),
        ("http://hooks.example.com/SECRET", "it does not begin with https://"),
        ("file:///SECRET", "it is no address of a host"),
        ("https:///SECRET", "it is no address of a host"),
        ("https://me:SECRET@example.com/", "it is no address of a host"),
        ("https://example.com:SECRET/", "it is no address of a host"),
        ("https://[SECRET", "it is no address of a host"),
        ("https://example.com/SEC RET", "it has a space or a letter that no address has"),
        ("https://example.com/SECRETé", "it has a space or a letter that no address has"),
    ],
)
def test_an_address_that_cannot_be_one_is_not_repeated(service: Service, url: str, said: str) -> None:
    done = service.publish("slack", SLACK_WEBHOOK_URL=url)
    assert (done.returncode, service.taken) == (2, [])
    assert f"SLACK_WEBHOOK_URL has no address of a webhook: {said}" in done.stderr
    assert "SEC" not in done.stderr


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["slack", "--url-from", "https://hooks.example.com/T0SECRET00"], "the name of an environment variable"),
        (["slack", "--link", "javascript:alert(1)"], "an address that begins with https://"),
        (["slack", "--link", "https://x.example/|<!channel>"], "an address that begins with https://"),
        (["webhook"], "Missing option '--template'"),
        (["webhook", "--template", "missing.j2"], "missing.j2"),
        (["webhook", "--template", str(TEMPLATE), "--content-type", "text\r\nX: y"], "a type of content"),
    ],
)
def test_bad_usage_sends_nothing(service: Service, words: list[str], said: str) -> None:
    done = service.publish(*words)
    assert (done.returncode, service.taken) == (2, [])
    assert said in done.stderr
