"""References to files in git repositories: ``git+https://HOST/OWNER/REPO@REV#PATH``, or ``OWNER/REPO/PATH@REV``.

References are used in arguments of git and in names of folders, so few characters are allowed.
"""

from __future__ import annotations

import re
from collections.abc import Container, Sequence
from dataclasses import dataclass
from pathlib import PurePosixPath

from perfflow.model.errors import UserError

LOCK = "perfflow.lock"
"""The file of a project that pins references."""
GIT = "git+"
SUFFIXES = ("", ".yaml", ".yml")
"""The endings that a path without a suffix may get."""
ENTRY = "workflow.yaml"
"""The file that a reference to a folder means."""
TRANSPORTS = ("https", "ssh", "file")
_LONG = re.compile(
    r"git\+(?P<transport>[a-z]+)://(?P<host>[^/@]*@?[^/@]*)(?P<folder>/[^@#]+)@(?P<rev>[^#]*)#(?P<path>.*)"
)
_SHORT = re.compile(r"(?P<owner>[^/@#:]+)/(?P<repo>[^/@#:]+)/(?P<path>[^@#:]+)@(?P<rev>[^@#]+)")
_HOST = re.compile(r"(?:[A-Za-z0-9_][A-Za-z0-9_.-]*@)?[A-Za-z0-9][A-Za-z0-9._-]*(?::[0-9]{1,5})?")
_REVISION = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.+/-]*")
_FORM = "write git+https://HOST/OWNER/REPO@REV#PATH, git+ssh://..., git+file:///FOLDER@REV#PATH or OWNER/REPO/PATH@REV"
_LONGEST = 1000
_USER = re.compile(r"((?:git\+)?(?:[a-z]+://)?)([^/@]*)@.*")


@dataclass(frozen=True)
class Reference:
    """A file of a repository at a revision. ``url``: for git. ``path``: from the top of the repository."""

    url: str
    revision: str
    path: str

    def __str__(self) -> str:
        return f"{GIT}{self.url}@{self.revision}#{self.path}"

    def entry(self, paths: Container[str]) -> str | None:
        """Return the file that the reference names, of all ``paths`` of the repository; None if there is none."""
        names = (*(f"{self.path}{suffix}" for suffix in SUFFIXES), f"{self.path}/{ENTRY}")
        return next((name for name in names if name in paths), None)

    @property
    def folder(self) -> PurePosixPath:
        """The folder of its copies below the folder of vendored files: ``HOST/OWNER/REPO@REV``."""
        transport, _, place = self.url.partition("://")
        host, _, inside = place.partition("/")
        return PurePosixPath(host.rpartition("@")[2].replace(":", "-") or transport, f"{inside}@{self.revision}")


def names_one(text: str) -> bool:
    """Return whether a text has the form of a reference, which may be invalid."""
    # A text with the suffix of a workflow file is a file of the project, not OWNER/REPO/PATH@REV.
    return text.startswith(GIT) or (
        "@" in text and not text.endswith((".yaml", ".yml")) and _SHORT.fullmatch(text) is not None and text[0] != "."
    )


def read(text: str) -> Reference:
    """Parse a reference. Raises UserError if it is invalid, or if git could misinterpret it."""
    shown = without_token(text)
    if len(text) > _LONGEST or not text.isprintable() or not (text.startswith(GIT) or _SHORT.fullmatch(text)):
        raise UserError.of(f"{shown[:80]!r} is not a reference to a file in git", _FORM)
    short = None if text.startswith(GIT) else _SHORT.fullmatch(text)
    if short:
        for word in (short["owner"], short["repo"]):
            _require_names(shown, word.split("/"))
        reference = Reference(f"https://github.com/{short['owner']}/{short['repo']}", short["rev"], short["path"])
    else:
        reference = _long(text, shown)
    revision = reference.revision
    odd = any(part in revision for part in ("..", "//", "/.")) or revision.endswith((".lock", "/", "."))
    if odd or not _REVISION.fullmatch(revision):
        hint = "name a tag, a branch, or a full commit hash"
        raise UserError.of(f"{shown}: {revision!r} is not a revision", hint)
    require_path(reference.path, shown)
    return reference


def without_token(text: str) -> str:
    """Return a text for messages without the user and the token before a host; the user of ssh stays."""
    found = _USER.fullmatch(text)
    if not found or (found[1] == f"{GIT}ssh://" and ":" not in found[2]):
        return text
    return f"{found[1]}***{text[found.end(2) :]}"


def _long(text: str, shown: str) -> Reference:
    transport = text.removeprefix(GIT).partition(":")[0]
    if transport not in TRANSPORTS:
        known = ", ".join(f"{GIT}{name}://" for name in TRANSPORTS)
        raise UserError.of(f"{shown}: git may not be used over {transport!r}", f"use {known}")
    match = _LONG.fullmatch(text)
    if not match:
        raise UserError.of(f"{shown} does not name a repository, a revision and a path", _FORM)
    host, folder = match["host"], match["folder"]
    if transport == "file" and host:
        raise UserError.of(f"{shown}: a file has no host", "write git+file:///FOLDER@REV#PATH, with three slashes")
    if transport != "file" and not _HOST.fullmatch(host):
        raise UserError.of(f"{shown}: {without_token(host)!r} is not a host", _FORM)
    if transport == "https" and "@" in host:
        hint = "leave it out: git uses your credential helper, and the reference is stored in perfflow.lock"
        raise UserError.of(f"{shown}: a reference must not contain a user or a token", hint)
    _require_names(shown, folder.strip("/").split("/"))
    return Reference(f"{transport}://{host}{folder.rstrip('/')}", match["rev"], match["path"])


def require_path(path: str, said: str) -> None:
    """Raise UserError for a path that may leave its folder or look like an option. ``said`` starts the message."""
    if not path:
        raise UserError.of(f"{said} names no file", "add a path: #workflows/NAME.yaml")
    _require_names(said, path.split("/"))


def _require_names(said: str, names: Sequence[str]) -> None:
    for name in names:
        if name in ("", ".", "..") or name.startswith("-") or name.lower() == ".git" or set(name) & set("\\?*[]"):
            hint = "no empty part, no `..`, no leading `-`, no .git, and none of \\ ? * [ ]"
            raise UserError.of(f"{said}: {name!r} cannot be a part of its path", hint)
        if not name.isprintable():
            raise UserError.of(f"{said}: {name!r} contains unprintable characters", "rename the file")
