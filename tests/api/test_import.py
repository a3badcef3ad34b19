"""``import perfflow`` imports no other package, and every public name is loaded on use."""

from __future__ import annotations

import json
import subprocess
import sys
from importlib import import_module
from pathlib import Path

import pytest

import perfflow
from perfflow.model.version import VERSION

ROOT = Path(__file__).parents[2]
_PROBE = """
import json, sys
before = set(sys.modules)
{code}
print(json.dumps(sorted(set(sys.modules) - before)))
"""


def imported(code: str) -> set[str]:
    """Return the modules that code imports in a separate interpreter, without those of the interpreter itself."""
    done = subprocess.run(
        [sys.executable, "-S", "-c", _PROBE.format(code=code)], cwd=ROOT, capture_output=True, text=True, check=True
    )
    return set(json.loads(done.stdout))


def test_importing_perfflow_imports_nothing_else() -> None:
    assert imported("import perfflow") == {"perfflow"}


def test_the_version_needs_no_other_module_than_its_own() -> None:
    own = {name for name in imported("import perfflow; perfflow.__version__") if name.startswith("perfflow")}
    assert own == {"perfflow", "perfflow.model", "perfflow.model.version"}
    assert perfflow.__version__ == VERSION


@pytest.mark.parametrize("words", [["--help"], ["--version"]])
def test_the_command_starts_without_the_api(words: list[str]) -> None:
    code = f"import sys; sys.argv = ['perfflow', *{words}]; from perfflow.cli.main import main; main()"
    done = subprocess.run(
        [sys.executable, "-X", "importtime", "-c", code], cwd=ROOT, capture_output=True, text=True, check=True
    )
    assert "perfflow.cli.main" in done.stderr
    assert "perfflow.api" not in done.stderr


def test_every_public_name_is_there_and_listed() -> None:
    assert set(perfflow.__all__) <= set(dir(perfflow))
    for name in perfflow.__all__:
        assert getattr(perfflow, name) is not None


def test_other_names_are_not_there() -> None:
    with pytest.raises(AttributeError, match="module 'perfflow' has no attribute 'loads'"):
        perfflow.__getattr__("loads")


def test_no_submodule_takes_the_place_of_a_public_name() -> None:
    package = Path(perfflow.__file__).parent
    taken = {path.stem for path in package.iterdir()}
    assert not taken & set(perfflow.__all__)
    for name in ("verdict.comparison", "jobs.compare.compare_stored"):
        import_module(f"perfflow.{name}")
    assert callable(perfflow.compare)
    assert callable(perfflow.load)


def test_types_are_part_of_the_package() -> None:
    assert (Path(perfflow.__file__).parent / "py.typed").is_file()
