"""Limits on the files that are read for a workflow."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from perfflow.library import search_path
from perfflow.model.errors import UserError
from perfflow.tools import regular_files
from perfflow.tools.regular_files import NotRegularError, TooLargeError
from perfflow.workflow.yaml_text import LARGEST, Readable


def test_folders_hold_what_is_below_them(tmp_path: Path) -> None:
    inside = tmp_path / "in"
    (inside / "deep").mkdir(parents=True)
    (inside / "deep/a").write_text("a")
    (tmp_path / "b").write_text("b")
    (inside / "link").symlink_to("deep/a")
    (inside / "out").symlink_to(tmp_path / "b")
    readable = Readable.of(inside)
    assert readable.bytes_of(inside / "deep/a") == readable.bytes_of(inside / "link") == b"a"
    for path in (tmp_path / "b", inside / "../b", inside / "out", tmp_path / "in2/a", tmp_path / "missing"):
        with pytest.raises(UserError, match="lies outside the project"):
            readable.bytes_of(path)
    with pytest.raises(UserError, match="name the file itself"):
        readable.bytes_of(inside / "out")


def test_only_regular_files_are_opened(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "fifo")
    for name in (str(tmp_path / "fifo"), "/dev/zero", "/dev/null"):
        with pytest.raises(NotRegularError):
            regular_files.read(name)
    with pytest.raises(IsADirectoryError):
        regular_files.read(tmp_path)
    assert regular_files.read("/proc/self/environ") == b""
    large = tmp_path / "large"
    large.write_bytes(b"x" * (LARGEST + 1))
    with pytest.raises(TooLargeError):
        Readable.of(tmp_path).bytes_of(large)
    assert len(regular_files.read(large)) == LARGEST + 1


def test_a_workflow_may_name_what_is_in_its_project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    here, tree, bare = tmp_path / "here", tmp_path / "tree", tmp_path / "bare"
    for folder in (here, tree / "workflows", tree / ".git", bare):
        folder.mkdir(parents=True)
    monkeypatch.chdir(here)
    library = os.path.realpath(search_path.SHIPPED)
    assert search_path.readable(Path("flow.yaml")).folders == (str(here), library)
    assert search_path.readable(tree / "workflows/flow.yaml").folders == (str(tree), library)
    assert search_path.readable(bare / "flow.yaml").folders == (str(bare), str(here), library)
    assert search_path.readable(search_path.SHIPPED / "x.yaml").folders == (library, str(here))
    (here / "workflows").symlink_to(bare)
    assert search_path.readable(Path("workflows/flow.yaml")).folders == (str(here), library)
