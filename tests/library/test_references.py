"""References to files in git repositories, texts rejected before git gets them, and the lock that pins them."""

from __future__ import annotations

import hashlib
from pathlib import Path

import pytest

from perfflow.library import pinned, references
from perfflow.library.pinned import Pin
from perfflow.model.errors import UserError


@pytest.mark.parametrize(
    ("text", "url", "revision", "path", "folder"),
    [
        (
            *("git+https://example.org/acme/perf@v1.2#workflows/a.yaml", "https://example.org/acme/perf"),
            *("v1.2", "workflows/a.yaml", "example.org/acme/perf@v1.2"),
        ),
        (
            *("git+ssh://git@example.org:2222/acme/perf.git@feature/x#a", "ssh://git@example.org:2222/acme/perf.git"),
            *("feature/x", "a", "example.org-2222/acme/perf.git@feature/x"),
        ),
        ("git+file:///srv/team@main#a b.yaml", "file:///srv/team", "main", "a b.yaml", "file/srv/team@main"),
        ("acme/perf/workflows/a@v1", "https://github.com/acme/perf", "v1", "workflows/a", "github.com/acme/perf@v1"),
    ],
)
def test_references_are_read(text: str, url: str, revision: str, path: str, folder: str) -> None:
    assert references.names_one(text)
    found = references.read(text)
    assert (found.url, found.revision, found.path, str(found.folder)) == (url, revision, path, folder)
    assert references.read(str(found)) == found


@pytest.mark.parametrize(
    "text", ["a.yaml", "../base.yaml", "lib:python-cpu", "workflows/a/b@2.yaml", "./a/b/c@v1", "/a/b/c@v1", "a/b@v1"]
)
def test_paths_and_names_are_no_references(text: str) -> None:
    assert not references.names_one(text)


PLACE = "git+https://example.org/o/r"


@pytest.mark.parametrize(
    ("message", "texts"),
    [
        ("may not be used over 'ext'", ["git+ext::sh -c id@v1#a"]),
        ("may not be used over 'http'", ["git+http://example.org/o/r@v1#a"]),
        ("does not name a repository, a revision and a path", [f"{PLACE}#a", f"{PLACE}@v1"]),
        ("names no file", [f"{PLACE}@v1#"]),
        ("'' is not a revision", [f"{PLACE}@#a"]),
        ("is not a revision", [f"{PLACE}@--upload-pack=x#a", f"{PLACE}@a..b#a", f"{PLACE}@v1:refs/heads/x#a"]),
        ("is not a revision", [f"{PLACE}@v1^{{/x}}#a"]),
        ("'..' cannot be a part of its path", [f"{PLACE}@v1#../a", "git+https://example.org/o/../r@v1#a"]),
        ("'..' cannot be a part of its path", ["acme/perf/../../a@v1"]),
        ("'' cannot be a part of its path", [f"{PLACE}@v1#a//b", f"{PLACE}@v1#/etc/passwd"]),
        ("'-a' cannot be a part of its path", [f"{PLACE}@v1#-a"]),
        ("'-o' cannot be a part of its path", ["-o/perf/a@v1"]),
        ("'.GIT' cannot be a part of its path", [f"{PLACE}@v1#.GIT/config"]),
        ("is not a host", ["git+https://-oProxyCommand=x/o/r@v1#a", "git+ssh://-oProxyCommand=x/o/r@v1#a"]),
        ("is not a host", ["git+ssh://-x@host/o/r@v1#a", "git+https://user:token@example.org/o/r@v1#a"]),
        ("a reference must not contain a user or a token", ["git+https://user@example.org/o/r@v1#a"]),
        ("a file has no host", ["git+file://host/o/r@v1#a"]),
        ("is not a reference", [f"{PLACE}@v1#a\nb", f"{PLACE}@v1#\u202ea", f"{PLACE}{'a' * 2000}@v1#a"]),
    ],
)
def test_what_git_could_take_for_something_else_is_refused(message: str, texts: list[str]) -> None:
    for text in texts:
        assert references.names_one(text)
        with pytest.raises(UserError) as raised:
            references.read(text)
        (problem,) = raised.value.problems
        assert message in problem.message
        assert problem.hint
        assert raised.value.exit == 2


# ---- perfflow.lock: written data is read back, and a damaged file is rejected with a hint ----

NAME = "git+https://example.org/acme/perf@v1#a.yaml"
FILES = {"a.yaml": hashlib.sha256(b"a").hexdigest(), "b/c d.yaml": hashlib.sha256(b"c").hexdigest()}


def pin(commit: str = "1" * 40, *, vendored: bool = False) -> Pin:
    sha256 = pinned.digest_of(FILES)
    return Pin(commit=commit, kind="tag", path="a.yaml", sha256=sha256, vendored=vendored, files=FILES)


def test_a_lock_is_read_as_it_was_written(tmp_path: Path) -> None:
    lock = {NAME: pin(), NAME.replace("@v1", "@0"): pin("0e1" + "2" * 37, vendored=True)}
    pinned.write_lock(tmp_path, lock)
    assert pinned.read_lock(tmp_path) == lock
    text = (tmp_path / pinned.LOCK_FILE).read_text()
    pinned.write_lock(tmp_path, dict(reversed(list(lock.items()))))
    assert (tmp_path / pinned.LOCK_FILE).read_text() == text
    assert [path.name for path in tmp_path.iterdir()] == [pinned.LOCK_FILE]
    pinned.write_lock(tmp_path, {})
    assert pinned.read_lock(tmp_path) == {}
    assert list(tmp_path.iterdir()) == []


def test_the_sum_of_several_files_is_that_of_sha256sum() -> None:
    listed = f"{FILES['a.yaml']}  a.yaml\n{FILES['b/c d.yaml']}  b/c d.yaml\n"
    assert pinned.digest_of(FILES) == hashlib.sha256(listed.encode()).hexdigest()


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ("perfflow-lock: 1", "perfflow-lock: 2", "has version 2, but this perfflow supports version 1"),
        ("perfflow-lock: 1", "", "perfflow-lock"),
        ("items:", "items: [", "perfflow.lock:"),
        ("items:", "<<<<<<< HEAD\nitems:", "perfflow.lock:"),
        ("kind: tag", "kind: lightweight", "perfflow.lock:7:"),
        ('"1111', '"11', "perfflow.lock:6:"),
        ("kind: tag", "kind: tag\n    kind: tag", "duplicate key 'kind'"),
        ('path: "a.yaml"', 'path: "b.yaml"', "its file b.yaml is not among `files`"),
        ('path: "a.yaml"', 'path: "../a.yaml"', "'..' cannot be a part of its path"),
        ('"b/c d.yaml"', '"/etc/passwd"', "cannot be a part of its path"),
        ('"a.yaml": "c', '"a.yaml": "d', "`sha256` does not match the checksums"),
        (NAME, "git+https://example.org/acme/perf@-v1#a.yaml", "is not a revision"),
        (NAME, "acme/perf/a@v1", "must be written as git+https://github.com/acme/perf@v1#a"),
    ],
)
def test_a_damaged_lock_is_refused(old: str, new: str, said: str, tmp_path: Path) -> None:
    pinned.write_lock(tmp_path, {NAME: pin()})
    path = tmp_path / pinned.LOCK_FILE
    text = path.read_text()
    assert old in text
    path.write_text(text.replace(old, new, 1))
    with pytest.raises(UserError) as raised:
        pinned.read_lock(tmp_path)
    assert said in str(raised.value)
    assert raised.value.problems[-1].hint
    assert raised.value.exit == 2


def test_a_lock_that_is_no_file_of_the_project_is_refused(tmp_path: Path) -> None:
    (tmp_path / "root").mkdir()
    (tmp_path / "secret").write_text("token\n")
    (tmp_path / "root" / pinned.LOCK_FILE).symlink_to(tmp_path / "secret")
    with pytest.raises(UserError) as raised:
        pinned.read_lock(tmp_path / "root")
    assert "token" not in str(raised.value)
