"""Shared folders that make both trees run the user's code, as package managers create them."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from perfflow.trees.shared_installs import Prepared, faults
from perfflow.trees.snapshots import LARGEST, text_of
from tests.trees.projects import commit, git, make, write

NOTHING = Prepared(builds=False, sets_path=False)
SITE = Path(".venv/lib/python3.11/site-packages")
PROJECT = '[project]\nname = "My.Shop"\n'


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """A project with its package in src, and an environment that git ignores."""
    root = make(tmp_path / "shop", pyproject_toml=PROJECT)
    (root / SITE).mkdir(parents=True)
    commit(root, "two", {".gitignore": ".venv\nnode_modules\n*.so\nbuild\n", "src/shop/__init__.py": ""})
    return root


def install(
    root: Path, files: list[str], texts: dict[str, str] | None = None, *, name: str = "my_shop", source: str = ""
) -> None:
    """An installed distribution with these files, as pip records it; ``source``: the folder of an editable install."""
    url = {"url": (root / source).as_uri(), "dir_info": {"editable": True}} if source else {}
    record = "".join(f"{file},,\n" for file in (*files, *(texts or {})))
    info = f"{name}-1.0.dist-info"
    write(root / SITE, {f"{info}/RECORD": record, f"{info}/direct_url.json": json.dumps(url), **(texts or {})})


def said(root: Path, path: str = ".venv", prepared: Prepared = NOTHING) -> list[str]:
    return [f"{problem.message}; {problem.hint}" for problem in faults(root, path, [path], prepared)]


def test_an_environment_without_the_project_is_fine(project: Path) -> None:
    install(project, ["other/__init__.py", "other/_fast.so"], name="other")
    (project / ".venv" / "lib64").symlink_to("lib")
    (project / ".venv" / "bin").mkdir()
    (project / ".venv" / "bin" / "python").symlink_to("/usr/bin/python3")
    assert said(project) == []


def test_python_code_that_the_trees_own_comes_before_is_fine(project: Path) -> None:
    install(project, ["shop/__init__.py", "shop/price.py"])
    install(project, [], {"own.pth": f"{project}/src\n"}, name="own", source=".")
    assert said(project) == []


def test_a_compiled_copy_is_an_error_unless_each_tree_is_built(project: Path) -> None:
    install(project, ["shop/__init__.py", "shop/_fast.cpython-311-x86_64-linux-gnu.so"])
    (found,) = said(project)
    assert ".venv holds a compiled copy of the project itself (shop/_fast.cpython-311-x86_64-linux-gnu.so)" in found
    assert "both sides would run that copy" in found
    assert "build_ext --inplace" in found
    assert said(project, prepared=Prepared(builds=True, sets_path=False)) == []


def test_compiled_code_in_the_tree_of_an_editable_install_is_an_error(project: Path) -> None:
    install(project, [], {"shop.pth": f"{project}/src\n"}, source=".")
    write(project, {"src/shop/_fast.so": ""})
    assert "(src/shop/_fast.so)" in said(project)[0]
    git(project, "add", "-f", "src/shop/_fast.so")
    assert said(project) == []


@pytest.mark.parametrize("hook", ["_my_shop_editable_loader.py", "_my_shop_editable.py"])
def test_an_import_hook_that_comes_first_is_an_error(hook: str, project: Path) -> None:
    install(project, [hook], source=".")
    assert "import hook that precedes the module path" in said(project)[0]
    assert "python3 -m venv" in said(project)[0]


def test_an_editable_install_from_a_folder_that_trees_do_not_put_first_is_an_error(project: Path) -> None:
    write(project, {"parts/till/__init__.py": ""})
    install(project, [], {"till.pth": f"{project}/parts\n"}, name="till", source="parts")
    (found,) = said(project)
    assert "an editable install of the project itself, and `till` is not found in the trees first" in found
    assert "env: {PYTHONPATH: parts}" in found
    assert said(project, prepared=Prepared(builds=False, sets_path=True)) == []


def test_the_finder_of_setuptools_is_read(project: Path) -> None:
    finder = f"MAPPING: dict[str, str] = {{'till': '{project}/parts/till'}}\n"
    install(project, [], {"__editable___my_shop_1_0_finder.py": finder}, source=".")
    assert "env: {PYTHONPATH: parts}" in said(project)[0]


def test_an_installed_copy_that_no_tree_has_where_it_is_looked_for_is_an_error(project: Path) -> None:
    install(project, ["till/__init__.py"])
    assert "an installed copy of the project itself, and `till` is not found" in said(project)[0]


@pytest.mark.parametrize("target", ["../packages/own", "../src", "../a.txt", "../build/native", ".."])
def test_a_link_back_into_the_tree_is_an_error(target: str, project: Path) -> None:
    write(project, {"packages/own/index.js": "", "build/native/file": "", "node_modules/@scope/file": ""})
    (project / "node_modules" / "own").symlink_to(target)
    (found,) = said(project, "node_modules")
    link = f"(node_modules/own → {os.path.normpath(f'node_modules/{target}')})"
    assert f"node_modules links back into your tree {link}: both sides would run your code" in found


def test_links_within_what_is_shared_and_out_of_the_project_are_fine(project: Path, tmp_path: Path) -> None:
    write(project, {"node_modules/.bin/file": "", "node_modules/tool/file": ""})
    # The environment is ignored, and no code of the trees.
    links = {".bin/tool": "../tool", "away": str(tmp_path), "gone": "../gone", "loop": "loop", "python": "../.venv"}
    for name, target in links.items():
        (project / "node_modules" / name).symlink_to(target)
    assert said(project, "node_modules") == []


def test_a_shared_link_to_code_of_the_tree_is_an_error(project: Path) -> None:
    (project / "node_modules").symlink_to("src")
    assert "(node_modules → src)" in said(project, "node_modules")[0]


@pytest.mark.parametrize("record", ["\0", "[" * 10_000, '{"url": 5}', "[]", '{"url": "file://[x"}'])
def test_damaged_files_of_an_install_are_passed_over(record: str, project: Path) -> None:
    install(project, [], name="odd")
    write(project / SITE, {"odd-1.0.dist-info/direct_url.json": record})
    assert said(project) == []


def test_only_small_regular_files_inside_are_read(tmp_path: Path) -> None:
    inside = tmp_path / "in"
    write(tmp_path, {"out": "x", "in/large": b"x" * (LARGEST + 1), "in/bytes": b"\xff", "in/fine": "é"})
    write(inside, {"largest": b"x" * LARGEST})
    (inside / "link").symlink_to("../out")
    os.mkfifo(inside / "pipe")
    names = ("link", "large", "bytes", "pipe", "none", ".", "fine")
    assert [text_of(inside / name, inside) for name in names] == ["", "", "", "", "", "", "é"]
    assert len(text_of(inside / "largest", inside)) == LARGEST
