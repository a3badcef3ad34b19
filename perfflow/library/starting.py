"""What kind of project is here -> a first workflow for it, with comments, that runs as it is."""

from __future__ import annotations

import json
import re
import tomllib
from collections.abc import Iterator
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import Any

from perfflow.errors import UserError
from perfflow.library import shelf, starters
from perfflow.workflow import shell_syntax
from perfflow.workflow.expressions import ExpressionError, masked


class Kind(StrEnum):
    """Kinds of projects that a workflow can be written for."""

    COMMAND = "command"
    CARGO = "cargo"
    PYTEST = "pytest-benchmark"
    GOOGLE = "google-benchmark"


@dataclass(frozen=True, slots=True)
class Start:
    """A workflow to be written: its name, text, and what it was written for, in words."""

    name: str
    text: str
    about: str


_PLACES = ("tests", "test", "benchmarks", "benchmark", "bench", "perf")
_BENCHMARK = re.compile(r"^\s*(?:async )?def test_\w*\([^)]*\bbenchmark\b", re.MULTILINE)
_MAKE_GOAL = re.compile(r"^(all|build)\s*:(?!=)", re.MULTILINE)
_LARGEST = 2**20
"""Bytes of a file that is looked into."""
_MOST_FILES = 2000
_NO_NAME = re.compile(r"[^A-Za-z0-9_.-]+")


def start(folder: Path, root: Path, *, kind: Kind | None, command: str, name: str) -> Start:
    """Write the text of a first workflow for the project in ``folder`` of the tree at ``root``.

    Raises UserError where nothing says what to measure.
    """
    found = kind or detect(folder, command)
    text, own_name, about = {
        Kind.COMMAND: _of_command,
        Kind.CARGO: _of_crate,
        Kind.PYTEST: _of_suite,
        Kind.GOOGLE: _of_google,
    }[found](folder, command)
    given, name = name, _without_suffix(name)
    final = name or _own(_fit(own_name) or "perf")
    if given and (not name or _fit(name) != name):
        raise UserError.of(f"{given!r} is no name for a workflow", "use letters, digits, `_`, `.` and `-`")
    inside = folder.relative_to(root) if folder.is_relative_to(root) else Path()
    where = starters.WHERE.replace("@FOLDER@", _quoted(str(inside)))
    text = text.replace("@WHERE@", where if inside != Path() else "").replace("@NAME@", final)
    return Start(final, text, about)


def detect(folder: Path, command: str) -> Kind:
    """Tell the kind of project by its files; one with a command of its own is measured by that."""
    if (folder / "Cargo.toml").is_file():
        return Kind.CARGO
    if not command and next(_benchmark_files(folder), None):
        return Kind.PYTEST
    return Kind.COMMAND


def _without_suffix(name: str) -> str:
    """A name as a person may give it, with the suffix of the file that will hold it."""
    suffix = next((suffix for suffix in shelf.SUFFIXES if name.endswith(suffix)), "")
    return name.removesuffix(suffix)


def _own(name: str) -> str:
    """A name that hides no workflow of the library, where a person gave none."""
    return f"{name}-perf" if (shelf.SHIPPED / f"{name}.yaml").is_file() else name


def _fit(name: str) -> str:
    return _NO_NAME.sub("-", name).strip("-.")[:100]


def _quoted(text: str) -> str:
    """A text as YAML: double quotes of JSON are double quotes of YAML, which folds separators that stand in them."""
    text = json.dumps(text, ensure_ascii=False)
    return "".join(c if c.isprintable() else f"\\U{ord(c):08x}" for c in text)


def _command(command: str) -> str:
    """A command as YAML, with the key that has a shell read it where it needs one."""
    try:
        needs_shell = shell_syntax.first(masked(command))
    except ExpressionError:
        needs_shell = None  # what is wrong with it is said when the workflow is read
    return _quoted(command) + ("\n        shell: true" if needs_shell else "")


def _of_command(folder: Path, command: str) -> tuple[str, str, str]:
    if not command:
        hint = "say it: perfflow init --command './program --size 10'"
        raise UserError.of("nothing here says what to measure", hint)
    goal = _MAKE_GOAL.search(_text(folder / "Makefile"))
    build = starters.BUILD.replace("@BUILD@", f"make {goal[1]}") if goal else ""
    text = starters.COMMAND.replace("@BUILD_STAGE@", build).replace("@COMMAND@", _command(command))
    return text, folder.name, f"a command{f', built by `make {goal[1]}`' if goal else ''}"


def _of_google(folder: Path, command: str) -> tuple[str, str, str]:
    if not command:
        raise UserError.of("nothing says which program to run", "say it: --command build/bench")
    return starters.GOOGLE.replace("@COMMAND@", _quoted(command)), folder.name, "a Google Benchmark program"


def _of_crate(folder: Path, command: str) -> tuple[str, str, str]:
    manifest = folder / "Cargo.toml"
    try:
        data = tomllib.loads(manifest.read_text(encoding="utf-8"))
    except FileNotFoundError as error:
        raise UserError.of(f"{manifest}: no such file", "run perfflow init in the folder of a crate") from error
    except (OSError, ValueError) as error:
        raise UserError.of(f"cannot read {manifest}: {error}", "run `cargo check`") from error
    package = data.get("package")
    name = str(package.get("name", "")) if isinstance(package, dict) else ""
    benches = [] if command else list(_criterion_benches(folder, data))
    if benches:
        text = starters.CRITERION.replace("@BENCHES@", f"[{', '.join(map(_quoted, benches))}]")
        return text, name or folder.name, f"the criterion benchmarks of a Cargo project: {', '.join(benches)}"
    programs = list(dict.fromkeys(_programs(folder, data, name)))
    what = ""
    if not command and not programs:
        # A library's examples are programs that use it.
        programs = [f"examples/{example}" for example in _sources(folder / "examples")]
        what = " --examples"
    if not command and not programs:
        hint = "run perfflow init in a member of the workspace" if not name else "say it: --command 'target/release/x'"
        raise UserError.of("the crate has no program to measure", hint)
    measured = command or f"target/release/{programs[0]}"
    others = [f"target/release/{other}" for other in programs[1:]] if not command else []
    note = f"\n      # Also here: {', '.join(others)}" if others else ""
    text = starters.CARGO.replace("@COMMAND@", _command(measured)).replace("@OTHERS@", note).replace("@WHAT@", what)
    return text, name or folder.name, f"the program {measured} of a Cargo project"


def _criterion_benches(folder: Path, data: dict[str, Any]) -> Iterator[str]:
    """Names of a crate's bench targets that criterion drives: those without Rust's own harness that mention it."""
    declared = data.get("bench")
    for item in declared if isinstance(declared, list) else []:
        name = item.get("name") if isinstance(item, dict) else None
        if isinstance(name, str) and item.get("harness") is False:
            paths = (
                [item["path"]]
                if isinstance(item.get("path"), str)
                else [f"benches/{name}.rs", f"benches/{name}/main.rs"]
            )
            if any("criterion" in _text(folder / path) for path in paths):
                yield name


def _programs(folder: Path, data: dict[str, Any], name: str) -> Iterator[str]:
    """Names of a crate's binaries: declared ones, src/main.rs and src/bin/."""
    declared = data.get("bin")
    for item in declared if isinstance(declared, list) else []:
        if isinstance(item, dict) and isinstance(item.get("name"), str):
            yield item["name"]
    if name and (folder / "src" / "main.rs").is_file():
        yield name
    yield from _sources(folder / "src" / "bin")


def _sources(folder: Path) -> Iterator[str]:
    """Names of the programs that cargo finds in a folder: a file each, or a folder with a main.rs."""
    for path in sorted(folder.glob("*")):
        if path.suffix == ".rs" or (path / "main.rs").is_file():
            yield path.stem


def _of_suite(folder: Path, command: str) -> tuple[str, str, str]:
    if command:
        raise UserError.of("a pytest suite has no --command", "leave one of the two out")
    paths = sorted({str(path.relative_to(folder)) for path in _benchmark_files(folder)})
    if not paths:
        raise UserError.of("no test here uses the fixture `benchmark` of pytest-benchmark", "pytest-benchmark's docs")
    python = next((name for name in (".venv/bin/python", "venv/bin/python") if (folder / name).exists()), "python3")
    text = starters.PYTEST.replace("@PYTHON@", python).replace("@PATHS@", f"[{', '.join(map(_quoted, paths))}]")
    return text, folder.name, f"the pytest-benchmark suite in {', '.join(paths[:3])}{', ...' if paths[3:] else ''}"


def _benchmark_files(folder: Path) -> Iterator[Path]:
    """Test files with benchmarks, in the usual folders and beside them."""
    candidates = [*sorted(folder.glob("*.py"))]
    for place in _PLACES:
        candidates += sorted((folder / place).rglob("*.py"))[:_MOST_FILES]
    for path in candidates:
        if _BENCHMARK.search(_text(path)):
            yield path


def _text(path: Path) -> str:
    """The text of a file that is looked into, '' of one that is not there, too large or no text."""
    try:
        return path.read_text(encoding="utf-8") if path.is_file() and path.stat().st_size <= _LARGEST else ""
    except (OSError, UnicodeDecodeError):
        return ""
