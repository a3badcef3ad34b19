"""A few hundred mutated inputs for every parser, and proof that the judge sees a parser that lies."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from perfflow.model.errors import ToolOutputError
from perfflow.testing.mutations import GOOD, Answer, Outcome, Parser, Summary, Tally, run
from tests.mutate import __main__ as command
from tests.mutate import workflow_runs
from tests.mutate.parsers import parsers_of_no_adapter

EXAMPLES = int(os.environ["PERFFLOW_FUZZ_EXAMPLES"])
SEED = int(os.environ.get("PERFFLOW_FUZZ_SEED", "1"))
PARSERS = {parser.name: parser for parser in parsers_of_no_adapter()}


@pytest.mark.parametrize("name", PARSERS)
def test_mutated_input(name: str) -> None:
    tally = run(PARSERS[name], EXAMPLES, SEED)
    _require_good(tally)
    assert tally.outcomes[Outcome.ERROR]
    assert tally.outcomes[Outcome.RIGHT]


def test_mutated_workflows() -> None:
    tally = workflow_runs.run(EXAMPLES, SEED)
    _require_good(tally)
    assert tally.outcomes[Outcome.ERROR]
    assert tally.outcomes[Outcome.RIGHT]


def _require_good(tally: Tally) -> None:
    bad = {outcome: tally.outcomes[outcome] for outcome in Outcome if outcome not in GOOD and tally.outcomes[outcome]}
    assert not bad, tally.defects


def test_the_same_seed_gives_the_same_inputs() -> None:
    parser = PARSERS["import hyperfine"]
    assert run(parser, 50, 7).outcomes == run(parser, 50, 7).outcomes
    assert run(parser, 50, 7).inputs == 50


def _first_answer(parser: Parser) -> Callable[[Path], Answer]:
    """A parser that never looks again."""
    known: dict[str, Answer] = {}

    def read(folder: Path) -> Answer:
        return known.setdefault(folder.name, parser.read(folder))

    return read


def _loses_one(parser: Parser) -> Callable[[Path], Answer]:
    def read(folder: Path) -> Answer:
        answer = parser.read(folder)
        return Answer(dict(list(answer.figures.items())[1:]), answer.warnings)

    return read


def _makes_zeros(parser: Parser) -> Callable[[Path], Answer]:
    def read(folder: Path) -> Answer:
        try:
            return parser.read(folder)
        except ToolOutputError:
            return Answer({("", "time"): Summary(1, 0.0, 0.0, 0.0)})

    return read


def _says_nothing(parser: Parser) -> Callable[[Path], Answer]:
    def read(folder: Path) -> Answer:
        try:
            return parser.read(folder)
        except ToolOutputError:
            return Answer({})

    return read


def _raises(parser: Parser) -> Callable[[Path], Answer]:
    def read(folder: Path) -> Answer:
        try:
            return parser.read(folder)
        except ToolOutputError as error:
            raise KeyError(str(error)) from error

    return read


@pytest.mark.parametrize(
    ("liar", "seen"),
    [
        (_first_answer, Outcome.WRONG),
        (_loses_one, Outcome.WRONG),
        (_makes_zeros, Outcome.ZERO),
        (_says_nothing, Outcome.ZERO),
        (_raises, Outcome.TRACEBACK),
    ],
)
def test_a_parser_that_lies_is_seen(liar: Callable[[Parser], Callable[[Path], Answer]], seen: Outcome) -> None:
    honest = PARSERS["parse json"]
    assert run(replace(honest, read=liar(honest)), 60, 1).outcomes[seen]


def test_a_table_is_written(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    target = tmp_path / "mutations.md"
    words = ["--examples", "20", "--only", "hyperfine", "--seed", "5", "--write", str(target)]
    assert command.main(words) == 0
    printed = capsys.readouterr().out
    assert "| tool hyperfine | 20 |" in printed
    assert printed.strip() in target.read_text()
    assert "seed 5" in target.read_text()
