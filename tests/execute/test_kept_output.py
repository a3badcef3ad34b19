"""Trimming and masking of a step's files: the middle of long output, secrets across borders, untouched files."""

from __future__ import annotations

import os
import random
import re
from pathlib import Path

import pytest

from perfflow.execute import invoke
from perfflow.execute.invoke import KEPT, trim_and_mask
from perfflow.model.secrets import Secrets, secrets_in

SECRET = "correct-horse-battery"  # noqa: S105 (of these tests)
SECRETS = secrets_in({"TOKEN": SECRET})


def test_a_secret_is_masked_wherever_it_stands_in_a_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(invoke, "_CHUNK", 64)
    monkeypatch.setattr(invoke, "_OVERLAP", 32)
    chance = random.Random(1)
    path = tmp_path / "stdout"
    for number in range(200):
        before = "".join(chance.choice("ab\n ") for _ in range(number))
        after = "".join(chance.choice("ab\n ") for _ in range(chance.randrange(200)))
        path.write_text(before + SECRET + after)
        assert trim_and_mask(tmp_path, SECRETS) == {path}
        assert path.read_text() == f"{before}***{after}"


def test_bytes_that_are_no_text_stay_as_they_are(tmp_path: Path) -> None:
    path = tmp_path / "stdout"
    noise = random.Random(2).randbytes(300_000)
    path.write_bytes(noise + SECRET.encode() + noise)
    trim_and_mask(tmp_path, SECRETS)
    assert path.read_bytes() == noise + b"***" + noise


@pytest.mark.parametrize(
    "line", [f"line with {SECRET}\n", SECRET, "x", "été\n"], ids=["lines", "one line", "x", "utf-8"]
)
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
    assert not any(SECRET[start : start + 12] in text for start in range(10)), "also no part at the border"
    assert trim_and_mask(tmp_path, SECRETS) == set()


def test_what_a_tool_wrote_is_masked_and_not_cut(tmp_path: Path) -> None:
    inner = tmp_path / "baseline"
    inner.mkdir()
    long = "x" * (KEPT + 10) + "\n"
    (inner / "callgrind.out").write_text(f"cmd: ./x --token {SECRET}\n{long}")
    trim_and_mask(tmp_path, SECRETS)
    assert (inner / "callgrind.out").read_text() == f"cmd: ./x --token ***\n{long}"


def test_patches_artifacts_links_and_binary_files_stay(tmp_path: Path) -> None:
    elsewhere = tmp_path / "elsewhere"
    elsewhere.write_text(SECRET)
    folder = tmp_path / "step"
    (folder / "artifacts").mkdir(parents=True)
    kept = [folder / "artifacts" / "stdout", folder / "change.patch", folder / "change.diff", folder / "perf.data"]
    for path in kept:
        path.write_text("\0" * path.name.startswith("perf") + SECRET)
    (folder / "stdout").symlink_to(elsewhere)
    os.mkfifo(folder / "stderr")
    os.link(elsewhere, folder / "other.txt")
    assert trim_and_mask(folder, SECRETS) == {folder / "other.txt"}
    assert all(SECRET in path.read_text() for path in (*kept, elsewhere)), "also what has another name here"


def test_a_folder_without_secrets_is_not_written(tmp_path: Path) -> None:
    (tmp_path / "stdout").write_text("fine\n")
    (tmp_path / "stdout").chmod(0o400)
    tmp_path.chmod(0o500)
    assert trim_and_mask(tmp_path, Secrets()) == set()
    tmp_path.chmod(0o700)
