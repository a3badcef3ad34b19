"""Start-up is a feature: what --help and --version import is guarded."""

from __future__ import annotations

import json
import subprocess
import sys
from importlib.metadata import version
from pathlib import Path

import pytest

from tests.cli.shell import perfflow

HEAVY = {"networkx", "jinja2", "numpy", "scipy", "pydantic", "rich", "yaml", "psutil", "ruamel", "importlib.metadata"}
_PROBE = """
import json, sys
sys.argv = ["perfflow", {option!r}]
from perfflow.cli.main import main
try:
    main()
finally:
    print(json.dumps(sorted(sys.modules)), file=sys.stderr)
"""


@pytest.mark.parametrize("option", ["--help", "--version"])
def test_help_and_version_import_little(option: str) -> None:
    probe = _PROBE.format(option=option)
    done = subprocess.run([sys.executable, "-c", probe], capture_output=True, text=True, check=True)
    loaded = set(json.loads(done.stderr))
    assert not loaded & HEAVY
    assert "perfflow.cli.run_command" not in loaded


def test_version_is_the_installed_one(tmp_path: Path) -> None:
    assert perfflow("--version", cwd=tmp_path).stdout == f"perfflow {version('perfflow')}\n"


def test_help_names_every_command(tmp_path: Path) -> None:
    shown = perfflow("--help", cwd=tmp_path).stdout
    for name in ("run", "report", "validate", "plan", "list", "schema"):
        assert f"\n  {name} " in shown


@pytest.mark.parametrize("name", ["run", "report", "validate", "plan", "list", "show", "init", "make", "schema"])
def test_every_command_has_help(name: str, tmp_path: Path) -> None:
    done = perfflow(name, "--help", cwd=tmp_path)
    assert done.returncode == 0
    assert done.stdout.startswith("Usage: ")


def test_an_unknown_command_names_the_nearest(tmp_path: Path) -> None:
    done = perfflow("validat", cwd=tmp_path)
    assert done.returncode == 2
    assert "did you mean `perfflow validate`?" in done.stderr


@pytest.mark.parametrize("arguments", [["run"], ["run", "--jbs", "2", "x"], ["run", "--jobs", "0", "x"], ["--bogus"]])
def test_bad_usage_exits_2_without_a_traceback(arguments: list[str], tmp_path: Path) -> None:
    done = perfflow(*arguments, cwd=tmp_path)
    assert done.returncode == 2
    assert done.stdout == ""
    assert "Traceback" not in done.stderr
