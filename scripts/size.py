"""Print how large perfflow is, as the table in docs/architecture.md shows it: python scripts/size.py."""

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
