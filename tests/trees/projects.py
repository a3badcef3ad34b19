"""Real git repositories for tests, and a fingerprint of their contents."""

from __future__ import annotations

import hashlib
import os
import stat
import subprocess
from collections.abc import Iterator, Mapping
from pathlib import Path

ENV = {
    **{name: value for name, value in os.environ.items() if not name.startswith("GIT_")},
    "GIT_CONFIG_NOSYSTEM": "1",
    "GIT_AUTHOR_NAME": "A",
    "GIT_AUTHOR_EMAIL": "a@example.org",
    "GIT_COMMITTER_NAME": "A",
    "GIT_COMMITTER_EMAIL": "a@example.org",
    "GIT_ALLOW_PROTOCOL": "file",
}


def git(root: Path, *arguments: str, status: int = 0) -> str:
    """Run the user's git; its exit status must be ``status``."""
    done = subprocess.run(["git", *arguments], cwd=root, check=False, capture_output=True, env=ENV)
    assert done.returncode == status, done.stderr.decode()
    return os.fsdecode(done.stdout).removesuffix("\n")


def write(root: Path, files: Mapping[str, str | bytes], *, executable: bool = False) -> None:
    """Write files, with the folders above them."""
    for name, text in files.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(text if isinstance(text, bytes) else text.encode())
        if executable:
            path.chmod(0o755)


def make(root: Path, *options: str, **files: str) -> Path:
    """A repository with one commit; the names of ``files`` have _ for a dot."""
    root.mkdir(parents=True, exist_ok=True)
    git(root, "init", "-q", "-b", "main", *options)
    named = {"a_txt": "one\ntwo\n", "src_py": "x = 1\n"} | files
    commit(root, "one", {name.replace("_", "."): text for name, text in named.items()})
    return root


def commit(root: Path, message: str, files: Mapping[str, str | bytes] | None = None) -> str:
    """Commit everything, also what these files now contain; return the revision."""
    write(root, files or {})
    git(root, "add", "-A")
    git(root, "commit", "-qm", message)
    return git(root, "rev-parse", "HEAD")


def add_submodule(outer: Path, source: Path, name: str) -> None:
    git(outer, "-c", "protocol.file.allow=always", "submodule", "add", "-q", str(source), name)
    commit(outer, "a submodule")


def fingerprint(*roots: Path) -> dict[str, tuple[object, ...]]:
    """Return the bytes, modes, times and link targets of everything in the folders, including .git.

    Left out: times of access, which reading changes, and the times of two kinds of files that git itself moves forward
    whenever it meets them again, so that they are not taken for unused and pruned: objects and ``sharedindex``. The
    times of the folders around them are in, so a file that came, went or was replaced is seen.
    """
    return {str(path): _facts(path) for root in roots for path in (root, *_below(root))}


def _below(folder: Path) -> Iterator[Path]:
    with os.scandir(folder) as entries:
        for entry in entries:
            yield Path(entry.path)
            if entry.is_dir(follow_symlinks=False):
                yield from _below(Path(entry.path))


def _facts(path: Path) -> tuple[object, ...]:
    facts = path.lstat()
    kept_young = path.name.startswith("sharedindex.") or ("objects" in path.parts and ".git" in path.parts)
    time = 0 if kept_young and stat.S_ISREG(facts.st_mode) else facts.st_mtime_ns
    content = b""
    if stat.S_ISREG(facts.st_mode):
        content = hashlib.sha256(path.read_bytes()).digest()
    elif stat.S_ISLNK(facts.st_mode):
        content = os.fsencode(path.readlink())
    return facts.st_mode, facts.st_ino, facts.st_size, time, content


def content(folder: Path, *leave_out: str) -> dict[str, tuple[object, ...]]:
    """Return path → (kind, exec bit, bytes) of every file below a folder, without .git and the named paths."""
    found: dict[str, tuple[object, ...]] = {}
    for path in _below(folder):
        name = str(path.relative_to(folder))
        top = Path(name).parts
        if ".git" in top or top[0] in leave_out or (path.is_dir() and not path.is_symlink()):
            continue
        if path.is_symlink():
            found[name] = ("link", os.fsencode(path.readlink()))
        elif path.is_file():
            found[name] = ("file", bool(path.stat().st_mode & 0o100), path.read_bytes())
    return found
