"""The wheel, built from the source distribution, does the whole job in a virtual environment of its own."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import tarfile
import venv
from pathlib import Path

import pytest

from perfflow.library import search_path
from perfflow.model.version import VERSION, checked_out
from tests.repositories import git
from tests.tools.lines_adapter import ADAPTER, GOOD

ROOT = Path(__file__).parents[1]
FILES = Path(__file__).with_name("wheel")
UV = shutil.which("uv", path=str(Path(sys.executable).parent))
API = """\
import perfflow, pathlib
assert perfflow.load("latest").verdict == "fail"
print(len(perfflow.load("latest").decisions()) > 0, perfflow.__version__)
print((pathlib.Path(perfflow.__file__).parent / "py.typed").is_file())
"""


@pytest.fixture(scope="module")
def packages(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the source distribution, and the wheel that was built from it."""
    folder = tmp_path_factory.mktemp("packages")
    build = [sys.executable, "-m", "build", *(["--installer", "uv"] if UV else []), "--outdir", str(folder), str(ROOT)]
    done = subprocess.run(build, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False)
    assert done.returncode == 0, done.stdout
    return folder


@pytest.fixture(scope="module")
def program(packages: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    wheel = next(packages.glob("perfflow_cli-*.whl"))
    folder = tmp_path_factory.mktemp("wheel")
    venv.create(folder / "venv")
    python = folder / "venv" / "bin" / "python"
    # For the dependencies uv takes two seconds, and pip twenty.
    install = [UV, "pip", "install", "--quiet"] if UV else [sys.executable, "-m", "pip", "--quiet", "install"]
    subprocess.run([*install, "--python", str(python), str(wheel)], check=True)
    return folder / "venv" / "bin" / "perfflow"


def run(program: Path, *arguments: str, cwd: Path) -> subprocess.CompletedProcess[str]:
    env = {name: value for name, value in os.environ.items() if not name.startswith(("COVERAGE", "PYTHON"))}
    return subprocess.run(
        [str(program), *arguments], cwd=cwd, env=env, capture_output=True, text=True, timeout=900, check=False
    )


def test_the_wheel_runs_a_workflow_and_its_api_reads_the_result(program: Path, tmp_path: Path) -> None:
    shutil.copy(FILES / "flow.yaml", tmp_path)
    done = run(program, "run", "flow.yaml", "--json", cwd=tmp_path)
    # The candidate sleeps ten times as long: a regression of level action.
    assert done.returncode == 1, done.stderr
    rows = {row["metric"]: row for row in json.loads(done.stdout)["benchmarks"] if row["name"] == "nap"}
    assert (rows["time"]["decision"], rows["time"]["level"]) == ("regressed", "action")
    assert "regressed (over 10%)" in (tmp_path / ".perfflow" / "runs" / "latest" / "report.md").read_text()
    # The API and its types, in the same environment.
    (tmp_path / "script.py").write_text(API)
    assert run(program.with_name("python"), "script.py", cwd=tmp_path).stdout == f"True {VERSION}\nTrue\n"


def test_the_wheel_names_the_commit_that_it_was_built_from(program: Path, tmp_path: Path) -> None:
    commit = checked_out(str(ROOT))[:7]
    assert len(commit) == 7
    shown = run(program, "--version", cwd=tmp_path).stdout
    assert shown.replace("+dirty", "") == f"perfflow {VERSION} ({commit})\n"


def test_the_source_distribution_has_what_git_tracks(packages: Path) -> None:
    with tarfile.open(next(packages.glob("*.tar.gz"))) as archive:
        packed = {name.partition("/")[2] for name in archive.getnames()}
    # What belongs to a host of repositories, and to the clone itself.
    apart = (".ci/", ".pre-commit", ".github/", ".gitignore")
    tracked = git(ROOT, "ls-files", "-z").split("\0")[:-1]
    assert {name for name in tracked if not name.startswith(apart)} - packed == set()


@pytest.mark.long  # profiles with perf, massif, py-spy and cProfile
def test_the_example_of_the_source_distribution_runs_with_the_wheel(
    packages: Path, program: Path, tmp_path: Path
) -> None:
    with tarfile.open(next(packages.glob("*.tar.gz"))) as archive:
        archive.extractall(tmp_path, filter="data")
    (unpacked,) = tmp_path.iterdir()
    done = run(program, "run", "workflows/cli-command.yaml", cwd=unpacked)
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith("✓ PASS  Command-line example"), done.stdout


def test_the_wheel_has_its_schema_and_lists_its_tools(program: Path, tmp_path: Path) -> None:
    assert json.loads(run(program, "schema", cwd=tmp_path).stdout)["title"] == "perfflow workflow"
    listed = {row["name"]: row for row in json.loads(run(program, "list", "--json", cwd=tmp_path).stdout)["workflows"]}
    assert set(listed) == {path.stem for path in search_path.SHIPPED.glob("*.yaml")}
    assert all(Path(row["path"]).is_relative_to(program.parents[1]) for row in listed.values())
    (tmp_path / "heir.yaml").write_text("perfflow: 1\nextends: lib:two-commands\n")
    assert run(program, "validate", "heir.yaml", cwd=tmp_path).returncode == 0


def test_the_wheel_brings_the_source_of_what_is_built_on_the_spot(program: Path, tmp_path: Path) -> None:
    step = "{id: roof, uses: stream, with: {seconds: 20ms, size: 4MiB}}"
    (tmp_path / "flow.yaml").write_text(f"perfflow: 1\nstages: {{baseline: [{step}]}}\n")
    done = run(program, "run", "flow.yaml", "--json", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert {peak["metric"] for peak in json.loads(done.stdout)["peaks"]} == {"bandwidth", "flops"}


@pytest.mark.long  # installs a second package
def test_a_package_of_a_stranger_brings_its_tool(program: Path, tmp_path: Path) -> None:
    package = tmp_path / "package"
    package.mkdir()
    shutil.copy(FILES / "pyproject.toml", package)
    (package / "lines_adapter.py").write_text(ADAPTER)
    (package / "broken_adapter.py").write_text("import a_module_that_is_not_there\n")
    of_its_venv = ["--quiet", "--disable-pip-version-check", "--python", str(program.with_name("python"))]
    pip = [sys.executable, "-m", "pip", *of_its_venv]
    subprocess.run([*pip, "install", str(package)], check=True)
    try:
        listed = run(program, "list", "--json", cwd=tmp_path)
        rows = {row["name"]: row for row in json.loads(listed.stdout)["tools"]}
        assert (listed.returncode, rows["lines"]["available"], rows["broken"]["available"]) == (0, True, False)
        assert "warning: the tool 'broken' cannot be used" in listed.stderr
        step = f"{{id: x, uses: lines, runs: 2, with: {{command: [{sys.executable}, -c, {json.dumps(GOOD)}]}}}}"
        (tmp_path / "flow.yaml").write_text(f"perfflow: 1\nstages: {{baseline: [{step}]}}\n")
        assert run(program, "validate", "flow.yaml", cwd=tmp_path).returncode == 0
        done = run(program, "run", "flow.yaml", "--json", cwd=tmp_path)
        assert done.returncode == 0, done.stderr
        (row,) = json.loads(done.stdout)["benchmarks"]
        assert (row["tool"], row["baseline"]["value"]) == ("lines", 0.5)
    finally:
        subprocess.run([*pip, "uninstall", "--yes", "lines-tool"], check=True)
