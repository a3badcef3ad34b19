"""Detects the kinds of a project from its files."""

from __future__ import annotations

import json
import re
import tomllib
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from enum import StrEnum
from functools import partial
from typing import Any

from perfflow.library import cpp_projects
from perfflow.library.project_files import ProjectFiles


class ProjectKind(StrEnum):
    """Kinds of projects that a workflow can be written for."""

    CARGO = "cargo"
    GOOGLE = "google-benchmark"
    CATCH2 = "catch2"
    NANOBENCH = "nanobench"
    ASV = "asv"
    PYTEST = "pytest-benchmark"
    PYPERF = "pyperf"
    GO = "go"
    NODE = "node"
    MAVEN = "maven"
    GRADLE = "gradle"
    CMAKE = "cmake"
    SERVICE = "service"
    SQLITE = "sqlite"
    COMMAND = "command"


OF_CPP = {ProjectKind.GOOGLE, ProjectKind.CATCH2, ProjectKind.NANOBENCH}
"""Kinds with benchmarks of a C++ library."""
LOOKED_FOR = (
    "Cargo.toml (criterion, divan, libtest, programs), Google Benchmark, Catch2 and nanobench (CMake, Meson, Make), "
    "asv.conf.json, pytest-benchmark, pyperf, go.mod, package.json, pom.xml, build.gradle, CMakeLists.txt, "
    "HTTP servers of Python, queries in .sql beside an SQLite database"
)
"""Files that identify the kinds, for messages."""

# A test with the fixture of pytest-benchmark. The length is limited, so that no file takes long.
_FIXTURE = re.compile(r"^[ \t]*(?:async )?def test_\w*\([^)]{0,500}?\bbenchmark\b", re.MULTILINE)
_PYPERF = re.compile(r"^[ \t]*(?:import|from) pyperf\b", re.MULTILINE)
_DEPENDENCY = re.compile(r"\bpytest[-_]benchmark\b")
_QUERY = re.compile(r"(?:\s|--[^\n]*\n)*(?:select|with)\b", re.IGNORECASE)


@dataclass(frozen=True)
class DetectedProject:
    """A kind of a project, and the files or programs that identify it."""

    kind: ProjectKind
    names: tuple[str, ...]

    def __str__(self) -> str:
        shown = ", ".join(self.names[:3])
        return f"{self.kind} ({shown}{', ...' if len(self.names) > 3 else ''})"


def kinds(files: ProjectFiles) -> tuple[DetectedProject, ...]:
    """Return all kinds of the project, the most specific first."""
    found = [DetectedProject(kind, tuple(look(files))) for kind, look in _LOOKS.items()]
    there = {item.kind for item in found if item.names}
    # A program with benchmarks is measured by them, not as a CMake program.
    without = {ProjectKind.CMAKE} if there & OF_CPP else set()
    return tuple(item for item in found if item.kind in there - without)


def benchmark_tests(files: ProjectFiles) -> list[str]:
    """Return the Python files with tests that use the fixture of pytest-benchmark."""
    return [path for path, text in files.having("benchmark", ".py") if _FIXTURE.search(text)]


def requires_pytest_benchmark(files: ProjectFiles) -> str:
    """Return the file that requires pytest-benchmark, '' if there is none."""
    listing = [*files.named("/pyproject.toml", "/setup.cfg", "/tox.ini"), *files.named("requirements.txt")]
    listing += [path for path in files.named(".txt") if "requirements" in path]
    return next((path for path in dict.fromkeys(listing) if _DEPENDENCY.search(files.text(path))), "")


def pyperf_scripts(files: ProjectFiles) -> list[str]:
    """Return the scripts with a pyperf Runner."""
    return [path for path, text in files.having("Runner(", ".py") if _PYPERF.search(text)]


def asv_settings(files: ProjectFiles) -> list[str]:
    """Return the settings files of asv suites."""
    return files.named("/asv.conf.json")


def databases(files: ProjectFiles) -> list[str]:
    """Return the files with names of SQLite databases."""
    return files.named(".db", ".sqlite", ".sqlite3")


def queries(files: ProjectFiles) -> list[str]:
    """Return the SQL scripts that begin with a query, if there is a database; other scripts may run only once."""
    texts = files.having("", ".sql") if databases(files) else ()
    return [path for path, text in texts if _QUERY.match(text)]


def manifest(files: ProjectFiles, path: str = "Cargo.toml") -> dict[str, Any]:
    """Return the data of Cargo.toml, empty if it is missing. Raises ValueError if it is not TOML."""
    try:
        return tomllib.loads(files.text(path))
    except RecursionError as error:
        raise ValueError("its values are nested too deeply") from error


def package(files: ProjectFiles, path: str = "package.json") -> Mapping[str, Any]:
    """Return the data of package.json, empty if it is missing or invalid."""
    try:
        found = json.loads(files.text(path) or "{}")
    except (ValueError, RecursionError):
        return {}
    return found if isinstance(found, dict) else {}


_SERVES: Mapping[str, re.Pattern[str]] = {
    ".py": re.compile(
        r"\b(?:(?:Threading)?HTTPServer|TCPServer|Flask|FastAPI|Starlette|Sanic|Bottle)\("
        r"|\b(?:start_server|uvicorn\.run|web\.run_app|serve_forever)\("
    ),
    ".js": re.compile(r"\bcreateServer\(|\.listen\("),
    ".go": re.compile(r"\b(?:ListenAndServe(?:TLS)?|http\.Serve)\("),
}
"""What a program that serves requests calls, by the ending of its file."""
_STARTS = {".py": "__main__", ".js": "", ".go": "func main("}
_DEEPEST_SERVER = 1


def servers(files: ProjectFiles, ending: str) -> list[str]:
    """Return the programs near the top that serve requests, by the ending of their file."""
    found = files.having(_STARTS[ending], ending)
    near = ((path, text) for path, text in found if path.count("/") <= _DEEPEST_SERVER and "test" not in path)
    return [path for path, text in near if _SERVES[ending].search(text)]


def _built(
    program_of: Callable[[ProjectFiles], cpp_projects.BuiltProgram | None],
) -> Callable[[ProjectFiles], list[str]]:
    """Return a function that returns the programs of a build."""

    def programs(files: ProjectFiles) -> list[str]:
        built = program_of(files)
        return [built.program, *built.others] if built else []

    return programs


def _pytest(files: ProjectFiles) -> list[str]:
    needed = requires_pytest_benchmark(files)
    return benchmark_tests(files) or ([needed] if needed else [])


def _named(*names: str) -> Callable[[ProjectFiles], Iterator[str]]:
    """Return a function that yields the top-level files with one of these names."""
    return lambda files: (name for name in names if (files.folder / name).is_file())


_LOOKS: Mapping[ProjectKind, Callable[[ProjectFiles], list[str] | Iterator[str]]] = {
    ProjectKind.CARGO: _named("Cargo.toml"),
    ProjectKind.GOOGLE: _built(cpp_projects.google_program),
    ProjectKind.CATCH2: _built(partial(cpp_projects.program_with, library=cpp_projects.CATCH2)),
    ProjectKind.NANOBENCH: _built(partial(cpp_projects.program_with, library=cpp_projects.NANOBENCH)),
    ProjectKind.ASV: asv_settings,
    ProjectKind.PYTEST: _pytest,
    ProjectKind.PYPERF: pyperf_scripts,
    ProjectKind.GO: lambda files: [*files.named("/go.work"), *files.named("/go.mod")],
    ProjectKind.NODE: _named("package.json"),
    ProjectKind.MAVEN: _named("pom.xml"),
    ProjectKind.GRADLE: _named("build.gradle", "build.gradle.kts"),
    ProjectKind.CMAKE: _built(cpp_projects.cmake_program),
    ProjectKind.SERVICE: lambda files: servers(files, ".py"),
    ProjectKind.SQLITE: queries,
}
"""How each kind is detected, the most specific first."""
