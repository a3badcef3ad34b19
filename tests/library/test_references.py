"""References to files in git repositories, and texts rejected before git gets them."""

from __future__ import annotations

import pytest

from perfflow.library import references
from perfflow.model.errors import UserError


@pytest.mark.parametrize(
    ("text", "url", "revision", "path", "folder"),
    [
        (
            "git+https://example.org/acme/perf@v1.2#workflows/a.yaml",
            "https://example.org/acme/perf",
            "v1.2",
            "workflows/a.yaml",
            "example.org/acme/perf@v1.2",
        ),
        (
            "git+ssh://git@example.org:2222/acme/perf.git@feature/x#a",
            "ssh://git@example.org:2222/acme/perf.git",
            "feature/x",
            "a",
            "example.org-2222/acme/perf.git@feature/x",
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


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("git+ext::sh -c id@v1#a", "may not be used over 'ext'"),
        ("git+http://example.org/o/r@v1#a", "may not be used over 'http'"),
        ("git+https://example.org/o/r#a", "does not name a repository, a revision and a path"),
        ("git+https://example.org/o/r@v1", "does not name a repository, a revision and a path"),
        ("git+https://example.org/o/r@v1#", "names no file"),
        ("git+https://example.org/o/r@#a", "'' is not a revision"),
        ("git+https://example.org/o/r@--upload-pack=x#a", "is not a revision"),
        ("git+https://example.org/o/r@a..b#a", "is not a revision"),
        ("git+https://example.org/o/r@v1:refs/heads/x#a", "is not a revision"),
        ("git+https://example.org/o/r@v1^{/x}#a", "is not a revision"),
        ("git+https://example.org/o/r@v1#../a", "'..' cannot be a part of its path"),
        ("git+https://example.org/o/r@v1#a//b", "'' cannot be a part of its path"),
        ("git+https://example.org/o/r@v1#/etc/passwd", "'' cannot be a part of its path"),
        ("git+https://example.org/o/r@v1#-a", "'-a' cannot be a part of its path"),
        ("git+https://example.org/o/r@v1#.GIT/config", "'.GIT' cannot be a part of its path"),
        ("git+https://example.org/o/../r@v1#a", "'..' cannot be a part of its path"),
        ("git+https://-oProxyCommand=x/o/r@v1#a", "is not a host"),
        ("git+ssh://-oProxyCommand=x/o/r@v1#a", "is not a host"),
        ("git+ssh://-x@host/o/r@v1#a", "is not a host"),
        ("git+https://user:token@example.org/o/r@v1#a", "is not a host"),
        ("git+https://user@example.org/o/r@v1#a", "a reference must not contain a user or a token"),
        ("git+file://host/o/r@v1#a", "a file has no host"),
        ("git+https://example.org/o/r@v1#a\nb", "is not a reference"),
        ("git+https://example.org/o/r@v1#\u202ea", "is not a reference"),
        ("-o/perf/a@v1", "'-o' cannot be a part of its path"),
        ("acme/perf/../../a@v1", "'..' cannot be a part of its path"),
        ("git+https://example.org/" + "a" * 2000 + "@v1#a", "is not a reference"),
    ],
)
def test_what_git_could_take_for_something_else_is_refused(text: str, message: str) -> None:
    assert references.names_one(text)
    with pytest.raises(UserError) as raised:
        references.read(text)
    (problem,) = raised.value.problems
    assert message in problem.message
    assert problem.hint
    assert raised.value.exit == 2
