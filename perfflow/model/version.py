"""The version of perfflow, and the commit that it was built from; packages are built with it.

Reading the version from the installed metadata instead would take as long as all else that ``--version`` does.
"""

from __future__ import annotations

import os.path

VERSION = "0.1.0"
DISTRIBUTION = "perfflow-cli"
COMMIT = "commit.txt"
"""A file in the folder of built packages, which names the commit."""
LETTERS = 7
"""Of a commit that is shown."""
_MARK = f'name = "{DISTRIBUTION}"'


def described() -> str:
    """``0.1.0 (abc1234)``: the version and the commit, or the version alone where the commit is not known.

    A package knows its commit from its build, ``abc1234+dirty`` where files were changed; a clone from ``.git``. No
    program is started. Changes in a clone are not looked for, since that would take git longer than all else.
    """
    package = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
    root = os.path.dirname(package)
    commit = _read(os.path.join(package, COMMIT)) or checked_out(root)[:LETTERS]
    return f"{VERSION} ({commit})" if commit else VERSION


def checked_out(root: str) -> str:
    """The commit that is checked out in a clone of perfflow, ``''`` in any other folder."""
    # A copy of the package in someone else's repository has nothing to do with the commits there.
    if _MARK not in _read(os.path.join(root, "pyproject.toml")):
        return ""
    git = os.path.join(root, ".git")
    # A worktree or a submodule has a file there, which names the folder.
    named = _read(git).removeprefix("gitdir: ")
    git = os.path.join(root, named) if named else git
    head = _read(os.path.join(git, "HEAD"))
    if not head.startswith("ref: "):
        return _as_commit(head)
    ref = head.removeprefix("ref: ")
    common = os.path.join(git, _read(os.path.join(git, "commondir")) or ".")
    packed = _read(os.path.join(common, "packed-refs")).splitlines()
    found = [line.split()[0] for line in packed if line.endswith(f" {ref}")]
    return _as_commit(_read(os.path.join(common, *ref.split("/"))) or (found[0] if found else ""))


def _as_commit(text: str) -> str:
    """The text where it is a full hash; other ways to store refs are not known here."""
    return text if len(text) in (40, 64) and set(text) <= set("0123456789abcdef") else ""


def _read(path: str) -> str:
    try:
        with open(path, encoding="utf-8") as stream:
            return stream.read().strip()
    except (OSError, ValueError):
        return ""
