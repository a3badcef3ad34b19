"""Write and read result.json. The folder of a bisection has none, and no verdict: samples of many revisions instead."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from pydantic import BaseModel, ValidationError
from pydantic_core import to_jsonable_python

from perfflow.model.criteria import criteria_from_json
from perfflow.model.errors import UserError
from perfflow.model.result import SCHEMA, Result
from perfflow.store.run_folder import EVENTS, events, json_lines
from perfflow.tools import regular_files


def to_text(result: Result) -> str:
    """Return the text of the file. The same result gives the same bytes."""
    return "".join(chunks(result))


def chunks(result: Result) -> Iterator[str]:
    """Yield the text of the file in parts, because several copies for many benchmarks would need too much memory."""
    parts = ((about.alias or name, getattr(result, name)) for name, about in Result.model_fields.items())
    return json_lines(parts, _plain)


def _plain(value: Any) -> Any:
    # With pydantic 2.8 to 2.11 only a model's own call builds its serializer, not the serialization of an outer model.
    if isinstance(value, BaseModel):
        return value.model_dump(mode="json", by_alias=True)
    return to_jsonable_python(value, by_alias=True)


def read(path: Path) -> Result:
    """Read a result file. Raises UserError if it is missing, truncated or of another kind."""
    try:
        result = Result.model_validate_json(regular_files.read(path))
        criteria_from_json(result.criteria)
    except OSError as error:
        raise UserError.of(f"{path}: {error.strerror}", "name a run's folder or its result.json") from error
    except ValidationError as error:
        raise _foreign(path) or _invalid(path, error) from error
    except (LookupError, TypeError, ValueError, AttributeError) as error:
        text = f"{path}: its criteria cannot be read ({type(error).__name__}: {error})"
        raise UserError.of(text, "`perfflow report` can rebuild it from events.jsonl beside it") from error
    return result


def _invalid(path: Path, error: ValidationError) -> UserError:
    first = error.errors()[0]
    where = ".".join(str(part) for part in first["loc"])
    what = f"{where}: {first['msg']}" if where else first["msg"]
    hint = "the file may be truncated; `perfflow report` can rebuild it from events.jsonl beside it"
    return UserError.of(f"{path}: not a result of perfflow ({what})", hint)


def _foreign(path: Path) -> UserError | None:
    """Return the error for an intact file of another version or tool; None for a damaged file."""
    # The readers of all tools, which a run does not need.
    from perfflow.tools.read_file import OWN, kind_of

    schema, tool = kind_of(path)
    if schema.startswith(OWN) and schema != SCHEMA:
        text = f"{path}: its schema is {schema!r}, and this version of perfflow reads {SCHEMA!r}"
        return UserError.of(text, "read it with the version of perfflow that wrote it")
    if tool:
        text = f"{path}: a result file of {tool}, not of perfflow"
        return UserError.of(text, "`perfflow compare` reads it: perfflow compare OLD-RESULT NEW-RESULT")
    return None


FILE = "bisect.json"


def is_bisection(path: Path) -> bool:
    """Return whether a folder is that of a bisection, even of a killed one. Raises UserError for damaged events."""
    if not (path / EVENTS).is_file():
        return (path / FILE).is_file()
    run = next(events(path), {}).get("run")
    return isinstance(run, dict) and "bisect" in run


def require_verdict(path: Path) -> None:
    """Raise UserError if a folder is that of a bisection, which has neither a verdict nor a receipt."""
    if is_bisection(path):
        text = f"{path}: a bisection, which has no verdict, no result.json and no receipt"
        hint = f"its files are {FILE} and report.md; `perfflow report {path} --out DIR` judges good against bad"
        raise UserError.of(text, hint)
