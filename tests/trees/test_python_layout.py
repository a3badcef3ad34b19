"""Folders of packages in the settings of build tools."""

from __future__ import annotations

from pathlib import Path

import pytest

from perfflow.trees.python_layout import import_folders


@pytest.mark.parametrize(
    ("file", "text", "folders"),
    [
        ("pyproject.toml", '[tool.setuptools]\npackage-dir = {"" = "lib"}', ["lib"]),
        ("pyproject.toml", '[tool.setuptools]\npackage-dir = {"a.b" = "lib/a/b"}', ["lib"]),
        ("pyproject.toml", '[tool.setuptools]\npackage-dir = {"a.b" = "lib/else"}', []),
        ("pyproject.toml", '[tool.setuptools.packages.find]\nwhere = ["lib", "python"]', ["lib", "python"]),
        ("pyproject.toml", '[tool.hatch.build.targets.wheel]\npackages = ["lib/a", "b"]', ["lib"]),
        ("pyproject.toml", '[tool.hatch.build]\nsources = ["lib"]', ["lib"]),
        ("pyproject.toml", '[tool.hatch.build.targets.wheel.sources]\n"lib" = ""\n"python" = "c"', ["lib"]),
        ("pyproject.toml", '[tool.poetry]\npackages = [{include = "a", from = "lib"}, {include = "b"}]', ["lib"]),
        ("pyproject.toml", '[tool.pdm.build]\npackage-dir = "lib"', ["lib"]),
        ("pyproject.toml", '[tool.maturin]\npython-source = "python"', ["python"]),
        ("pyproject.toml", '[tool.maturin]\npython-source = "../lib"', []),
        ("pyproject.toml", '[tool.maturin]\npython-source = "missing"', []),
        ("pyproject.toml", "[tool]\nsetuptools = 3", []),
        ("pyproject.toml", "not toml [", []),
        ("setup.cfg", "[options]\npackage_dir =\n    = lib", ["lib"]),
        (
            "setup.cfg",
            "[options]\npackage_dir =\n    a = python/a\n[options.packages.find]\nwhere = lib",
            ["python", "lib"],
        ),
        ("setup.cfg", "not a section", []),
    ],
)
def test_folders_that_settings_name_come_before_the_root(
    tmp_path: Path, file: str, text: str, folders: list[str]
) -> None:
    for name in ("lib", "python"):
        (tmp_path / name).mkdir()
    (tmp_path / file).write_text(text)
    assert import_folders(tmp_path) == [*(tmp_path / name for name in folders), tmp_path]


def test_src_is_a_folder_of_packages_unless_it_is_one_itself(tmp_path: Path) -> None:
    (tmp_path / "src").mkdir()
    (tmp_path / "setup.cfg").write_text("[options]\npackage_dir =\n    = src\n")
    assert import_folders(tmp_path) == [tmp_path / "src", tmp_path]
    (tmp_path / "setup.cfg").unlink()
    (tmp_path / "src" / "__init__.py").write_text("")
    assert import_folders(tmp_path) == [tmp_path]
