"""Damaged input is an error or read right, by every parser that has no contract: files, ``parse``, and tool files.

``PERFFLOW_FUZZ_EXAMPLES`` sets the number of examples, as of every test with generated inputs.
"""

from __future__ import annotations

import json
import os
import shutil
import tempfile
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from perfflow.model.errors import UserError
from perfflow.model.readings import Reading, Usage
from perfflow.testing import tool_of_file
from perfflow.testing.contract import files_of
from perfflow.testing.mutations import GOOD, Answer, Outcome, Parser, answer_of, answer_of_readings, run, summary
from perfflow.tools import parsed_output
from perfflow.tools.adapter import Call
from perfflow.tools.read_file import is_perfflow_result, read
from tests.damage import damaged
from tests.imports.harness import CASES, DATA, TOOLS, check_sane, source
from tests.tools.harness import DATA as OF_STEPS

EXAMPLES = int(os.environ["PERFFLOW_FUZZ_EXAMPLES"])
SEED = int(os.environ.get("PERFFLOW_FUZZ_SEED", "1"))
_LINES = r"^(?P<benchmark>\S+) took (?P<time>\S+) ms, (?P<calls>\S+) calls"
_TOOL = f"""
perfflow-tool: 1
argv: [printer]
parse: {{regex: '{_LINES}', units: {{time: ms, calls: "1"}}, samples: true}}
finished: '^done$'
failed: '^failed'
"""
_STACKS = """
perfflow-tool: 1
role: profile
argv: [sampler]
outputs: [a.folded]
stacks: a.folded
"""
_PRINTED = b"starting\ndecode took 12.5 ms, 1,200 calls\nencode took 0.75 ms, 3 calls\ndecode took 13 ms, 1,250 calls\n"


def _import(name: str) -> Parser:
    folders = sorted(path for path in (DATA / name).glob("*/*") if path.is_dir())
    cases = [
        {file: text for file, text in files_of(path).items() if "/" not in file or "/new/" in file} for path in folders
    ]
    return Parser(f"import {name}", cases, _of_import, ends=name != "go")


def _of_import(folder: Path) -> Answer:
    (entry,) = folder.iterdir()
    found = read(entry)
    return Answer({key: summary(values) for key, values in found.benchmarks.items()}, found.warnings)


def _printed() -> list[Parser]:
    """The three ways of a step's ``parse``."""
    results = [{"name": f"decode/{size}", "mean": 12.5 + size, "size": size * 3} for size in (1, 20, 300)]
    document = {"log.json": json.dumps({"version": 3, "results": results}, indent=1).encode()}
    table = b"report of 3\n\nname, seconds, note\nfast,0.25,x\nslow,1.5,\nfast,0.26,y\n"
    paths = {"benchmark": "results[].name", "time": "results[].mean", "alloc": "results[].size"}
    of_json = partial(parsed_output.from_json, paths=paths, units={"time": "ms", "alloc": "KB"})
    of_lines = partial(parsed_output.from_regex, patterns=[_LINES], units={"time": "ms", "calls": "1"}, samples=True)
    columns = {"benchmark": "name", "time": "seconds"}
    of_csv = partial(parsed_output.from_csv, columns=columns, units={"time": "s"}, samples=True)
    return [
        Parser("parse json", [document], partial(_of_text, of_json)),
        Parser("parse regex", [{"stdout": _PRINTED}], partial(_of_text, of_lines), ends=False),
        Parser("parse csv", [{"stdout": table}], partial(_of_text, of_csv), ends=False),
    ]


def _tool_files() -> list[Parser]:
    """A tool file's own figures, with a line that marks their end, and its folded stacks."""
    folded = files_of(OF_STEPS / "perf" / "6.1.192" / "dwarf")["stacks.folded"]
    return [
        Parser("tool file", [{"stdout": _PRINTED + b"done\n"}], _declared(_TOOL)),
        Parser("tool file stacks", [{"a.folded": folded}], _declared(_STACKS), ends=False),
    ]


def _declared(text: str) -> Callable[[Path], Answer]:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "printer.yaml"
        path.write_text(text)
        tool = tool_of_file(path)

    def read(folder: Path) -> Answer:
        call = Call(tool.options.model_validate({}), folder)
        return answer_of(tool.parse(call, Usage(wall=1.0)), folder)

    return read


def _of_text(reader: Callable[[str], Sequence[Reading]], folder: Path) -> Answer:
    (path,) = folder.iterdir()
    return Answer(answer_of_readings(reader(path.read_bytes().decode("utf-8", "replace"))))


_FOLDERS = sorted(folder.name for folder in DATA.iterdir() if folder.is_dir() and folder.name != "programs")
PARSERS = {parser.name: parser for parser in [*map(_import, _FOLDERS), *_printed(), *_tool_files()]}
"""The parsers that no contract mutates."""


@pytest.mark.parametrize("name", PARSERS)
def test_a_mutated_input_is_an_error_or_read_right(name: str) -> None:
    tally = run(PARSERS[name], EXAMPLES, SEED)
    bad = {outcome: tally.outcomes[outcome] for outcome in Outcome if outcome not in GOOD and tally.outcomes[outcome]}
    assert not bad, tally.defects
    assert tally.outcomes[Outcome.ERROR]
    assert tally.outcomes[Outcome.RIGHT]


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
