"""A damaged file gives UserError or sane figures, never another exception.

``PERFFLOW_FUZZ_EXAMPLES`` sets the number of examples per tool, as of every test with generated inputs.
"""

from __future__ import annotations

import shutil
import tempfile
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from perfflow.model.errors import UserError
from perfflow.tools.read_file import is_perfflow_result, read
from tests.damage import damaged
from tests.imports.harness import CASES, DATA, TOOLS, check_sane, source

SOURCES = {tool: [source(case) for case in CASES if case.relative_to(DATA).parts[0] == tool] for tool in TOOLS}


@pytest.mark.parametrize("tool", TOOLS)
def test_a_damaged_file(tool: str) -> None:
    @settings(database=None, suppress_health_check=list(HealthCheck))
    @given(st.data())
    def check(data: st.DataObject) -> None:
        original = data.draw(st.sampled_from(SOURCES[tool]))
        with tempfile.TemporaryDirectory() as temporary:
            copy = Path(temporary) / original.name
            (shutil.copytree if original.is_dir() else shutil.copy)(original, copy)
            files = [copy] if copy.is_file() else sorted(file for file in copy.rglob("*.json") if "new" in file.parts)
            file = data.draw(st.sampled_from(files))
            file.write_bytes(data.draw(damaged(file.read_bytes())))
            _check(copy)

    check()


@settings(database=None, suppress_health_check=list(HealthCheck))
@given(content=st.binary(max_size=200))
def test_any_bytes(content: bytes) -> None:
    with tempfile.TemporaryDirectory() as temporary:
        path = Path(temporary) / "file"
        path.write_bytes(content)
        _check(path)


def _check(path: Path) -> None:
    assert not is_perfflow_result(path)
    try:
        check_sane(read(path))
    except UserError as error:
        (problem,) = error.problems
        assert problem.hint
        assert f"{problem.message}{problem.hint}".isprintable()
        assert len(problem.message) < 1500
