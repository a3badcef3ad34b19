"""The tool of docs/writing-a-tool.md, added to a copy of the source tree, is found by the tests there."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

from tests.cli.shell import ROOT
from tests.docs.console import blocks
from tests.docs.test_documents import copy_of_the_tree
from tests.tools.lines_adapter import ADAPTER

PAGE = ROOT / "docs" / "writing-a-tool.md"
FAMILY = re.compile(r'^    "shell": .*\n', re.MULTILINE)
TESTS = ("test_contracts", "test_contract", "test_golden", "test_lies")
OWN = re.compile(r"^tests/\S*(?:lines|Lines)\S* PASSED", re.MULTILINE)


def _tested(tree: Path, *names: str) -> subprocess.CompletedProcess[str]:
    files = [f"tests/tools/{name}.py" for name in names]
    env = {name: value for name, value in os.environ.items() if not name.startswith("COVERAGE")}
    return subprocess.run(
        [sys.executable, "-m", "pytest", "-v", "-p", "no:cacheprovider", "-k", "lines or Lines", *files],
        cwd=tree,
        env={**env, "PYTHONPATH": str(tree), "PERFFLOW_FUZZ_EXAMPLES": "50", "PYTEST_ADDOPTS": ""},
        capture_output=True,
        text=True,
        check=False,
        timeout=600,
    )


def test_one_module_one_line_and_one_folder_are_a_tool(tmp_path: Path) -> None:
    tree = copy_of_the_tree(tmp_path / "perfflow")
    (tree / "perfflow/tools/shell/lines.py").write_text(ADAPTER)
    registry = tree / "perfflow/tools/registry.py"
    (line,) = (text for text in blocks(PAGE, "text") if FAMILY.match(text))
    registry.write_text(FAMILY.sub(line, registry.read_text()))
    folder = tree / "tests/tools/data/lines"
    (folder / "1.0/plain").mkdir(parents=True)
    (folder / "1.0/plain/out.json").write_text('{"time": 0.25}')
    (contract,) = (text for text in blocks(PAGE, "python") if text.startswith("# tests/tools/data/lines/contract.py\n"))

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
    assert "test_mutated_outputs" in _tested(tree, "test_contracts").stdout.split("short test summary")[1]
