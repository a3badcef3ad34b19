"""A few hundred mutated inputs for every parser that has no contract: files to compare, `parse`, and tool files."""

from __future__ import annotations

import json
import os
import tempfile
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path

import pytest

from perfflow.model.readings import Reading, Usage
from perfflow.testing import tool_of_file
from perfflow.testing.contract import files_of
from perfflow.testing.mutations import GOOD, Answer, Outcome, Parser, answer_of, answer_of_readings, run, summary
from perfflow.tools import parsed_output
from perfflow.tools import read_file as imports
from perfflow.tools.adapter import Call

ROOT = Path(__file__).parents[1]
CAPTURED, IMPORTED = ROOT / "tools" / "data", ROOT / "imports" / "data"
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


def parsers() -> list[Parser]:
    """Return the parsers that no contract mutates."""
    tools = sorted(folder.name for folder in IMPORTED.iterdir() if folder.is_dir() and folder.name != "programs")
    return [*map(_import, tools), *_printed(), *_tool_files()]


def _import(name: str) -> Parser:
    folders = sorted(path for path in (IMPORTED / name).glob("*/*") if path.is_dir())
    cases = [
        {file: text for file, text in files_of(path).items() if "/" not in file or "/new/" in file} for path in folders
    ]
    return Parser(f"import {name}", cases, _of_import, ends=name != "go")


def _of_import(folder: Path) -> Answer:
    (entry,) = folder.iterdir()
    found = imports.read(entry)
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
    parse = {
        "parse json": (of_json, document),
        "parse regex": (of_lines, {"stdout": _PRINTED}),
        "parse csv": (of_csv, {"stdout": table}),
    }
    return [
        Parser(name, [files], partial(_of_text, read), ends=name == "parse json")
        for name, (read, files) in parse.items()
    ]


def _tool_files() -> list[Parser]:
    """A tool file's own figures, with a line that marks their end, and its folded stacks."""
    folded = files_of(CAPTURED / "perf" / "6.1.192" / "dwarf")["stacks.folded"]
    figures = _declared(_TOOL)
    stacks = _declared(_STACKS)
    return [
        Parser("tool file", [{"stdout": _PRINTED + b"done\n"}], figures),
        Parser("tool file stacks", [{"a.folded": folded}], stacks, ends=False),
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


def _of_text(read: Callable[[str], Sequence[Reading]], folder: Path) -> Answer:
    (path,) = folder.iterdir()
    return Answer(answer_of_readings(read(path.read_bytes().decode("utf-8", "replace"))))


PARSERS = {parser.name: parser for parser in parsers()}


@pytest.mark.parametrize("name", PARSERS)
def test_a_mutated_input_is_an_error_or_read_right(name: str) -> None:
    tally = run(PARSERS[name], EXAMPLES, SEED)
    bad = {outcome: tally.outcomes[outcome] for outcome in Outcome if outcome not in GOOD and tally.outcomes[outcome]}
    assert not bad, tally.defects
    assert tally.outcomes[Outcome.ERROR]
    assert tally.outcomes[Outcome.RIGHT]
