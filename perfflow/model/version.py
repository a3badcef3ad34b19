"""The version of perfflow, and the commit that it was built from; packages are built with this version.

Reading the version from the installed metadata would double the time of ``--version``.
"""

from __future__ import annotations

import os.path

VERSION = "0.2.0"
DISTRIBUTION = "perfflow-cli"
COMMIT = "commit.txt"
"""File with the commit, in the folder of built packages."""
LETTERS = 7
"""Characters of a commit that are shown."""
_MARK = f'name = "{DISTRIBUTION}"'


def described() -> str:
    """Return the version and the commit, ``0.2.0 (abc1234)``, or the version alone if the commit is unknown.

    A package has the commit from its build, ``abc1234+dirty`` if files were changed; a clone reads it from ``.git``. No
    program is started. Changes in a clone are not detected, because git would take longer than everything else.
    """
    package = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
    root = os.path.dirname(package)
    commit = _read(os.path.join(package, COMMIT)) or checked_out(root)[:LETTERS]
    return f"{VERSION} ({commit})" if commit else VERSION


def checked_out(root: str) -> str:
    """Return the commit that is checked out in a clone of perfflow, ``''`` in any other folder."""
    # A copy of the package in another repository is unrelated to the commits there.
    if _MARK not in _read(os.path.join(root, "pyproject.toml")):
        return ""
    git = os.path.join(root, ".git")
    # In a worktree or a submodule, .git is a file that names the folder.
    named = _read(git).removeprefix("gitdir: ")
    git = os.path.join(root, named) if named else git
    head = _read(os.path.join(git, "HEAD"))
    if not head.startswith("ref: "):
        return _as_commit(head)
    ref = head.removeprefix("ref: ")
    common = os.path.join(git, _read(os.path.join(git, "commondir")) or ".")
    packed = _read(os.path.join(common, "packed-refs")).splitlines()
    commits = [line.split()[0] for line in packed if line.endswith(f" {ref}")]
    return _as_commit(_read(os.path.join(common, *ref.split("/"))) or (commits[0] if commits else ""))


def _as_commit(text: str) -> str:
    """Return the text if it is a full hash, else ''; other formats of refs are not supported."""
    return text if len(text) in (40, 64) and set(text) <= set("0123456789abcdef") else ""


def _read(path: str) -> str:
    try:
        with open(path, encoding="utf-8") as stream:
            return stream.read().strip()
    except (OSError, ValueError):
        return ""
