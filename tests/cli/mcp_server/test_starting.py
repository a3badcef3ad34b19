"""Starting a server: without the extra, with wrong options, and from the protocol's inspector."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.cli.shell import perfflow

INSPECTOR = "@modelcontextprotocol/inspector@0.15.0"


def test_without_the_extra_it_says_what_to_install(tmp_path: Path) -> None:
    """Run it in an interpreter without the package."""
    (tmp_path / "mcp").mkdir()
    (tmp_path / "mcp" / "__init__.py").write_text("raise ModuleNotFoundError(\"No module named 'mcp'\", name='mcp')\n")
    done = perfflow("mcp", cwd=tmp_path, env={"PYTHONPATH": str(tmp_path)}, fresh=True)
    assert (done.returncode, done.stdout) == (3, "")
    assert "`perfflow mcp` needs the Python package `mcp`" in done.stderr
    assert f"{sys.executable} -m pip install 'mcp>=2'" in done.stderr
    assert "Traceback" not in done.stderr


def test_a_client_that_closes_at_once_ends_it(tmp_path: Path) -> None:
    argv = [sys.executable, "-m", "perfflow", "mcp"]
    done = subprocess.run(argv, cwd=tmp_path, stdin=subprocess.DEVNULL, capture_output=True, check=False, timeout=900)
    assert (done.returncode, done.stdout, done.stderr) == (0, b"", b"")


@pytest.fixture(scope="module")
def inspector() -> str:
    """The inspector installed by ``scripts/install``. Skip if it is missing."""
    place = Path(sys.prefix) / "viewers" / "node_modules" / ".bin" / "mcp-inspector"
    if shutil.which("node") is None or not place.exists():
        pytest.skip(f"{INSPECTOR} is not installed")
    return str(place)


@pytest.mark.long  # starts node for each call; the client of Python does the same
def test_the_protocols_inspector_lists_and_calls_tools(inspector: str, project: Path) -> None:
    def asked(*words: str) -> dict[str, object]:
        argv = [inspector, "--cli", sys.executable, "-m", "perfflow", "mcp", *words]
        done = subprocess.run(
            argv, cwd=project, env=dict(os.environ), capture_output=True, text=True, check=False, timeout=900
        )
        assert done.returncode == 0, done.stderr
        answer: dict[str, object] = json.loads(done.stdout)
        return answer

    tools = asked("--method", "tools/list")["tools"]
    assert isinstance(tools, list)
    assert "judge_patch" in {tool["name"] for tool in tools}
    words = ("--method", "tools/call", "--tool-name", "look", "--tool-arg", "workflow=counted")
    content = asked(*words)["content"]
    assert isinstance(content, list)
    assert json.loads(content[0]["text"])["workflow"] == "counted"
