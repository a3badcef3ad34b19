"""Every public name has a docstring with an example, and the examples are correct."""

from __future__ import annotations

import doctest
import inspect
from importlib import import_module
from pathlib import Path

import pytest

import perfflow

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
