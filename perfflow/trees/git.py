"""Run git: its environment, the settings that protect the user's files, and its errors.

All calls use plumbing commands with explicit paths. Variables that a hook exports (``GIT_DIR``, ``GIT_INDEX_FILE`` and
similar) are dropped, so that perfflow works the same inside a hook. The user's configuration and filters still apply.
``remove_tree`` removes folders, whatever permissions a build or a test set inside them.
"""

from __future__ import annotations

import os
import shutil
import signal
import stat
import subprocess
import tempfile
import time
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import IO

from perfflow.machine.facts import outside
from perfflow.model.errors import Exit, UserError

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
    # Run and write nothing of the user's: no hooks (also post-index-change), daemons, maintenance, shared index files.
    "core.hooksPath": os.devnull,
    "core.fsmonitor": "false",
    "core.untrackedCache": "false",
    "core.splitIndex": "false",
    "gc.auto": "0",
    "maintenance.auto": "false",
    # Detect every change, even if the user's settings skip some checks for speed.
    "core.trustctime": "true",
    "core.checkStat": "default",
    "core.ignoreStat": "false",
    # A slot contains exactly the whole tree.
    "core.sparseCheckout": "false",
    "index.sparse": "false",
    "submodule.recurse": "false",
    "core.safecrlf": "false",
    # One flush for thousands of objects, not one for each.
    "core.fsyncMethod": "batch",
    "i18n.commitEncoding": "UTF-8",
}
_LOOKING = {
    # A bare repository among the tracked files is untrusted, including its settings.
    "safe.bareRepository": "explicit",
    "core.attributesFile": os.devnull,
    "core.pager": "cat",
    "log.showSignature": "false",
}
_NO_TRANSPORT = {
    # A partial clone would fetch missing objects with programs that its configuration names.
    "GIT_NO_LAZY_FETCH": "1",
    "GIT_ALLOW_PROTOCOL": "none",
}
_READ_TIMEOUT = 3.0
"""Longest time (s) of one git command for ``inspecting``."""
_BOUNDED = 'ulimit -f "$0" 2>/dev/null; exec "$@"'
"""Shell command that starts git with a limit on the size of files, in blocks of 512 bytes. A lower limit stays."""
_BLOCK = 512
_MISSING = ("from promisor remote", "unable to read sha1 file", "missing blob object")
"""What git prints if the repository lacks the contents of a file and cannot fetch them."""
_NO_SPACE = ("No space left on device", "Disk quota exceeded", "unable to write file")
"""git prints the last text for a file that it could not check out, whatever the system's own message was."""


@dataclass(frozen=True)
class Done:
    """The result of a git command. ``too_large``: it failed because a file or its output exceeded the limit."""

    status: int
    stdout: bytes
    stderr: str
    too_large: bool = False


@dataclass(frozen=True)
class Git:
    """git that works in ``folder`` with ``variables`` on top of a clean environment.

    ``limit``: seconds after which a command counts as failed, None for no limit. ``largest``: most bytes of a file that
    git writes, and of its output; None for no limit.
    """

    folder: Path
    variables: Mapping[str, str] = field(default_factory=dict)
    settings: Mapping[str, str] = field(default_factory=dict)
    holds: tuple[int, ...] = ()
    """Descriptors of lock files that stay locked until git ends, also if perfflow is killed before."""
    program: str = "git"
    limit: float | None = None
    alone: bool = False
    """Whether git has no terminal for questions, and its child processes are killed with it."""
    largest: int | None = None

    def attempt(self, *arguments: str, input: bytes = b"") -> Done:
        """Run one command and return its result. Raises UserError if git is missing or the disk is full."""
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
        # The size limit does not apply to a pipe, and a few kilobytes of objects may give an endless listing.
        with tempfile.TemporaryFile() as output:
            bounded = ["/bin/sh", "-c", _BOUNDED, str(self.largest // _BLOCK), *argv]
            done = _ended(self._started(bounded, output), argv, input, self.limit, group=self.alone)
            output.seek(0)
            done.stdout = output.read()
        return done

    def _is_too_large(self, status: int) -> bool:
        """Return whether a command failed because git, or its child process, wrote more than ``largest``."""
        if self.largest is None or not status:
            return False
        # git does not report the signal that ended its child process, but that process leaves its file behind.
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

        ``what``: the action, for the message. Raises UserError with git's own error.
        """
        done = self.attempt(*arguments, input=input)
        if done.status:
            message = _shown(done.stderr) or f"git {arguments[0]} exited with status {done.status}"
            if any(sign in done.stderr for sign in _MISSING):
                # In the text and not in the hint, since the reason of a step is the text alone.
                message = (
                    f"this clone lacks contents of files (a partial clone): run git fetch --refetch REMOTE; {message}"
                )
            raise UserError.of(f"{what or 'git ' + arguments[0]}: {message}", _remedy(done.stderr), Exit.UNMEASURED)
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
    """Wait for a process. On a timeout or an interrupt, kill it, and with ``group`` its process group."""
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


def inspecting(root: Path) -> Git:
    """Return git for the working tree at ``root`` that starts no program named in its configuration or inside it.

    Raises UserError if git exists only inside the working tree.
    """
    path = outside(os.environ.get("PATH", os.defpath), root)
    program = shutil.which("git", path=path)
    if program is None:
        raise UserError.of("git is not on PATH", "install git", Exit.UNMEASURED)
    # If .git is not a repository, do not use one above it, and keep this folder as the working tree.
    held = {"GIT_CEILING_DIRECTORIES": str(root.parent), "GIT_WORK_TREE": str(root), "PATH": path}
    return Git(root, {**_NO_TRANSPORT, **held}, _LOOKING, program=program, limit=_READ_TIMEOUT)


def without_filters(git: Git) -> Git:
    """Return the same git without filters, which compares files as on disk. Raises UserError for an unusable name."""
    done = git.attempt("config", "--null", "--name-only", "--get-regexp", "^filter[.]")
    off = {}
    for name in names(done.stdout) if done.status == 0 else []:
        if "=" in name or "\n" in name:
            raise UserError.of(f"cannot disable the git filter {name!r}", "rename it in git's configuration")
        # An empty `process` means none, and an empty command changes nothing.
        off[name] = "false" if name.endswith(".required") else ""
        off[f"{name.rpartition('.')[0]}.process"] = ""
    return replace(git, settings={**git.settings, **off})


def half_written(store: Path) -> list[Path]:
    """Return git's temporary files and folders of objects, which it leaves behind if it fails or is killed."""
    return [*store.glob("tmp_*"), *store.glob("??/tmp_*"), *store.glob("pack/tmp_*")]


def _drop_half_written(store: Path, since: float) -> None:
    """Remove temporary files of a command that began at ``since``, because they would keep the disk full."""
    for place in half_written(store):
        # File times are a few milliseconds behind the clock.
        with suppress(OSError):
            if place.lstat().st_mtime < since - 1:
                continue
            if place.is_dir():
                shutil.rmtree(place)
            else:
                place.unlink()


def full(where: str) -> UserError:
    """Return the error for a full disk."""
    hint = "free some space, or put the cache on another disk with XDG_CACHE_HOME; the project was not changed"
    return UserError.of(f"no space left on the disk of {where}", hint, Exit.UNMEASURED)


def names(output: bytes) -> list[str]:
    """Split NUL-terminated output into names; bytes that are not UTF-8 become surrogates, as in os.fsdecode."""
    return [os.fsdecode(name) for name in output.split(b"\0") if name]


def lines(items: Iterable[str]) -> bytes:
    """Join names for a command that reads ``-z`` input, each followed by NUL."""
    return b"".join(os.fsencode(item) + b"\0" for item in items)


def _shown(stderr: str) -> str:
    """Return the first three errors that git printed, without ``error:`` and ``fatal:``."""
    said = [line for line in stderr.splitlines() if line.startswith(("error: ", "fatal: "))] or stderr.splitlines()
    return "; ".join(line.split(": ", 1)[-1] if line.startswith(("error: ", "fatal: ")) else line for line in said[:3])


def _remedy(stderr: str) -> str:
    """Return a hint for errors that git reports without one."""
    if "dubious ownership" in stderr:
        return "git refuses a repository of another user; run git config --global --add safe.directory FOLDER"
    if "Permission denied" in stderr:
        return "make the file readable, or add it to .gitignore"
    return ""


def make_writable(folder: Path) -> None:
    """Restore the owner's permissions of all folders, so that they can be emptied."""
    for path, inner, _ in os.walk(folder):
        for name in inner:
            place = Path(path, name)
            if not place.is_symlink():
                place.chmod(stat.S_IMODE(place.stat().st_mode) | stat.S_IRWXU)


def remove_tree(folder: Path) -> None:
    """Remove a folder with its contents. Raises OSError."""
    make_writable(folder)
    shutil.rmtree(folder)
