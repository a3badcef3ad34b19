"""git as a program: the environment it gets, the settings that keep it from the user's files, and its errors.

Everything goes through plumbing with explicit paths. What a hook exported (``GIT_DIR``, ``GIT_INDEX_FILE`` and their
kind) is dropped, so that perfflow works the same inside a hook; the user's configuration and filters stay.
"""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import tempfile
import time
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import field, replace
from pathlib import Path
from typing import IO

from perfflow.machine.program_path import outside
from perfflow.model.errors import Exit, UserError
from perfflow.model.later import dataclass

LOCAL = frozenset(
    [
        "GIT_DIR",
        "GIT_WORK_TREE",
        "GIT_IMPLICIT_WORK_TREE",
        "GIT_COMMON_DIR",
        "GIT_INDEX_FILE",
        "GIT_INDEX_VERSION",
        "GIT_PREFIX",
        "GIT_OBJECT_DIRECTORY",
        "GIT_ALTERNATE_OBJECT_DIRECTORIES",
        "GIT_QUARANTINE_PATH",
        "GIT_GRAFT_FILE",
        "GIT_SHALLOW_FILE",
        "GIT_REPLACE_REF_BASE",
        "GIT_NO_REPLACE_OBJECTS",
        "GIT_NAMESPACE",
        "GIT_INTERNAL_SUPER_PREFIX",
        "GIT_CONFIG",
        "GIT_LITERAL_PATHSPECS",
        "GIT_GLOB_PATHSPECS",
        "GIT_NOGLOB_PATHSPECS",
        "GIT_ICASE_PATHSPECS",
        "GIT_EXTERNAL_DIFF",
        "GIT_DIFF_OPTS",
        "GIT_AUTHOR_DATE",
        "GIT_COMMITTER_DATE",
        "GIT_ATTR_SOURCE",
        "GIT_DEFAULT_HASH",
        "GIT_REFLOG_ACTION",
        "GIT_SPLIT_INDEX",
        "GIT_TEST_SPLIT_INDEX",
    ]
)
"""Variables that tie git to one repository or one command; a child in another tree must not see them."""

_SETTINGS = {
    # Nothing of the user's runs or is written: hooks (also post-index-change), daemons, upkeep, shared index files.
    "core.hooksPath": os.devnull,
    "core.fsmonitor": "false",
    "core.untrackedCache": "false",
    "core.splitIndex": "false",
    "gc.auto": "0",
    "maintenance.auto": "false",
    # A change is seen whatever the user trades for speed in his own tree.
    "core.trustctime": "true",
    "core.checkStat": "default",
    "core.ignoreStat": "false",
    # A slot holds the whole tree, and only that.
    "core.sparseCheckout": "false",
    "index.sparse": "false",
    "submodule.recurse": "false",
    "core.safecrlf": "false",
    # Thousands of objects with one flush instead of one each.
    "core.fsyncMethod": "batch",
    "i18n.commitEncoding": "UTF-8",
}
_LOOKING = {
    # A repository that is made of tracked files has the settings that somebody wrote into it.
    "safe.bareRepository": "explicit",
    "core.attributesFile": os.devnull,
    "core.pager": "cat",
    "log.showSignature": "false",
}
_NO_TRANSPORT = {
    # What a partial clone lacks is fetched by the programs that its configuration names.
    "GIT_NO_LAZY_FETCH": "1",
    "GIT_ALLOW_PROTOCOL": "none",
}
_PATIENCE = 3.0
"""Seconds for one command of git while nothing but looking was asked for."""
_BOUNDED = 'ulimit -f "$0" 2>/dev/null; exec "$@"'
"""A shell that starts git with a limit of the size of files, in blocks of 512 bytes. A lower limit stays."""
_BLOCK = 512
_NO_SPACE = ("No space left on device", "Disk quota exceeded", "unable to write file")
"""The last is what git says of a file it was checking out, whatever the system's own word was."""


@dataclass(frozen=True)
class Done:
    """How a git command ended. ``too_large``: it failed since a file, or what it printed, passed the limit."""

    status: int
    stdout: bytes
    stderr: str
    too_large: bool = False


@dataclass(frozen=True)
class Git:
    """git that works in ``folder`` with ``variables`` on top of a clean environment.

    ``limit``: seconds after which a command counts as failed, None for any time. ``largest``: bytes that a file which
    git writes may have, and what it prints; None for any size.
    """

    folder: Path
    variables: Mapping[str, str] = field(default_factory=dict)
    settings: Mapping[str, str] = field(default_factory=dict)
    holds: tuple[int, ...] = ()
    """Locked files that stay locked until git ends, also where perfflow is killed before it."""
    program: str = "git"
    limit: float | None = None
    alone: bool = False
    """Whether git has no terminal to ask at, and what it starts ends with it."""
    largest: int | None = None

    def attempt(self, *arguments: str, input: bytes = b"") -> Done:
        """Run one command and return how it ended. Raises UserError where git is missing or the disk is full."""
        chosen = [f"{key}={value}" for key, value in {**_SETTINGS, **self.settings}.items()]
        argv = [self.program, *(word for pair in chosen for word in ("-c", pair)), *arguments]
        began = time.time()
        try:
            done = self._ended(argv, input)
        except subprocess.TimeoutExpired:
            return Done(1, b"", f"fatal: git {arguments[0]} took more than {self.limit:g} s")
        except FileNotFoundError as error:
            if not self.folder.is_dir():
                raise UserError.of(f"{self.folder}: no such folder") from error
            raise UserError.of("git is not on PATH", "install git", Exit.UNMEASURED) from error
        stderr = done.stderr.decode(errors="replace").strip()
        too_large = self._is_too_large(done.returncode)
        if done.returncode and not too_large and any(sign in stderr for sign in _NO_SPACE):
            store = self.variables.get("GIT_OBJECT_DIRECTORY")
            if store:
                _drop_half_written(Path(store), began)
            raise full(store or str(self.folder))
        return Done(done.returncode, done.stdout, stderr, too_large)

    def _ended(self, argv: Sequence[str], input: bytes) -> subprocess.CompletedProcess[bytes]:
        if self.largest is None:
            return _ended(self._started(argv, subprocess.PIPE), argv, input, self.limit, group=self.alone)
        # What a pipe holds has no size: a listing of a few kilobytes of objects may be endless.
        with tempfile.TemporaryFile() as output:
            bounded = ["/bin/sh", "-c", _BOUNDED, str(self.largest // _BLOCK), *argv]
            done = _ended(self._started(bounded, output), argv, input, self.limit, group=self.alone)
            output.seek(0)
            done.stdout = output.read()
        return done

    def _is_too_large(self, status: int) -> bool:
        """Whether a command failed since git, or a program that it started, wrote more than ``largest``."""
        if self.largest is None or not status:
            return False
        # git does not say by which signal a program of its own ended, but that one leaves its file behind.
        left = half_written(self.folder / "objects")
        return status == -signal.SIGXFSZ or any(path.stat().st_size >= self.largest for path in left)

    def _started(self, argv: Sequence[str], stdout: IO[bytes] | int) -> subprocess.Popen[bytes]:
        pipe = subprocess.PIPE
        return subprocess.Popen(
            argv,
            cwd=self.folder,
            env=self._environment(),
            stdin=pipe,
            stdout=stdout,
            stderr=pipe,
            pass_fds=self.holds,
            start_new_session=self.alone,
        )

    def run(self, *arguments: str, input: bytes = b"", what: str = "") -> bytes:
        """Run one command that must succeed, and return its output.

        Raises UserError with what git said; ``what`` says what was being done.
        """
        done = self.attempt(*arguments, input=input)
        if done.status:
            said = _shown(done.stderr) or f"git {arguments[0]} ended with status {done.status}"
            raise UserError.of(f"{what or 'git ' + arguments[0]}: {said}", _remedy(done.stderr), Exit.UNMEASURED)
        return done.stdout

    def line(self, *arguments: str, what: str = "") -> str:
        """Run one command whose output is one line, such as an object's id."""
        return os.fsdecode(self.run(*arguments, what=what)).removesuffix("\n")

    def with_variables(self, **more: str) -> Git:
        """Return the same git with further environment variables."""
        return replace(self, variables={**self.variables, **more})

    def _environment(self) -> dict[str, str]:
        kept = {name: value for name, value in os.environ.items() if name not in LOCAL}
        fixed = {"LC_ALL": "C", "GIT_OPTIONAL_LOCKS": "0", "GIT_TERMINAL_PROMPT": "0"}
        return {**kept, **fixed, **self.variables}


def _ended(
    process: subprocess.Popen[bytes], argv: Sequence[str], input: bytes, limit: float | None, *, group: bool
) -> subprocess.CompletedProcess[bytes]:
    """Wait for a process; one that takes too long, or is not waited for, is killed, and its ``group`` with it."""
    with process:
        try:
            stdout, stderr = process.communicate(input, limit)
        except BaseException:
            if group:
                with suppress(ProcessLookupError):
                    os.killpg(process.pid, signal.SIGKILL)
            process.kill()
            raise
        return subprocess.CompletedProcess(argv, process.returncode, stdout, stderr)


def looking(root: Path) -> Git:
    """Return a git for the working tree at ``root`` that starts nothing which its configuration or its folders hold.

    Raises UserError where git is only to be found inside of it.
    """
    path = outside(os.environ.get("PATH", os.defpath), root)
    program = shutil.which("git", path=path)
    if program is None:
        raise UserError.of("git is not on PATH", "install git", Exit.UNMEASURED)
    # Where .git is no repository, none above it is meant, and the files of this one stay those of the project.
    held = {"GIT_CEILING_DIRECTORIES": str(root.parent), "GIT_WORK_TREE": str(root), "PATH": path}
    return Git(root, {**_NO_TRANSPORT, **held}, _LOOKING, program=program, limit=_PATIENCE)


def without_filters(git: Git) -> Git:
    """Return the same git, which compares files as they lie on disk. Raises UserError where it cannot be told how."""
    done = git.attempt("config", "--null", "--name-only", "--get-regexp", "^filter[.]")
    off = {}
    for name in names(done.stdout) if done.status == 0 else []:
        if "=" in name or "\n" in name:
            raise UserError.of(f"a filter is called {name!r}", "give it another name in git's configuration")
        # An empty process stands for none, and an empty command is the command that changes nothing.
        off[name] = "false" if name.endswith(".required") else ""
        off[f"{name.rpartition('.')[0]}.process"] = ""
    return replace(git, settings={**git.settings, **off})


def half_written(store: Path) -> list[Path]:
    """Files and folders in which git was writing objects; it leaves them where it fails or is killed."""
    return [*store.glob("tmp_*"), *store.glob("??/tmp_*"), *store.glob("pack/tmp_*")]


def _drop_half_written(store: Path, since: float) -> None:
    """Remove what a command left that began at ``since``: on a full disk it would keep the disk full."""
    for place in half_written(store):
        # Clocks of files run a few milliseconds behind.
        with suppress(OSError):
            if place.lstat().st_mtime < since - 1:
                continue
            if place.is_dir():
                shutil.rmtree(place)
            else:
                place.unlink()


def full(where: str) -> UserError:
    """The error for a disk on which nothing more can be written."""
    hint = "free some space, or put the cache on another disk with XDG_CACHE_HOME; the project was not touched"
    return UserError.of(f"no space left on the disk of {where}", hint, Exit.UNMEASURED)


def names(output: bytes) -> list[str]:
    """Split NUL-terminated output into names; bytes that are not UTF-8 become surrogates, as os.fsdecode makes them."""
    return [os.fsdecode(name) for name in output.split(b"\0") if name]


def lines(items: Iterable[str]) -> bytes:
    """Join names for a command that reads ``-z`` input: each followed by NUL."""
    return b"".join(os.fsencode(item) + b"\0" for item in items)


def _shown(stderr: str) -> str:
    """The first errors git printed, without the words everyone knows."""
    said = [line for line in stderr.splitlines() if line.startswith(("error: ", "fatal: "))] or stderr.splitlines()
    return "; ".join(line.split(": ", 1)[-1] if line.startswith(("error: ", "fatal: ")) else line for line in said[:3])


def _remedy(stderr: str) -> str:
    """What to do about an error that git words without a remedy."""
    if "dubious ownership" in stderr:
        return "git refuses a repository of another user: git config --global --add safe.directory FOLDER"
    if "Permission denied" in stderr:
        return "make the file readable, or add it to .gitignore"
    return ""
