"""Source files of hotspots in the tree."""

from __future__ import annotations

from pathlib import Path

import pytest

from perfflow.model.readings import Hotspot
from perfflow.session.own_code import SourceFiles


@pytest.mark.parametrize(
    ("file", "placed"),
    [
        ("{root}/crates/a/src/lib.rs", "crates/a/src/lib.rs"),
        ("src/only.rs", "crates/a/src/only.rs"),
        ("src/lib.rs", "crates/b/src/lib.rs"),
        ("src/main.rs", "src/main.rs"),
        ("/rustc/59/library/core/src/lib.rs", "/rustc/59/library/core/src/lib.rs"),
        ("../src/only.rs", "../src/only.rs"),
    ],
)
def test_placed(file: str, placed: str, tmp_path: Path) -> None:
    for name in ("crates/a/src/lib.rs", "crates/a/src/only.rs", "crates/b/src/lib.rs", "target/src/only.rs"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).touch()
    spot = Hotspot("f", 0.5, "time", "perf", file.format(root=tmp_path), 3)
    assert SourceFiles(tmp_path, [tmp_path / "crates" / "b"]).placed(spot).file == placed


def test_one_of_several_keeps_its_name(tmp_path: Path) -> None:
    for name in ("a", "b"):
        (tmp_path / name / "src").mkdir(parents=True)
        (tmp_path / name / "src" / "lib.rs").touch()
    assert SourceFiles(tmp_path).placed(Hotspot("f", 0.5, "time", "perf", "src/lib.rs", 3)).file == "src/lib.rs"
