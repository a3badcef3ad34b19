"""Read result files of other tools. Their contents identify the tool, not their names."""

from __future__ import annotations

import json
import shlex
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from perfflow.model.errors import ToolOutputError, UserError
from perfflow.tools import regular_files
from perfflow.tools.cpp import google_benchmark
from perfflow.tools.go import go_bench
from perfflow.tools.python import asv, pyperf, pytest_benchmark
from perfflow.tools.result_set import FailedBenchmarkError, JsonFormat, ResultSet, SeveralSetsError
from perfflow.tools.rust import cargo_bench
from perfflow.tools.shell import benchmark_dotnet, hyperfine, k6
from perfflow.tools.tool_files import clean_name

__all__ = ["OWN", "ResultSet", "is_perfflow_result", "kind_of", "read"]

_JSON: tuple[JsonFormat[Any], ...] = tuple(
    module.FORMAT for module in (hyperfine, pytest_benchmark, google_benchmark, pyperf, asv, benchmark_dotnet, k6)
)
_WRITTEN_BY: Mapping[str, str] = {
    **{known.tool: known.written_by for known in _JSON},
    go_bench.TOOL: go_bench.WRITTEN_BY,
    cargo_bench.TOOL: cargo_bench.WRITTEN_BY,
}
OWN = "perfflow.result/"
_RESULT = "result.json"
_PACKED = {b"\x1f\x8b": "gunzip", b"\x28\xb5\x2f\xfd": "unzstd", b"BZh": "bunzip2", b"\xfd7zXZ": "unxz", b"PK": "unzip"}
_UTF_16 = (b"\xff\xfe", b"\xfe\xff")
_OF_PERFFLOW = ("this is a result of perfflow, not of another tool", "name two runs of perfflow")


def is_perfflow_result(path: Path) -> bool:
    """Whether ``path`` is a result.json of perfflow, or the folder of a run with one. Raises nothing."""
    return _is_own(_loaded(path / _RESULT if path.is_dir() else path))


def kind_of(path: Path) -> tuple[str, str]:
    """Return the ``schema`` of a JSON file and the tool that wrote it, each '' if unknown."""
    content = _loaded(path)
    tools = (known.tool for known in _JSON if isinstance(content, dict) and known.recognises(content))
    return _schema(content), next(tools, "")


def _loaded(path: Path) -> object:
    """Return the contents of a JSON file; None if it is missing or not valid JSON."""
    try:
        return _decoded(regular_files.read(path))
    except (OSError, ValueError):
        return None


def _decoded(text: str | bytes) -> object:
    """Return the contents of a JSON text; None if it is not valid JSON."""
    try:
        found: object = json.loads(text)
    except (ValueError, RecursionError):
        return None
    return found


def _schema(content: object) -> str:
    schema = content.get("schema") if isinstance(content, dict) else None
    return schema if isinstance(schema, str) else ""


def _is_own(content: object) -> bool:
    return _schema(content).startswith(OWN)


def read(path: Path, where: Mapping[str, str] | None = None) -> ResultSet:
    """Read a result file, or a folder of criterion: ``target/criterion``, a parent, or a group or benchmark in it.

    ``FOLDER:NAME`` names a baseline of criterion; without it the newest results, ``new``, are read. ``where`` selects
    one of several sets in a file by its facts, such as ``commit``. Raises UserError with the file and a remedy if the
    file is missing, empty, cut, invalid, of an unknown format, a result of perfflow (see ``is_perfflow_result``), or
    without any benchmark.
    """
    configuration = where or {}
    folder, baseline = _criterion(path)
    if folder.is_dir() and is_perfflow_result(folder):
        raise _refusal(path, *_OF_PERFFLOW)
    tool = cargo_bench.TOOL
    try:
        if folder.is_dir():
            return _with_facts(path, cargo_bench.parse_criterion(folder, baseline), configuration)
        text = _text(path)
        if go_bench.recognises(text):
            tool = go_bench.TOOL
            return go_bench.parse(text, configuration)
        known, content = _json(path, text)
        tool = known.tool
        return _with_facts(path, known.parse(content), configuration)
    except SeveralSetsError as error:
        raise _refusal(path, str(error), f"choose one: --where {shlex.quote(clean_name(error.choice))}") from error
    except ToolOutputError as error:
        again = f"write it again with: {_WRITTEN_BY[tool]}"
        hint = f"fix or exclude that benchmark, and {again}" if isinstance(error, FailedBenchmarkError) else again
        raise _refusal(path, f"{error} (read as {tool})", hint) from error


def _with_facts(path: Path, found: ResultSet, where: Mapping[str, str]) -> ResultSet:
    """Raise UserError if the only set of a file does not match ``where``."""
    for key, value in where.items():
        if found.facts.get(key, value) != value:
            raise _refusal(path, f"its {key} is {found.facts[key]}, not {clean_name(value)}", "remove --where")
    return found


def _criterion(path: Path) -> tuple[Path, str]:
    """Split ``FOLDER:NAME``, unless a path with that whole name exists."""
    folder, colon, name = str(path).rpartition(":")
    if not colon or path.exists() or "/" in name or name in ("", ".", ".."):
        return path, cargo_bench.NEWEST
    return Path(folder), name


def _text(path: Path) -> str:
    try:
        content = regular_files.read(path)
    except OSError as error:
        raise _refusal(path, str(error.strerror), "name a result file, or the folder target/criterion") from error
    for magic, program in _PACKED.items():
        if content.startswith(magic):
            raise _refusal(path, "the file is compressed", f"unpack it first with {program}")
    # UTF-16 without a byte order mark has a NUL in every other byte of Latin text.
    if content.startswith(_UTF_16) or content[:2].count(0) == 1:
        hint = "convert it: `iconv -f UTF-16 -t UTF-8 FILE`, or in PowerShell write it with `Out-File -Encoding utf8`"
        raise _refusal(path, "the file is UTF-16, not UTF-8", hint)
    text = content.decode("utf-8-sig", errors="replace")
    if not text.strip():
        raise _refusal(path, "the file is empty", "check whether the tool that writes it failed")
    return text


def _json(path: Path, text: str) -> tuple[JsonFormat[Any], Mapping[str, object]]:
    """Return the format of a JSON file and its contents, joined with those of its companion."""
    content = _decoded(text)
    if content is None and text.lstrip().startswith(("{", "[")):
        if isinstance(_decoded(text.lstrip().partition("\n")[0]), dict):
            hint = "name a file with one JSON document; for cargo-criterion, name the folder target/criterion"
            raise _refusal(path, "the file is in JSON lines format, with one document per line", hint)
        raise _refusal(path, "the file is cut short or not valid JSON", "write it again, and let the tool finish")
    if _is_own(content):
        raise _refusal(path, *_OF_PERFFLOW)
    if isinstance(content, dict):
        for known in _JSON:
            if known.recognises(content):
                companion = path.absolute().parent.parent / known.companion
                return known, {known.companion: _loaded(companion), **content} if known.companion else content
        if isinstance(content.get("results"), dict) and "commit_hash" in content:
            raise _refusal(path, "the file is from asv before 0.5", "convert it with `asv update`")
    raise _refusal(path, "unknown kind of result file", f"perfflow reads those of: {', '.join(_WRITTEN_BY)}")


def _refusal(path: Path, what: str, hint: str) -> UserError:
    return UserError.of(f"{clean_name(str(path))}: {what}", hint)
