"""Finds the programs that CMake, Meson or Make build, and the one with benchmarks of a C++ library."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import PurePosixPath

from perfflow.library.project_files import ProjectFiles

# The lengths are limited, so that no file takes long.
_LINKS = re.compile(r"target_link_libraries\s*\(([^)]{0,1000})")
_GOOGLE = frozenset({"benchmark", "benchmark_main", "benchmark::benchmark", "benchmark::benchmark_main"})
_EXECUTABLE = re.compile(r"add_executable\s*\(\s*([\w.+-]+)([^)]{0,2000})")
_MESON_EXECUTABLE = re.compile(r"\bexecutable\s*\(\s*'([\w.+-]+)'(.{0,1000}?)(?=executable\s*\(|\Z)", re.DOTALL)
_WORD = re.compile(r"[^\s'\",()]+")
_NAME = re.compile(r"[\w.+-]+")
_RULE = re.compile(r"([\w./+-]+)\s*:(?!=)")
_GOAL = re.compile(r"^(all|build)\s*:(?!=)", re.MULTILINE)
_LIBRARY = "-lbenchmark"
_SOURCES = (".cpp", ".cc", ".cxx")
_TAG = re.compile(r"\[[.!]?bench[^\]\s]{0,50}\]", re.IGNORECASE)


@dataclass(frozen=True)
class BuiltProgram:
    """A built program: its path, the build command, and other programs of the same build."""

    program: str
    build: str
    others: tuple[str, ...] = ()


@dataclass(frozen=True)
class BenchmarkLibrary:
    """A library of benchmarks: a source that uses it contains the ``word`` and matches both patterns."""

    word: str
    includes: re.Pattern[str]
    benchmark: re.Pattern[str]

    def sources(self, files: ProjectFiles) -> list[str]:
        """Return the source files with its benchmarks."""
        texts = files.having(self.word, *_SOURCES)
        return [path for path, text in texts if self.includes.search(text) and self.benchmark.search(text)]


GOOGLE_BENCHMARK = BenchmarkLibrary(
    "BENCHMARK", re.compile(r"#\s*include\s*<benchmark/benchmark\.h>"), re.compile(r"\bBENCHMARK\w*\s*\(")
)
CATCH2 = BenchmarkLibrary(
    "BENCHMARK",
    re.compile(r"#\s*include\s*[<\"](?:catch2/|(?:[^\">\n]*/)?catch(?:_amalgamated)?\.hpp)"),
    re.compile(r"\bBENCHMARK(?:_ADVANCED)?\s*\("),
)
NANOBENCH = BenchmarkLibrary(
    "nanobench.h", re.compile(r"#\s*include\s*[<\"](?:[^\">\n]*/)?nanobench\.h[\">]"), re.compile(r"\bBench\b")
)


@dataclass(frozen=True)
class _Target:
    """A program that a build file names: its path after the build, the command, and the words of its definition."""

    name: str
    program: str
    build: str
    words: frozenset[str]


def google_program(files: ProjectFiles) -> BuiltProgram | None:
    """Return the program with Google Benchmark: CMake or Make links the library, or a source includes it."""
    return _linked_by_cmake(files) or _linked_by_make(files) or program_with(files, GOOGLE_BENCHMARK)


def program_with(files: ProjectFiles, library: BenchmarkLibrary) -> BuiltProgram | None:
    """Return the program with benchmarks of a library.

    It is one whose definition names a source with benchmarks, else one that is called a benchmark, else the first one.
    """
    sources = set(library.sources(files))
    for targets_of in (_cmake_targets, _meson_targets, _make_targets) if sources else ():
        targets = list(targets_of(files))
        having = [target for target in targets if sources & target.words]
        named = [target for target in targets if "bench" in target.name]
        if targets:
            return _first(having or named or targets)
    return None


def catch2_tag(files: ProjectFiles) -> str:
    """Return the tag of the test cases with benchmarks, such as ``[!benchmark]``; '' if they have none."""
    tags = [tag[0] for path in CATCH2.sources(files) for tag in _TAG.finditer(files.text(path))]
    return tags[0].replace("[.", "[") if tags else ""


def cmake_program(files: ProjectFiles) -> BuiltProgram | None:
    """Return the first program of a CMake project."""
    return _first(list(_cmake_targets(files)))


def make_goal(files: ProjectFiles) -> str:
    """Return the Makefile goal that builds everything, '' if there is none."""
    found = _GOAL.search(_makefile(files))
    return found[1] if found else ""


def cleans_by_make(files: ProjectFiles) -> bool:
    """Return whether the Makefile has a goal `clean`."""
    return bool(re.search(r"^clean\s*:", _makefile(files), re.MULTILINE))


def _cmake_targets(files: ProjectFiles) -> Iterator[_Target]:
    for path, text in files.having("add_executable", "/CMakeLists.txt") if files.text("CMakeLists.txt") else ():
        for name, rest in _EXECUTABLE.findall(text):
            yield _target(path, name, rest, _cmake_build)


def _cmake_build(name: str) -> str:
    # With -g a profile names functions that were inlined.
    settings = "-DCMAKE_BUILD_TYPE=Release -DCMAKE_CXX_FLAGS=-g"
    return f"cmake -S . -B build {settings} && cmake --build build --target {name}"


def _meson_targets(files: ProjectFiles) -> Iterator[_Target]:
    for path, text in files.having("executable", "/meson.build") if files.text("meson.build") else ():
        for name, rest in _MESON_EXECUTABLE.findall(text):
            yield _target(path, name, rest, _meson_build)


def _meson_build(name: str) -> str:
    return f"meson setup build -Doptimization=3 -Ddebug=true && meson compile -C build {name}"


def _target(path: str, name: str, rest: str, build: Callable[[str], str]) -> _Target:
    folder = PurePosixPath(path).parent
    words = (word.replace("${CMAKE_CURRENT_SOURCE_DIR}/", "") for word in _WORD.findall(rest))
    return _Target(name, str("build" / folder / name), build(name), frozenset(str(folder / word) for word in words))


def _makefile(files: ProjectFiles) -> str:
    return next((text for name in ("GNUmakefile", "makefile", "Makefile") if (text := files.text(name))), "")


def _make_targets(files: ProjectFiles) -> Iterator[_Target]:
    rules: dict[str, list[str]] = {}
    lines: list[str] = []
    for line in _makefile(files).splitlines():
        if rule := _RULE.match(line):
            lines = rules.setdefault(rule[1], [])
        if rule or line.startswith("\t"):
            lines += (word.removeprefix("./") for word in line.split())
    for name, words in rules.items():
        if name[0] not in ".-" and not name.endswith(".o"):
            yield _Target(name, f"./{name}", f"make {name}", frozenset(words))


def _linked_by_cmake(files: ProjectFiles) -> BuiltProgram | None:
    programs = []
    for path, text in files.having("benchmark", "/CMakeLists.txt") if files.text("CMakeLists.txt") else ():
        linked = (words.split() for words in _LINKS.findall(text))
        names = [words[0] for words in linked if _GOOGLE.intersection(words[1:]) and _NAME.fullmatch(words[0])]
        programs += [_target(path, name, "", _cmake_build) for name in names]
    return _first(programs)


def _linked_by_make(files: ProjectFiles) -> BuiltProgram | None:
    """Return the target whose recipe links the library, else (if a variable has it) a target named `bench`."""
    if _LIBRARY not in _makefile(files):
        return None
    targets = list(_make_targets(files))
    linked = [target for target in targets if any(word.startswith(_LIBRARY) for word in target.words)]
    return _first(linked or [target for target in targets if "bench" in target.name])


def _first(targets: Sequence[_Target]) -> BuiltProgram | None:
    others = tuple(target.program for target in targets[1:])
    return BuiltProgram(targets[0].program, targets[0].build, others) if targets else None
