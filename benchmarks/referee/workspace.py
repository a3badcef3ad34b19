"""The folder in which a patch is judged: the project as a git repository, inputs outside of it, a home folder."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tarfile
import tempfile
import zipfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from hashlib import sha256
from pathlib import Path

from platformdirs import user_cache_path

import perfflow
from benchmarks.referee.corpus import HERE, VICTIMS, Entry, Package

_GIT = ("git", "-c", "user.name=referee", "-c", "user.email=referee@example.org", "-c", "commit.gpgsign=false")
HARNESS = "harness"
PERFFLOW = Path(perfflow.__file__).parent
"""The package that judges."""
_PROGRAMS = HERE / "packages"
_MADE = shutil.ignore_patterns("__pycache__", ".pytest_cache", ".benchmarks", "build")


@dataclass(frozen=True)
class Workspace:
    """A folder with ``project``, ``held``, ``home``, and ``harness``: a copy of whatever judges the patch.

    The copy is what a patch may rewrite without harm to the installation.
    """

    folder: Path
    entry: Entry

    @property
    def project(self) -> Path:
        """The git repository."""
        return self.folder / "project"

    @property
    def workflow(self) -> str:
        """The name of the workflow file in the project."""
        return Path(self.entry.workflow).name

    @cached_property
    def env(self) -> dict[str, str]:
        """The environment of whatever judges: an own home folder, with the toolchains of the user's."""
        home = Path.home()
        own = {"RUSTUP_HOME": str(home / ".rustup"), "CARGO_HOME": str(home / ".cargo")}
        path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ.get('PATH', os.defpath)}"
        # Results are those of the code, whatever the caller has set for Python.
        kept = {name: value for name, value in os.environ.items() if not name.startswith(("PYTHON", "XDG_"))}
        return {**own, **kept, "HOME": str(self.folder / "home"), "PATH": path}

    def submitted(self) -> Path:
        """Return the patch with its context, which the stored one lacks so that it quotes no more than it changes."""
        made = self.folder / self.entry.patch.name
        apply = ("apply", "--index", "--unidiff-zero", "--whitespace=nowarn", str(self.entry.patch))
        made.write_bytes(b"".join(_git(self.project, *words) for words in (apply, ("diff", "--cached", "--binary"))))
        _git(self.project, "reset", "-q", "--hard")
        return made

    def left_behind(self) -> list[str]:
        """Return what the patch has left outside of its tree."""
        found = [str(path) for glob in self.entry.leaves for path in self.folder.glob(glob)]
        return found + [str(self.folder / HARNESS)] * (_digest(self.folder / HARNESS) != self._harness)

    @cached_property
    def _harness(self) -> str:
        return _digest(self.folder / HARNESS)

    def copy_harness(self, source: Path) -> Path:
        """Copy a file or a package that judges, and return the copy."""
        to = self.folder / HARNESS / source.name
        if source.is_dir():
            shutil.copytree(source, to)
        else:
            to.parent.mkdir()
            shutil.copy2(source, to)
        _ = self._harness
        return to


def _digest(folder: Path) -> str:
    """Hash the sources in a folder; bytecode may be written at any time."""
    files = sorted(path for path in folder.rglob("*.py") if path.is_file())
    return sha256(b"\0".join(path.read_bytes() for path in files)).hexdigest()


@contextmanager
def prepared(entry: Entry) -> Iterator[Workspace]:
    """Yield a new workspace for an entry. Raises ValueError for a package with another hash, CalledProcessError."""
    with tempfile.TemporaryDirectory(prefix="referee-", ignore_cleanup_errors=True) as made:
        space = Workspace(Path(made).resolve(), entry)
        (space.folder / "home").mkdir()
        if entry.package:
            _unpack(_archive(entry.package), space.project)
            (source,) = _PROGRAMS.glob(f"{entry.name}.*")
            (space.project / "bench").mkdir(exist_ok=True)
            shutil.copy(source, space.project / "bench" / f"run{source.suffix}")
            shutil.copy(_PROGRAMS / entry.workflow, space.project)
            shutil.copytree(_PROGRAMS / "held", space.folder / "held")
            _declare_example(space.project / "Cargo.toml")
            (space.project / ".gitignore").write_text("__pycache__/\nbuild/\ntarget/\nCargo.lock\n")
        else:
            shutil.copytree(VICTIMS / Path(entry.workflow).parent, space.project, ignore=_MADE)
            shutil.copytree(VICTIMS / "held", space.folder / "held")
        _commit(space.project)
        if space.workflow == "shared.yaml":
            subprocess.run([sys.executable, "-m", "venv", "--without-pip", space.project / ".venv"], check=True)
            (space.project / "cache").mkdir()
        yield space


def _git(project: Path, *words: str) -> bytes:
    return subprocess.run([*_GIT, *words], cwd=project, check=True, capture_output=True).stdout


def _commit(project: Path) -> None:
    for words in (("init", "-q"), ("add", "-A"), ("commit", "-qm", "Import")):
        _git(project, *words)


def _declare_example(manifest: Path) -> None:
    """Make the benchmark of a crate an example, which can be built without a change of the crate."""
    if manifest.is_file():
        text = manifest.read_text()
        manifest.write_text(f'{text}\n[[example]]\nname = "run"\npath = "bench/run.rs"\n')


def _archive(package: Package) -> Path:
    """Return the archive of a package, from the cache if it is there. Raises ValueError if its hash is another."""
    cache = user_cache_path("perfflow") / "referee" / package.sha256
    if not cache.is_dir():
        with tempfile.TemporaryDirectory() as made:
            found = _CLIENTS[package.source](package, Path(made))
            hashed = sha256(found.read_bytes()).hexdigest()
            if hashed != package.sha256:
                raise ValueError(f"{found.name} has the SHA-256 {hashed}, not {package.sha256}")
            cache.mkdir(parents=True)
            shutil.copy(found, cache)
    (archive,) = cache.iterdir()
    return archive


def _from_pypi(package: Package, folder: Path, how: str = "--only-binary") -> Path:
    argv = [sys.executable, "-m", "pip", "download", "-q", "--no-deps", how, ":all:", "--dest", str(folder)]
    subprocess.run([*argv, f"{package.name}=={package.version}"], check=True)
    (found,) = folder.iterdir()
    return found


def _from_pypi_source(package: Package, folder: Path) -> Path:
    return _from_pypi(package, folder, "--no-binary")


def _from_npm(package: Package, folder: Path) -> Path:
    spec = f"{package.name}@{package.version}"
    subprocess.run(["npm", "pack", "--silent", "--pack-destination", folder, spec], check=True, capture_output=True)
    (found,) = folder.iterdir()
    return found


def _from_crates(package: Package, folder: Path) -> Path:
    manifest = '[package]\nname = "wanted"\nversion = "0.1.0"\n[dependencies]\n'
    (folder / "src").mkdir()
    (folder / "src" / "lib.rs").touch()
    (folder / "Cargo.toml").write_text(f'{manifest}{package.name} = "={package.version}"\n')
    env = {**os.environ, "CARGO_HOME": str(folder / "home")}
    subprocess.run(["cargo", "fetch", "-q"], cwd=folder, env=env, check=True)
    (found,) = (folder / "home" / "registry" / "cache").glob(f"*/{package.name}-{package.version}.crate")
    return found


_CLIENTS = {"pypi": _from_pypi, "pypi-source": _from_pypi_source, "npm": _from_npm, "crates": _from_crates}


def _unpack(archive: Path, project: Path) -> None:
    """Unpack a wheel as it is, and another archive without its one folder."""
    if archive.suffix == ".whl":
        with zipfile.ZipFile(archive) as file:
            file.extractall(project)  # noqa: S202 - its hash is the one that was pinned
        return
    with tempfile.TemporaryDirectory() as made, tarfile.open(archive) as file:
        file.extractall(made, filter="data")
        (folder,) = Path(made).iterdir()
        shutil.copytree(folder, project)
