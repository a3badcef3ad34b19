"""Workflow files with one mistake each, and what ``perfflow validate`` says of it; and files without any.

``bad/NAME.expected`` holds the whole of stderr. A test that fails leaves ``NAME.got`` beside it: look at it, and if it
is what a user should read, make it the expected one.
"""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from perfflow.cli.main import main

HERE = Path(__file__).parent
BAD = sorted((HERE / "bad").glob("*.yaml"))
GOOD = sorted((HERE / "good").glob("*.yaml"))
# Generous: it tells a hang from a slow machine, nothing else.
LIMIT = 300

_PLACED = re.compile(r"^(?P<file>[\w.-]+\.yaml):(?P<line>\d+):(?P<column>\d+): (?P<severity>error|warning): ")


def steady(text: str) -> str:
    """What is said, less what changes with every tool and feature that is added."""
    text = re.sub(r"(hint: (?:tools that measure it|library): ).*", r"\1...", text)
    blocks = re.split(r"\n(?=\S)", text)
    return "\n".join(block for block in blocks if "is not available in this version" not in block)


def check_golden(path: Path, said: str) -> None:
    expected, got = path.with_suffix(".expected"), path.with_suffix(".got")
    if expected.exists() and expected.read_text() == said:
        got.unlink(missing_ok=True)
        return
    got.write_text(said)
    raise AssertionError(f"see {got}:\n{said}")


def validate(name: str, capsys: pytest.CaptureFixture[str]) -> tuple[int, str]:
    with pytest.raises(SystemExit) as ended:
        main(["validate", name])
    return int(ended.value.code or 0), capsys.readouterr().err


@pytest.mark.parametrize("path", BAD, ids=lambda path: path.stem)
def test_a_mistake_is_explained(
    path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(path.parent)
    status, said = validate(path.name, capsys)
    check_golden(path, steady(said))
    assert status == 2


@pytest.mark.parametrize("path", BAD, ids=lambda path: path.stem)
def test_a_mistake_has_its_place_and_errors_stand_in_file_order(
    path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(path.parent)
    _, said = validate(path.name, capsys)
    lines = path.read_bytes().decode().splitlines() or [""]
    found = [match for line in steady(said).splitlines() if (match := _PLACED.match(line))]
    places = [(int(match["line"]), int(match["column"])) for match in found]
    assert places, said
    assert places == sorted(places)
    for line, column in places:
        assert 1 <= line <= len(lines)
        assert 1 <= column <= len(lines[line - 1]) + 1


def test_all_of_them_at_once_end_in_time_and_run_nothing(tmp_path: Path) -> None:
    for path in BAD:
        shutil.copy(path, tmp_path)
    before = set(tmp_path.iterdir())
    done = subprocess.run(
        [sys.executable, "-m", "perfflow", "validate", *(path.name for path in BAD)],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=LIMIT,
        check=False,
    )
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
def test_a_good_file_is_valid(path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(path.parent)
    status, said = validate(path.name, capsys)
    assert status == 0, said
    assert steady(said).strip() == ""


def test_a_missing_file_names_the_nearest(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "hotpath.yaml").write_text("")
    monkeypatch.chdir(tmp_path)
    assert validate("hotpaht.yaml", capsys) == (
        2,
        "error: hotpaht.yaml: no such file\n  hint: did you mean hotpath.yaml?\n",
    )
    assert validate("else/where.yaml", capsys) == (2, "error: else/where.yaml: no such file\n  hint: check the path\n")


def test_a_directory_is_no_workflow(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "flows" / "inner").mkdir(parents=True)
    (tmp_path / "flows" / "hot.yaml").write_text("")
    monkeypatch.chdir(tmp_path)
    assert validate("flows", capsys) == (
        2,
        "error: flows is a directory\n  hint: name one of its files, such as flows/hot.yaml\n",
    )
    assert validate("flows/inner", capsys) == (2, "error: flows/inner is a directory\n")


def test_a_file_without_permission_says_so(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "secret.yaml"
    path.write_text("- not a map\n")
    path.chmod(0)
    monkeypatch.chdir(tmp_path)
    status, said = validate("secret.yaml", capsys)
    assert status == 2
    try:
        path.read_bytes()
    except PermissionError:
        assert said == "error: secret.yaml: Permission denied\n  hint: check its permissions\n"
    else:  # root may read everything
        assert said.startswith("secret.yaml:1:1: error: a workflow must be a map, not a list\n")


@pytest.mark.parametrize(
    ("content", "said"),
    [
        pytest.param(b"perfflow: 1\nname: " + b"x" * 50_000_000, "big.yaml:1:1: error: the file is larger", id="50 MB"),
        pytest.param(
            b"\x7fELF\x02\x01\x01\x00\xff\xfe\x00\x80" * 999, "big.yaml:1:9: error: not a text file", id="binary"
        ),
        pytest.param(
            b"perfflow: 1\nname: a\x00b\n", "big.yaml:2:8: error: YAML does not allow the character U+0000", id="NUL"
        ),
        pytest.param("perfflow: 1\n".encode("utf-16"), "big.yaml:1:1: error: not a text file", id="UTF-16"),
        pytest.param(b"\xef\xbb\xbfperfflow: 2\n", "big.yaml:1:1: error: `stages` is missing", id="byte order mark"),
        pytest.param(
            b"a: " + b"[" * 900_000, "error: the file has more than 40 levels of nesting", id="deepest nesting"
        ),
        pytest.param(b"a: " + b"[" * 900, "big.yaml:1:43: error: the file has more than 40 levels", id="deep nesting"),
        pytest.param(b"a:\r  b:\r    c: [\r", "big.yaml:3:9: error: a value is missing", id="line ends of old"),
        pytest.param(b"k: v\n" * 20_000, "error: only the first 100 problems are shown", id="a mistake in every line"),
        pytest.param(
            b"perfflow: 1\nstages:\n  build:\n" + b"  - {id: a, ran: x}\n" * 4000,
            "error: only the first 100 problems are shown",
            id="a mistake in every step",
        ),
        pytest.param(
            b"perfflow: 1\nstages:\n  build:\n"
            + b"".join(b"  - {id: s%d, run: x, needs: y}\n" % n for n in range(4000)),
            "error: only the first 100 problems are shown",
            id="an unknown step in every step",
        ),
        pytest.param(
            b"perfflow: 1\ntargets:\n" + b"".join(b"  b%d: {time: 1}\n" % n for n in range(10_000)),
            "error: only the first 100 problems are shown",
            id="a mistake in every target",
        ),
    ],
)
def test_files_that_are_no_workflows_end_in_time(content: bytes, said: str, tmp_path: Path) -> None:
    (tmp_path / "big.yaml").write_bytes(content)
    done = subprocess.run(
        [sys.executable, "-m", "perfflow", "validate", "big.yaml"],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=LIMIT,
        check=False,
    )
    assert done.returncode == 2
    assert said in done.stderr.partition("\n")[0]
    assert len(done.stderr) < 100_000
