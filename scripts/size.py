"""Print how large perfflow is, as the table in dev/architecture.md shows it: python scripts/size.py."""

from __future__ import annotations

import ast
import io
import os
import resource
import statistics
import subprocess
import sys
import tempfile
import tokenize
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parents[1]
_NO_CODE = {tokenize.COMMENT, tokenize.NL, tokenize.NEWLINE, tokenize.INDENT, tokenize.DEDENT, tokenize.ENDMARKER}
_FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)


def code_lines(source: str) -> int:
    """Return the number of lines of a module that hold a token which is neither a comment nor a docstring."""
    docstrings = set[int]()
    for node in ast.walk(ast.parse(source)):
        # A docstring, also one of an attribute, is a statement of one string.
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant) and isinstance(node.value.value, str):
            docstrings |= set(range(node.lineno, (node.end_lineno or node.lineno) + 1))
    lines = set[int]()
    for token in tokenize.generate_tokens(io.StringIO(source).readline):
        if token.type not in _NO_CODE:
            lines |= set(range(token.start[0], token.end[0] + 1))
    return len(lines - docstrings)


def inner_imports(tree: ast.Module) -> int:
    """Return the number of imports inside functions."""
    functions = [node for node in ast.walk(tree) if isinstance(node, _FUNCTIONS)]
    return len(
        {inner for node in functions for inner in ast.walk(node) if isinstance(inner, ast.Import | ast.ImportFrom)}
    )


_SENTENCES = {"reason", "reasons", "reason_texts", "warnings", "cautions", "detail", "note", "notes", "message", "why"}
"""Fields that hold sentences for people."""
_CUTTING = {
    "startswith",
    "endswith",
    "partition",
    "rpartition",
    "split",
    "rsplit",
    "removeprefix",
    "removesuffix",
    "find",
}
_WRITERS = ("report", "cli")


def compared_sentences(tree: ast.Module) -> Iterator[str]:
    """Yield each comparison of a sentence with another text, and each call that cuts one."""
    of_loops = set()
    for loop in (node for node in ast.walk(tree) if isinstance(node, ast.comprehension | ast.For)):
        if _SENTENCES & {node.attr for node in ast.walk(loop.iter) if isinstance(node, ast.Attribute)}:
            of_loops |= {node.id for node in ast.walk(loop.target) if isinstance(node, ast.Name)}

    def is_sentence(node: ast.expr) -> bool:
        if isinstance(node, ast.Name):
            return node.id in of_loops and node.id in _SENTENCES | {"text", "warning"}
        return isinstance(node, ast.Attribute) and node.attr in _SENTENCES

    for node in ast.walk(tree):
        called = node.func if isinstance(node, ast.Call) else None
        if isinstance(called, ast.Attribute) and called.attr in _CUTTING and is_sentence(called.value):
            yield ast.unparse(node)
        if not isinstance(node, ast.Compare) or isinstance(node.ops[0], (ast.Is, ast.IsNot)):
            continue
        sides = [node.left, *node.comparators]
        others = [side for side in sides if not is_sentence(side)]
        is_empty = all(isinstance(side, ast.Constant) and side.value == "" for side in others)
        # Whether a list has a text already is no comparison of sentences.
        is_listed = isinstance(node.ops[0], (ast.In, ast.NotIn)) and isinstance(node.left, ast.Name)
        if len(others) < len(sides) and not (others and is_empty) and not (is_listed and is_sentence(sides[-1])):
            yield ast.unparse(node)


def sentences_as_facts() -> Iterator[tuple[Path, str]]:
    """Yield each comparison or cut of a sentence outside of the packages that print, with its file."""
    for path in modules("perfflow"):
        if path.relative_to(ROOT / "perfflow").parts[0] not in _WRITERS:
            yield from ((path, text) for text in compared_sentences(ast.parse(path.read_text())))


def modules(folder: str) -> list[Path]:
    """Return the modules below a folder, without captured files."""
    return [path for path in sorted((ROOT / folder).rglob("*.py")) if "data" not in path.relative_to(ROOT).parts]


def size() -> dict[str, int]:
    """Return each figure by its name."""
    sources = {path: path.read_text() for path in modules("perfflow")}
    trees = [ast.parse(text) for text in sources.values()]
    classes = Counter(node.name for tree in trees for node in ast.walk(tree) if isinstance(node, ast.ClassDef))
    return {
        "files": sum(bool(code_lines(text)) for text in sources.values()),
        "lines of code": sum(map(code_lines, sources.values())),
        "lines of tests": sum(code_lines(path.read_text()) for path in modules("tests")),
        "class names that exist twice or more": sum(times > 1 for times in classes.values()),
        "imports inside functions": sum(map(inner_imports, trees)),
        "sentences compared or cut": len(list(sentences_as_facts())),
    }


def start_up(rounds: int = 9) -> dict[str, float]:
    """Return the CPU time of two commands as multiples of that of ``python -c pass``, medians of several rounds."""
    flow = "perfflow: 1\nname: one\nstages: {setup: [{argv: ['true']}]}\n"
    commands = {"python": ["-c", "pass"], "perfflow --help": ["-m", "perfflow", "--help"]}
    commands["run of one step"] = ["-m", "perfflow", "run", "one.yaml"]
    times: dict[str, list[float]] = {name: [] for name in commands}
    with tempfile.TemporaryDirectory() as folder:
        (Path(folder) / "one.yaml").write_text(flow)
        for _ in range(rounds):
            for name, words in commands.items():
                before = resource.getrusage(resource.RUSAGE_CHILDREN)
                # A run that measures nothing exits with 3.
                environment = os.environ | {"PYTHONPATH": str(ROOT)}
                subprocess.run([sys.executable, *words], cwd=folder, env=environment, capture_output=True, check=False)
                after = resource.getrusage(resource.RUSAGE_CHILDREN)
                times[name].append(after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime)
    middle = {name: statistics.median(each) for name, each in times.items()}
    return {name: middle[name] / middle["python"] for name in commands if name != "python"}


if __name__ == "__main__":
    for name, figure in size().items():
        print(f"{name:40} {figure:>8,}")
    for name, ratio in start_up().items():
        print(f"{f'CPU of {name}':40} {ratio:>8.1f}")
