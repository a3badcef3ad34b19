"""``perfflow init`` for files of a project: the detected kind, and a workflow that can be planned."""

from __future__ import annotations

import json
import os
import re
import shutil
import time
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path

import pytest

from perfflow.jobs.start.write_starter import write
from perfflow.library import detect_project
from perfflow.library.detect_project import ProjectKind
from perfflow.library.project_files import ProjectFiles
from perfflow.library.starter_for import Start, start
from perfflow.model.errors import Severity, UserError
from perfflow.session.compared_trees import problems_of
from perfflow.session.open_workflow import Opened, open_workflow
from tests.cli.shell import perfflow
from tests.repositories import git
from tests.toolchains import needs_catch2

TEST = "def test_sum(benchmark):\n    benchmark(sum, [1])\n"
SCRIPT = "import pyperf\n\nrunner = pyperf.Runner()\nrunner.timeit('sum', 'sum([1])')\n"
CMAKE = """
cmake_minimum_required(VERSION 3.13)
project(speed)
find_package(benchmark REQUIRED)
add_subdirectory(perf)
"""
TARGET = "add_executable(bench_all a.cpp)\ntarget_link_libraries(bench_all PRIVATE m benchmark::benchmark_main)\n"
MAKE = "CXXFLAGS = -O2\nall: tool bench\nbench: bench.cpp\n\t$(CXX) -o $@ $< -lbenchmark -lpthread\n"
MAKE_VARIABLE = "LDLIBS = -lbenchmark\nall: tool fast-bench\ntool: tool.o\nfast-bench: bench.o\n"
CATCH2 = '#include <catch2/catch_all.hpp>\nTEST_CASE("a", "[.benchmark]") { BENCHMARK("b") { return 1; }; }\n'
NANOBENCH = '#include "deps/nanobench.h"\nint main() { ankerl::nanobench::Bench().run("a", [] {}); }\n'
GOOGLE = "#include <benchmark/benchmark.h>\nBENCHMARK(parse);\n"
TWO = "project(x)\nadd_executable(tool tool.cpp)\nadd_executable(speed\n  ${CMAKE_CURRENT_SOURCE_DIR}/b.cpp m.cpp)\n"
MESON = "project('x', 'cpp')\nexecutable('tool', 't.cpp')\nsub = executable('speed', files('b.cpp'), link_with: x)\n"
CARGO = '[package]\nname = "quick"\nversion = "1.0.0"\n'
TINYBENCH = '{"scripts": {"bench": "node b"}, "devDependencies": {"tinybench": "6", "tsx": "4"}}'
JMH = "import org.openjdk.jmh.annotations.*;\n\npublic class ParseBench {\n    @Benchmark\n    public int parse() {\n"
JMH += "        return 1;\n    }\n}\n"
POM = "<project><modules><module>bench</module></modules></project>"
JMH_POM = "<project><artifactId>jmh-core</artifactId></project>"
JMH_PLUGIN = "plugins { id 'me.champeau.jmh' }"
GO_TEST = (
    'package speed\n\nimport "testing"\n\nfunc BenchmarkParse(b *testing.B) {\n\tfor i := 0; i < b.N; i++ {\n\t}\n}\n'
)

SERVER = "from http.server import HTTPServer\n\nif __name__ == '__main__':\n    HTTPServer(('', 8000), None)\n"
GO_SERVER = 'package main\n\nfunc main() {\n\thttp.ListenAndServe(":8000", nil)\n}\n'

Files = Mapping[str, str]
PROJECTS: list[tuple[Files, ProjectKind, str]] = [
    ({"tests/test_a.py": TEST}, ProjectKind.PYTEST, "tests/test_a.py"),
    ({"benchmarking/bench_a.py": TEST}, ProjectKind.PYTEST, "benchmarking/bench_a.py"),
    ({"src/pkg/deep/test_a.py": TEST}, ProjectKind.PYTEST, "src/pkg/deep/test_a.py"),
    ({"pyproject.toml": "[project]\ndependencies = ['pytest-benchmark>=4']\n"}, ProjectKind.PYTEST, '["."]'),
    ({"requirements-dev.txt": "pytest_benchmark\n"}, ProjectKind.PYTEST, '["."]'),
    ({"asv.conf.json": "{}"}, ProjectKind.ASV, '"asv.conf.json"'),
    ({"asv_bench/asv.conf.json": "{}"}, ProjectKind.ASV, '"asv_bench/asv.conf.json"'),
    ({"bench.py": SCRIPT}, ProjectKind.PYPERF, 'script: "bench.py"'),
    ({"perf/a.py": SCRIPT, "perf/b.py": SCRIPT}, ProjectKind.PYPERF, 'benchmark: "b/*"'),
    ({"CMakeLists.txt": CMAKE, "perf/CMakeLists.txt": TARGET}, ProjectKind.GOOGLE, '"build/perf/bench_all"'),
    ({"Makefile": MAKE}, ProjectKind.GOOGLE, '"./bench"'),
    ({"Makefile": MAKE_VARIABLE}, ProjectKind.GOOGLE, '"./fast-bench"'),
    ({"CMakeLists.txt": "project(x)\nadd_executable(tool a.c)\n"}, ProjectKind.CMAKE, '"build/tool"'),
    ({"CMakeLists.txt": TWO, "b.cpp": CATCH2}, ProjectKind.CATCH2, 'command: "build/speed"\n        # Test cases'),
    ({"CMakeLists.txt": TWO, "b.cpp": CATCH2}, ProjectKind.CATCH2, 'filter: "[benchmark]"'),
    ({"CMakeLists.txt": TWO, "src/x.cpp": NANOBENCH}, ProjectKind.NANOBENCH, 'command: "build/tool"'),
    ({"meson.build": "project('x')", "p/meson.build": MESON, "p/b.cpp": CATCH2}, ProjectKind.CATCH2, '"build/p/speed"'),
    ({"meson.build": MESON, "b.cpp": GOOGLE}, ProjectKind.GOOGLE, "meson setup build -Doptimization=3 -Ddebug=true"),
    ({"Makefile": "tool: t.o\nspeed: b.cpp\n\t$(CXX) $<\n", "b.cpp": NANOBENCH}, ProjectKind.NANOBENCH, '"./speed"'),
    ({"go.mod": "module example.org/speed\n", "a_test.go": GO_TEST}, ProjectKind.GO, "speed.BenchmarkParse/size=10"),
    ({"api/go.mod": "module api\n", "api/v1/a_test.go": GO_TEST}, ProjectKind.GO, 'with: {module: "api"}'),
    ({"go.mod": "module example.org/speed\n", "main.go": "package main\n"}, ProjectKind.GO, '"build/speed"'),
    ({"go.mod": "module speed\n"}, ProjectKind.GO, "go test"),
    ({"package.json": '{"scripts": {"bench": "node b.js"}}'}, ProjectKind.NODE, "npm run --silent bench"),
    ({"package.json": '{"main": "index.js"}', "index.js": ""}, ProjectKind.NODE, "node index.js"),
    ({"package.json": "["}, ProjectKind.NODE, "npm test"),
    ({"package.json": TINYBENCH, "b/a.ts": "import {Bench} from 'tinybench'"}, ProjectKind.NODE, "--import tsx"),
    ({"package.json": TINYBENCH, "b/a.js": "import {Bench} from 'tinybench'"}, ProjectKind.NODE, 'file: ["b/a.js"]'),
    (
        {"package.json": '{"workspaces": ["p/*"]}', "p/a/package.json": TINYBENCH, "p/a/b.js": "require('tinybench')"},
        *(ProjectKind.NODE, 'file: ["p/a/b.js"]'),
    ),
    ({"package.json": '{"devDependencies": {"vitest": "4"}}', "a.bench.ts": ""}, ProjectKind.NODE, "uses: node-bench"),
    ({"pom.xml": "<project/>"}, ProjectKind.MAVEN, "mvn -q test"),
    ({"build.gradle.kts": ""}, ProjectKind.GRADLE, "gradle --quiet --no-daemon test"),
    ({"app/server.py": SERVER}, ProjectKind.SERVICE, "exec python3 app/server.py"),
    ({"package.json": '{"main": "s.js"}', "s.js": "createServer(f).listen(1)"}, ProjectKind.NODE, "background: true"),
    ({"go.mod": "module example.org/speed\n", "main.go": GO_SERVER}, ProjectKind.GO, "needs: [compile]"),
    ({"shop.db": "", "q/total.sql": "-- all\n SELECT 1"}, ProjectKind.SQLITE, 'script: "q/total.sql"'),
    ({"pom.xml": JMH_POM, "src/main/java/ParseBench.java": JMH}, ProjectKind.MAVEN, "ParseBench.parse/size=10"),
    ({"pom.xml": POM, "bench/pom.xml": JMH_POM, "bench/x/B.java": JMH}, ProjectKind.MAVEN, 'module: "bench"'),
    ({"pom.xml": "", "own/pom.xml": JMH_POM, "own/x/B.java": JMH}, ProjectKind.MAVEN, 'project: "own"'),
    ({"build.gradle": JMH_PLUGIN, "src/jmh/java/B.java": JMH}, ProjectKind.GRADLE, "uses: jmh"),
    ({"Cargo.toml": CARGO, "benches/old.rs": "#[bench]\nfn b() {}\n"}, ProjectKind.CARGO, 'bench: ["old"]'),
]


def make(folder: Path, files: Files) -> Path:
    for name, text in files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text)
    return folder


def begun(folder: Path, *, kind: ProjectKind | None = None, command: str = "") -> Start:
    return start(folder, folder, kind=kind, command=command, name="first")


@pytest.fixture(autouse=True)
def _here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def written(folder: Path, found: Start) -> Opened:
    return open_workflow(str(write(found, folder)))


@pytest.mark.parametrize(
    ("files", "command", "checks"),
    [
        ({}, "./program", ["same-output"]),
        ({"Cargo.toml": CARGO, "src/main.rs": ""}, "", ["tests", "same-output"]),
        ({"Cargo.toml": CARGO, "benches/old.rs": "#[bench]\nfn b() {}\n"}, "", ["tests"]),
        ({"tests/test_a.py": TEST}, "", ["tests"]),
        ({"bench.py": SCRIPT}, "", []),
    ],
)
def test_a_first_workflow_can_judge_patches(files: Files, command: str, checks: list[str], tmp_path: Path) -> None:
    make(tmp_path, files)
    if not checks:
        with pytest.raises(UserError, match="not how to check a patch"):
            start(tmp_path, tmp_path, kind=None, command=command, name="first", patches=True)
        return
    opened = written(tmp_path, start(tmp_path, tmp_path, kind=None, command=command, name="first", patches=True))
    assert opened.problems == ()
    stages = opened.draft.workflow.stages
    assert (stages["optimize"].accept, stages["optimize"].forbid) == ("10%", ["workflows/**"])
    assert [step.id for step in stages["verify"].steps] == checks


@pytest.mark.parametrize(("files", "kind", "part"), PROJECTS)
def test_the_kind_is_told_by_files_and_its_workflow_can_run(
    files: Files, kind: ProjectKind, part: str, tmp_path: Path
) -> None:
    make(tmp_path, files)
    assert [found.kind for found in detect_project.kinds(ProjectFiles(tmp_path))] == [kind]
    found = begun(tmp_path)
    assert part in found.text
    assert "@" not in found.text.replace("@REV", "")
    assert written(tmp_path, found).problems == ()
    measures_program = kind in (ProjectKind.NODE, ProjectKind.MAVEN, ProjectKind.GRADLE) and not any(
        word in found.text for word in ("uses: jmh", "node-bench", "background")
    )
    assert ("so this measures a command" in found.note) == measures_program


@pytest.mark.parametrize(
    ("files", "library"),
    [
        ({"package.json": '{"scripts": {"bench": "node b"}, "devDependencies": {"benchmark": "2"}}'}, "benchmark"),
        ({"package.json": '{"scripts": {"benchmark": "vitest bench"}, "dependencies": {"vitest": "4"}}'}, "vitest"),
        ({"pom.xml": JMH_POM, "src/test/java/B.java": JMH}, "JMH"),
        ({"build.gradle": JMH_PLUGIN}, "JMH"),
    ],
)
def test_what_runs_for_a_fixed_time_is_not_measured_as_a_whole(files: Files, library: str, tmp_path: Path) -> None:
    make(tmp_path, files)
    with pytest.raises(UserError, match=f"{library} runs each benchmark for a fixed time"):
        begun(tmp_path)
    assert "./work" in begun(tmp_path, command="./work").text


def test_each_go_module_is_a_step_and_a_workspace_is_one(tmp_path: Path) -> None:
    files = {
        f"{name}/{file}": text for name in "ab" for file, text in (("go.mod", "module x\n"), ("x_test.go", GO_TEST))
    }
    make(tmp_path, files)
    assert re.findall(r"id: (\w+)", begun(tmp_path).text) == ["a", "b", "where"]
    make(tmp_path, {"go.work": "use ./a\nuse ./b\n"})
    assert re.findall(r"id: (\w+)", begun(tmp_path).text) == ["suite", "where"]


def test_of_two_kinds_one_is_chosen_and_the_other_named(tmp_path: Path) -> None:
    make(tmp_path, {"tests/test_a.py": TEST, "bench.py": SCRIPT, "package.json": "{}"})
    found = begun(tmp_path)
    assert found.about == "the pytest-benchmark suite in tests/test_a.py"
    assert [str(other) for other in found.others] == ["pyperf (bench.py)", "node (package.json)"]
    assert "uses: pyperf" in begun(tmp_path, kind=ProjectKind.PYPERF).text


def test_a_command_gets_a_profiler_that_fits_it(tmp_path: Path) -> None:
    found = begun(tmp_path, command="python3 main.py --size 10")
    opened = written(tmp_path, found)
    assert [item.step.tool_name for item in opened.plan.steps] == ["command", "auto"]
    assert found.about == "a Python command"
    assert "#- {id: heap, uses: tracemalloc, benchmark: program}" in found.text
    assert "#- {id: heap, uses: massif, benchmark: program}" in begun(tmp_path, command="./main").text
    assert "uses: jfr, benchmark: program" in begun(tmp_path, command="java -jar main.jar").text


@pytest.mark.parametrize(
    ("command", "clean"),
    [
        ("make -j 4", "make clean"),
        ("cargo build --release", "cargo clean"),
        ("cmake --build out -j", "cmake --build out --target clean"),
        ("make bench", ""),
        ("make && ./bench", ""),
    ],
)
def test_a_build_that_would_do_nothing_again_is_cleaned_before_each_sample(
    command: str, clean: str, tmp_path: Path
) -> None:
    make(tmp_path, {"Makefile": "all: main\nclean:\n\trm main\n"})
    found = begun(tmp_path, command=command)
    assert ("uses: build-time" in found.text) == bool(clean)
    assert f'clean: "{clean}"' in found.text or not clean
    assert written(tmp_path, found).problems == ()


def test_scripts_that_do_not_begin_with_a_query_are_left_out(tmp_path: Path) -> None:
    make(tmp_path, {"shop.sqlite": "", "make.sql": "create table a(b)", "blank.sql": " " * 10**6, "q.sql": "with a as"})
    assert re.findall(r'script: "(.*)"', begun(tmp_path).text) == ["q.sql"]


@pytest.mark.parametrize("name", [".venv", "venv", "node_modules"])
def test_what_git_ignores_and_trees_need_is_shared(name: str, tmp_path: Path) -> None:
    git(tmp_path, "init", "-q")
    (tmp_path / name / "bin").mkdir(parents=True)
    (tmp_path / name / "bin" / "python").symlink_to("/usr/bin/python3")
    make(tmp_path, {"test_a.py": TEST})
    assert "worktree" not in begun(tmp_path).text
    make(tmp_path, {".gitignore": f"{name}/\ntarget/\nbuild/\n", "build/x": "", "target/x": "", "dist/x": ""})
    assert f'that a gate compares.\n  share: ["{name}"]\n' in begun(tmp_path).text


def test_an_environment_is_shared_from_below_the_top_and_its_python_named(tmp_path: Path) -> None:
    git(tmp_path, "init", "-q")
    make(tmp_path, {".gitignore": ".venv\n", ".venv/bin/python": "", "part/test_a.py": TEST})
    found = start(tmp_path / "part", tmp_path, kind=None, command="", name="first")
    assert 'share: [".venv"]' in found.text
    assert '"../.venv/bin/python"' in found.text
    assert problems_of(written(tmp_path, found)) == ()


def test_a_suite_finds_the_packages_of_a_project_that_is_not_installed(tmp_path: Path) -> None:
    make(tmp_path, {"bench/run.py": SCRIPT, "src/shop/__init__.py": "", "pyproject.toml": '[project]\nname = "shop"\n'})
    assert '\n  PYTHONPATH: "src:."\n' in begun(tmp_path).text
    make(tmp_path, {".venv/lib/python3.11/site-packages/shop-1.0.dist-info/RECORD": ""})
    assert "PYTHONPATH" not in begun(tmp_path).text


def test_what_leads_back_into_the_tree_is_not_shared_and_a_comment_says_why(tmp_path: Path) -> None:
    git(tmp_path, "init", "-q")
    make(tmp_path, {".gitignore": "node_modules\n", "packages/own/index.js": "", "package.json": "{}"})
    (tmp_path / "node_modules").mkdir()
    (tmp_path / "node_modules" / "own").symlink_to("../packages/own")
    text = begun(tmp_path).text
    assert "\nworktree:" not in text
    assert "# worktree.share: node_modules links back into your tree (node_modules/own → packages/own)" in text


ENDLESS = (
    {"test_a.py": "def test_a(" * 90_000 + "benchmark", "tests/test_b.py": "\n" * 1_000_000}
    | {"CMakeLists.txt": "target_link_libraries(" * 45_000 + "benchmark"}
    | {"b.cpp": CATCH2 + "#include <" * 100_000, "meson.build": "executable('a'" * 70_000}
    | {"Makefile": "-lbenchmark" + "a:" * 500_000, "package.json": "[" * 1_000_000}
    | {"Cargo.toml": "[" + "a." * 10_000 + "a]\n", "bench.py": "Runner(" + " import pyperf" * 70_000}
)


@pytest.mark.parametrize("name", ENDLESS)
def test_no_file_takes_long(name: str, tmp_path: Path) -> None:
    make(tmp_path, {name: ENDLESS[name]})
    # CPU time, because other load must not count.
    began = time.process_time()
    with suppress(UserError):
        begun(tmp_path)
    assert time.process_time() - began < 5


def test_only_regular_files_of_the_project_are_read(tmp_path: Path) -> None:
    outside = make(tmp_path / "outside", {"test_a.py": TEST, "package.json": '{"scripts": {"bench": "x"}}'})
    project = tmp_path / "project"
    project.mkdir()
    (project / "test_a.py").symlink_to(outside / "test_a.py")
    (project / "tests").symlink_to(outside)
    (project / "loop.py").symlink_to("loop.py")
    os.mkfifo(project / "test_pipe.py")
    (project / "test_large.py").write_text(TEST + "#" * 2**20)
    (project / "test_${{ env.HOME }}.py").write_text(TEST)
    assert detect_project.kinds(ProjectFiles(project)) == ()
    (project / "package.json").symlink_to(outside / "package.json")
    os.mkfifo(project / "Makefile")
    assert "npm test" in begun(project).text


def test_names_of_a_hostile_manifest_reach_no_shell(tmp_path: Path) -> None:
    programs = "".join(f"[[bin]]\nname = {name}\n" for name in ('"a; touch owned"', "'x${{ env.HOME }}'", '"b\\nc"'))
    make(tmp_path, {"Cargo.toml": CARGO + programs, "src/main.rs": "fn main() {}\n"})
    opened = written(tmp_path, begun(tmp_path))
    assert [item.step.run for item in opened.plan.steps if item.step.timed] == ["target/release/quick"]
    assert not [item for item in opened.problems if item.severity is Severity.ERROR]


GO_SUITE = {
    "go.mod": "module example.org/speed\n\ngo 1.21\n",
    "sum.go": "package speed\n\nfunc Sum(to int) (sum int) {\n"
    "\tfor i := 0; i < to; i++ {\n\t\tsum += i\n\t}\n\treturn\n}\n",
    "sum_test.go": 'package speed\n\nimport "testing"\n\nfunc BenchmarkSum(b *testing.B) {\n'
    "\tfor i := 0; i < b.N; i++ {\n\t\tSum(3000000)\n\t}\n}\n",
    "deep/down_test.go": GO_TEST,
}
NODE_SUITE = {
    "package.json": '{"scripts": {"bench": "node bench.js"}}',
    "bench.js": "let sum = 0\nfor (let i = 0; i < 5e7; i++) sum += i % 7\nconsole.log(sum)\n",
}
_WORDS = Path(__file__).parents[2] / "examples/cpp-words"
CPP_SUITE = {str(path.relative_to(_WORDS)): path.read_text() for path in sorted(_WORDS.rglob("*.*")) if path.is_file()}
OF_NANOBENCH = {name: text for name, text in CPP_SUITE.items() if "catch2" not in name and name != "CMakeLists.txt"}
OF_NANOBENCH["meson.build"] = re.sub(r"(?ms)^catch2 = .*^endif\n", "", CPP_SUITE["meson.build"])
JVM_SUITE = {
    "pom.xml": (Path(__file__).parents[2] / "examples/java-words/pom.xml").read_text(),
    "src/main/java/speed/Sum.java": "package speed;\n\nfinal class Sum {\n    static int to(int end) {\n"
    "        int sum = 0;\n        for (int i = 0; i < end; i++) {\n            sum = (sum ^ i) % 1000;\n        }\n"
    "        return sum;\n    }\n}\n",
    "src/main/java/speed/SumBench.java": "package speed;\n\nimport org.openjdk.jmh.annotations.Benchmark;\n\n"
    "public class SumBench {\n    @Benchmark\n    public int sum() {\n        return Sum.to(10000);\n    }\n}\n",
}


@pytest.mark.parametrize(
    ("program", "files", "step", "location", "profiler"),
    [
        pytest.param("cmake", CPP_SUITE, "where", "count", "perf", marks=[needs_catch2, pytest.mark.long]),
        pytest.param("meson", OF_NANOBENCH, "where", "count", "perf", marks=pytest.mark.long),
        pytest.param("go", GO_SUITE, "where", "speed.Sum", "go-pprof", marks=pytest.mark.long),
        ("node", NODE_SUITE, "cpu", "bench.js", "perf"),
        pytest.param("mvn", JVM_SUITE, "where", "Sum.to", "jfr", marks=pytest.mark.long),
    ],
)
def test_a_first_workflow_runs_as_it_is(
    program: str, files: Files, step: str, location: str, profiler: str, tmp_path: Path
) -> None:
    if not (shutil.which(program) and shutil.which("perf")):
        pytest.skip(f"{program} or perf is missing")
    git(tmp_path, "init", "-q")
    make(tmp_path, files)
    assert perfflow("init", "--name", "first", cwd=tmp_path).returncode == 0
    # What is decided is decided sooner. Compilers take a minute on a busy machine.
    done = perfflow("run", "first", "--progress", "off", "--budget", "300s", "--json", cwd=tmp_path, measured=True)
    result = json.loads(done.stdout)
    assert done.returncode == 0, result["reasons"]
    assert {item["id"]: item["status"] for item in result["steps"]}[step] == "done"
    found = [item for item in result["hotspots"] if location in f"{item['location']} {item['file']}"]
    assert found[0]["source"] == profiler


def test_a_folder_of_builds_that_git_would_show_is_named(tmp_path: Path) -> None:
    make(tmp_path, {"go.mod": "module speed\n", "main.go": "package main\n"})
    assert begun(tmp_path).unignored == ""
    git(tmp_path, "init", "-q")
    assert begun(tmp_path).unignored == "build"
    assert "note: it builds into build/, which git does not ignore" in perfflow("init", cwd=tmp_path).stdout
    make(tmp_path, {".gitignore": "build/\n"})
    assert begun(tmp_path).unignored == ""
    assert begun(tmp_path, command="python3 main.py", kind=ProjectKind.COMMAND).unignored == ""


def test_a_gradle_build_leaves_no_daemon_and_java_names_its_functions(tmp_path: Path) -> None:
    make(tmp_path, {"build.gradle": "apply plugin: 'java'\n"})
    (program, cpu) = written(tmp_path, begun(tmp_path)).plan.steps
    assert "--no-daemon" in str(program.step.run)
    assert "-XX:+DumpPerfMapAtExit" in str(cpu.step.env["JAVA_TOOL_OPTIONS"])
