"""Secrets are recognized by variable names and by their shape, and are masked in every text."""

from __future__ import annotations

import json
import os
import random
import re
import shlex
import time
from pathlib import Path

import pytest

from perfflow.execute import invoke
from perfflow.execute.invoke import KEPT, trim_and_mask
from perfflow.model.result import Optimization
from perfflow.model.secrets import MASK, Secrets, is_harmless, is_secret, masked, secrets_in
from perfflow.store.run_facts import StepFindings
from tests.long import rest_long

TELLING = """
PGPASSWORD DB_PASS JWT DATABASE_URL OPENAI_KEY OPENAI_API_KEY GITHUB_TOKEN AWS_SECRET_ACCESS_KEY NPM_TOKEN
AWS_ACCESS_KEY_ID AWS_SESSION_TOKEN ANTHROPIC_API_KEY HF_TOKEN HUGGING_FACE_HUB_TOKEN GITLAB_TOKEN CI_JOB_TOKEN
CI_JOB_JWT ACTIONS_RUNTIME_TOKEN ACTIONS_ID_TOKEN_REQUEST_TOKEN GH_PAT MYSQL_PWD MYSQL_ROOT_PASSWORD
POSTGRES_PASSWORD REDIS_URL REDIS_PASSWORD MONGODB_URI SENTRY_DSN SLACK_WEBHOOK_URL SLACK_BOT_TOKEN
STRIPE_SECRET_KEY TWILIO_AUTH_TOKEN SECRET_KEY_BASE DJANGO_SECRET_KEY JWT_SECRET COOKIE_SECRET SESSION_SECRET
GOOGLE_APPLICATION_CREDENTIALS_JSON AZURE_CLIENT_SECRET AZURE_STORAGE_KEY AZURE_STORAGE_CONNECTION_STRING
ARM_ACCESS_KEY DIGITALOCEAN_ACCESS_TOKEN HEROKU_API_KEY CARGO_REGISTRY_TOKEN TWINE_PASSWORD UV_PUBLISH_PASSWORD
PYPI_API_TOKEN DOCKER_PASSWORD DOCKERHUB_TOKEN DOCKER_AUTH_CONFIG SONAR_TOKEN CODECOV_TOKEN SSH_PRIVATE_KEY
DEPLOY_KEY GPG_PASSPHRASE ANSIBLE_VAULT_PASSWORD VAULT_TOKEN KAFKA_SASL_PASSWORD RABBITMQ_DEFAULT_PASS SMTP_PASS
BASIC_AUTH DD_API_KEY DATADOG_APP_KEY WANDB_API_KEY BROKER_URL ENCRYPTION_KEY SIGNING_KEY_2 accessToken npm-token
apikey db_password token
"""


HARMLESS = """
PATH KEYBOARD MONKEY TOKENIZERS_PARALLELISM PASSENGERS AUTHOR GIT_AUTHOR_NAME TOKENIZER PATTERN tokens_per_second
MAX_TOKENS TOKEN_LIMIT TOKEN_COUNT PWD OLDPWD HOME USER SHELL LANG LC_ALL TERM COLORTERM EDITOR KEYMAP HOTKEYS
XAUTHORITY SSH_AUTH_SOCK SSH_ASKPASS GIT_ASKPASS DBUS_SESSION_BUS_ADDRESS DESKTOP_SESSION COMPASS BYPASS_CACHE
PASSES COMPATIBILITY AUTHORITY SECRETARY CREDITS PUBLIC_KEY PRIMARY_KEY SORT_KEY CACHE_KEY PASSWORD_FILE
AWS_WEB_IDENTITY_TOKEN_FILE JWT_ALGORITHM OMP_NUM_THREADS RUSTFLAGS CFLAGS PYTHONHASHSEED MALLOC_ARENA_MAX
CUDA_VISIBLE_DEVICES LD_LIBRARY_PATH KEY HOSTNAME GITHUB_SHA GITHUB_REPOSITORY CI_COMMIT_SHA RUNNER_NAME
"""


@pytest.mark.parametrize("name", TELLING.split())
def test_names_that_say_so(name: str) -> None:
    assert is_secret(name)
    assert not is_harmless(name)
    assert masked("it is correct horse.", secrets_in({name: "correct horse"})) == "it is ***."


@pytest.mark.parametrize("name", HARMLESS.split())
def test_names_that_do_not(name: str) -> None:
    assert not is_secret(name)
    assert secrets_in({name: "correct horse"}).values == ()


@pytest.mark.parametrize(
    "value",
    ["", "1", "short", "1234567", "12345678", "-1234.5678", "1e-300000", "${{ env.GITHUB_TOKEN }}", "candidate"],
)
def test_values_that_hide_nothing(value: str) -> None:
    assert secrets_in({"TOKEN": value}).values == ()


def test_paths_that_exist_hide_nothing(tmp_path: Path) -> None:
    (tmp_path / "key.pem").touch()
    there, gone = str(tmp_path / "key.pem"), str(tmp_path / "none.pem")
    assert secrets_in({"A_TOKEN": there, "B_TOKEN": f"{there}:/usr"}).values == ()
    assert gone in secrets_in({"TOKEN": gone}).values
    assert "x" * 5000 in secrets_in({"TOKEN": "x" * 5000}).values


def test_revisions_and_what_the_workflow_says_hide_nothing() -> None:
    known, other = "a1b2c3d4" * 5, "0" * 39 + "1"
    found = secrets_in({"A_TOKEN": known, "B_TOKEN": "f" + other[1:]}, is_revision=lambda text: text == known)
    assert known not in found.values
    assert "f" + other[1:] in found.values
    assert secrets_in({"TOKEN": "conductor"}, written="benchmark: conductor/overhead").values == ()


def test_what_an_expression_reads_is_hidden_unless_it_is_harmless() -> None:
    read = {"CUSTOMER": "Ada Lovelace", "RUSTFLAGS": "-Ctarget-cpu=native", "OMP_PLACES": "cores(2,4)"}
    assert masked(list(read.values()), secrets_in(read=read)) == [MASK, "-Ctarget-cpu=native", "cores(2,4)"]


def test_one_inside_or_across_another_leaves_no_part_of_it() -> None:
    secrets = secrets_in({"A_TOKEN": "23456789x"}, {"B_TOKEN": "0123456789x"}, {"C_TOKEN": "9xabcdefgh"})
    assert masked({"a": ["x 0123456789x", ("23456789x",)], "n": 12345678}, secrets) == {
        "a": ["x ***", ("***",)],
        "n": 12345678,
    }
    assert masked("<0123456789xabcdefgh>", secrets) == "<***>"


def test_typed_findings_are_masked_field_by_field() -> None:
    skipped = Optimization(id="a", technique="memory", why="for 23456789x", decision="skipped", reason="no 23456789x")
    found = StepFindings(optimizations=(skipped,), devices=("A100",))
    (tried,) = masked(found, secrets_in({"A_TOKEN": "23456789x"})).optimizations
    assert (tried.why, tried.reason) == ("for ***", "no ***")
    assert masked(found, secrets_in({})) == found


AWKWARD = 'it\'s "50%" of $HOME\\näh'


@pytest.mark.parametrize(
    "written",
    [
        AWKWARD,
        json.dumps(AWKWARD),
        json.dumps(AWKWARD, ensure_ascii=False),
        shlex.quote(AWKWARD),
        '"' + re.sub(r'([\\"$`])', r"\\\1", AWKWARD) + '"',
        "https://host/?q=it%27s%20%2250%25%22%20of%20%24HOME%5Cn%C3%A4h",
    ],
)
def test_every_form_in_which_a_value_is_written(written: str) -> None:
    found = masked(f"<{written}>", secrets_in({"TOKEN": AWKWARD}))
    assert MASK in found
    assert "50" not in found


def test_a_value_of_several_lines_is_hidden_line_by_line() -> None:
    secrets = secrets_in({"SSH_PRIVATE_KEY": "first line\nsecond line\n}"})
    assert masked(["a first line", "second line b", "}"], secrets) == ["a ***", "*** b", "}"]


SHAPES = [
    "ghp_" + "aB3" * 12,
    "gho_" + "aB3" * 12,
    "ghs_" + "aB3" * 12,
    "github_pat_11ABCDEFG0aBcDeFgHiJkL_" + "x9" * 29,
    "glpat-" + "aB3-_x" * 4,
    "sk-" + "aB3" * 16,
    "sk-proj-" + "aB3_" * 16,
    "sk_live_" + "4eC39HqLyjWDarjtT1zdp7dc",
    "xoxb-123456789012-1234567890123-" + "aB3" * 8,
    "AKIAIOSFODNN7EXAMPLE",
    "AIza" + "SyD-9tSrke72PouQMnMX-a7eZSW0jkFMBWY",
    "npm_" + "aB3" * 12,
    "pypi-AgEIcHlwaS5vcmcCJ" + "aB3" * 12,
    "hf_" + "aBcDe" * 7,
    "SG." + "aB3" * 7 + "." + "aB3" * 14,
    "eyJhbGciOiJIUzI1NiIsInR5cCI6IkpXVCJ9.eyJzdWIiOiIxMjM0NTY3ODkwIn0.dozjgNryP4J3jVmNHl0w5N_XgL0n3I9PlFUP0THsR8U",
    "-----BEGIN RSA PRIVATE KEY-----\nProc-Type: 4,ENCRYPTED\n\nMIIEowIBAAKCAQEA\n-----END RSA PRIVATE KEY-----",
    "-----BEGIN OPENSSH PRIVATE KEY-----\\nb3BlbnNzaC1rZXktdjE=\\n-----END OPENSSH PRIVATE KEY-----",
]


@pytest.mark.parametrize("secret", SHAPES, ids=lambda text: text[:8])
def test_shapes_of_secrets_that_no_variable_holds(secret: str) -> None:
    for around in ("{}", "token={} and more", '"{}",', "\\n{}\\n", "Authorization: Bearer {}\n"):
        assert masked(around.format(secret), Secrets()) == around.format(MASK)
    assert masked(secret, Secrets(written=f"env: {{X: {secret}}}")) == secret


@pytest.mark.parametrize(
    ("address", "shown"),
    [
        ("postgres://user:hunter2@db.example/x", "postgres://***@db.example/x"),
        ("https://:correct-horse@host", "https://***@host"),
        ("https://x:12345678@[::1]:80/", "https://***@[::1]:80/"),
        ("http://u:p@host", "http://u:p@host"),
        ("ssh://git@host:2222/x", "ssh://git@host:2222/x"),
        ("http://host:8080/a@b", "http://host:8080/a@b"),
        ("http://host/x?mail=a:b@c", "http://host/x?mail=a:b@c"),
    ],
)
def test_addresses_with_a_password(address: str, shown: str) -> None:
    assert masked(f"at {address} now", Secrets()) == f"at {shown} now"


@pytest.mark.parametrize(
    "text",
    [
        "task-learn-contrib-packages-of-1", "sk-learn-contrib-packages-that-are-long", "highp_0123456789abcdefghij",
        "hf_hub_download_of_some_models", "npm_config_registry_of_ours", "eyJust.a.sentence",
        "AKIAVERYLONGWORDWITHOUTEND",
        "da39a3ee5e6b4b0d3255bfef95601890afd80709", "std::vector<int>@plt", "-----BEGIN CERTIFICATE-----\nMIIE",
        "12:34:56 user@host: done", "conductor/overhead[size=100]",
    ],
)  # fmt: skip
def test_what_only_looks_like_one(text: str) -> None:
    assert masked(text, Secrets()) == text


@pytest.mark.parametrize(
    "part",
    [
        "ghp_", "eyJ", "eyJaaaaaaaa.", "eyJaaaaaaaa.eyJaaaa.", "sk-", "sk-a", "-----BEGIN PRIVATE KEY-----", "://",
        "://a:", "://a:b", "-----BEGIN ", "- ", "xoxb-", "AKIA", "SG.a", "aaaaaaaa", "\\n", "SG." + "a" * 64,
    ],
)  # fmt: skip
def test_the_search_takes_linear_time(part: str) -> None:
    known = secrets_in({"TOKEN": "aaaaaaaa", "B_TOKEN": "aaaaaaaab"})

    def seconds(length: int) -> float:
        text = part * (length // len(part))
        started = time.process_time()
        masked(text, known)
        return time.process_time() - started

    # Eight times the text takes 64 times as long if each place is searched repeatedly.
    assert seconds(2**20) < 24 * max(min(seconds(2**17) for _ in range(3)), 0.001)


WORD = "correct-horse-battery"
SECRETS = secrets_in({"TOKEN": WORD})


def test_a_secret_is_masked_wherever_it_stands_in_a_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(invoke, "_CHUNK", 64)
    monkeypatch.setattr(invoke, "_OVERLAP", 32)
    chance = random.Random(1)
    path = tmp_path / "stdout"
    for number in range(200):
        before = "".join(chance.choice("ab\n ") for _ in range(number))
        after = "".join(chance.choice("ab\n ") for _ in range(chance.randrange(200)))
        path.write_text(before + WORD + after)
        assert trim_and_mask(tmp_path, SECRETS) == {path}
        assert path.read_text() == f"{before}***{after}"


def test_bytes_that_are_no_text_stay_as_they_are(tmp_path: Path) -> None:
    path = tmp_path / "stdout"
    noise = random.Random(2).randbytes(300_000)
    path.write_bytes(noise + WORD.encode() + noise)
    trim_and_mask(tmp_path, SECRETS)
    assert path.read_bytes() == noise + b"***" + noise


@pytest.mark.parametrize("line", rest_long([f"line with {WORD}\n", "été\n", WORD, "x"], keep=2))
def test_long_output_is_kept_without_its_middle(tmp_path: Path, line: str) -> None:
    path = tmp_path / "stdout"
    count = 3 * KEPT // len(line.encode())
    path.write_bytes(b"first " + line.encode() * count + b" last")
    size = path.stat().st_size
    assert trim_and_mask(tmp_path, SECRETS) == {path}
    text = path.read_text(errors="replace")
    assert path.stat().st_size <= KEPT
    assert re.search(f"left out {str(size - KEPT)[:5]}[0-9]+ of {size} bytes", text)
    assert text.startswith("first ")
    assert text.endswith(" last")
    assert not any(WORD[start : start + 12] in text for start in range(10)), "also no part at the border"
    assert trim_and_mask(tmp_path, SECRETS) == set()


def test_what_a_tool_wrote_is_masked_and_not_cut(tmp_path: Path) -> None:
    inner = tmp_path / "baseline"
    inner.mkdir()
    long = "x" * (KEPT + 10) + "\n"
    (inner / "callgrind.out").write_text(f"cmd: ./x --token {WORD}\n{long}")
    trim_and_mask(tmp_path, SECRETS)
    assert (inner / "callgrind.out").read_text() == f"cmd: ./x --token ***\n{long}"


def test_patches_artifacts_links_and_binary_files_stay(tmp_path: Path) -> None:
    elsewhere = tmp_path / "elsewhere"
    elsewhere.write_text(WORD)
    folder = tmp_path / "step"
    (folder / "artifacts").mkdir(parents=True)
    kept = [folder / "artifacts" / "stdout", folder / "change.patch", folder / "change.diff", folder / "perf.data"]
    for path in kept:
        path.write_text("\0" * path.name.startswith("perf") + WORD)
    (folder / "stdout").symlink_to(elsewhere)
    os.mkfifo(folder / "stderr")
    os.link(elsewhere, folder / "other.txt")
    assert trim_and_mask(folder, SECRETS) == {folder / "other.txt"}
    assert all(WORD in path.read_text() for path in (*kept, elsewhere)), "also what has another name here"


def test_a_folder_without_secrets_is_not_written(tmp_path: Path) -> None:
    (tmp_path / "stdout").write_text("fine\n")
    (tmp_path / "stdout").chmod(0o400)
    tmp_path.chmod(0o500)
    assert trim_and_mask(tmp_path, Secrets()) == set()
    tmp_path.chmod(0o700)
