"""``import perfflow`` imports no other package; public names are loaded on use, and have docstrings with examples."""

from __future__ import annotations

import doctest
import inspect
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


def python(*words: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([sys.executable, *words], cwd=ROOT, capture_output=True, text=True, check=True)


def imported(code: str) -> set[str]:
    """Return the modules that code imports in a separate interpreter, without those of the interpreter itself."""
    return set(json.loads(python("-S", "-c", _PROBE.format(code=code)).stdout))


def test_importing_perfflow_imports_nothing_else_and_its_version_one_module() -> None:
    assert imported("import perfflow") == {"perfflow"}
    own = {name for name in imported("import perfflow; perfflow.__version__") if name.startswith("perfflow")}
    assert own == {"perfflow", "perfflow.model", "perfflow.model.version"}
    assert perfflow.__version__ == VERSION


@pytest.mark.parametrize("words", [["--help"], ["--version"]])
def test_the_command_starts_without_the_api(words: list[str]) -> None:
    code = f"import sys; sys.argv = ['perfflow', *{words}]; from perfflow.cli.main import main; main()"
    told = python("-X", "importtime", "-c", code).stderr
    assert "perfflow.cli.main" in told
    assert "perfflow.api" not in told


def test_every_public_name_is_there_and_no_submodule_takes_its_place() -> None:
    assert set(perfflow.__all__) <= set(dir(perfflow))
    assert all(getattr(perfflow, name) is not None for name in perfflow.__all__)
    with pytest.raises(AttributeError, match="module 'perfflow' has no attribute 'loads'"):
        perfflow.__getattr__("loads")
    package = Path(perfflow.__file__).parent
    assert not {path.stem for path in package.iterdir()} & set(perfflow.__all__)
    for name in ("verdict.comparison", "jobs.compare.compare_stored"):
        import_module(f"perfflow.{name}")
    assert callable(perfflow.compare)
    assert callable(perfflow.load)
    # Types are part of the package.
    assert (package / "py.typed").is_file()


# ---- every public name has a docstring with an example, and the examples are correct ----

PACKAGE = Path(perfflow.__file__).parent
MODULES = ["perfflow", *(f"perfflow.api.{path.stem}" for path in sorted((PACKAGE / "api").glob("[a-z]*.py")))]
FLAGS = doctest.ELLIPSIS | doctest.IGNORE_EXCEPTION_DETAIL
PUBLIC = [name for name in perfflow.__all__ if name != "__version__"]


def examples(module: str) -> list[doctest.DocTest]:
    found = doctest.DocTestFinder(exclude_empty=True).find(import_module(module))
    return [test for test in found if test.examples]


EXAMPLES = {test.name: test for module in MODULES for test in examples(module)}


@pytest.mark.parametrize("name", EXAMPLES)
def test_an_example_shows_what_happens(name: str, here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    failed, tried = doctest.DocTestRunner(optionflags=FLAGS).run(EXAMPLES[name])
    assert tried > 0
    assert failed == 0, capsys.readouterr().out


@pytest.mark.parametrize("name", PUBLIC)
def test_each_public_name_has_an_example(name: str) -> None:
    thing = getattr(perfflow, name)
    if thing.__module__.startswith("perfflow.model."):  # shown by examples of others
        assert thing.__doc__
        return
    assert f"{thing.__module__}.{name}" in EXAMPLES
    for own, method in vars(thing).items() if inspect.isclass(thing) else ():
        if inspect.isfunction(method) and not own.startswith("_"):
            assert f"{thing.__module__}.{name}.{own}" in EXAMPLES
        if isinstance(method, property):
            assert method.__doc__
