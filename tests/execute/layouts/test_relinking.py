"""Executables of real compilers and linkers, relinked with other layouts."""

from __future__ import annotations

import shutil
import subprocess
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from perfflow.execute.layouts import link_command
from perfflow.execute.layouts.refusal import LayoutsRefusedError
from tests.execute.layouts.builds import Project, needs, order, require_layouts
from tests.long import rest_long

pytestmark = needs("gcc", "clang", "ld.lld", "mold", "ld.gold")


OBJECTS = "{0} -O1 -c main.c; {0} -O1 -c called.c; {0} main.o called.o -o program"
ONE_STEP = "{0} -O1 main.c called.c -o program"


@pytest.mark.parametrize(
    ("build", "driver", "linker"),
    rest_long(
        [
            (ONE_STEP, "gcc", "lld"),
            (OBJECTS, "gcc -g -static", "lld"),
            pytest.param(OBJECTS, "clang -Werror", "lld", marks=pytest.mark.long),
            (ONE_STEP, "clang -Werror -g", "lld"),
            pytest.param(OBJECTS, "gcc -fuse-ld=gold", "lld", marks=pytest.mark.long),
            (ONE_STEP, "gcc -fuse-ld=lld -Wl,--gc-sections", "lld"),
            (OBJECTS, "gcc -fuse-ld=mold", "mold"),
            # Only the linker that optimized the build generates the same code.
            (OBJECTS, "gcc -flto=auto -fno-inline", "GNU ld"),
            pytest.param(ONE_STEP, "gcc -flto -fno-inline -fuse-ld=mold", "mold", marks=pytest.mark.long),
            (OBJECTS, "clang -flto -fno-inline -Wno-unused-command-line-argument -fuse-ld=gold", "gold"),
            pytest.param(ONE_STEP, "clang -flto=thin -fno-inline -fuse-ld=lld", "lld", marks=pytest.mark.long),
        ],
        keep=3,
    ),
)
def test_compilers_and_linkers(c_project: Project, build: str, driver: str, linker: str) -> None:
    c_project.build(build.format(driver))
    found = c_project.relinker("program")
    assert found.linker.name.startswith(f"{linker} ")
    require_layouts(found, c_project.folder / "program", c_project.work / "out", r"f\d+|main")


@pytest.mark.parametrize(("options", "linker"), [("", "GNU ld"), ("-fuse-ld=gold", "gold")])
def test_linkers_that_are_told_an_order(
    c_project: Project, monkeypatch: pytest.MonkeyPatch, options: str, linker: str
) -> None:
    tools = c_project.folder.parent / "tools"
    tools.mkdir()
    for name in ("gcc", "as", "ld", "ld.gold", "ld.bfd"):
        (tools / name).symlink_to(str(shutil.which(name)))
    monkeypatch.setattr(link_command, "_MOLD_FOLDERS", ())
    c_project.build(f"gcc {options} -Wl,--gc-sections main.c called.c -o program", PATH=str(tools))
    found = c_project.relinker("program")
    assert found.linker.name.startswith(f"{linker} ")
    require_layouts(found, c_project.folder / "program", c_project.work / "out", r"f\d+|main")


def test_padding_moves_a_function_to_every_slot_of_a_line(c_project: Project) -> None:
    c_project.build("gcc -O1 main.c called.c -o program")
    found = c_project.relinker("program")
    slots: set[int] = set()
    seeds = iter(range(1, 21))
    while not {0, 16, 32, 48} <= slots:
        seed = next(seeds)
        found.link(seed, c_project.work / "out")
        listed = subprocess.run(["nm", str(c_project.work / "out")], capture_output=True, text=True, check=True).stdout
        slots.add(next(int(line.split()[0], 16) % 64 for line in listed.splitlines() if line.endswith(" f3")))


def test_later_builds_in_the_same_tree_do_not_disturb(c_project: Project) -> None:
    command = "gcc -c called.c; ar rcs libcalled.a called.o; gcc -c main.c; gcc main.o libcalled.a -o program"
    c_project.build(command)
    found = c_project.relinker("program")
    found.link(7, c_project.work / "before")
    (c_project.folder / "called.c").write_text((c_project.folder / "called.c").read_text().replace("3)", "4)"))
    c_project.build(f"rm -f ./*.o ./*.a program; {command}")
    found.link(7, c_project.work / "after")
    assert (c_project.work / "before").read_bytes() == (c_project.work / "after").read_bytes()


def test_several_layouts_may_be_linked_at_once(c_project: Project) -> None:
    c_project.build("gcc -O1 -flto -fno-inline main.c called.c -o program")
    found = c_project.relinker("program")
    places = [c_project.work / f"out{number}" for number in range(6)]
    with ThreadPoolExecutor(3) as pool:
        list(pool.map(found.link, [1, 2, 3, 1, 2, 3], places))
    contents = [place.read_bytes() for place in places]
    assert contents[:3] == contents[3:]
    assert len(set(contents)) == 3


def test_nothing_is_written_beside_the_build(c_project: Project) -> None:
    c_project.build(
        "gcc -O1 -MD -MF x.d main.c called.c -o program -Wl,-Map=program.map -Xlinker -Map -Xlinker other.map"
    )
    for name in ("program.map", "other.map", "x.d"):
        (c_project.folder / name).unlink(missing_ok=True)
    before = sorted(c_project.folder.iterdir())
    c_project.relinker("program").link(1, c_project.work / "out")
    assert sorted(c_project.folder.iterdir()) == before
    assert [path.name for path in c_project.work.iterdir() if path.name.startswith(".perfflow")] == []


def test_the_executable_is_found_by_what_it_holds(c_project: Project) -> None:
    c_project.build("gcc main.c called.c -o program; cp program installed; mv program moved")
    for name in ("installed", "moved"):
        require_layouts(c_project.relinker(name), c_project.folder / name, c_project.work / "out")


@needs("g++", "ar")
def test_templates_archives_and_shared_libraries(c_project: Project) -> None:
    (c_project.folder / "twice.hpp").write_text(
        "template <class T> __attribute__((noinline)) T twice(T x) { return x + x; }\n"
        "inline __attribute__((noinline)) long thrice(long x) { static volatile long v; v = x; return 3 * v; }\n"
    )
    many = "".join(f"long a{number}(long x) {{ return thrice(x) + {number}; }}\n" for number in range(9))
    (c_project.folder / "a.cpp").write_text(
        f'#include "twice.hpp"\n{many}long a(long x) {{ return twice(x) + thrice(x); }}\n'
    )
    (c_project.folder / "b.cpp").write_text(
        '#include "twice.hpp"\n#include <cstdio>\n#include <string>\nextern "C" { int f3(int); int f4(int); }\n'
        "long a(long);\nint main() { std::puts(std::to_string(a(twice(4L)) + thrice(2) + f3(1) + f4(1)).c_str()); }\n"
    )
    c_project.build(
        "gcc -fPIC -shared -Wl,-soname,libcalled.so called.c -o libcalled.so; gcc -c called.c;"
        "g++ -O1 -c a.cpp; g++ -O1 -c b.cpp;"
        "ar rcs liba.a a.o called.o; ar rcsT thin.a a.o called.o;"
        "g++ b.o liba.a -o archive; g++ b.o thin.a -o thin; g++ b.o a.o ./libcalled.so -Wl,-rpath,$PWD -o shared"
    )
    for name in ("archive", "thin", "shared"):
        found = c_project.relinker(name)
        require_layouts(found, c_project.folder / name, c_project.work / "out", "_Z.*|main|f3")
    c_project.build("touch libcalled.so")
    with pytest.raises(LayoutsRefusedError, match=r"libcalled\.so has changed since it was linked: build it again"):
        found.link(3, c_project.work / "out")


@needs("cmake", "ninja", "g++")
@pytest.mark.parametrize("generator", ["Ninja", pytest.param("Unix Makefiles", marks=pytest.mark.long)])
def test_cmake(c_project: Project, generator: str) -> None:
    (c_project.folder / "CMakeLists.txt").write_text(
        "cmake_minimum_required(VERSION 3.10)\nproject(x C)\nset(CMAKE_NINJA_FORCE_RESPONSE_FILE 1)\n"
        "add_library(called STATIC called.c)\nadd_executable(program main.c)\ntarget_link_libraries(program called)\n"
    )
    c_project.build(f"cmake -G '{generator}' -B build .; cmake --build build -j4")
    require_layouts(c_project.relinker("build/program"), c_project.folder / "build" / "program", c_project.work / "out")


@needs("g++")
@pytest.mark.skipif(not Path("/usr/include/benchmark").is_dir(), reason="needs the library Google Benchmark")
def test_google_benchmark(c_project: Project) -> None:
    (c_project.folder / "suite.cpp").write_text(
        "#include <benchmark/benchmark.h>\nstatic void one(benchmark::State& s) { for (auto _ : s) {} }\n"
        "static void two(benchmark::State& s) { for (auto _ : s) {} }\nBENCHMARK(one);\nBENCHMARK(two);\n"
        "BENCHMARK_MAIN();\n"
    )
    c_project.build("g++ -O1 suite.cpp -o suite -lbenchmark -lpthread")
    found = c_project.relinker("suite")
    orders = set()
    for seed in (1, 2, 3):
        found.link(seed, c_project.work / "out")
        orders.add(tuple(order(c_project.work / "out", "_ZL.*|main")))
    assert len(orders) > 1
    listed = [str(c_project.work / "out"), "--benchmark_list_tests"]
    assert subprocess.run(listed, capture_output=True, text=True, check=True).stdout == "one\ntwo\n"
