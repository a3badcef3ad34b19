"""Finding a workflow by name, and resolving ``extends``."""

from __future__ import annotations

from pathlib import Path

import pytest

from perfflow.library import search_path
from perfflow.model.errors import UserError


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    shipped = tmp_path / "shipped"
    for path in ("workflows/own.yaml", "workflows/other.yml", "workflows/both.yaml", "shipped/both.yaml"):
        (tmp_path / path).parent.mkdir(exist_ok=True)
        (tmp_path / path).write_text("perfflow: 1\n")
    (shipped / "rust.yaml").write_text("perfflow: 1\n")
    (tmp_path / "workflows" / "folder.yaml").mkdir()
    monkeypatch.setattr(search_path, "SHIPPED", shipped)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_a_name_is_the_projects_own_workflow_first_and_a_path_stays_what_it_is(project: Path) -> None:
    own = {"own": "workflows/own.yaml", "other": "workflows/other.yml", "both": "workflows/both.yaml"}
    for name, path in {**own, "rust": "shipped/rust.yaml"}.items():
        assert search_path.find(name, project) == project / path
    for name in ("own.yaml", "some/where", "x.yml", "./own", "/etc/x.yaml"):
        assert search_path.find(name, project) == Path(name)


def test_a_folder_of_the_same_name_is_not_in_the_way(project: Path) -> None:
    (project / "own").mkdir()
    (project / "empty").mkdir()
    (project / "file").write_text("")
    assert search_path.find("own", project) == project / "workflows" / "own.yaml"
    assert [search_path.find(name, project) for name in ("empty", "file")] == [Path("empty"), Path("file")]


@pytest.mark.parametrize(
    ("name", "hint"), [("onw", "did you mean 'own'?"), ("zzzz", "workflows: both, other, own, rust; or give a path")]
)
def test_an_unknown_name_is_answered_with_the_nearest_or_all(name: str, hint: str, project: Path) -> None:
    with pytest.raises(UserError) as raised:
        search_path.find(name, project)
    assert raised.value.problems[0].hint == hint


def test_workflows_are_files_the_projects_own_first(project: Path) -> None:
    own = [project / "workflows" / name for name in ("both.yaml", "other.yml", "own.yaml")]
    shipped = [project / "shipped" / name for name in ("both.yaml", "rust.yaml")]
    assert list(search_path.workflows(project)) == [*own, *shipped]


def test_what_a_workflow_extends(project: Path) -> None:
    assert search_path.resolve("base.yaml", project / "workflows") == project / "workflows" / "base.yaml"
    assert search_path.resolve("lib:rust", project) == project / "shipped" / "rust.yaml"


@pytest.mark.parametrize("text", ["lib:../workflows/own", "lib:", "lib:zzzzzz", "lib:a\0", "lib:" + "z" * 300])
def test_an_unknown_library_item_is_answered_with_the_nearest_or_all(text: str, project: Path) -> None:
    for item, hint in (("lib:rsut", "did you mean lib:rust?"), (text, "library: both, rust")):
        with pytest.raises(UserError) as raised:
            search_path.resolve(item, project)
        assert raised.value.problems[0].hint == hint
