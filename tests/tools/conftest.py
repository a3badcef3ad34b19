"""The C, C++ and Rust programs under programs/, compiled once per test session, and the workspace under crates/."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest

from perfflow.tools import adapter
from tests.kept import built_once
from tests.tools.crates.hot_workspace import hot_workspace
from tests.tools.harness import EXAMPLES, GO_MODULE, PROGRAMS, build_catch2, build_nanobench, compiler


@pytest.fixture(scope="session")
def built(tmp_path_factory: pytest.TempPathFactory) -> Mapping[str, str]:
    """Return the path of each compiled program by its name."""
    sources = {each.stem: each for each in sorted(PROGRAMS.iterdir()) if each.suffix in {".c", ".cpp", ".rs"}}
    del sources["gbench"]

    def build(folder: Path) -> None:
        for name, source in sources.items():
            _compile(source, folder / name)

    folder = built_once(tmp_path_factory, "programs", build)
    return {name: str(folder / name) for name in sources}


@pytest.fixture(scope="session")
def gbench(tmp_path_factory: pytest.TempPathFactory) -> str:
    """Return the path of the compiled benchmarks of Google Benchmark."""

    def build(folder: Path) -> None:
        _compile(PROGRAMS / "gbench.cpp", folder / "gbench", "-DBROKEN")

    return str(built_once(tmp_path_factory, "gbench", build) / "gbench")


@pytest.fixture(scope="session")
def catch2_odd(tmp_path_factory: pytest.TempPathFactory) -> str:
    """Return the path of the compiled benchmarks of Catch2."""
    return str(built_once(tmp_path_factory, "catch2", build_catch2) / "catch2_odd")


@pytest.fixture(scope="session")
def nanobench_odd(tmp_path_factory: pytest.TempPathFactory) -> str:
    """Return the path of the compiled benchmarks of nanobench."""
    return str(built_once(tmp_path_factory, "nanobench", build_nanobench) / "nanobench_odd")


@pytest.fixture(scope="session")
def go_tests(tmp_path_factory: pytest.TempPathFactory) -> str:
    """Return the path of a test binary with Go benchmarks that allocate."""
    binary = str(tmp_path_factory.mktemp("go") / "text.test")
    subprocess.run(["go", "test", "-trimpath", "-c", "-o", binary, "./text"], cwd=GO_MODULE, check=True)
    return binary


@pytest.fixture(scope="session")
def kernels_cpu(tmp_path_factory: pytest.TempPathFactory) -> str:
    """Return the path of the example program that prints lines of cuda-bench for kernels on the CPU."""
    return _compile(EXAMPLES / "gpu-kernels/kernels_cpu.cpp", tmp_path_factory.mktemp("kernels") / "kernels_cpu")


@pytest.fixture(scope="session")
def cpu_clock_library(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the path of the compiled clock of CPU time."""
    library = tmp_path_factory.mktemp("clock") / "cpu_clock.so"
    source = Path(adapter.__file__).parent / "drivers" / "cpu_clock.c"
    subprocess.run(["cc", "-O1", "-Wall", "-Werror", "-shared", "-fPIC", "-o", library, source], check=True)
    return library


@pytest.fixture
def crate(monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    with hot_workspace(monkeypatch) as folder:
        yield folder


def _compile(source: Path, target: Path, *flags: str) -> str:
    subprocess.run([*compiler(source, target), *flags], check=True)
    return str(target)
