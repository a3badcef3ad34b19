"""Detects the kinds of a project from its files."""

from __future__ import annotations

import json
import re
import tomllib
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from enum import StrEnum
from pathlib import PurePosixPath
from typing import Any

from perfflow.library.project_files import ProjectFiles


class ProjectKind(StrEnum):
    """Kinds of projects that a workflow can be written for."""

    CARGO = "cargo"
    GOOGLE = "google-benchmark"
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


LOOKED_FOR = (
    "Cargo.toml (criterion, divan, libtest, programs), Google Benchmark (CMake, Make), asv.conf.json, "
    "pytest-benchmark, pyperf, go.mod, package.json, pom.xml, build.gradle, CMakeLists.txt, "
    "HTTP servers of Python, queries in .sql beside an SQLite database"
)
"""Files that identify the kinds, for messages."""

# A test with the fixture of pytest-benchmark. The length is limited, so that no file takes long.
_FIXTURE = re.compile(r"^[ \t]*(?:async )?def test_\w*\([^)]{0,500}?\bbenchmark\b", re.MULTILINE)
_PYPERF = re.compile(r"^[ \t]*(?:import|from) pyperf\b", re.MULTILINE)
_DEPENDENCY = re.compile(r"\bpytest[-_]benchmark\b")
# The length of the arguments is limited, so that no file takes long.
_LINKS = re.compile(r"target_link_libraries\s*\(([^)]{0,1000})")
_GOOGLE = frozenset({"benchmark", "benchmark_main", "benchmark::benchmark", "benchmark::benchmark_main"})
_EXECUTABLE = re.compile(r"add_executable\s*\(\s*([\w.+-]+)")
_NAME = re.compile(r"[\w.+-]+")
_RULE = re.compile(r"([\w./+-]+)\s*:(?!=)")
_GOAL = re.compile(r"^(all|build)\s*:(?!=)", re.MULTILINE)
_LIBRARY = "-lbenchmark"
_QUERY = re.compile(r"(?:\s|--[^\n]*\n)*(?:select|with)\b", re.IGNORECASE)


@dataclass(frozen=True)
class DetectedProject:
    """A kind of a project, and the files or programs that identify it."""

    kind: ProjectKind
    names: tuple[str, ...]

    def __str__(self) -> str:
        shown = ", ".join(self.names[:3])
        return f"{self.kind} ({shown}{', ...' if len(self.names) > 3 else ''})"


@dataclass(frozen=True)
class BuiltProgram:
    """A built program: its path, the build command, and other programs of the same build."""

    program: str
    build: str
    others: tuple[str, ...] = ()


def kinds(files: ProjectFiles) -> tuple[DetectedProject, ...]:
    """Return all kinds of the project, the most specific first."""
    found = [DetectedProject(kind, tuple(look(files))) for kind, look in _LOOKS.items()]
    there = {item.kind for item in found if item.names}
    # A program with Google Benchmark is measured as that, not as a CMake program.
    without = {ProjectKind.CMAKE} if ProjectKind.GOOGLE in there else set()
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


def google_program(files: ProjectFiles) -> BuiltProgram | None:
    """Return the program with Google Benchmark that CMake or Make builds."""
    return _by_cmake(files) or _by_make(files)


def _by_cmake(files: ProjectFiles) -> BuiltProgram | None:
    if not files.text("CMakeLists.txt"):
        return None
    programs = []
    for path, text in files.having("benchmark", "/CMakeLists.txt"):
        folder = str(PurePosixPath("build", path).parent)
        linked = (words.split() for words in _LINKS.findall(text))
        names = [words[0] for words in linked if _GOOGLE.intersection(words[1:]) and _NAME.fullmatch(words[0])]
        programs += [(name, f"{folder}/{name}") for name in names]
    return _cmake_build(programs)


def _cmake_build(programs: list[tuple[str, str]]) -> BuiltProgram | None:
    if not programs:
        return None
    name, program = programs[0]
    build = f"cmake -S . -B build -DCMAKE_BUILD_TYPE=Release && cmake --build build --target {name}"
    return BuiltProgram(program, build, tuple(path for _, path in programs[1:]))


def cmake_program(files: ProjectFiles) -> BuiltProgram | None:
    """Return the first program of a CMake project."""
    programs = []
    for path, text in files.having("add_executable", "/CMakeLists.txt") if files.text("CMakeLists.txt") else ():
        folder = str(PurePosixPath("build", path).parent)
        programs += [(name, f"{folder}/{name}") for name in _EXECUTABLE.findall(text)]
    return _cmake_build(programs)


def _makefile(files: ProjectFiles) -> str:
    return next((text for name in ("GNUmakefile", "makefile", "Makefile") if (text := files.text(name))), "")


def _by_make(files: ProjectFiles) -> BuiltProgram | None:
    """Return the target whose recipe links the library, else (if a variable has it) a target named `bench`."""
    text = _makefile(files)
    if _LIBRARY not in text:
        return None
    rules: list[str] = []
    linked: list[str] = []
    for line in text.splitlines():
        rule = _RULE.match(line)
        if rule:
            rules.append(rule[1])
        elif _LIBRARY in line and line.startswith("\t") and rules and rules[-1] not in linked:
            linked.append(rules[-1])
    named = [name for name in rules if "bench" in name and not name.endswith(".o")]
    programs = [name for name in linked or named if name[0] not in ".-"]
    if not programs:
        return None
    return BuiltProgram(f"./{programs[0]}", f"make {programs[0]}", tuple(f"./{name}" for name in programs[1:]))


def databases(files: ProjectFiles) -> list[str]:
    """Return the files with names of SQLite databases."""
    return files.named(".db", ".sqlite", ".sqlite3")


def queries(files: ProjectFiles) -> list[str]:
    """Return the SQL scripts that begin with a query, if there is a database; other scripts may run only once."""
    texts = files.having("", ".sql") if databases(files) else ()
    return [path for path, text in texts if _QUERY.match(text)]


def cleans_by_make(files: ProjectFiles) -> bool:
    """Return whether the Makefile has a goal `clean`."""
    return bool(re.search(r"^clean\s*:", _makefile(files), re.MULTILINE))


def make_goal(files: ProjectFiles) -> str:
    """Return the Makefile goal that builds everything, '' if there is none."""
    found = _GOAL.search(_makefile(files))
    return found[1] if found else ""


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


def _google(files: ProjectFiles) -> list[str]:
    built = google_program(files)
    return [built.program, *built.others] if built else []


def _cmake(files: ProjectFiles) -> list[str]:
    built = cmake_program(files)
    return [built.program, *built.others] if built else []


def _pytest(files: ProjectFiles) -> list[str]:
    needed = requires_pytest_benchmark(files)
    return benchmark_tests(files) or ([needed] if needed else [])


def _named(*names: str) -> Callable[[ProjectFiles], Iterator[str]]:
    """Return a function that yields the top-level files with one of these names."""
    return lambda files: (name for name in names if (files.folder / name).is_file())


_LOOKS: Mapping[ProjectKind, Callable[[ProjectFiles], list[str] | Iterator[str]]] = {
    ProjectKind.CARGO: _named("Cargo.toml"),
    ProjectKind.GOOGLE: _google,
    ProjectKind.ASV: asv_settings,
    ProjectKind.PYTEST: _pytest,
    ProjectKind.PYPERF: pyperf_scripts,
    ProjectKind.GO: lambda files: [*files.named("/go.work"), *files.named("/go.mod")],
    ProjectKind.NODE: _named("package.json"),
    ProjectKind.MAVEN: _named("pom.xml"),
    ProjectKind.GRADLE: _named("build.gradle", "build.gradle.kts"),
    ProjectKind.CMAKE: _cmake,
    ProjectKind.SERVICE: lambda files: servers(files, ".py"),
    ProjectKind.SQLITE: queries,
}
"""How each kind is detected, the most specific first."""
