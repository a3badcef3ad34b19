"""Change the code of the statistical core, and count how many changes the tests see: ``python -m tests.mutants``.

``--count`` mutants are drawn with ``--seed``
from all places of ``CORE``. Each is one change: a comparison or an operator swapped, a number plus or minus one, a
flag or a condition turned round, min for max, a sign dropped, None returned, a statement with an effect left out.
Docstrings, annotations, decorators, texts and the arguments of ``raise`` are left alone.

``CORE`` is what turns samples into decisions: all of ``stats`` and ``sampling``, and of ``verdict`` the comparison,
what is ruled of it, which rows a verdict rests on and how they share the false alarms, targets, acceptance, memory,
trade-offs, rates that are times, and the verdict of the run. Left out is what words, ranks or explains a decision,
and what fits growth or searches revisions: that builds on decisions of the core, and has tests of its own kind.

The work is done in a copy of the tree. First all tests of ``TESTS`` run once, to learn which lines of the core each
executes and how long it takes; what fails there is not used. Then each mutant meets the tests that execute its
statement, until one fails, for at most ``--budget`` seconds of tests: those of files that name the module first, and
the quickest first. A line that only an import
executes has all tests that reach its module, and those of the files that name it.

Each mutant has a process of its own. A change inside a function is made in a fork of a process that has collected all
tests, by giving the function the code that the mutated file has for it. Any other change is made in the file, before
the tests are collected.

killed: a test failed. timed out: the process took ``--limit`` seconds of a processor; counted as killed. survived: no
test failed. Results are lines of JSON in ``--out``; started again with the same file, the run goes on where it was.
"""

from __future__ import annotations

import argparse
import ast
import copy
import difflib
import importlib
import json
import random
import shutil
import signal
import sys
import tempfile
import time
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from fnmatch import fnmatch
from hashlib import blake2b
from itertools import accumulate
from pathlib import Path
from typing import Any

import pytest
from coverage import Coverage

from tests.mutant_processes import Collected, in_process, met_in_file, run_tests, said

CORE = (
    *("perfflow/stats/*.py", "perfflow/sampling/*.py"),
    *(f"perfflow/verdict/{name}.py" for name in ("comparison", "decide", "clocks", "gating", "sharing", "targets")),
    *(f"perfflow/verdict/{name}.py" for name in ("acceptance", "memory", "tradeoffs", "one_measurement", "judge")),
)
TESTS = (
    *("tests/stats/test_*.py", "tests/sampling/test_*.py", "tests/verdict/test_*.py"),
    *(f"tests/model/test_{name}.py" for name in ("serial_dependence", "ticks", "targets")),
)
SLOW = ("test_statistics_calibration.py", "test_calibration.py", "test_replay.py")
"""Tests that take seconds each, and would leave no time for others."""
LONGEST = 30
"""Seconds of a test; one that takes longer is not used."""
PRELOADED = ("hypothesis", "numpy", "scipy.stats", "scipy.special", "pydantic", "networkx", "ruamel.yaml", "psutil")
_LEFT_OUT = shutil.ignore_patterns(".git", ".venv", "__pycache__", ".*_cache", ".hypothesis", "build", "site", "dist")
_PAIRS = "Lt LtE, Gt GtE, Eq NotEq, In NotIn, Is IsNot, And Or, Add Sub, Mult Div, LShift RShift, BitAnd BitOr"
_SWAPPED: dict[type[ast.AST], type[ast.AST]] = dict.fromkeys((ast.FloorDiv, ast.Mod, ast.Pow), ast.Mult)
for _one, _other in (pair.split() for pair in _PAIRS.split(", ")):
    _SWAPPED |= {getattr(ast, _one): getattr(ast, _other), getattr(ast, _other): getattr(ast, _one)}
_ORDERS = (ast.Lt, ast.LtE, ast.Gt, ast.GtE)
_NAMES = {"min": "max", "max": "min", "any": "all", "all": "any"}
_NAMES |= {"math.floor": "math.ceil", "math.ceil": "math.floor"}


@dataclass(frozen=True)
class Site:
    """One change to a file: ``text`` in the place of its bytes from ``start`` to ``end``, in the lines of a statement.

    ``lines`` are those that run when the statement does: without the body of a compound one.
    """

    path: str
    line: int
    start: int
    end: int
    text: str
    lines: tuple[int, int]

    def applied(self, source: bytes) -> bytes:
        """Return the mutated source."""
        return source[: self.start] + self.text.encode() + source[self.end :]

    def diff(self, source: bytes) -> str:
        """Return the lines that differ, ``-`` before and ``+`` after."""
        before, after = (text.decode().splitlines() for text in (source, self.applied(source)))
        lines = list(difflib.unified_diff(before, after, n=0, lineterm=""))[3:]
        return "\n".join(f"{line[0]} {line[1:].strip()}" for line in lines)


def sites(path: str, source: bytes) -> list[Site]:
    """All places of a file that can be mutated, in their order."""
    starts = [0]
    for line in source.splitlines(keepends=True):
        starts.append(starts[-1] + len(line))
    found = []
    for node, statement, condition in _code(ast.parse(source)):
        start = starts[node.lineno - 1] + node.col_offset
        end = starts[(node.end_lineno or 0) - 1] + (node.end_col_offset or 0)
        body = getattr(statement, "body", None)
        last = max(statement.lineno, body[0].lineno - 1) if body else statement.end_lineno or 0
        texts = [*_texts(node), *(_negated(node) if condition else ())]
        found += [Site(path, node.lineno, start, end, text, (statement.lineno, last)) for text in texts]
    return found


def _code(
    node: ast.AST, statement: ast.stmt | None = None, *, condition: bool = False
) -> Iterator[tuple[ast.stmt | ast.expr, ast.stmt, bool]]:
    """Every statement and expression that computes, with its innermost statement, and whether it is a condition."""
    statement = node if isinstance(node, ast.stmt) else statement
    if isinstance(node, (ast.Raise, ast.JoinedStr, ast.arg, ast.Import, ast.ImportFrom)):
        return
    if isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING":
        return
    if isinstance(node, (ast.stmt, ast.expr)) and statement:
        yield node, statement, condition
    for name, value in ast.iter_fields(node):
        if name not in ("annotation", "returns", "decorator_list"):
            for child in value if isinstance(value, list) else [value]:
                if isinstance(child, ast.AST):
                    yield from _code(child, statement, condition=name in ("test", "ifs"))


def _texts(node: ast.stmt | ast.expr) -> Iterator[str]:
    """What may stand in a node's place."""
    match node:
        case (
            ast.AugAssign()
            | ast.Break()
            | ast.Continue()
            | ast.Expr(ast.Call())
            | ast.Assign([ast.Attribute() | ast.Subscript()])
        ):
            yield "pass"
        case ast.Return(value=ast.expr() as value) if ast.unparse(value) != "None":
            yield "return None"
        case ast.UnaryOp(op=ast.Not() | ast.USub(), operand=operand):
            yield f"({ast.unparse(operand)})"
        case ast.Constant(value=bool() as flag):
            yield str(not flag)
        case ast.Constant(value=int() | float() as number):
            yield from (f"({number + step!r})" for step in (1, -1))
        case ast.Name() | ast.Attribute() if (name := ast.unparse(node)) in _NAMES:
            yield _NAMES[name]
        case ast.Compare(ops=operators):
            for place, operator in enumerate(operators):
                yield _with(node, "ops", [*operators[:place], _SWAPPED[type(operator)](), *operators[place + 1 :]])
        case ast.BinOp(op=operator) | ast.BoolOp(op=operator) if type(operator) in _SWAPPED:
            yield _with(node, "op", _SWAPPED[type(operator)]())


def _negated(node: ast.AST) -> Iterator[str]:
    """A condition turned round, unless swapping its one operator does the same."""
    orders = isinstance(node, ast.Compare) and (len(node.ops) > 1 or isinstance(node.ops[0], _ORDERS))
    if orders or not isinstance(node, (ast.Compare, ast.UnaryOp)):
        yield f"(not ({ast.unparse(node)}))"


def _with(node: ast.expr, field: str, value: object) -> str:
    changed = copy.copy(node)
    setattr(changed, field, value)
    return f"({ast.unparse(changed)})"


class _Recorder:
    """Learns which lines of the core each test executes, and the seconds that it takes."""

    def __init__(self, coverage: Coverage) -> None:
        self.coverage = coverage
        self.seconds: defaultdict[str, float] = defaultdict(float)
        self.failed: set[str] = set()

    def pytest_runtest_logstart(self, nodeid: str) -> None:
        self.coverage.switch_context(nodeid)

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        self.seconds[report.nodeid] += report.duration
        if not report.passed:
            self.failed.add(report.nodeid)


def _learn(root: Path, core: Sequence[str], files: Sequence[str], target: Path) -> None:
    """Write the seconds of each test of some files that passes, and the lines of each module that it executes."""
    coverage = Coverage(data_file=None, include=[str(root / path) for path in core], config_file=False)
    recorder = _Recorder(coverage)
    coverage.start()
    run_tests([*files, "--maxfail=1000000", f"--timeout={LONGEST}"], recorder)
    coverage.stop()
    good = {node: seconds for node, seconds in recorder.seconds.items() if node not in recorder.failed}
    lines: dict[str, dict[str, list[int]]] = {node: defaultdict(list) for node in good}
    for path in core:
        for line, nodes in coverage.get_data().contexts_by_lineno(str(root / path)).items():
            for node in good.keys() & set(nodes):
                lines[node][path].append(line)
    target.write_text(json.dumps({node: {"seconds": good[node], "lines": lines[node]} for node in good}))


@dataclass(frozen=True)
class Learned:
    """What the tests do without a mutant: seconds of each, and for each module and line the tests that execute it."""

    seconds: dict[str, float]
    lines: dict[str, dict[int, set[str]]]
    naming: dict[str, set[str]]
    """The tests of the files that name a module."""

    def tests_of(self, site: Site, budget: float) -> list[str]:
        """The tests that execute a site, as many as take ``budget`` seconds.

        Those of files that name the module come first, and of these the quickest.
        """
        module = self.lines.get(site.path, {})
        nodes = set().union(*(module.get(line, ()) for line in range(site.lines[0], site.lines[1] + 1)))
        named = self.naming[site.path]
        nodes = nodes or named.union(*module.values())
        ordered = sorted(nodes, key=lambda node: (node not in named, self.seconds[node], node))
        sums = accumulate(self.seconds[node] for node in ordered)
        return [node for node, total in zip(ordered, sums, strict=True) if total <= budget]


def learned(root: Path, core: Sequence[str], tests: Sequence[str], target: Path) -> Learned:
    """Learn what the tests do, those of each file again where it or the core changed since; ``target`` keeps it."""
    files = sorted({str(path.relative_to(root)) for glob in tests for path in root.glob(glob) if path.name not in SLOW})
    code = b"".join((root / path).read_bytes() for path in core)
    digests = {file: blake2b(code + (root / file).read_bytes(), digest_size=8).hexdigest() for file in files}
    known = json.loads(target.read_text()) if target.exists() else {}
    new = [file for file in files if known.get(file, {}).get("digest") != digests[file]]
    found = root.with_suffix(".json")
    if new and in_process(root, 3600, _learn, root, core, new, found):
        raise RuntimeError(f"the tests of the copy did not run:\n{said(root).read_text()}")
    known |= {file: {"digest": digests[file], "tests": {}} for file in new}
    for node, does in (json.loads(found.read_text()) if new else {}).items():
        known[node.partition("::")[0]]["tests"][node] = does
    target.write_text(json.dumps(known))
    every = {node: does for file in files for node, does in known[file]["tests"].items()}
    lines: defaultdict[str, defaultdict[int, set[str]]] = defaultdict(lambda: defaultdict(set))
    for node, does in every.items():
        for path, own in does["lines"].items():
            for line in own:
                lines[path][line].add(node)
    texts = {file: (root / file).read_text() for file in files}
    naming = {
        path: {node for file in files if _dotted(path) in texts[file] for node in known[file]["tests"]} for path in core
    }
    return Learned({node: does["seconds"] for node, does in every.items()}, {**lines}, naming)


def _dotted(path: str) -> str:
    return path.removesuffix(".py").replace("/", ".")


def _outcome(root: Path, site: Site, nodes: Sequence[str], limit: int, stamp: int, collected: Collected) -> str:
    """Let the tests meet one mutant: where they are collected already, or else in the file of the copy."""
    if not nodes:
        return "survived"
    file = root / site.path
    mutated = site.applied(file.read_bytes())
    status = collected.met(file, mutated, nodes, limit)
    if status == -1:
        status = met_in_file(root, file, mutated, nodes, limit, stamp)
    if status is None:
        return "timed out"
    # A conftest.py that cannot import the mutated module is told as wrong usage.
    seen = (pytest.ExitCode.TESTS_FAILED, pytest.ExitCode.INTERRUPTED, pytest.ExitCode.USAGE_ERROR)
    if status not in (pytest.ExitCode.OK, *seen):
        raise RuntimeError(f"{site.path}:{site.line}: pytest ended with {status}:\n{said(root).read_text()}")
    return "survived" if status == pytest.ExitCode.OK else "killed"


def run(given: argparse.Namespace, root: Path) -> Iterator[dict[str, Any]]:
    """Yield the result of each mutant, those of ``given.out`` first; ``root`` is the copy."""
    core = sorted({str(path.relative_to(root)) for glob in given.core for path in root.glob(glob)})
    sources = {path: (root / path).read_bytes() for path in core}
    every = [site for path in core for site in sites(path, sources[path])]
    drawn = random.Random(given.seed).sample(every, min(given.count, len(every)))
    known_tests = learned(root, core, given.tests, given.out.with_suffix(".learned.json"))
    known = [json.loads(line) for line in given.out.read_text().splitlines()] if given.out.exists() else []
    yield from known
    done = {item["number"] for item in known}
    left = [each for each in enumerate(drawn) if fnmatch(each[1].path, given.only) and each[0] not in done]
    with Collected(root, known_tests.seconds) as collected:
        for number, site in left:
            nodes, began = known_tests.tests_of(site, given.budget), time.monotonic()
            outcome = _outcome(root, site, nodes, given.limit, 1_000_000_000 + number, collected)
            item = {"number": number, "of": len(every), "seed": given.seed, "where": f"{site.path}:{site.line}"}
            item |= {"outcome": outcome, "tests": len(nodes), "seconds": round(time.monotonic() - began, 2)}
            item |= {"diff": site.diff(sources[site.path])}
            with given.out.open("a", encoding="utf-8") as out:
                out.write(json.dumps(item) + "\n")
            yield item


def _table(items: Sequence[Mapping[str, Any]]) -> str:
    counts: defaultdict[str, Counter[str]] = defaultdict(Counter)
    for item in items:
        for name in (item["where"].partition(":")[0], "all"):
            counts[name][item["outcome"]] += 1
    heading = "| module | mutants | killed | timed out | survived | killed or timed out |\n|---|--:|--:|--:|--:|--:|"
    rows = [
        f"| {name} | {own.total()} | {own['killed']} | {own['timed out']} | {own['survived']} "
        f"| {1 - own['survived'] / own.total():.1%} |"
        for name, own in sorted(counts.items(), key=lambda each: (each[0] == "all", each[0]))
    ]
    return "\n".join([heading, *rows])


def main(words: Sequence[str]) -> int:
    """Run the mutants, print each as it ends and the table; exit 1 where fewer than ``--least`` of them were killed."""
    parser = argparse.ArgumentParser(prog="python -m tests.mutants", description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--count", type=int, default=200)
    parser.add_argument("--only", default="*", help="a glob of the modules of which the drawn mutants are tried")
    parser.add_argument(
        "--out", type=Path, default=Path("build/mutants.jsonl"), help="the results, beside what was learned"
    )
    parser.add_argument("--budget", type=float, default=20.0, help="seconds of tests that a mutant meets at most")
    parser.add_argument("--limit", type=int, default=30, help="seconds of a processor that a mutant has")
    parser.add_argument("--least", type=float, default=0.9, help="share of the mutants that must be killed")
    parser.add_argument("--root", type=Path, default=Path(__file__).parents[1], help="the tree")
    parser.add_argument("--core", nargs="+", default=CORE, help="globs of the modules that are mutated")
    parser.add_argument("--tests", nargs="+", default=TESTS, help="globs of the tests")
    given = parser.parse_args(words)
    # So that the tests of a mutant and the copy do not outlive it.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    given.out.parent.mkdir(parents=True, exist_ok=True)
    for name in PRELOADED:
        importlib.import_module(name)
    items = []
    with tempfile.TemporaryDirectory(prefix="perfflow-mutants-") as folder:
        root = Path(folder) / "tree"
        shutil.copytree(given.root, root, ignore=_LEFT_OUT, symlinks=True)
        for item in run(given, root):
            items.append(item)
            sys.stdout.write(f"{item['outcome']} in {item['seconds']} s: {item['where']}\n{item['diff']}\n")
            sys.stdout.flush()
    sys.stdout.write(f"{_table(items)}\n")
    return int(sum(item["outcome"] == "survived" for item in items) > (1 - given.least) * len(items))


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
