"""Sandboxes for the code of strangers: what their processes see, and which program of this machine keeps them in.

A sandboxed process sees the machine read-only, and an own copy of its tree, home folder and temporary folders that ends
with it. It sees neither the project, its ``.git``, the run's folder nor the other side's tree, has no network, and sees
no process but its own. All processes of one call (its ``prepare``, the program, and what converts its output) share one
sandbox, whose process 1 is a spawner of its own, so that the sandbox costs nothing that is measured.

Steps that build have the real tree instead of a copy, since the build must stay.
"""

from __future__ import annotations

import os
import pwd
import re
import subprocess
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from perfflow.execute import spawner
from perfflow.execute.child import find_program
from perfflow.model.secrets import is_secret

BUBBLEWRAP, NAMESPACES = "bubblewrap", "user namespaces"
_PACKAGES = Path(spawner.__file__).parents[2]
_INTERPRETER = (sys.executable, "-I", "-S", "-c")
_INSIDE = "import sys; sys.path.append(sys.argv[1]); from perfflow.execute import namespaces; namespaces.main()"
_OVERLAYS = (0, 11)
"""The first version of bubblewrap that can show a folder as a copy."""
_ALONE = ("--unshare-all", "--die-with-parent", "--as-pid-1", "--cap-drop", "ALL")
_TRIED = ("--ro-bind", "/", "/", "--dev", "/dev", "--proc", "/proc", "--overlay-src", "/usr", "--tmp-overlay", "/usr")
_LONGEST_TRY = 20.0
_SHARED_MEMORY = "/dev/shm"  # noqa: S108 (each sandbox has its own)
_EVERYBODYS = ("/home", "/root", "/run", "/tmp", "/var/tmp", "/var/lib/docker", "/media", "/mnt")  # noqa: S108
"""Folders with files of people, sockets of services, and what other processes left."""
_OF_TOOLCHAINS = (
    *(".rustup", ".cargo/bin", ".cargo/registry", ".cargo/git", ".cargo/config.toml", ".cargo/env"),
    *(".pyenv", ".asdf", ".local/share/mise", ".local/share/uv", ".local/bin", ".local/lib", ".nvm", ".volta"),
    *("go", "sdk", ".cache/go-build", ".sdkman", ".m2/repository", ".gradle/caches", ".gradle/wrapper", ".modular"),
    *(".ghcup", ".cabal", ".opam", ".rbenv", ".julia", ".dotnet", ".nuget/packages", ".npm/_cacache"),
)
"""Parts of a home folder with compilers, interpreters and downloaded dependencies, but no keys."""
_VARIABLES = ("RUSTUP_HOME", "GOPATH", "GOCACHE", "GOMODCACHE", "GOROOT", "JAVA_HOME", "PYENV_ROOT", "NVM_DIR")
"""Variables with folders of toolchains."""
_COMPILER_CACHES = ("sccache", "cachepot")
_SOCKETS = ("SSH_AUTH_SOCK", "DBUS_SESSION_BUS_ADDRESS", "DISPLAY", "WAYLAND_DISPLAY", "XDG_RUNTIME_DIR")


@dataclass(frozen=True)
class Sandbox:
    """What the processes of one tree see. ``keeper`` is BUBBLEWRAP or NAMESPACES; paths are absolute, without links.

    ``folders`` are the tree and what belongs to it: each process gets a copy of them, and a build the folders
    themselves. ``hidden`` are empty folders for it, ``shown`` is read-only though it is inside a hidden one.
    """

    keeper: str
    folders: tuple[Path, ...]
    hidden: tuple[Path, ...]
    shown: tuple[Path, ...]
    programs: tuple[str, ...] = ()
    """Absolute paths of programs, whose installations it sees."""

    def words(
        self,
        env: Mapping[str, str],
        writable: Iterable[Path],
        readable: Iterable[Path] = (),
        *,
        builds: bool,
        programs: Iterable[str] = (),
        command: Iterable[str] = (),
    ) -> list[str]:
        """Return the command that starts a spawner in a new sandbox, or ``command`` instead of it.

        env: the environment of its processes, whose PATH is shown. writable, readable: further folders that it sees.
        programs: those that it starts, as for ``self.programs``.
        """
        present = filter(os.path.exists, (*_interpreter(), *self._of_toolchains(env, programs)))
        own = dict.fromkeys(Path(os.path.realpath(path)) for path in present)
        hidden = [path for path in self._hidden(env) if path.is_dir()]
        words = ["--ro-bind", "/", "/", "--dev", "/dev", "--proc", "/proc", "--tmpfs", _SHARED_MEMORY]
        words += [word for path in hidden for word in ("--tmpfs", str(path))]
        # What contains a hidden folder would show it again.
        again = {path for path in own if _is_below(path, hidden) and not any(map(_below(path), hidden))}
        for path in sorted(again):
            if not _is_below(path, again - {path}):
                words += _copy(path) if path.is_dir() else _bound("--ro-bind", path)
        for path in self.folders:
            words += _bound("--bind", path) if builds else _copy(path)
        words += [word for path in (*self.shown, *readable) if path.exists() for word in _bound("--ro-bind", path)]
        words += [word for path in writable for word in _bound("--bind", path)]
        if self.keeper == BUBBLEWRAP:
            return [bubblewrap(), *_ALONE, *words, *_INTERPRETER, _INSIDE, str(_PACKAGES), "--", *command]
        return [*_INTERPRETER, _INSIDE, str(_PACKAGES), *words, "--", *command]

    def _hidden(self, env: Mapping[str, str]) -> list[Path]:
        of_user = [env.get("HOME", ""), pwd.getpwuid(os.getuid()).pw_dir, env.get("TMPDIR", "")]
        of_user += [value for name, value in env.items() if name.startswith("XDG_") and name.endswith("_HOME")]
        everybodys = [path for path in (*_EVERYBODYS, *of_user) if path.startswith("/") and path != "/"]
        # A folder comes before those in it, which would be covered otherwise.
        return sorted({*self.hidden, *(Path(os.path.realpath(path)) for path in everybodys)})

    def _of_toolchains(self, env: Mapping[str, str], programs: Iterable[str]) -> Iterator[str]:
        yield from _of_user(env)
        for program in (*self.programs, *programs):
            if program.startswith("/") and not _is_below(Path(program), self.folders):
                yield from _installation(Path(program).parent)
        for path in self.shown:
            yield from _installation(path / "bin")

    def environment(self, env: Mapping[str, str]) -> dict[str, str]:
        """Return an environment without secrets, and without what is out of reach: sockets, and caches of compilers.

        A server keeps such a cache. Cargo takes the empty value also where its settings name a wrapper.
        """
        kept = {name: value for name, value in env.items() if not is_secret(name) and name not in _SOCKETS}
        if Path(kept.get("RUSTC_WRAPPER", "")).name in ("", *_COMPILER_CACHES):
            kept["RUSTC_WRAPPER"] = ""
        return kept


def _bound(how: str, path: Path) -> list[str]:
    return [how, os.path.realpath(path), str(path)]


def _copy(path: Path) -> list[str]:
    return ["--overlay-src", str(path), "--tmp-overlay", str(path)]


def _below(folder: Path) -> Callable[[Path], bool]:
    return lambda path: path.is_relative_to(folder)


def _is_below(path: Path, folders: Iterable[Path]) -> bool:
    return any(path.is_relative_to(folder) for folder in folders)


def _interpreter() -> Iterator[str]:
    """Yield the folders that a spawner is loaded from."""
    yield from (sys.prefix, sys.base_prefix, str(_PACKAGES / "perfflow"))


def _of_user(env: Mapping[str, str]) -> Iterator[str]:
    """Yield the folders with programs and dependencies, most of them in the user's home folder."""
    home = env.get("HOME") or pwd.getpwuid(os.getuid()).pw_dir
    yield from (f"{home}/{name}" for name in _OF_TOOLCHAINS)
    yield from (env[name] for name in _VARIABLES if env.get(name, "").startswith("/"))
    if cargo := env.get("CARGO_HOME"):
        yield from (f"{cargo}/{name}" for name in ("bin", "registry", "git", "config.toml"))
    for entry in env.get("PATH", "").split(os.pathsep):
        if entry.startswith("/"):
            yield from _installation(Path(entry))


def _installation(folder: Path) -> Iterator[str]:
    """Yield the folder of PATH itself and, of a virtual environment or a version of a tool, what it belongs to."""
    yield str(folder)
    parent = folder.parent
    settings = parent / "pyvenv.cfg"
    if settings.is_file():
        yield str(parent)
        found = re.search(r"^home\s*=\s*(.+)$", settings.read_text(errors="replace"), re.MULTILINE)
        if found:
            yield str(Path(found[1].strip()).parent)
    elif folder.name == ".bin" or any((parent / name).is_dir() for name in ("lib", "libexec", "share")):
        yield str(parent)


@cache
def bubblewrap() -> str:
    """Return the path of a bubblewrap that can show folders as copies, '' if there is none."""
    program = find_program("bwrap", os.environ.get("PATH", os.defpath), Path("/"))
    if program is None:
        return ""
    try:
        done = subprocess.run([program, "--version"], capture_output=True, text=True, timeout=_LONGEST_TRY, check=False)
    except (OSError, subprocess.TimeoutExpired):
        return ""
    found = re.search(r"(\d+)\.(\d+)", done.stdout)
    return program if found and (int(found[1]), int(found[2])) >= _OVERLAYS else ""


@cache
def available() -> tuple[str, str]:
    """Return what keeps processes in on this machine, '' if nothing does, and then why.

    bubblewrap comes first, as it may be allowed where a user's own namespaces are not.
    """
    reasons = []
    if program := bubblewrap():
        reason = _tried([program, *_ALONE, *_TRIED, "true"])
        if not reason:
            return BUBBLEWRAP, ""
        reasons.append(f"bubblewrap: {reason}")
    else:
        reasons.append("bubblewrap 0.11 or later is not on PATH")
    reason = _tried([*_INTERPRETER, _INSIDE, str(_PACKAGES), *_TRIED])
    if not reason:
        return NAMESPACES, ""
    return "", "; ".join((*reasons, f"user namespaces: {reason}"))


def _tried(argv: list[str]) -> str:
    """Run a command with an empty input. Returns why it failed, '' if it did not."""
    try:
        done = subprocess.run(
            argv, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=_LONGEST_TRY, check=False
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        return str(error)
    lines = done.stderr.strip().splitlines() or [f"exit status {done.returncode}"]
    return lines[-1] if done.returncode else ""
