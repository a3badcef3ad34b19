"""docs/reference/tools: each tool has one section with its keys, metrics and installation, and an example that runs."""

from __future__ import annotations

import importlib.util
import re
from dataclasses import dataclass
from pathlib import Path

import pytest

from perfflow.tools import registry
from perfflow.tools.adapter import CommandOptions
from tests.cli.shell import perfflow
from tests.docs.test_documents import ROOT, copy_of_the_tree

PAGES = ROOT / "docs" / "reference" / "tools"
_SECTION = re.compile(r"^## (?P<name>[a-z0-9-]+)\n(?P<text>.*?)(?=^## |\Z)", re.MULTILINE | re.DOTALL)
_WORKFLOW = re.compile(r"^```yaml\n(.*?)^```$", re.MULTILINE | re.DOTALL)
LIBRARIES = {"torch-profiler": "torch", "triton-bench": "triton", "asv": "asv_runner"}
"""What an example imports, where perfflow does not find out by itself that it is missing."""
LONG = (
    *("cargo-bench", "cargo-build", "cuda-bench", "go-bench", "go-pprof", "node-bench", "node-profile", "simd-share"),
    *("asv", "hyperfine", "iostat", "memray", "perf-stat", "pyperf", "pytest-benchmark", "scalene", "slow-callbacks"),
    *("same-output", "sql-log", "strace", "stream", "timeit", "tracemalloc"),
    *("build-time", "catch2", "jfr", "jmh", "nanobench", "oha", "pgbench", "vegeta", "wrk"),
    *("cachegrind", "callgrind", "command", "dhat", "google-benchmark", "ncu", "perf"),
)
"""Whose examples compile, or take more than a second: the contract of each runs the tool (tests/tools/contracts.py)."""
HEADERS = {"google-benchmark": "/usr/include/benchmark/benchmark.h", "catch2": "/usr/include/catch2"}


@dataclass(frozen=True)
class Section:
    page: Path
    text: str

    @property
    def workflow(self) -> str:
        (found,) = _WORKFLOW.findall(self.text)
        return str(found)


def sections() -> dict[str, Section]:
    found: dict[str, Section] = {}
    for page in sorted(PAGES.glob("*.md")):
        for match in _SECTION.finditer(page.read_text()):
            assert match["name"] not in found
            found[match["name"]] = Section(page, match["text"])
    return found


SECTIONS = sections()


def test_there_is_a_section_for_each_tool() -> None:
    assert set(SECTIONS) == {*registry.MODULES, "auto"}
    listed = re.findall(
        r"\(tools/([a-z]+)\.md#([a-z0-9-]+)\)", (ROOT / "docs" / "reference" / "tools.md").read_text().split("## ")[0]
    )
    assert {name: family for family, name in listed} == {
        name: module.split(".")[2] for name, module in registry.MODULES.items()
    }


@pytest.mark.parametrize("name", sorted(registry.MODULES))
def test_the_section_names_keys_metrics_and_installation(name: str) -> None:
    tool = registry.find(name)
    assert tool is not None
    section = SECTIONS[name]
    assert section.page.stem == registry.MODULES[name].split(".")[2]
    # Their rows are those of the code: tests/docs/test_reference.py.
    assert (f"<!-- keys of {name} -->\n" in section.text) == bool(
        set(tool.options.model_fields) - {*CommandOptions.model_fields}
    )
    assert (f"<!-- metrics of {name} -->\n" in section.text) == bool(tool.metrics)
    assert tool.program.install in section.text.partition("**Install:**")[2]


@pytest.fixture(scope="module")
def clone(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return copy_of_the_tree(tmp_path_factory.mktemp("tools") / "perfflow")


def written(name: str, clone: Path) -> Path:
    workflow = SECTIONS[name].workflow
    assert f"uses: {name}" in workflow
    path = clone / "workflows" / f"example-of-{name}.yaml"
    path.write_text(workflow)
    return path


@pytest.mark.parametrize("name", sorted(SECTIONS))
def test_the_example_is_planned(name: str, clone: Path) -> None:
    path = written(name, clone)
    valid = perfflow("validate", str(path), cwd=clone)
    assert valid.returncode == 0, valid.stderr
    plan = perfflow("plan", str(path), cwd=clone)
    assert plan.returncode == 0, plan.stderr


@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=pytest.mark.long) if name in LONG else name for name in sorted(SECTIONS)]
)
def test_the_example_is_run_where_the_tool_is_installed(name: str, clone: Path) -> None:
    path = written(name, clone)
    plan = perfflow("plan", str(path), cwd=clone)
    missing = re.search(r"^ +missing: (.*)$", plan.stdout, re.MULTILINE)
    if missing:
        pytest.skip(missing[1])
    library = LIBRARIES.get(name, "")
    if library and importlib.util.find_spec(library) is None:
        pytest.skip(f"{library} is not installed")
    header = HEADERS.get(name, "/")
    if not Path(header).exists():
        pytest.skip(f"{header} is not there")
    words = ("run", str(path), "--progress", "off", "--unproven=pass", "--budget", "10m")
    done = perfflow(*words, cwd=clone, measured=True, timeout=600)
    assert done.returncode == 0, done.stdout + done.stderr
