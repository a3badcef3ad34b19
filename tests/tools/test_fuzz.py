"""Damaged output gives ToolOutputError or sane figures, never another exception.

``PERFFLOW_FUZZ_EXAMPLES`` sets the number of examples per parser.
"""

from __future__ import annotations

import os
import shutil
import tempfile
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from perfflow.errors import ToolOutputError
from perfflow.tools.adapter import Role
from tests.damage import damaged
from tests.tools.harness import DATA, USAGE, call_of, check_sane, tool, tools

EXAMPLES = int(os.environ.get("PERFFLOW_FUZZ_EXAMPLES", "200"))
CASES = {
    name: sorted(case for case in (DATA / name).glob("*/*") if case.is_dir())
    for name in tools()
    if (DATA / name).exists()
}


@pytest.mark.parametrize("name", CASES)
def test_damaged_output(name: str) -> None:
    @settings(max_examples=EXAMPLES, deadline=None, database=None, suppress_health_check=list(HealthCheck))
    @given(st.data())
    def check(data: st.DataObject) -> None:
        case = data.draw(st.sampled_from(CASES[name]))
        with tempfile.TemporaryDirectory() as temporary:
            folder = Path(temporary) / "out"
            shutil.copytree(case, folder, ignore=shutil.ignore_patterns("parsed.json*", "stacks.folded*"))
            file = data.draw(st.sampled_from(sorted(path for path in folder.rglob("*") if path.is_file())))
            file.write_bytes(data.draw(damaged(file.read_bytes())))
            _check(name, folder)

    check()


def _check(name: str, folder: Path) -> None:
    call = call_of(name, folder, "/tmp/demo/crash")
    try:
        parsed = tool(name).parse(call, USAGE)
    except ToolOutputError as error:
        reason = str(error)
    else:
        reason = "none"
        # What does work and measures nothing has its results in place of figures, and of a check an answer is enough.
        if not tool(name).results(call) and tool(name).role is not Role.CHECK:
            check_sane(parsed)
    assert reason.isprintable()
    assert len(reason) < 600
