"""What a patch of a stranger must not touch: ``protect: tests``.

A file is protected by its name (tests, benchmarks, and settings of test runners and builds), because the workflow names
it, or because checks and benchmarks read it on the base. A patch must also not add links that lead out of the tree, and
no modules that Python would import in place of its own or of installed ones.
"""

from __future__ import annotations

import importlib.metadata
import os
import posixpath
import re
import sys
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from functools import cached_property
from pathlib import Path, PurePosixPath
from typing import Any

from perfflow.model.judging import Code, RejectedError
from perfflow.model.targets import matches
from perfflow.plan.plan import Plan, Planned, StagePlan
from perfflow.tools.adapter import Role
from perfflow.trees.git import names
from perfflow.trees.python_layout import import_folders
from perfflow.trees.repository import Repository
from perfflow.workflow.load import Draft
from perfflow.workflow.model import Stage, Step

_SETTINGS = (
    *("conftest.py", "pytest.ini", ".pytest.ini", "pytest.toml", ".pytest.toml", "setup.cfg", "tox.ini"),
    *("pyproject.toml", "noxfile.py", "sitecustomize.py", "usercustomize.py", "*.pth", "*.pyc", ".coveragerc"),
    *("build.rs", "rust-toolchain*", "CMakePresets.json", "CMakeUserPresets.json", "go.work", "go.work.sum"),
    *("jest.config.*", "vitest.config.*", "vitest.workspace.*", "babel.config.*", ".babelrc*", ".mocharc*", ".npmrc"),
    *(".gitattributes", ".gitmodules"),
)
_FOLDERS_OF_SETTINGS = frozenset({".cargo", ".config", ".github", ".perfflow", ".git", "__pycache__"})
_FOLDERS_OF_TESTS = frozenset(
    {"tests", "test", "__tests__", "spec", "specs", "testdata", "benches", "bench", "benchmarks", "benchmark"}
)
_FOLDER_OF_JVM = "/src/jmh/"
_TESTS = (
    *("test_*.py", "*_test.py", "tests.py", "bench_*.py", "*_bench.py", "*_test.go", "*_test.rs", "tests.rs"),
    *("*.test.*", "*.spec.*", "*.bench.*", "*_spec.rb", "*Test.java", "*Tests.java", "*IT.java", "*Benchmark.java"),
    *("test_*.c", "*_test.c", "*_test.cc", "*_test.cpp", "*_bench.cc", "*_bench.cpp", "*_benchmark.c*", "*.t"),
)
_FILES_OF_PROGRAMS = {
    "make": ("Makefile", "makefile", "GNUmakefile", "*.mk"),
    "just": ("justfile", ".justfile", "Justfile"),
    **dict.fromkeys(("npm", "npx", "yarn", "pnpm", "jest", "vitest", "mocha"), ("package.json",)),
}
"""Files that say what a program of a check or a benchmark does."""
_CODE = frozenset(
    (
        *(".py", ".pyx", ".pyi", ".pxd", ".c", ".h", ".cc", ".cpp", ".cxx", ".hpp", ".hh", ".inc", ".cu", ".cuh", ".S"),
        *(".rs", ".go", ".js", ".mjs", ".cjs", ".ts", ".tsx", ".jsx", ".java", ".kt", ".scala", ".rb", ".pl", ".pm"),
        *(".sh", ".bash", ".mojo", ".zig", ".swift", ".cs", ".lua", ".jl", ".r", ".f90", ".f", ".asm", ".s", ".awk"),
    )
)
_BUILDS = (
    *("Cargo.toml", "Cargo.lock", "CMakeLists.txt", "*.cmake", "meson.build", "go.mod", "go.sum", "Makefile"),
    *("pom.xml", "build.gradle*", "package.json", "package-lock.json", ".gitignore", "*.d", "*.map"),
)
"""Files that builds read, which a reader of a kept patch is told about."""
_SCRIPTS = frozenset({".sh", ".bash", ".py", ".pl", ".rb", ".js", ".mjs"})
_COMPILED = (".so", ".pyd")
_SEPARATORS = re.compile(r"""[\s"'`=:,;()<>|&$]+""")
_LINK, _SUBMODULE, _EXECUTABLE, _ABSENT = "120000", "160000", "100755", "000000"


def covers(glob: str, path: str) -> bool:
    """Return whether a glob matches a path. The name of a folder matches everything in it."""
    plain = glob.removeprefix("./").lstrip("/").rstrip("/")
    return matches(plain, path) or matches(f"{plain}/**", path)


def is_of_settings(path: str) -> bool:
    """Return whether a file, by its name, changes how tests or Python run wherever it lies. Bytecode is none."""
    name = posixpath.basename(path)
    return not name.endswith(".pyc") and any(fnmatchcase(name, glob) for glob in _SETTINGS)


def is_protected(stage: Stage, planned: Planned) -> bool:
    """Return whether a candidate must not touch tests: if the stage says so, else only what a program proposes."""
    return (stage.protect or ("tests" if planned.step.propose else "off")) == "tests"


@dataclass(frozen=True)
class Opened:
    """Files of the base, relative to its root, that its checks and its benchmarks open."""

    by_checks: frozenset[str] = frozenset()
    by_benchmarks: frozenset[str] = frozenset()


@dataclass(frozen=True)
class _Change:
    path: str
    before: str
    """The mode of the file in git, ``_ABSENT`` for a new file."""
    mode: str
    blob: str


@dataclass
class Protection:
    """The rules for the patches of one run. ``opened`` is called only for a patch that keeps all other rules."""

    repository: Repository
    draft: Draft
    plan: Plan
    stage: StagePlan
    opened: Callable[[], Opened]
    _known: dict[str, dict[str, str]] = field(default_factory=dict)

    def require_untouched(self, base: str, tree: str) -> None:
        """Raise RejectedError if ``tree`` differs from ``base`` in what is protected."""
        changes = list(_changes(self.repository, base, tree))
        for change in changes:
            if text := self._leads_out(change):
                raise RejectedError(Code.LINK_OUTSIDE, f"needs approval: {change.path} {text}")
        mine = [change for change in changes if not any(covers(glob, change.path) for glob in self._allowed)]
        modes = self._modes(base)
        for change in mine:
            if why := self._by_name(change.path) or self._by_workflow(change.path, modes):
                raise _protected(change.path, why)
            if what := self._shadowed(change, modes):
                reason = f"needs approval: the new file {change.path} would be imported in place of {what}"
                raise RejectedError(Code.SHADOWS_MODULE, f"{reason}; {_remedy(change.path)}")
        for change in mine:
            if change.before != _ABSENT and (why := self._by_reading(change.path, modes)):
                raise _protected(change.path, why)

    @cached_property
    def _allowed(self) -> tuple[str, ...]:
        return tuple(self.stage.own.allow or ())

    def _modes(self, tree: str) -> dict[str, str]:
        """Return the mode of each file of a tree."""
        if tree not in self._known:
            entries = names(self.repository.git().run("ls-tree", "-r", "-z", tree))
            self._known = {tree: {path: info[:6] for info, _, path in (entry.partition("\t") for entry in entries)}}
        return self._known[tree]

    def _leads_out(self, change: _Change) -> str:
        """Return what is wrong with a link or a submodule, '' for anything else."""
        if change.mode == _SUBMODULE:
            return "is a submodule"
        if change.mode != _LINK:
            return ""
        target = os.fsdecode(self.repository.git().run("cat-file", "blob", change.blob))
        place = posixpath.normpath(posixpath.join(posixpath.dirname(change.path), target))
        outside = posixpath.isabs(target) or place.split("/")[0] in ("..", ".git")
        return "is a link that leads out of the tree" if outside else ""

    def _by_name(self, path: str) -> str:
        """Return why a name is protected, '' if it is not."""
        *folders, name = PurePosixPath(path).parts
        if found := [glob for glob in self._globs_of_settings if fnmatchcase(name, glob)]:
            return f"settings of tests or builds ({found[0]})"
        for folder in folders:
            if folder in _FOLDERS_OF_SETTINGS:
                return f"settings of tests or builds ({folder}/)"
            if folder.lower() in _FOLDERS_OF_TESTS:
                return f"tests and benchmarks ({folder}/)"
        if _FOLDER_OF_JVM in f"/{path}":
            return f"tests and benchmarks ({_FOLDER_OF_JVM[1:]})"
        found = [glob for glob in _TESTS if fnmatchcase(name, glob)]
        return f"tests and benchmarks ({found[0]})" if found else ""

    @cached_property
    def _globs_of_settings(self) -> tuple[str, ...]:
        used = {posixpath.basename(word) for step in self._steps for word in _words(_texts(step.step))}
        used |= {posixpath.basename(word) for word in _words(self.stage.own.check)}
        programs = sorted(used & _FILES_OF_PROGRAMS.keys())
        return (*_SETTINGS, *(glob for name in programs for glob in _FILES_OF_PROGRAMS[name]))

    @cached_property
    def _steps(self) -> tuple[Planned, ...]:
        """The steps that judge a candidate."""
        return tuple(self.plan.by_id[name] for name in (*self.stage.measuring, *self.stage.checking))

    def _by_workflow(self, path: str, modes: dict[str, str]) -> str:
        """Return how the workflow names a file, '' if it does not, or as the program under test."""
        if path in self._workflow_files:
            return "the workflow"
        if path in self._named_by_checks and not (path in self._named_by_benchmarks and self._is_code(path, modes)):
            return "a check names it"
        if path in self._named_by_benchmarks and not self._is_code(path, modes):
            return "a benchmark names it"
        is_script = PurePosixPath(path).suffix in _SCRIPTS
        return "a build step runs it" if is_script and path in self._named_by_builds - self._named_by_benchmarks else ""

    @cached_property
    def _workflow_files(self) -> frozenset[str]:
        root = self.repository.root.resolve()
        files = [self.draft.path, *map(Path, self.draft.document.lines), *(root / name for name in self._tool_files)]
        found = (path.resolve() for path in files)
        return frozenset(str(path.relative_to(root)) for path in found if path.is_relative_to(root))

    @cached_property
    def _tool_files(self) -> tuple[str, ...]:
        return tuple(item.step.uses for item in self.plan.steps if item.step.uses and item.step.declared)

    @cached_property
    def _named_by_checks(self) -> frozenset[str]:
        own, workflow = self.stage.own, self.plan.workflow
        checks = [_texts(item.step) for item in self._steps if item.role is Role.CHECK]
        prepared = [[item.step.prepare, item.step.parse and item.step.parse.file] for item in self._steps]
        return frozenset(_paths([checks, prepared, own.check, own.holdout and own.holdout.run, workflow.data]))

    @cached_property
    def _named_by_benchmarks(self) -> frozenset[str]:
        measured = [_texts(item.step) for item in self._steps if item.role is Role.MEASURE]
        return frozenset(_paths([measured, dict(self.plan.params)]))

    @cached_property
    def _named_by_builds(self) -> frozenset[str]:
        return frozenset(_paths([_texts(self.plan.by_id[name].step) for name in self.stage.building]))

    def _is_code(self, path: str, modes: dict[str, str]) -> bool:
        return PurePosixPath(path).suffix in _CODE or modes.get(path) == _EXECUTABLE

    def _by_reading(self, path: str, modes: dict[str, str]) -> str:
        """Return who reads a file on the base, if it is data or code of checks; '' for sources."""
        opened = self.opened()
        by = "a benchmark" if path in opened.by_benchmarks else "a check" if path in opened.by_checks else ""
        name = posixpath.basename(path)
        if not by or any(fnmatchcase(name, glob) for glob in _BUILDS):
            return ""
        if not self._is_code(path, modes):
            return f"{by} reads it"
        folder = posixpath.dirname(path)
        scripts = {
            posixpath.dirname(named) for named in self._named_by_checks - self._named_by_benchmarks if named in modes
        }
        beside = {posixpath.dirname(other) for other in opened.by_benchmarks if self._is_code(other, modes)}
        return "code of a check" if folder in scripts - beside else ""

    def _shadowed(self, change: _Change, modes: dict[str, str]) -> str:
        """Return what Python would no longer import, '' for a file that takes no module's place."""
        path = PurePosixPath(change.path)
        if change.before != _ABSENT or not (path.suffix == ".py" or path.name.endswith(_COMPILED)):
            return ""
        place = path.parent if path.name == "__init__.py" else path
        name, folder = place.name.partition(".")[0], str(place.parent)
        beside = "" if folder == "." else f"{folder}/"
        own = [known for known in modes if known.startswith((f"{beside}{name}.py", f"{beside}{name}/"))]
        if path.name.endswith(_COMPILED) and own:
            return own[0]
        if own or folder not in self._import_folders:
            return ""
        if name in sys.stdlib_module_names:
            return f"the module {name} of Python"
        return f"the installed module {name}" if name in self._installed else ""

    @cached_property
    def _import_folders(self) -> frozenset[str]:
        """The folders of the tree whose modules Python finds: those of imports, and those of scripts that are run."""
        root = self.repository.root
        named = {*self._named_by_benchmarks, *self._named_by_checks, *self._named_by_builds}
        scripts = {posixpath.dirname(path) or "." for path in named if path.endswith(".py")}
        return frozenset({*scripts, *(str(path.relative_to(root)) for path in import_folders(root))})

    @cached_property
    def _installed(self) -> frozenset[str]:
        """The modules that are installed for perfflow, and in virtual environments of the project."""
        root = self.repository.root
        folders = [*root.glob("*/lib/python*/site-packages"), *root.glob(".*/lib/python*/site-packages")]
        if active := os.environ.get("VIRTUAL_ENV"):
            folders += Path(active).glob("lib/python*/site-packages")
        beside = {path.name.partition(".")[0] for folder in folders for path in folder.iterdir()}
        return frozenset({*importlib.metadata.packages_distributions(), *beside})


def _remedy(path: str) -> str:
    return f"to allow it, add `allow: [{path}]` or `protect: off` to the optimize stage"


def _protected(path: str, why: str) -> RejectedError:
    return RejectedError(
        Code.PROTECTED_FILE, f"needs approval: it touches {path}, which is protected: {why}; {_remedy(path)}"
    )


def _changes(repository: Repository, base: str, tree: str) -> Iterator[_Change]:
    fields = names(repository.git().run("diff-tree", "-r", "-z", "--raw", "--no-renames", "--no-abbrev", base, tree))
    for info, path in zip(fields[::2], fields[1::2], strict=True):
        before, mode, _, blob, _ = info.lstrip(":").split(" ")
        yield _Change(path, before, mode, blob)


def _texts(step: Step) -> list[Any]:
    """Return what a step runs, as far as the workflow tells it."""
    return [step.run, step.argv, step.with_, step.candidate and step.candidate.command]


def _words(data: Any) -> Iterator[str]:
    """Yield the words of all texts in plain data."""
    if isinstance(data, str):
        yield from _SEPARATORS.split(data)
    elif isinstance(data, dict):
        for value in data.values():
            yield from _words(value)
    elif isinstance(data, list | tuple):
        for value in data:
            yield from _words(value)


def _paths(data: Iterable[Any]) -> Iterator[str]:
    """Yield the words of texts as paths relative to the tree, if they are below the tree."""
    for word in _words(list(data)):
        path = posixpath.normpath(word) if word else ""
        if path and not path.startswith(("/", "..")):
            yield path
