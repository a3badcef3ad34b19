"""Workflow files with one mistake each, and what ``perfflow validate`` says of it; and files without any.

``bad/NAME.expected`` holds the whole of stderr. A test that fails leaves ``NAME.got`` beside it: look at it, and if it
is what a user should read, make it the expected one.
"""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from perfflow.cli.main import main
from tests.long import rest_long

HERE = Path(__file__).parent
BAD = sorted((HERE / "bad").glob("*.yaml"))
GOOD = sorted((HERE / "good").glob("*.yaml"))
# Generous: it tells a hang from a slow machine, nothing else.
LIMIT = 300

Validate = Callable[..., tuple[int, str]]
_PLACED = re.compile(r"^(?P<file>[\w.-]+\.yaml):(?P<line>\d+):(?P<column>\d+): (?P<severity>error|warning): ")


def steady(text: str) -> str:
    """What is said, less what changes with every tool and feature that is added."""
    text = re.sub(r"(hint: (?:tools that measure it|library): ).*", r"\1...", text)
    blocks = re.split(r"\n(?=\S)", text)
    return "\n".join(block for block in blocks if "is not available in this version" not in block)


@pytest.fixture
def validate(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Validate:
    """Return what validates a file from inside its folder: its status, and what it says."""

    def done(path: Path, *, folder: Path | None = None) -> tuple[int, str]:
        monkeypatch.chdir(folder or path.parent)
        with pytest.raises(SystemExit) as ended:
            main(["validate", str(path.relative_to(folder or path.parent))])
        return int(ended.value.code or 0), capsys.readouterr().err

    return done


@pytest.mark.parametrize("path", BAD, ids=lambda path: path.stem)
def test_a_mistake_is_explained_at_its_place_in_file_order(path: Path, validate: Validate) -> None:
    status, text = validate(path)
    said = steady(text)
    expected, got = path.with_suffix(".expected"), path.with_suffix(".got")
    if not expected.exists() or expected.read_text() != said:
        got.write_text(said)
        pytest.fail(f"see {got}:\n{said}")
    got.unlink(missing_ok=True)
    assert status == 2
    lines = path.read_bytes().decode().splitlines() or [""]
    found = [match for line in said.splitlines() if (match := _PLACED.match(line))]
    places = [(int(match["line"]), int(match["column"])) for match in found]
    assert places, said
    assert places == sorted(places)
    for line, column in places:
        assert 1 <= line <= len(lines)
        assert 1 <= column <= len(lines[line - 1]) + 1


def in_a_process(*names: str, folder: Path) -> subprocess.CompletedProcess[str]:
    argv = [sys.executable, "-m", "perfflow", "validate", *names]
    return subprocess.run(argv, cwd=folder, capture_output=True, text=True, timeout=LIMIT, check=False)


def test_all_of_them_at_once_end_in_time_and_run_nothing(tmp_path: Path) -> None:
    for path in BAD:
        shutil.copy(path, tmp_path)
    before = set(tmp_path.iterdir())
    done = in_a_process(*(path.name for path in BAD), folder=tmp_path)
    assert done.returncode == 2
    assert steady(done.stderr) == "".join(path.with_suffix(".expected").read_text() for path in BAD)
    assert set(tmp_path.iterdir()) == before


@pytest.mark.parametrize("arguments", [["run"], ["run", "--dry-run"], ["plan"]], ids=" ".join)
def test_a_bad_workflow_is_not_run_by_any_command(
    arguments: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    shutil.copy(HERE / "bad" / "nothing-runs.yaml", tmp_path)
    monkeypatch.chdir(tmp_path)
    with pytest.raises(SystemExit) as ended:
        main([*arguments, "nothing-runs.yaml"])
    assert ended.value.code == 2
    assert "nothing-runs.yaml:16:" in capsys.readouterr().err
    assert [path.name for path in tmp_path.iterdir()] == ["nothing-runs.yaml"]


@pytest.mark.parametrize("path", GOOD, ids=lambda path: path.stem)
def test_a_good_file_is_valid(path: Path, validate: Validate) -> None:
    status, said = validate(path)
    assert status == 0, said
    assert steady(said).strip() == ""


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("hotpaht.yaml", "error: hotpaht.yaml: no such file\n  hint: did you mean hotpath.yaml?\n"),
        ("else/where.yaml", "error: else/where.yaml: no such file\n  hint: check the path\n"),
        ("flows", "error: flows is a directory\n  hint: name one of its files, such as flows/hot.yaml\n"),
        ("flows/inner", "error: flows/inner is a directory\n"),
    ],
)
def test_what_is_no_file_is_answered_with_the_nearest(name: str, said: str, tmp_path: Path, validate: Validate) -> None:
    (tmp_path / "flows" / "inner").mkdir(parents=True)
    for file in ("hotpath.yaml", "flows/hot.yaml"):
        (tmp_path / file).touch()
    assert validate(tmp_path / name, folder=tmp_path) == (2, said)


def test_a_file_without_permission_says_so(tmp_path: Path, validate: Validate) -> None:
    path = tmp_path / "secret.yaml"
    path.write_text("- not a map\n")
    path.chmod(0)
    status, said = validate(path)
    assert status == 2
    try:
        path.read_bytes()
    except PermissionError:
        assert said == "error: secret.yaml: Permission denied\n  hint: check its permissions\n"
    else:  # root may read everything
        assert said.startswith("secret.yaml:1:1: error: a workflow must be a map, not a list\n")


STEPS = b"perfflow: 1\nstages:\n  build:\n"
MANY = "error: only the first 100 problems are shown"
NO_WORKFLOWS = {
    "50 MB": (b"perfflow: 1\nname: " + b"x" * 50_000_000, "big.yaml:1:1: error: the file is larger"),
    "binary": (b"\x7fELF\x02\x01\x01\x00\xff\xfe\x00\x80" * 999, "big.yaml:1:9: error: not a text file"),
    "NUL": (b"perfflow: 1\nname: a\x00b\n", "big.yaml:2:8: error: YAML does not allow the character U+0000"),
    "UTF-16": ("perfflow: 1\n".encode("utf-16"), "big.yaml:1:1: error: not a text file"),
    "byte order mark": (b"\xef\xbb\xbfperfflow: 2\n", "big.yaml:1:1: error: `stages` is missing"),
    "deepest nesting": (b"a: " + b"[" * 900_000, "error: the file has more than 40 levels of nesting"),
    "deep nesting": (b"a: " + b"[" * 900, "big.yaml:1:43: error: the file has more than 40 levels"),
    "a mistake in every line": (b"k: v\n" * 20_000, MANY),
    "line ends of old": (b"a:\r  b:\r    c: [\r", "big.yaml:3:9: error: a value is missing"),
    "a mistake in every step": (STEPS + b"  - {id: a, ran: x}\n" * 4000, MANY),
    "an unknown step in every step": (STEPS + b"".join(b"  - {id: s%d, needs: y}\n" % n for n in range(4000)), MANY),
    "a mistake in every target": (b"targets:\n" + b"".join(b"  b%d: {time: 1}\n" % n for n in range(10_000)), MANY),
}


@pytest.mark.parametrize("name", rest_long(NO_WORKFLOWS, keep=8))
def test_files_that_are_no_workflows_end_in_time(name: str, tmp_path: Path) -> None:
    content, said = NO_WORKFLOWS[name]
    (tmp_path / "big.yaml").write_bytes(content)
    done = in_a_process("big.yaml", folder=tmp_path)
    assert done.returncode == 2
    assert said in done.stderr.partition("\n")[0]
    assert len(done.stderr) < 100_000
