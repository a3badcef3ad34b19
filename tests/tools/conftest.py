"""The C, C++ and Rust programs under programs/, compiled once per test session, and the workspace under crates/."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest

from perfflow.tools import adapter
from tests.tools.crates.hot_workspace import hot_workspace
from tests.tools.harness import EXAMPLES, GO_MODULE, PROGRAMS, build_catch2, build_nanobench, compiler


@pytest.fixture(scope="session")
def built(tmp_path_factory: pytest.TempPathFactory) -> Mapping[str, str]:
    """Return the path of each compiled program by its name."""
    folder = tmp_path_factory.mktemp("built")
    sources = [source for source in sorted(PROGRAMS.iterdir()) if source.suffix in {".c", ".cpp", ".rs"}]
    return {source.stem: _compile(source, folder / source.stem) for source in sources if source.stem != "gbench"}


@pytest.fixture(scope="session")
def gbench(tmp_path_factory: pytest.TempPathFactory) -> str:
    """Return the path of the compiled benchmarks of Google Benchmark."""
    return _compile(PROGRAMS / "gbench.cpp", tmp_path_factory.mktemp("gbench") / "gbench", "-DBROKEN")


@pytest.fixture(scope="session")
def catch2_odd(tmp_path_factory: pytest.TempPathFactory) -> str:
    """Return the path of the compiled benchmarks of Catch2."""
    return build_catch2(tmp_path_factory.mktemp("catch2"))


@pytest.fixture(scope="session")
def nanobench_odd(tmp_path_factory: pytest.TempPathFactory) -> str:
    """Return the path of the compiled benchmarks of nanobench."""
    return build_nanobench(tmp_path_factory.mktemp("nanobench"))


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
