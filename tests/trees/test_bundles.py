"""The code of a run on another machine: the bundle, and the clone that shows it there."""

from __future__ import annotations

import os
import stat
from pathlib import Path

import pytest

from perfflow.model.errors import UserError
from perfflow.trees.bundles import BASE, HEAD, clone_of, commit_of, share, write_source
from perfflow.trees.repository import open_repository
from perfflow.trees.snapshots import at, snapshot
from tests.trees.projects import commit, git, write


@pytest.fixture
def root(root: Path) -> Path:
    """A repository with one commit, an uncommitted change, and an ignored file."""
    commit(root, "code", {"code": "old", ".gitignore": "out/\ndata\n"})
    write(root, {"code": "new", "data": "big"})
    return root


def source_of(root: Path, folder: Path, *, bundle: bool = True) -> tuple[Path, dict[str, str]]:
    """Write the states of the project to a folder; return the file, and the commits of the states."""
    named = states(root)
    folder.mkdir(exist_ok=True)
    return write_source(open_repository(root), folder, named, bundle=bundle), named


def states(root: Path) -> dict[str, str]:
    repository = open_repository(root)
    return {HEAD: commit_of(repository, snapshot(repository)), BASE: commit_of(repository, at(repository, "HEAD"))}


@pytest.mark.parametrize("bundle", [True, False])
def test_a_clone_shows_the_tree_as_it_stood_and_keeps_what_was_built(root: Path, tmp_path: Path, bundle: bool) -> None:
    before = git(root, "for-each-ref")
    source, named = source_of(root, tmp_path, bundle=bundle)
    assert source.name == ("trees.bundle" if bundle else "trees.git")

    with clone_of(tmp_path / "clones", source, named) as clone:
        assert [stat.S_IMODE(path.stat().st_mode) for path in (clone.parent, clone)] == [0o700, 0o700]
        assert (clone / "code").read_text() == "new"
        assert not (clone / "data").exists()
        assert git(clone, "show", f"{named[BASE]}:code") == "old"
        (clone / "out").mkdir()
        with clone_of(tmp_path / "clones", source, named) as other:
            assert other != clone
    with clone_of(tmp_path / "clones", source, named) as again:
        assert again == clone
        assert (again / "out").is_dir()
    assert git(root, "for-each-ref") == before
    assert git(root, "status", "--short") == " M code"


def test_what_was_left_of_other_code_is_gone_unless_it_is_ignored(root: Path, tmp_path: Path) -> None:
    for name, text in (("one", "1"), ("two", "2")):
        write(root, {"code": text})
        source, named = source_of(root, tmp_path / name)
        with clone_of(tmp_path / "clones", source, named) as clone:
            assert (clone / "code").read_text() == text
            assert not (clone / "left").exists()
            (clone / "left").touch()
            (clone / "out").mkdir(exist_ok=True)


def test_a_shallow_clone_cannot_be_bundled(root: Path, tmp_path: Path) -> None:
    commit(root, "two")
    shallow = tmp_path / "shallow"
    git(tmp_path, "clone", "-q", "--depth=1", root.as_uri(), str(shallow))
    named = {HEAD: git(shallow, "rev-parse", "HEAD")}
    with pytest.raises(UserError, match=r"is a shallow clone[\s\S]*git fetch --unshallow"):
        write_source(open_repository(shallow), tmp_path, named, bundle=True)


def test_what_the_workflow_shares_is_linked_from_where_it_is(root: Path, tmp_path: Path) -> None:
    clone = tmp_path / "clone"
    clone.mkdir()
    for _ in range(2):
        share(root, clone, ["data"])
        assert (clone / "data").read_text() == "big"
    with pytest.raises(UserError, match=r"`worktree\.share` names none, but \S+ does not exist on this machine"):
        share(root, clone, ["none"])


def test_a_repository_that_another_user_could_have_prepared_is_not_used(root: Path, tmp_path: Path) -> None:
    """git would run the filter that its settings name, as the user of the job."""
    source, named = source_of(root, tmp_path)
    place = tmp_path / "shared" / "clones"
    write(place / "0", {".git/info/attributes": "* filter=theirs\n"})
    git(place / "0", "init", "-q")
    git(place / "0", "config", "filter.theirs.smudge", f"touch {tmp_path}/ran; cat")

    place.parent.chmod(0o777)
    with pytest.raises(UserError, match=r"other users can write in .*shared"), clone_of(place, source, named):
        pass
    place.parent.chmod(0o755)
    if os.geteuid() == 0:
        for theirs in (place, place / "0", place / "0" / ".git"):
            os.chown(theirs, 65534, 65534)
            with pytest.raises(UserError, match="belongs to another user"), clone_of(place, source, named):
                pass
            os.chown(theirs, 0, 0)
    assert not (tmp_path / "ran").exists()
