"""Named baselines: ``.perfflow/baselines/NAME/baseline.json``. One file each, so that saving is atomic."""

from __future__ import annotations

import json
import re
import shutil
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field, FiniteFloat, ValidationError

from perfflow.model.criteria import criteria_from_json
from perfflow.model.errors import UserError
from perfflow.model.result import Result
from perfflow.store.history.stored import Source, error_of, stored_of, suggestion
from perfflow.store.result_file import to_text
from perfflow.store.run_folder import HOME, home, only_writer, write_text
from perfflow.store.write_failure import exit_of_write_failure, write_remedy
from perfflow.tools import regular_files
from perfflow.tools.result_set import ResultSet
from perfflow.tools.tool_files import clean_name

SCHEMA: Literal["perfflow.baseline/1"] = "perfflow.baseline/1"
FILE = "baseline.json"
LONGEST = 100
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*")
_TAKEN = frozenset({"latest"})
"""Reserved words that mean something else where a baseline can be named."""

Values = Annotated[list[FiniteFloat], Field(min_length=1)]


class _Part(BaseModel):
    """Base of every part; later versions may add keys."""

    model_config = ConfigDict(extra="ignore", frozen=True)


class ImportedSamples(_Part):
    """The values of one metric of one benchmark, in base units."""

    benchmark: str
    metric: str
    values: Values


class ImportedPart(_Part):
    """The contents of another tool's file."""

    tool: str
    version: str
    machine: dict[str, str]
    warnings: list[str]
    samples: Annotated[list[ImportedSamples], Field(min_length=1)]


class _File(_Part):
    """The file of one baseline, with either ``result`` or ``imported``."""

    schema_: Literal["perfflow.baseline/1"] = Field(alias="schema")
    name: str
    saved: str
    origin: str
    branch: str = ""
    result: Result | None = None
    imported: ImportedPart | None = None


def folder_of(root: Path) -> Path:
    """Return the folder of a project's baselines."""
    return root / HOME / "baselines"


def names(root: Path) -> list[str]:
    """Return the sorted names of all baselines. A folder without its file is from an unfinished save."""
    folder = folder_of(root)
    if not folder.is_dir():
        return []
    return sorted(path.name for path in folder.iterdir() if is_name(path.name) and (path / FILE).is_file())


def is_name(text: str) -> bool:
    """Return whether a text is a valid name of a baseline."""
    return len(text) <= LONGEST and text not in _TAKEN and _NAME.fullmatch(text) is not None


def exists(root: Path, name: str) -> bool:
    """Return whether a baseline of this name exists."""
    return is_name(name) and (folder_of(root) / name / FILE).is_file()


def save(root: Path, name: str, source: Source, origin: str, *, force: bool, branch: str = "") -> Path:
    """Store a source under a name. Raises UserError for a bad or taken name, no samples, or a run that ended in error.

    ``force`` replaces a baseline of that name and accepts a run that ended in error. ``branch`` is the branch of the
    baseline, '' for none. A baseline with the same name and branch is always replaced.
    """
    _require_name(name, branch)
    force_name = force or _is_of(root, name, branch)
    if exists(root, name) and not force_name:
        raise _taken(name)
    why = error_of(source)
    if why and not force:
        raise UserError.of(f"{clean_name(origin)} ended in error: {clean_name(why)}", "use --force to save it anyway")
    if not stored_of(source, origin).series:
        raise UserError.of(f"{clean_name(origin)} contains no samples", "save a run that measured something")
    path = folder_of(root) / name / FILE
    try:
        home(root)
        path.parent.mkdir(parents=True, exist_ok=True)
        with only_writer(path.parent):
            # Another perfflow may have saved one since the first check.
            if path.is_file() and not (force_name or _is_of(root, name, branch)):
                raise _taken(name)
            write_text(path, _text(name, source, origin, branch))
    except OSError as error:
        hint = f"{write_remedy(error)}; baselines are kept in the project"
        raise UserError.of(f"cannot write {path}: {error.strerror}", hint, exit_of_write_failure(error)) from error
    return path


def _taken(name: str) -> UserError:
    return UserError.of(f"a baseline called {name} already exists", "use --force to replace it, or choose another name")


def _is_of(root: Path, name: str, branch: str) -> bool:
    """Return whether a baseline exists and belongs to that branch."""
    return bool(branch) and branch_of(root, name) == branch


def branch_of(root: Path, name: str) -> str:
    """Return the branch of a baseline; '' if it has none, does not exist, or is damaged."""
    return _kept_for(root, name)[0]


def of_branch(root: Path, branch: str) -> str:
    """Return the name of the baseline that was saved last for a branch; '' if there is none."""
    if not branch:
        return ""
    kept = ((name, *_kept_for(root, name)) for name in names(root))
    saved = [(when, name) for name, of, when in kept if of == branch]
    return max(saved, default=("", ""))[1]


def _kept_for(root: Path, name: str) -> tuple[str, str]:
    """Return the branch and the time of saving of a baseline; both '' if they cannot be read."""
    try:
        data = json.loads(regular_files.read(folder_of(root) / name / FILE)) if exists(root, name) else {}
        return str(data.get("branch") or ""), str(data.get("saved") or "")
    except (OSError, ValueError, AttributeError):
        return "", ""


def _require_name(name: str, branch: str) -> None:
    if name in _TAKEN:
        raise UserError.of(f"a baseline cannot be called {name}, which names the newest run", "choose another name")
    if not is_name(name):
        hint = f"use a letter or digit, then letters, digits, dots, - and _; at most {LONGEST} characters"
        if branch and name == branch:
            hint += "; `compare` and `--base-results` find a baseline by its branch as well, whatever it is called"
        raise UserError.of(f"{clean_name(name)!r} is not a name for a baseline", hint)


def _text(name: str, source: Source, origin: str, branch: str) -> str:
    content: dict[str, object] = {
        "schema": SCHEMA,
        "name": name,
        "saved": datetime.now(UTC).isoformat(timespec="seconds").replace("+00:00", "Z"),
        "origin": clean_name(origin),
        **({"branch": branch} if branch else {}),
    }
    if isinstance(source, Result):
        content["result"] = json.loads(to_text(source))
    else:
        content["imported"] = {
            "tool": source.tool,
            "version": source.version,
            "machine": dict(source.machine),
            "warnings": list(source.warnings),
            "samples": [
                {"benchmark": benchmark, "metric": metric, "values": list(values)}
                for (benchmark, metric), values in source.benchmarks.items()
            ],
        }
    return json.dumps(content, ensure_ascii=False, indent=1, allow_nan=False) + "\n"


def load(root: Path, name: str) -> Source:
    """Read the baseline of a name. Raises UserError, with the nearest name, if it is missing or damaged."""
    if not exists(root, name):
        raise UserError.of(f"no baseline called {clean_name(name)!r}", suggestion(name, names(root), "baselines"))
    return read(folder_of(root) / name / FILE)


def read(path: Path) -> Source:
    """Read a baseline's file. Raises UserError if it is missing, truncated or of another kind."""
    hint = "save it again with `perfflow baseline save --force`"
    try:
        file = _File.model_validate_json(regular_files.read(path))
        if file.result:
            criteria_from_json(file.result.criteria)
            return file.result
    except OSError as error:
        raise UserError.of(f"{path}: {error.strerror}", hint) from error
    except ValidationError as error:
        first = error.errors()[0]
        where = ".".join(str(part) for part in first["loc"])
        raise UserError.of(f"{path}: not a baseline ({where + ': ' if where else ''}{first['msg']})", hint) from error
    except (LookupError, TypeError, ValueError, AttributeError) as error:
        text = f"{path}: its criteria cannot be read ({type(error).__name__}: {error})"
        raise UserError.of(text, hint) from error
    if not file.imported:
        raise UserError.of(f"{path}: not a baseline (it contains neither a result nor samples)", hint)
    return _imported(file.imported)


def _imported(part: ImportedPart) -> ResultSet:
    samples = {(item.benchmark, item.metric): tuple(item.values) for item in part.samples}
    return ResultSet(part.tool, part.version, samples, part.machine, tuple(part.warnings))


def remove(root: Path, given: Sequence[str]) -> None:
    """Remove baselines, all or none. Raises UserError for an unknown name."""
    known = names(root)
    for name in given:
        if name not in known:
            raise UserError.of(f"no baseline called {clean_name(name)!r}", suggestion(name, known, "baselines"))
    for name in dict.fromkeys(given):
        shutil.rmtree(folder_of(root) / name)
