"""Mutate what perfflow reads, and count how it ends: ``python -m tests.mutate --examples 10000 --seed 1``.

Each parser (every adapter of the registry, every format of ``perfflow.imports``, the three ways of ``parse``, tool
files) is given that many inputs, each a captured case in which one file was mutated: said in other words (JSON alone:
other spaces, order and unknown keys), cut, or hit by one to three accidents of its bytes, lines, numbers or JSON nodes.
``--workflows`` mutated workflows are opened as ``perfflow run`` does: keys dropped, doubled and renamed, values of
other types, deep nesting, alias bombs, odd letters, tabs, two files in one, CRLF, BOM, accidents of bytes, ``extends``
in a ring, missing, broken or long, and mutated tool files. The same seed gives the same inputs.

How an input may end:

- named error: ToolOutputError or UserError with a reason of one printable line; a workflow's has FILE:LINE:COL.
- right answer: every value of every benchmark is what a second reader finds in the same bytes, one of a few lines that
  shares nothing with the parser and checks nothing (``plain_readers``): a changed figure shows, one that is left stays,
  and a benchmark or metric that the plain reader sees is there, or a warning names it. Where the mutation left all
  figures, or only cut a file whose format says where it ends, the answer is that of the intact files. A workflow's is a
  plan with a step; of CRLF, BOM and comments that of the intact file; of a renamed key one that holds the key.
- wrong answer: any other answer. silent zero: an answer without a figure, or a 0 that nothing says, or that cannot be.
- traceback: any other exception. hang: more than 10 s.

Exit 1 where one of the last four is not 0; what led there is printed. ``--write FILE`` writes the table as Markdown.
"""

from __future__ import annotations

import argparse
import datetime as dt
import subprocess
import sys
from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path

from perfflow.model.version import VERSION
from perfflow.testing.mutations import GOOD, Outcome, Tally, run
from tests.mutate import workflow_runs
from tests.mutate.parsers import all_parsers

_INTRODUCTION = "Written by `python -m tests.mutate {words}`; what its columns mean is in the docstring of that module."


_HEADING = (
    "| parser | inputs | " + " | ".join(f"{outcome}s" for outcome in Outcome) + " |",
    "|---|---|" + "---|" * len(Outcome),
)


def main(words: Sequence[str]) -> int:
    """Run everything, print the table and the defects; return the exit status."""
    parser = argparse.ArgumentParser(prog="python -m tests.mutate", description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--examples", type=int, default=300, help="inputs of each parser")
    parser.add_argument("--workflows", type=int, help="mutated workflows; default: as many as --examples, at most 1000")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--jobs", type=int, default=1, help="processes; the inputs do not depend on it")
    parser.add_argument("--only", default="", help="a part of the names of the parsers to try")
    parser.add_argument("--write", type=Path, help="a Markdown file for the table")
    given = parser.parse_args(words)
    workflows = min(given.examples, 1000) if given.workflows is None else given.workflows
    names = [name for name in [*(each.name for each in all_parsers()), workflow_runs.NAME] if given.only in name]
    counts = {name: workflows if name == workflow_runs.NAME else given.examples for name in names}
    tallies: list[Tally] = []
    lines = list(_HEADING)
    sys.stdout.write("\n".join(lines) + "\n")
    with ProcessPoolExecutor(given.jobs) as pool:
        for tally in pool.map(_tally, counts, counts.values(), [given.seed] * len(counts)):
            tallies.append(tally)
            lines.append(_row(tally))
            sys.stdout.write(f"{lines[-1]}\n")
            sys.stdout.flush()
            for judged, what in tally.defects:
                sys.stderr.write(f"\n{tally.name}: {judged.outcome}: {judged.why}\n  {what}\n")
    if given.write:
        given.write.write_text(_document("\n".join(lines), words, given.seed), encoding="utf-8")
    return int(any(tally.outcomes[outcome] for tally in tallies for outcome in Outcome if outcome not in GOOD))


def _tally(name: str, examples: int, seed: int) -> Tally:
    if name == workflow_runs.NAME:
        return workflow_runs.run(examples, seed)
    (parser,) = (each for each in all_parsers() if each.name == name)
    return run(parser, examples, seed)


def _row(tally: Tally) -> str:
    return f"| {tally.name} | {tally.inputs} | " + " | ".join(str(tally.outcomes[each]) for each in Outcome) + " |"


def _document(table: str, words: Sequence[str], seed: int) -> str:
    revision = subprocess.run(["git", "rev-parse", "--short=12", "HEAD"], capture_output=True, text=True, check=False)
    date = dt.datetime.now(dt.UTC).date()
    return (
        f"# What mutated input leads to: an experiment\n\n{_INTRODUCTION.format(words=' '.join(words))}\n\n"
        f"- perfflow {VERSION} at {revision.stdout.strip() or 'an unknown revision'}, seed {seed}, {date}\n"
        f"- Python {sys.version.split()[0]}\n\n{table}\n"
    )


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
