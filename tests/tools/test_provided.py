"""Adapters of other installed distributions: found by metadata, imported when used, broken ones by name.

The tool of docs/how-to/writing-a-tool.md, added to a copy of the source tree, is found by the tests there.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.cli.shell import ROOT, perfflow, write
from tests.docs.console import blocks
from tests.docs.test_documents import copy_of_the_tree
from tests.long import rest_long
from tests.tools.lines_adapter import ADAPTER, CONTRACT, GOOD

PAGE = ROOT / "docs" / "how-to" / "writing-a-tool.md"
OWN_TREE = ROOT / "dev" / "adding-a-tool.md"
LATER = ADAPTER.replace('name="lines"', 'name="later", interface=2')


def install(folder: Path, name: str, modules: dict[str, str], tools: dict[str, str]) -> None:
    """Write a distribution as pip installs it: modules, and metadata with entry points."""
    for module, text in modules.items():
        (folder / f"{module}.py").write_text(text)
    info = folder / f"{name}-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.0\n")
    points = "".join(f"{tool} = {module}\n" for tool, module in tools.items())
    (info / "entry_points.txt").write_text(f"[perfflow.tools]\n{points}")


@pytest.fixture
def site(tmp_path: Path) -> Path:
    folder = tmp_path / "site"
    folder.mkdir()
    loud = "raise RuntimeError('imported')\n"
    modules = {"lines_adapter": ADAPTER, "loud": loud, "half": "NAME = 'half'\n", "later": LATER}
    tools = {"lines": "lines_adapter:ADAPTER", "later": "later:ADAPTER", "gone": "no_such_module"}
    install(folder, "lines-tool", modules, tools | {"loud": "loud", "half": "half", "command": "loud"})
    install(folder, "first-tool", {"both_a": loud}, {"both": "both_a"})
    install(folder, "second-tool", {"both_b": loud}, {"both": "both_b"})
    return folder


def call(*arguments: str, site: Path) -> subprocess.CompletedProcess[str]:
    env = {"PYTHONPATH": str(site), "PERFFLOW_LOCK_FILE": str(site / "lock")}
    return perfflow(*arguments, cwd=site.parent, env=env)


def test_list_says_where_they_are_from_and_warns_of_broken_ones_by_name(site: Path) -> None:
    done = call("list", "--json", site=site)
    assert done.returncode == 0
    rows = {row["name"]: row for row in json.loads(done.stdout)["tools"]}
    assert rows["lines"]["origin"] == rows["loud"]["origin"] == "lines-tool 1.0"
    assert rows["both"]["origin"] == "first-tool 1.0, second-tool 1.0"
    assert rows["command"]["origin"] == "perfflow"
    named = ("lines", "loud", "half", "later", "gone", "both", "command")
    assert [name for name in named if rows[name]["available"]] == ["lines", "command"]
    warned = [line for line in done.stderr.splitlines() if line.startswith("warning: the tool ")]
    assert [line.split("'")[1] for line in warned] == ["both", "gone", "half", "later", "loud"]
    assert warned[4].endswith("(loud), whose import fails: RuntimeError: imported")
    assert "lines-tool 1.0" in call("list", site=site).stdout


def test_what_an_adapter_prints_when_imported_stays_out_of_the_answer(site: Path) -> None:
    module = site / "lines_adapter.py"
    module.write_text(module.read_text() + "print('hello from the adapter')\n")
    done = call("list", "--json", site=site)
    assert json.loads(done.stdout)["tools"]
    assert "hello from the adapter" in done.stderr


@pytest.mark.long  # as the broken ones in this file
def test_a_name_of_perfflows_own_is_left_aside_and_said(site: Path) -> None:
    assert "warning: ignored: command of lines-tool 1.0" in call("list", site=site).stderr
    shown = json.loads(call("show", "--tool", "command", "--json", site=site).stdout)
    assert shown["origin"] == "perfflow"


def test_one_measures_like_perfflows_own(site: Path) -> None:
    step = f"{{id: x, uses: lines, runs: 2, with: {{command: [{sys.executable}, -c, {json.dumps(GOOD)}]}}}}"
    write(site.parent, f"stages: {{baseline: [{step}]}}\n")
    done = call("run", "flow.yaml", "--json", "--progress", "off", site=site)
    assert done.returncode == 0, done.stderr
    (row,) = json.loads(done.stdout)["benchmarks"]
    assert (row["tool"], row["baseline"]["value"]) == ("lines", 0.5)
    shown = call("show", "lines", site=site).stdout
    assert "from lines-tool 1.0" in shown
    assert "how long a program says that it took" in shown


@pytest.mark.parametrize(
    ("name", "reason"),
    rest_long(
        [
            ("loud", "lines-tool 1.0 (loud), whose import fails: RuntimeError: imported"),
            ("gone", "whose import fails: ModuleNotFoundError: No module named 'no_such_module'"),
            ("half", "which is a module and not a perfflow.tools.adapter.Adapter: name it as `MODULE:ADAPTER`"),
            ("later", "which is written for interface 2: this perfflow supports 1"),
            ("both", "both first-tool 1.0 and second-tool 1.0 provide it"),
        ],
    ),
)
def test_a_broken_one_is_an_error_by_name_and_nothing_else_breaks(name: str, reason: str, site: Path) -> None:
    write(site.parent, f"stages: {{baseline: [{{id: x, uses: {name}, with: {{command: 'true'}}}}]}}\n")
    done = call("validate", "flow.yaml", site=site)
    assert done.returncode == 2
    assert done.stderr.startswith(f"flow.yaml:2:35: error: the tool '{name}' cannot be used: ")
    assert reason in done.stderr
    shown = call("show", name, site=site)
    assert shown.returncode == 2
    assert reason in shown.stderr
    write(site.parent, "stages: {baseline: [{id: x, uses: lines, with: {command: 'true'}}]}\n", "other.yaml")
    assert call("validate", "other.yaml", site=site).returncode == 0


def test_a_misspelt_name_is_answered_with_theirs(site: Path) -> None:
    write(site.parent, "stages: {baseline: [{id: x, uses: linse, with: {command: 'true'}}]}\n")
    assert "did you mean `lines`?" in call("validate", "flow.yaml", site=site).stderr


def _pytest(folder: Path, *arguments: str, **added: str) -> subprocess.CompletedProcess[str]:
    env = {name: value for name, value in os.environ.items() if not name.startswith("COVERAGE")} | added
    argv = [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", *arguments]
    return subprocess.run(argv, cwd=folder, env=env, capture_output=True, text=True, check=False, timeout=900)


def _contract(site: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    """Run the contract test of docs/how-to/writing-a-tool.md with samples of real runs."""
    dd = ["dd", "if=/dev/zero", "of=/dev/null", "bs=64K", "count=8M", "iflag=count_bytes"]
    copied = subprocess.run(dd, env={**os.environ, "LC_ALL": "C"}, capture_output=True, check=True).stderr
    (tool,) = (text for text in blocks(PAGE, "yaml") if text.startswith("# tools/dd.yaml\n"))
    for file, content in {
        "data/lines-1.0/out.json": b'{"time": 0.25}',
        "data/dd-9.1/stderr": copied,
        "tools/dd.yaml": tool.encode(),
        "test_lines_adapter.py": CONTRACT.encode(),
    }.items():
        (site / file).parent.mkdir(parents=True, exist_ok=True)
        (site / file).write_bytes(content)
    return _pytest(site, "-q", *arguments, "test_lines_adapter.py")


def test_good_adapters_keep_the_contract(site: Path) -> None:
    done = _contract(site)
    assert done.returncode == 0, done.stdout
    assert "36 passed" in done.stdout


KEPT = 'Invocation(call.command, stdout="out.json")'
OUTPUTS = '    return (call.folder / "out.json",)'
READ = 'data = read_json(call.folder / "out.json")'
WRITES = 'Invocation(("sh", "-c", "\\"$@\\" > \\"$0\\"", str(call.folder / "out.json"), *call.command))'
HIDES = 'Invocation(("sh", "-c", "\\"$@\\" || true", "sh", *call.command), stdout="out.json")'


@pytest.mark.parametrize(
    ("changes", "fails"),
    rest_long(
        [
            ({KEPT: WRITES}, ()),
            # The exit status is 0, but the files show the failure.
            ({KEPT: HIDES}, ()),
            # Outputs of an earlier run are read as those of this one.
            ({KEPT: WRITES, OUTPUTS: "    return ()"}, ("does_nothing",)),
            ({READ: "data = {'time': 1.0}"}, ("missing_output", "cut_output", "nonsense")),
            ({READ: "data = json.loads((call.folder / 'out.json').read_text())"}, ("nonsense", "cut_output")),
            ({KEPT: "Invocation(call.command)"}, ("real_run",)),
            ({'builtin_metrics("time")': "{}"}, ("sample_parses", "real_run")),
        ],
    ),
)
def test_bad_adapters_do_not(changes: dict[str, str], fails: tuple[str, ...], site: Path) -> None:
    module = site / "lines_adapter.py"
    text = module.read_text()
    for good, bad in changes.items():
        assert good in text
        text = text.replace(good, bad)
    module.write_text(text)
    done = _contract(site, "-k", "TestLines")
    assert done.returncode == (1 if fails else 0), done.stdout
    assert all(name in done.stdout.split("short test summary")[1] for name in fails)


FAMILY = re.compile(r'^    "shell": .*\n', re.MULTILINE)
TESTS = ("test_contracts", "test_golden", "test_lies")
OWN = re.compile(r"^tests/\S*(?:lines|Lines)\S* PASSED", re.MULTILINE)


def _tested(tree: Path, *names: str) -> subprocess.CompletedProcess[str]:
    files = [f"tests/tools/{name}.py" for name in names]
    env = {"PYTHONPATH": str(tree), "PERFFLOW_FUZZ_EXAMPLES": "50", "PYTEST_ADDOPTS": ""}
    return _pytest(tree, "-v", "-k", "lines or Lines", *files, **env)


@pytest.mark.long
def test_one_module_one_line_and_one_folder_are_a_tool(tmp_path: Path) -> None:
    tree = copy_of_the_tree(tmp_path / "perfflow")
    (tree / "perfflow/tools/shell/lines.py").write_text(ADAPTER)
    registry = tree / "perfflow/tools/registry.py"
    (line,) = (text for text in blocks(OWN_TREE, "text") if FAMILY.match(text))
    registry.write_text(FAMILY.sub(line, registry.read_text()))
    folder = tree / "tests/tools/data/lines"
    (folder / "1.0/plain").mkdir(parents=True)
    (folder / "1.0/plain/out.json").write_text('{"time": 0.25}')
    (contract,) = (
        text for text in blocks(OWN_TREE, "python") if text.startswith("# tests/tools/data/lines/contract.py\n")
    )
    (folder / "contract.py").write_text(contract)
    first = _tested(tree, "test_golden")
    assert "1 failed" in first.stdout, first.stdout
    (folder / "1.0/plain/parsed.json.got").rename(folder / "1.0/plain/parsed.json")
    done = _tested(tree, *TESTS)
    assert done.returncode == 0, done.stdout
    # Tests of the contract, the golden file, and lies to the whole command.
    found = OWN.findall(done.stdout)
    assert {name for name in TESTS if any(f"{name}.py" in line for line in found)} == {*TESTS}
    # The tests catch a parser that ignores its input.
    module = tree / "perfflow/tools/shell/lines.py"
    module.write_text(module.read_text().replace('data.get("time")', "0.25"))
    assert "test_nonsense_is_an_error" in _tested(tree, "test_contracts").stdout.split("short test summary")[1]
