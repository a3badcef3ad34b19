"""``perfflow init`` in fresh projects of each kind, and the workflow that it wrote run as it is."""

from __future__ import annotations

import json
import os
import shlex
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.cli.shell import perfflow
from tests.tools.harness import CRATE, PROGRAMS, SORTS, compiler

MANIFEST = '[package]\nname = "hot-path"\nversion = "0.1.0"\nedition = "2021"\n'
MAIN = 'fn main() { let v: Vec<u64> = (0..100000).collect(); println!("{}", v.iter().sum::<u64>()); }\n'
BENCH = "def test_sum(benchmark):\n    assert benchmark(sum, range(100)) == 4950\n"


def run(folder: Path, name: str) -> dict[str, Any]:
    scripts = str(Path(sys.executable).parent)
    done = perfflow(
        *("run", name, "--budget", "60s", "--progress", "off", "--json"),
        cwd=folder,
        measured=True,
        env={"PERFFLOW_LOCK_FILE": str(folder / "lock"), "PATH": f"{scripts}{os.pathsep}{os.environ['PATH']}"},
    )
    assert done.returncode == 0, f"{done.stdout}\n{done.stderr}"
    result: dict[str, Any] = json.loads(done.stdout)
    assert result["verdict"] == "pass"
    return result


def begin(folder: Path, *arguments: str) -> list[str]:
    done = perfflow("init", *arguments, cwd=folder)
    assert done.returncode == 0, done.stderr
    return done.stdout.splitlines()


def test_a_plain_command(tmp_path: Path) -> None:
    said = begin(tmp_path, "--command", "sh -c 'echo hi'", "--name", "greeting")
    assert said == [
        "wrote workflows/greeting.yaml, for a command",
        "next:",
        "  perfflow plan greeting",
        "  perfflow run greeting",
    ]
    assert perfflow("plan", "greeting", cwd=tmp_path).returncode == 0
    assert {row["name"] for row in run(tmp_path, "greeting")["benchmarks"]} >= {"program"}


def test_a_command_that_needs_a_shell_gets_one(tmp_path: Path) -> None:
    (tmp_path / "n.txt").write_text("1\n2\n")
    begin(tmp_path, "--command", "wc -l < n.txt && sleep 0.01", "--name", "lines")
    assert '  run: "wc -l < n.txt && sleep 0.01"' in (tmp_path / "workflows" / "lines.yaml").read_text()
    shown = json.loads(perfflow("show", "lines", "--json", cwd=tmp_path).stdout)
    argv = shown["steps"][0]["argv"]["baseline"]
    assert (argv[0], argv[-1]) == ("bash", "wc -l < n.txt && sleep 0.01")
    assert run(tmp_path, "lines")["steps"][0]["status"] == "done"


def test_a_command_that_needs_none_gets_none(tmp_path: Path) -> None:
    begin(tmp_path, "--command", "sh -c 'echo a | cat'", "--name", "quoted")
    shown = json.loads(perfflow("show", "quoted", "--json", cwd=tmp_path).stdout)
    assert shown["steps"][0]["argv"]["baseline"] == ["sh", "-c", "echo a | cat"]


@pytest.mark.parametrize("command", ["true", "sleep 0.05", "seq 1000 | sort", f"{sys.executable} -c 'print(1)'"])
def test_no_step_fails_on_a_short_program(command: str, tmp_path: Path) -> None:
    begin(tmp_path, "--command", command, "--name", "short")
    assert {step["status"] for step in run(tmp_path, "short")["steps"]} == {"done"}


@pytest.mark.parametrize("name", ["tiny.yaml", "tiny.yml", "tiny"])
def test_a_name_may_carry_the_files_suffix(name: str, tmp_path: Path) -> None:
    assert begin(tmp_path, "--command", "true", "--name", name)[-1] == "  perfflow run tiny"
    assert [path.name for path in (tmp_path / "workflows").iterdir()] == ["tiny.yaml"]


def test_a_default_name_hides_no_workflow_of_the_library(tmp_path: Path) -> None:
    folder = tmp_path / "two-commands"
    folder.mkdir()
    assert begin(folder, "--command", "true")[-1] == "  perfflow run two-commands-perf"
    # A name given by the user is used.
    assert begin(folder, "--command", "true", "--name", "two-commands")[-1] == "  perfflow run two-commands"


def test_a_command_that_make_builds(tmp_path: Path) -> None:
    (tmp_path / "Makefile").write_text("all: program\nprogram:\n\tcp $(shell which true) program\n")
    assert "built by `make all`" in begin(tmp_path, "--command", "./program", "--name", "p")[0]
    assert [step["id"] for step in run(tmp_path, "p")["steps"]] == ["build", "program", "where"]


def test_a_pytest_benchmark_project(tmp_path: Path) -> None:
    folder = tmp_path / "my project"
    (folder / "tests").mkdir(parents=True)
    (folder / "tests" / "test_speed.py").write_text(BENCH)
    (folder / "tests" / "test_other.py").write_text("def test_nothing():\n    assert False\n")
    assert begin(folder)[0] == (
        "wrote workflows/my-project.yaml, for the pytest-benchmark suite in tests/test_speed.py"
    )
    result = run(folder, "my-project")
    assert {row["name"] for row in result["benchmarks"]} == {"tests/test_speed.py::test_sum"}
    assert [(check["id"], check["status"]) for check in result["verification"]] == [("tests", "passed")]


def test_a_cargo_project(tmp_path: Path) -> None:
    (tmp_path / "src").mkdir()
    (tmp_path / "Cargo.toml").write_text(MANIFEST)
    (tmp_path / "src" / "main.rs").write_text(MAIN)
    assert begin(tmp_path)[-1] == "  perfflow run hot-path"
    result = run(tmp_path, "hot-path")
    steps = ("release", "program", "where", "tests")
    assert {step["id"]: step["status"] for step in result["steps"]} == dict.fromkeys(steps, "done")


def test_a_library_crate_is_measured_by_its_example(tmp_path: Path) -> None:
    (tmp_path / "src").mkdir()
    (tmp_path / "examples").mkdir()
    (tmp_path / "Cargo.toml").write_text(MANIFEST)
    (tmp_path / "src" / "lib.rs").write_text("pub fn sum() -> u64 { (0..100000u64).sum() }\n")
    (tmp_path / "examples" / "small.rs").write_text('fn main() { println!("{}", hot_path::sum()); }\n')
    assert begin(tmp_path)[0].endswith("for the program target/release/examples/small of a Cargo project")
    assert {row["name"] for row in run(tmp_path, "hot-path")["benchmarks"]} >= {"program"}


def test_a_workspace_of_which_members_have_criterion_benchmarks(tmp_path: Path) -> None:
    (tmp_path / "Cargo.toml").write_text('[workspace]\nmembers = ["crates/*"]\n')
    shutil.copytree(CRATE / "second", tmp_path / "crates" / "second")
    # A separate workspace, whose packages do not belong to this one.
    shutil.copytree(CRATE, tmp_path / "apart", ignore=shutil.ignore_patterns("target"))
    (tmp_path / "crates" / "bare").mkdir()
    (tmp_path / "crates" / "bare" / "Cargo.toml").write_text('[package]\nname = "bare"\n')
    (tmp_path / "crates" / "damaged").mkdir()
    (tmp_path / "crates" / "damaged" / "Cargo.toml").write_text("[package")
    assert begin(tmp_path)[0].endswith("for the criterion benchmarks of a Cargo project (second): conductor")
    shown = json.loads(perfflow("show", tmp_path.name, "--json", cwd=tmp_path).stdout)
    argv = shown["steps"][0]["argv"]["baseline"]
    assert argv[-2:] == ["--bench=conductor", "--package=second"]


def test_a_workspace_of_which_members_have_benchmarks_of_rusts_own_harness(tmp_path: Path) -> None:
    (tmp_path / "Cargo.toml").write_text('[workspace]\nmembers = ["first", "other", "none"]\n')
    macro = "#![feature(test)]\nextern crate test;\nother::bench!(one 10;);\n"
    sources = {"first": ("mod", "#[bench]\nfn b() {}\n"), "other": ("more", macro), "none": ("example", "fn f() {}\n")}
    for name, (bench, text) in sources.items():
        (tmp_path / name / "benches").mkdir(parents=True)
        (tmp_path / name / "Cargo.toml").write_text(f'[package]\nname = "{name}"\n')
        (tmp_path / name / "benches" / f"{bench}.rs").write_text(text)
    assert begin(tmp_path)[0].endswith("for the libtest benchmarks of a Cargo project (first, other): mod, more")
    text = (tmp_path / "workflows" / f"{tmp_path.name}.yaml").read_text()
    assert 'package: ["first", "other"]' in text
    assert 'bench: ["mod", "more"]' in text


def test_a_cargo_project_with_divan_benchmarks(tmp_path: Path) -> None:
    shutil.copytree(SORTS, tmp_path / "crate")
    assert begin(tmp_path / "crate")[0].endswith("for the divan benchmarks of a Cargo project: by-size")
    text = (tmp_path / "crate" / "workflows" / "sorts.yaml").read_text()
    assert 'uses: cargo-bench, benchmark: "*", with: {bench: ["by-size"]}' in text
    assert "{id: allocations, uses: dhat," in text


def test_a_cargo_project_with_criterion_benchmarks(tmp_path: Path) -> None:
    shutil.copytree(CRATE, tmp_path / "crate")
    assert begin(tmp_path / "crate")[0] == (
        "wrote workflows/hot-loop.yaml, for the criterion benchmarks of a Cargo project: conductor, odd, lies"
    )
    shown = json.loads(perfflow("show", "hot-loop", "--json", cwd=tmp_path / "crate").stdout)
    tools = [step["tool"] for step in shown["steps"]]
    assert (tools[0], sorted(tools[1:-1]), tools[-1]) == ("cargo-bench", ["dhat", "massif", "perf"], "run")
    assert shown["steps"][0]["argv"]["baseline"][-3:] == ["--bench=conductor", "--bench=odd", "--bench=lies"]
    # With --command, the command is measured instead.
    begin(tmp_path / "crate", "--command", "target/release/hot-loop 10", "--name", "program")


def test_a_google_benchmark_program(tmp_path: Path) -> None:
    subprocess.run(compiler(PROGRAMS / "gbench.cpp", tmp_path / "gbench"), check=True)
    begin(tmp_path, "--kind", "google-benchmark", "--command", "./gbench", "--name", "suite")
    shown = json.loads(perfflow("show", "suite", "--json", cwd=tmp_path).stdout)
    suite, profile = shown["steps"]
    assert (suite["tool"], suite["argv"]["baseline"][0]) == ("google-benchmark", "./gbench")
    assert (profile["stage"], profile["tool"]) == ("profile", "auto")


def test_a_project_below_the_top_of_its_tree(tmp_path: Path) -> None:
    (tmp_path / ".git").mkdir()
    folder = tmp_path / "part" / "a b"
    folder.mkdir(parents=True)
    (folder / "data.txt").write_text("here\n")
    begin(folder, "--command", "cat data.txt", "--name", "below")
    assert (tmp_path / "workflows" / "below.yaml").is_file()
    run(folder, "below")


@pytest.mark.parametrize("suffix", [".yaml", ".yml"])
def test_what_is_there_is_not_overwritten(suffix: str, tmp_path: Path) -> None:
    (tmp_path / "workflows").mkdir()
    (tmp_path / "workflows" / f"mine{suffix}").write_text("# mine\n")
    done = perfflow("init", "--command", "true", "--name", "mine", cwd=tmp_path)
    assert done.returncode == 2
    assert "already exists" in done.stderr
    assert [path.read_text() for path in (tmp_path / "workflows").iterdir()] == ["# mine\n"]


@pytest.mark.parametrize(
    ("files", "arguments", "said"),
    [
        ({}, (), "the files here do not show what to measure"),
        ({}, ("--command", "echo ${{ nope }}"), "unknown name `nope`"),
        ({}, ("--command", "true", "--name", "../up"), "is not a name for a workflow"),
        ({}, ("--command", "true", "--name", ".yaml"), "is not a name for a workflow"),
        ({}, ("--kind", "google-benchmark", "--command", "./a > b", "--name", "a"), "`>` needs a shell"),
        ({"Cargo.toml": "[workspace]\n"}, (), "the crate has no program to measure"),
        ({"Cargo.toml": MANIFEST, "src/lib.rs": ""}, (), "the crate has no program to measure"),
        ({"Cargo.toml": "[package\n"}, (), "cannot read"),
        ({}, ("--kind", "cargo"), "Cargo.toml: no such file"),
        ({"test_x.py": "def test_x(): pass\n"}, ("--kind", "pytest-benchmark"), "no test here uses the fixture"),
        ({}, ("--kind", "google-benchmark"), "the files do not show which program to run"),
    ],
)
def test_what_cannot_run_is_not_written(
    files: dict[str, str], arguments: tuple[str, ...], said: str, tmp_path: Path
) -> None:
    for name, text in files.items():
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(text)
    done = perfflow("init", *arguments, cwd=tmp_path)
    assert (done.returncode, done.stdout) == (2, "")
    assert said in done.stderr
    assert "hint: " in done.stderr
    assert not (tmp_path / "workflows").exists()


@pytest.mark.parametrize(
    "command", ["echo 'a: b' \"c\"", "printf %s\\\\n é", "sh -c 'echo #x'", "echo \u2028 \U0001f600"]
)
def test_any_command_survives_the_way_into_yaml(command: str, tmp_path: Path) -> None:
    begin(tmp_path, "--command", command, "--name", "odd")
    shown = json.loads(perfflow("show", "odd", "--json", cwd=tmp_path).stdout)
    assert shown["steps"][0]["argv"]["baseline"] == shlex.split(command)


def test_programs_of_a_crate_are_named(tmp_path: Path) -> None:
    (tmp_path / "src" / "bin").mkdir(parents=True)
    (tmp_path / "Cargo.toml").write_text(MANIFEST + '[[bin]]\nname = "first"\npath = "src/bin/second.rs"\n')
    (tmp_path / "src" / "bin" / "second.rs").write_text(MAIN)
    begin(tmp_path)
    text = (tmp_path / "workflows" / "hot-path.yaml").read_text()
    assert '"target/release/first"' in text
    assert "# Also here: target/release/second" in text
