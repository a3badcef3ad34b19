"""Write and read result.json, and the other JSON files and profiles that are stored beside it.

- ``to_text`` and ``chunks`` make the text of result.json, and ``read`` reads it.
- ``require_verdict`` rejects the folder of a bisection: it has samples of many revisions, bisect.json and a page, but
  no verdict.
- ``store_calibration`` stores calibrations (comparisons of steps with themselves), one file per machine beside the
  runs.
- ``stack_profiles`` reads the profiles with stacks of a stored run from the folded files that its result names.
"""

from __future__ import annotations

import json
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, FiniteFloat, TypeAdapter, ValidationError
from pydantic_core import to_jsonable_python

from perfflow.model.criteria import criteria_from_json
from perfflow.model.errors import UserError
from perfflow.model.metrics import METRICS
from perfflow.model.readings import StackCounts
from perfflow.model.result import SCHEMA, Expected, ProfileResult, Result
from perfflow.model.stacks import Stack, StackProfile, read_folded
from perfflow.model.units import Dimension
from perfflow.store import run_folder
from perfflow.store.run_folder import EVENTS, events, json_lines, only_writer
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


CALIBRATION_SCHEMA: Literal["perfflow.calibration/1"] = "perfflow.calibration/1"
Share = Annotated[FiniteFloat, Field(ge=0)]


@dataclass(frozen=True)
class CalibrationFinding:
    """One metric of one benchmark, compared with itself. ``exact`` metrics have no noise and no further data.

    ``noise`` is the robust spread of ln(second/first) between the runs of a pair. Of ``trials`` completed comparisons,
    ``alarms`` proved a change of any size (the true share is at most ``alarm_bound``, 95%) and ``same`` proved that
    there is none; ``pairs`` and ``seconds`` are their medians. ``smallest_change`` is the smallest change detected in 9
    of 10 replays (None: none was), with up to ``replayed`` pairs, which take ``within`` seconds. ``alone``: how much
    longer the benchmark takes in a process of its own than among the others of its suite, as a share; None if that is
    not proven beyond the concern threshold.
    """

    step: str
    benchmark: str
    metric: str
    exact: bool = False
    judged: bool = False
    why: str = ""
    noise: Share | None = None
    trials: int = 0
    alarms: int = 0
    alarm_bound: Share | None = None
    same: int = 0
    pairs: Share | None = None
    seconds: Share | None = None
    smallest_change: Share | None = None
    replayed: int = 0
    within: Share | None = None
    alone: FiniteFloat | None = None


@dataclass(frozen=True)
class CalibrationEntry:
    """A finding and its origin. ``machine`` is the noise class of the machine then, '' if it was not checked."""

    workflow: str
    params: dict[str, Any]
    calibrated: str
    seed: int
    version: str
    machine: str
    finding: CalibrationFinding


class _File(BaseModel):
    model_config = ConfigDict(populate_by_name=True, defer_build=True)
    schema_: Literal["perfflow.calibration/1"] = Field(alias="schema")
    identity: str
    entries: list[CalibrationEntry]


def calibration_path(root: Path, identity: str) -> Path:
    """Return the calibration file of a machine."""
    return root / run_folder.HOME / "calibration" / f"{run_folder.file_name(identity)}.json"


def calibration_page(root: Path) -> Path:
    """Return the page of the machine that was calibrated last."""
    return root / run_folder.HOME / "calibration" / run_folder.PAGE


def load_calibrations(root: Path, identity: str) -> list[CalibrationEntry]:
    """Return all entries of a machine, none if it was never calibrated. Raises UserError for a damaged file."""
    file = calibration_path(root, identity)
    try:
        found = _File.model_validate_json(file.read_bytes())
    except FileNotFoundError:
        return []
    except (OSError, ValidationError) as error:
        reason = error.strerror if isinstance(error, OSError) else "not a calibration of this version of perfflow"
        raise UserError.of(f"{file}: {reason}", "remove it, and run `perfflow calibrate` again") from error
    return found.entries if found.identity == identity else []


def store_calibration(root: Path, identity: str, fresh: Sequence[CalibrationEntry], *, whole: bool) -> Path:
    """Store entries of one workflow, replacing all of its entries (``whole``) or those of the same steps."""
    workflows = {entry.workflow for entry in fresh}
    steps = {entry.finding.step for entry in fresh}
    file = calibration_path(root, identity)
    file.parent.mkdir(parents=True, exist_ok=True)
    with only_writer(file.parent):
        kept = [
            entry
            for entry in load_calibrations(root, identity)
            if entry.workflow not in workflows or not (whole or entry.finding.step in steps)
        ]
        data = {"schema": CALIBRATION_SCHEMA, "identity": identity, "entries": to_json([*kept, *fresh])}
        run_folder.write_text(file, json.dumps(data, ensure_ascii=False, indent=1, allow_nan=False) + "\n")
    return file


def to_json(entries: Sequence[CalibrationEntry]) -> list[dict[str, Any]]:
    """Return plain data."""
    found: list[dict[str, Any]] = TypeAdapter(list[CalibrationEntry]).dump_python(list(entries), mode="json")
    return found


def calibration_entries(data: Sequence[Any]) -> list[CalibrationEntry]:
    """Read entries from plain data. Raises ValueError."""
    return TypeAdapter(list[CalibrationEntry]).validate_python(list(data))


def expected_noise(
    root: Path, identity: str, workflow: str, params: Mapping[str, Any]
) -> Iterator[tuple[str, str, Expected]]:
    """Yield benchmark, metric and calibration for a run of this workflow with these parameters on this machine."""
    plain_params = _plain_calibration(params)
    for entry in load_calibrations(root, identity):
        finding = entry.finding
        if (
            entry.workflow == workflow
            and _plain_calibration(entry.params) == plain_params
            and finding.noise is not None
        ):
            known = Expected(
                noise=finding.noise,
                smallest_change=finding.smallest_change,
                within=finding.within,
                calibrated=entry.calibrated,
            )
            yield finding.benchmark, finding.metric, known


def disturbed_suites(root: Path, identity: str, workflow: str, params: Mapping[str, Any]) -> frozenset[str]:
    """Return the steps of this workflow whose benchmarks disturb each other on this machine."""
    wanted = _plain_calibration(params)
    own = (
        item
        for item in load_calibrations(root, identity)
        if item.workflow == workflow and _plain_calibration(item.params) == wanted
    )
    return frozenset(item.finding.step for item in own if item.finding.alone is not None)


def _plain_calibration(params: Mapping[str, Any]) -> str:
    return json.dumps(params, sort_keys=True, default=str)


FOLDED = "folded"
_LARGEST = 512 * 2**20
"""Size limit of a file, in bytes."""
_NANO = 1e9
_NO_FRAME = ("?",)
_OF_COUNTS = {"allocs": "allocations", "temporary_allocs": "allocations"}
"""Units of counting metrics whose name differs from their unit."""


def stack_profiles(
    folder: Path, result: Result, lost: Callable[[str], None] = lambda _reason: None
) -> list[StackProfile]:
    """Read every profile with stacks of the run in ``folder``, in the order of the result.

    Profiles that cannot be read are skipped, and ``lost`` is called with the reason: the file is missing, damaged or
    outside the folder. ``per_operation`` is the value of the stacks' metric in the benchmark's row on that side.
    """
    root, profiles = folder.resolve(), list[StackProfile]()
    numbers = Counter[tuple[str, str, str]]()
    tools = {step.id: step.tool for step in result.steps}
    for profile in result.profiles:
        counts = _counts(profile)
        if counts is None:
            continue
        key = (profile.step, profile.benchmark, profile.tree)
        number = numbers[key]
        numbers[key] += 1
        try:
            threads = _threads(_text(root, profile.path), by_thread=counts.by_thread)
        except (OSError, ValueError) as error:
            lost(f"{profile.path}: {error.strerror or error if isinstance(error, OSError) else error}")
            continue
        cost, unit = _per_operation(result, profile, counts.metric)
        tool = profile.tool or tools.get(profile.step, "")
        about = (*key, tool, counts.unit, threads, number, cost, unit)
        profiles.append(StackProfile(*about, is_call_pairs=counts.is_call_pairs))
    return profiles


def has_stacks(result: Result) -> bool:
    """Return whether a result names a profile with stacks."""
    return any(map(_counts, result.profiles))


def _counts(item: ProfileResult) -> StackCounts | None:
    """Return the kind of a profile's stacks; None if it has none."""
    return StackCounts(**item.stacks.model_dump()) if item.stacks else None


def _text(root: Path, name: str) -> str:
    """Return the text of a file of the run. Raises OSError, and ValueError for a path outside the folder."""
    path = (root / name).resolve()
    if not path.is_relative_to(root):
        raise ValueError("it is outside the run's folder")
    return regular_files.read(path, _LARGEST).decode("utf-8", "replace")


def _threads(text: str, *, by_thread: bool) -> dict[str, dict[Stack, int]]:
    """Return the stacks with a count, by thread. Raises ValueError if there are none or a line is not a stack."""
    threads: defaultdict[str, Counter[Stack]] = defaultdict(Counter)
    for stack, count in read_folded(text).items():
        if count:
            thread, own = (stack[0], stack[1:]) if by_thread else ("", stack)
            threads[thread][own or _NO_FRAME] += count
    if not threads:
        raise ValueError("it contains no stacks")
    return dict(threads)


def _per_operation(result: Result, item: ProfileResult, metric: str) -> tuple[float | None, str]:
    """Return the cost of an operation, None if no row has the metric, and its unit. Times are in ns."""
    dimension = METRICS[metric].dimension if metric in METRICS else Dimension.TIME
    unit = {Dimension.TIME: "ns", Dimension.BYTES: "bytes"}.get(dimension) or _OF_COUNTS.get(metric, metric)
    rows = [row for row in result.benchmarks if (row.name, row.metric) == (item.benchmark, metric)]
    samples = [row.candidate if item.tree == "candidate" else row.baseline for row in rows]
    value = next((sample.value for sample in samples if sample and sample.value), None)
    return value if value is None or unit != "ns" else value * _NANO, unit
