"""``parse``: read figures from the output of any program, by JSON path, pattern or CSV column.

- ``read_number`` reads numbers as programs print them: with a decimal point or comma, and separators between groups of
  three digits.
- ``search`` searches for the user's patterns with a time limit, since backtracking can take practically forever. A
  search with Python's ``re`` cannot be interrupted. A search that may take long therefore runs in another process,
  which is started on demand and ends itself at the limit; a quick search runs in this process.
- ``from_json``, ``from_jsonl``, ``from_regex`` and ``from_csv`` read figures.
- ``read_json`` validates JSON of a tool against a model, and reports the first problem in one line. A model declares
  the keys that are read; other keys are ignored. Nothing is converted: ``"3"`` and ``true`` are not numbers.
"""

from __future__ import annotations

import atexit
import csv
import io
import json
import math
import re
import signal
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from subprocess import DEVNULL, PIPE, Popen
from typing import Annotated, Any, Literal, NamedTuple, Self, TypeVar

from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, Field, ValidationError
from pydantic_core import PydanticCustomError

from perfflow.model.errors import ToolOutputError
from perfflow.model.metrics import METRICS
from perfflow.model.readings import LARGEST, Reading, printed_tick, reading_of_many
from perfflow.model.units import unit_of
from perfflow.tools import python_command, tool_files

Decimal = Literal["point", "comma"]
_SHAPE = re.compile(r"[+-]?\d[\d.,]*(?:[eE][+-]?\d{1,3})?", re.ASCII)
_PLAIN = re.compile(r"[+-]?(?:(?:\d{1,3}(?:,\d{3})+|\d+)(?:\.\d*)?|\.\d+)(?:[eE][+-]?\d{1,3})?", re.ASCII)
# Separators that no locale uses as a decimal mark.
_GROUPS = re.compile(r"(?<=\d)['\u2019_\u00a0\u202f](?=\d{3}(?!\d))")
_SWAPPED = str.maketrans(",.", ".,")


@dataclass(frozen=True, slots=True)
class Printed:
    """A number and the step of its last digit: 0.01 of ``9.95``, 1 of ``12``."""

    value: float
    step: float


def decimal_evidence(text: str) -> Iterator[str]:
    """Yield the decimal mark that follows from one number; nothing for ``1,024``, which is ambiguous."""
    if not _SHAPE.fullmatch(text):
        return
    mantissa = re.split("[eE]", text.lstrip("+-"))[0]
    marks = re.findall("[,.]", mantissa)
    if len(set(marks)) == 2:
        yield marks[-1]
    elif len(marks) > 1:
        yield "." if marks[0] == "," else ","
    elif marks:
        whole, _, rest = mantissa.partition(marks[0])
        if len(rest) != 3 or len(whole) > 3 or whole.startswith("0"):
            yield marks[0]


def evident_marks(texts: Iterable[str]) -> frozenset[str]:
    """Return the decimal marks that follow from the numbers of one output, which share one notation."""
    return frozenset(mark for text in texts for mark in decimal_evidence(text.strip()))


def read_number(text: str, what: str, decimal: Decimal | None, evident: frozenset[str]) -> Printed:
    """Read one number. ``evident`` are the decimal marks of the whole output, used if no ``decimal`` is declared.

    Raises ToolOutputError, starting with ``what``, for a text that is not a number or is ambiguous.
    """
    shown = f"{what} is {tool_files.shown(text)}"
    bare = _GROUPS.sub("", text.strip())
    number = plain_number(bare, decimal or "point")
    if decimal:
        if number is None:
            raise ToolOutputError(f"{shown}, not a number with a decimal {decimal} (`parse: {{decimal: {decimal}}}`)")
        return number
    # With a comma or several points, the German notation is possible as well.
    german = plain_number(bare, "comma") if "," in bare or bare.count(".") > 1 else None
    if german and (number is None or evident == {","}):
        raise ToolOutputError(
            f"{shown}, which has a decimal comma: write `decimal: comma` under `parse`, or print it with a point"
        )
    if german and number and evident != {"."}:
        both = f"{number.value:.15g} or {german.value:.15g}"
        raise ToolOutputError(f"{shown}, which may be {both}: write `decimal: point` or `decimal: comma` under `parse`")
    if number is None:
        raise ToolOutputError(f"{shown}, not a number")
    return number


def plain_number(bare: str, decimal: Decimal) -> Printed | None:
    """Return the number in one notation, None if it is not a number in it."""
    normal = bare.translate(_SWAPPED) if decimal == "comma" else bare
    return Printed(float(normal.replace(",", "")), last_digit(normal)) if _PLAIN.fullmatch(normal) else None


def last_digit(text: str) -> float:
    """Return the step of the last digit of a number with a decimal point."""
    mantissa, _, power = text.lower().partition("e")
    return 10.0 ** min(300, int(power or 0) - len(mantissa.partition(".")[2]))


PATIENCE = 60.0
"""Seconds for one search if the step has no timeout."""
_CHOICE = re.compile(r"(?<!\()[*+?{|]")
"""Characters that let a pattern match in several ways. Those in a class or after a backslash are counted as well."""
_REPEATED_GROUP = re.compile(r"\)[*+?{]")
_MOST_WAYS = 10**8
"""Ways to match that ``re`` tries within about a second."""


class PatternTimeoutError(ToolOutputError):
    """The search for a pattern did not end within its time limit."""


class PatternMatch(NamedTuple):
    """One match: its start, in characters from 0, and the texts of its named groups."""

    start: int
    groups: dict[str, str | None]


def search(
    pattern: str, texts: Sequence[str], seconds: float | None = None, flags: int | re.RegexFlag = re.MULTILINE
) -> list[PatternMatch]:
    """Return every match of a valid pattern in each of the texts.

    ``seconds`` is the time limit, by default PATIENCE. Raises PatternTimeoutError.
    """
    if _is_quick(pattern, max(map(len, texts), default=0)):
        compiled = re.compile(pattern, flags)
        return [PatternMatch(match.start(), match.groupdict()) for text in texts for match in compiled.finditer(text)]
    limit = PATIENCE if seconds is None else seconds
    request = {"pattern": pattern, "flags": int(flags), "texts": list(texts), "seconds": limit}
    answer = _answer_to(json.dumps(request).encode() + b"\n")
    if answer is None:
        text = f"the search for the pattern {pattern[:80]!r} did not end within {limit:g} s"
        raise PatternTimeoutError(f"{text}: it has too many ways to match; avoid nested repetition such as (a+)+")
    return [PatternMatch(start, groups) for start, groups in json.loads(answer)]


def time_left(timeout: float | None, used: float) -> float | None:
    """Return the seconds of a step's timeout that remain for the patterns, at least 1; None without a limit."""
    return None if timeout is None else max(timeout - used, 1.0)


def _is_quick(pattern: str, length: int) -> bool:
    """Whether a search in a text of this length has few enough ways to match.

    Without a repeated group, the start and each choice have at most one way for each position of the text.
    """
    if _REPEATED_GROUP.search(pattern):
        return False
    choices = len(_CHOICE.findall(pattern))
    return bool((length + 1) ** min(choices + 1, 100) <= _MOST_WAYS)


_idle: list[Popen[bytes]] = []
"""Processes that wait for a request, as many as there were simultaneous searches."""


def _answer_to(request: bytes) -> bytes | None:
    """Return the answer to a request, None after a timeout. Raises ToolOutputError if the process is killed twice."""
    for _ in range(2):
        child = _idle.pop() if _idle else _start_process()
        answer = _exchange(child, request)
        if answer.endswith(b"\n"):
            _idle.append(child)
            return answer
        child.communicate()
        if child.returncode == -signal.SIGALRM:
            return None
        # A process that was killed while it waited is replaced.
    raise ToolOutputError("the process that searches for patterns was killed")


def _exchange(child: Popen[bytes], request: bytes) -> bytes:
    if child.stdin is None or child.stdout is None:
        return b""
    try:
        child.stdin.write(request)
        child.stdin.flush()
        return child.stdout.readline()
    except OSError:
        return b""


def _start_process() -> Popen[bytes]:
    # A session of its own keeps ^C from it.
    argv = python_command.driver_command("pattern_search.py")
    return Popen(argv, stdin=PIPE, stdout=PIPE, stderr=DEVNULL, cwd="/", start_new_session=True)


def _end_processes() -> None:
    while _idle:
        _idle.pop().communicate()


atexit.register(_end_processes)


BENCHMARK = "benchmark"
"""The group, path or column of benchmark names."""
Paths = Mapping[str, str | Sequence[str]]
"""Metric -> path or column. ``benchmark`` may have several, whose values are joined to a name by ``/``."""
_Figure = tuple[str, str, Printed, int | None]
"""Benchmark, metric, the number in its declared unit, and the entry that names the benchmark.

The figures of one entry are samples of one benchmark; None: the output names no benchmark, so all figures are samples.
"""
_Cell = tuple[str, str, str, str, int | None]
"""Benchmark, metric, the number as printed, its place in the output, and the entry as in ``_Figure``."""
_STEP = re.compile(r"(?P<key>[^.\[\]]+)|\[\"(?P<quoted>[^\"]+)\"\]|\[(?P<index>\d*)\]")
_ALL = "[]"


def from_json(text: str, paths: Paths, units: Mapping[str, str], samples: bool = False) -> tuple[Reading, ...]:
    """Read figures at paths such as ``results[].mean``; ``[]`` means every item, ``[0]`` one of them.

    ``["p99.9"]`` is a key with other characters, and ``[]`` of an object means all of its values.

    With a path for ``benchmark``, names and figures are paired in order; a name whose path has no ``[]`` holds for all
    figures. Raises ToolOutputError if a path does not exist, its value is not a number, or two items have one name.
    ``samples``: items of one name are samples of one benchmark.
    """
    try:
        data = json.loads(text, parse_float=_ParsedOutputWritten)
    except (ValueError, RecursionError) as error:
        hint = "; for lines with a JSON object each, write `jsonl`" if text.lstrip().startswith("{") else ""
        raise ToolOutputError(f"the output is not JSON: {error}{hint}") from error
    figures = list(_json_figures(data, paths, 0))
    for metric, path in _metrics(paths).items():
        if all(figure[1] != metric for figure in figures):
            raise ToolOutputError(f"the JSON output has nothing at {path!r}")
    named = _paths_of(paths)
    listed = next((path for path in named if _ALL in path), "")
    items = listed.rpartition(_ALL)[0] + _ALL if listed else ""

    def entries() -> list[dict[str, Any]]:
        return [_scalars(item, f"{items}.") for item in _at(data, items)] if items else []

    return _readings(figures, units, None if samples else _Distinct(paths, entries, "json"))


def from_jsonl(text: str, paths: Paths, units: Mapping[str, str], samples: bool = False) -> tuple[Reading, ...]:
    """Read figures from lines that are JSON objects each, by paths as in ``from_json``. Other lines are skipped.

    A line may have some of the paths. With ``benchmark``, each line with figures has a name, and each name has figures.
    Raises ToolOutputError as ``from_json`` does, also if a line that begins with ``{`` is not JSON.
    """
    figures: list[_Figure] = []
    objects: dict[int, Any] = {}
    unmeasured: dict[str, int] = {}
    for number, line in enumerate(text.splitlines(), 1):
        if not line.lstrip().startswith("{"):
            continue
        try:
            objects[number] = json.loads(line, parse_float=_ParsedOutputWritten)
            of_line = list(_json_figures(objects[number], paths, number))
            for name in [] if of_line or BENCHMARK not in paths else _names(objects[number], paths):
                unmeasured.setdefault(name, number)
        except (ValueError, RecursionError) as error:
            raise ToolOutputError(f"line {number} of the output is not JSON: {error}") from error
        except ToolOutputError as error:
            raise ToolOutputError(f"line {number}: {error}") from error
        figures += of_line
    for metric, path in _metrics(paths).items():
        if all(figure[1] != metric for figure in figures):
            raise ToolOutputError(f"no line of the output is a JSON object with {path!r}")
    lost = [name for name in unmeasured if all(figure[0] != name for figure in figures)]
    if lost:
        raise ToolOutputError(f"line {unmeasured[lost[0]]} names {lost[0]!r}, but no line has a figure for it")

    def entries() -> list[dict[str, Any]]:
        return [_scalars(item, "") for item in objects.values()]

    return _readings(figures, units, None if samples else _Distinct(paths, entries, "jsonl"))


def _paths_of(paths: Paths) -> list[str]:
    """Return the paths or columns of ``benchmark``."""
    named = paths.get(BENCHMARK, ())
    return [named] if isinstance(named, str) else list(named)


def _metrics(paths: Paths) -> dict[str, str]:
    return {metric: str(path) for metric, path in paths.items() if metric != BENCHMARK}


def _json_figures(data: Any, paths: Paths, first: int) -> Iterator[_Figure]:
    """Yield the figures of one document. ``first``: number of its first entry."""
    # An entry without a name has no figures of its own, so a document without names may lack the paths.
    names: list[str] | None = None
    for metric, path in _metrics(paths).items():
        values = _at(data, path)
        if not values:
            continue
        if names is None:
            names = _names(data, paths) if BENCHMARK in paths else [""]
        is_one = all(_ALL not in part for part in _paths_of(paths))
        if not is_one and len(names) != len(values):
            raise ToolOutputError(f"the JSON output has {len(names)} names but {len(values)} values at {path!r}")
        if not names:
            raise ToolOutputError(f"there is a value at {path!r}, but no name at {_paths_of(paths)[0]!r}")
        for index, value in enumerate(values):
            if isinstance(value, bool) or not isinstance(value, int | float):
                raise ToolOutputError(f"{path!r} is {tool_files.shown(value)}, not a number")
            number = Printed(value, value.step if isinstance(value, _ParsedOutputWritten) else 1.0)
            entry = None if BENCHMARK not in paths else first if is_one else index
            yield names[0 if is_one else index], metric, number, entry


def _names(data: Any, paths: Paths) -> list[str]:
    """Return the names of the benchmarks in a document; a part at a path without ``[]`` belongs to all of them."""
    parts = [[str(value) for value in _at(data, path)] for path in _paths_of(paths)]
    most = max(map(len, parts))
    parts = [part * most if len(part) == 1 else part for part in parts]
    if any(len(part) != most for part in parts):
        counts = " and ".join(f"{len(part)} at {path!r}" for part, path in zip(parts, _paths_of(paths), strict=True))
        raise ToolOutputError(f"the parts of the names differ in number: {counts}")
    return ["/".join(name) for name in zip(*parts, strict=True)]


def _scalars(item: Any, prefix: str) -> dict[str, Any]:
    """Return the texts and whole numbers in an object by their paths, which begin with ``prefix``."""
    found: dict[str, Any] = {}
    for key, value in item.items() if isinstance(item, dict) else ():
        if isinstance(value, dict):
            found |= _scalars(value, f"{prefix}{key}.")
        elif isinstance(value, str | int):
            found[prefix + key] = value
    return found


class _ParsedOutputWritten(float):
    """A number of a JSON text with the step of its last digit."""

    step: float

    def __new__(cls, text: str) -> Self:
        """Read the number."""
        made = super().__new__(cls, text)
        made.step = last_digit(text)
        return made


def _at(data: Any, path: str) -> list[Any]:
    """Return the values at a path. Raises ToolOutputError if only some items of a list have its next key."""
    values = [data]
    for step in _STEP.finditer(path):
        key, index = step["key"] or step["quoted"], step["index"]
        following: list[Any] = []
        for number, node in enumerate(values, 1):
            onward: list[Any] = []
            if isinstance(node, dict) and key in node:
                onward = [node[key]]
            elif isinstance(node, list) and key is None:
                onward = node[int(index) :][:1] if index else node
            elif isinstance(node, dict) and key is None and not index:
                onward = list(node.values())
            # An empty list contributes no figure, but an item without the key would silently lose one.
            if not onward and len(values) > 1 and (key is not None or node != []):
                raise ToolOutputError(f"item {number} at {path!r} has no {step[0]!r}")
            following += onward
        values = following
    return values


def from_regex(
    text: str,
    patterns: Sequence[str],
    units: Mapping[str, str],
    decimal: Decimal | None = None,
    seconds: float | None = None,
    samples: bool = False,
) -> tuple[Reading, ...]:
    """Read figures from the named groups of every match. ``seconds`` is the time limit for each pattern.

    Raises ToolOutputError if nothing matches, or if two matches give one name a figure, and PatternTimeoutError.
    """
    cells: list[_Cell] = []
    for pattern in patterns:
        line, counted = 1, 0
        for match in search(pattern, [text], seconds):
            line += text.count("\n", counted, match.start)
            counted, groups = match.start, dict(match.groups)
            name = groups.pop(BENCHMARK, None)
            entry = None if name is None else len(cells)
            present = [(metric, number) for metric, number in groups.items() if number is not None]
            cells += [(name or "", metric, number, f"on line {line}", entry) for metric, number in present]
    if not cells:
        raise ToolOutputError(f"nothing in the output matches {' or '.join(patterns)!r}")
    return _readings(_figures(cells, decimal), units, None if samples else _Distinct({}, list, "regex"))


def from_csv(
    text: str, columns: Paths, units: Mapping[str, str], decimal: Decimal | None = None, samples: bool = False
) -> tuple[Reading, ...]:
    """Read figures from columns by their heading. Lines before the heading are skipped.

    The separator is that of the heading: ``,``, ``;`` or a tab. Raises ToolOutputError, also for two rows of one name
    unless they are ``samples``.
    """
    metrics, parts = _metrics(columns), _paths_of(columns)
    headings = {*metrics.values(), *parts}
    rows, start = _table(text, headings, decimal)
    heading = [cell.strip() for cell in rows[start]]
    cells: list[_Cell] = []
    entries: list[dict[str, Any]] = []
    needed = max(heading.index(column) for column in headings)
    ended = text.endswith(("\n", "\r"))
    for number, row in enumerate(rows[start + 1 :], start + 2):
        # A line without a separator is prose, unless it is a last row that was cut off.
        is_prose = len(row) == 1 and needed and (ended or number < len(rows))
        if is_prose or not any(cell.strip() for cell in row):
            continue
        if len(row) <= needed:
            raise ToolOutputError(f"row {number} of the CSV output ends before {heading[needed]!r}: is it cut short?")
        if any(cell.strip() for cell in row[len(heading) :]):
            counts = f"{len(row)} cells, but the heading has {len(heading)}"
            raise ToolOutputError(f"row {number} of the CSV output has {counts}: is a decimal comma not quoted?")
        named = dict(zip(heading, row, strict=False))
        name = "/".join(named[part].strip() for part in parts)
        entries.append(named)
        entry = number if parts else None
        cells += [(name, metric, named[column], f"in row {number}", entry) for metric, column in metrics.items()]
    if not cells:
        raise ToolOutputError("the CSV output has a heading but no rows")
    distinct = _Distinct(columns, lambda: entries, "csv")
    return _readings(_figures(cells, decimal), units, None if samples else distinct)


def _table(text: str, wanted: set[str], decimal: Decimal | None) -> tuple[list[list[str]], int]:
    """Return the rows and the index of the heading, split by the first delimiter that gives a line all columns."""
    try:
        for delimiter in ";\t," if decimal == "comma" else ",;\t":
            rows = list(csv.reader(io.StringIO(text), delimiter=delimiter))
            for number, row in enumerate(rows):
                if wanted <= {cell.strip() for cell in row}:
                    return rows, number
    except csv.Error as error:
        raise ToolOutputError(f"the output is not CSV: {error}") from error
    raise ToolOutputError(f"no line of the output has the columns {', '.join(sorted(wanted))}")


def _figures(cells: Sequence[_Cell], decimal: Decimal | None) -> Iterator[_Figure]:
    """Read printed numbers, all of them in one notation."""
    evident: frozenset[str] = frozenset() if decimal else evident_marks(cell[2] for cell in cells)
    for name, metric, text, place, entry in cells:
        yield name, metric, read_number(text, f"`{metric}` {place}", decimal, evident), entry


@dataclass(frozen=True)
class _Distinct:
    """The rule that each name belongs to one entry of the output, and how to make names distinct.

    ``entries``: the fields of all entries by path or column. ``key``: of ``parse``, for the message.
    """

    paths: Paths
    entries: Callable[[], list[dict[str, Any]]]
    key: str

    def error(self, name: str, metric: str, numbers: Sequence[float]) -> ToolOutputError:
        """Return the error about two figures of one name."""
        both = f"the output has two values of `{metric}` for {name!r}, {numbers[0]:.15g} and {numbers[1]:.15g}"
        parts = _paths_of(self.paths)
        if parts:
            another = "ANOTHER_COLUMN" if self.key == "csv" else "ANOTHER_PATH"
            remedy = f"`benchmark: {json.dumps([*parts, self._telling_apart() or another])}` under `{self.key}`"
        else:
            remedy = "match more of the text in the group `benchmark`"
        return ToolOutputError(
            f"{both}; make the names distinct: {remedy}; or, if they are samples of one benchmark, write "
            "`samples: true` under `parse`"
        )

    def _telling_apart(self) -> str:
        """Return a path or column whose values differ between entries of one name, '' if there is none."""
        entries, parts = self.entries(), _paths_of(self.paths)
        groups: dict[tuple[Any, ...], list[dict[str, Any]]] = {}
        for entry in entries:
            groups.setdefault(tuple(entry.get(part) for part in parts), []).append(entry)
        several = [group for group in groups.values() if len(group) > 1]
        measured = set(_metrics(self.paths).values())
        # A text is more likely to be a parameter than a number, which may be another figure.
        keys = sorted(
            {key for entry in entries for key in entry} - {*parts, *measured},
            key=lambda key: not any(isinstance(entry.get(key), str) for entry in entries),
        )
        return next(
            (key for key in keys if all(_all_differ(entry.get(key) for entry in group) for group in several)), ""
        )


def _all_differ(values: Iterable[Any]) -> bool:
    listed = list(values)
    return None not in listed and len(set(listed)) == len(listed)


def _readings(figures: Iterable[_Figure], units: Mapping[str, str], distinct: _Distinct | None) -> tuple[Reading, ...]:
    """Combine the figures of each benchmark and metric, in base units, with the step of their last digits.

    Raises ToolOutputError if two entries of the output have one name, unless ``distinct`` is None.
    """
    values: dict[tuple[str, str], list[float]] = {}
    steps: dict[tuple[str, str], list[float]] = {}
    first: dict[tuple[str, str], tuple[int | None, float]] = {}
    for name, metric, number, entry in figures:
        before = first.setdefault((name, metric), (entry, number.value))
        if distinct and entry != before[0]:
            raise distinct.error(name, metric, (before[1], number.value))
        known = unit_of(units[metric])
        factor = float(known[1]) if known else 1.0
        values.setdefault((name, metric), []).append(_base(metric, number.value, factor))
        steps.setdefault((name, metric), []).append(number.step * factor)
    readings = (
        Reading(metric, many[0], name) if len(many) == 1 else reading_of_many(metric, many, name)
        for (name, metric), many in values.items()
    )
    return tuple(replace(item, tick=printed_tick(item.value, steps[item.benchmark, item.metric])) for item in readings)


def _base(metric: str, value: float, factor: float) -> float:
    try:
        base = float(value * factor)
    except OverflowError as error:
        raise ToolOutputError(f"`{metric}` is too large for a number") from error
    if not math.isfinite(base) or (metric in METRICS and base < 0):
        raise ToolOutputError(f"`{metric}` is {tool_files.shown(value)}, which cannot be a measurement")
    if metric == "time" and base == 0:
        raise ToolOutputError("`time` is 0, which is not valid: have the program print more digits")
    return base


Figure = Annotated[float, Field(ge=0, lt=LARGEST)]
Positive = Annotated[float, Field(gt=0, lt=LARGEST)]
Figures = Annotated[list[Figure], Field(fail_fast=True)]
Positives = Annotated[list[Positive], Field(fail_fast=True)]
"""Checking stops at the first invalid item, since there may be a million."""
Whole = Annotated[int, Field(ge=0, lt=int(LARGEST))]
Counted = Annotated[int, Field(gt=0, lt=int(LARGEST))]
Name = Annotated[str, AfterValidator(tool_files.clean_name)]
"""A printable name; see ``tool_files.clean_name``."""


class Json(BaseModel):
    """Base class of the models."""

    model_config = ConfigDict(frozen=True, strict=True, allow_inf_nan=False, defer_build=True)


M = TypeVar("M", bound=Json)
# Keys that name an object in messages, the most specific first.
_NAMES = ("fullname", "full_id", "name", "command", "location", "function", "thread_name")
_WORDS: Mapping[str, str] = {
    "missing": "is missing",
    "string_type": "is not text",
    "list_type": "is not a list",
    "dict_type": "is not an object",
    "model_type": "is not an object",
    "bool_type": "is neither true nor false",
    "float_type": "is {}, not a number",
    "int_type": "is {}, not a whole number",
    "extra_forbidden": "is not known to perfflow",
    "unknown": "is {}, which perfflow does not know",
    "too_short": "is empty",
    "string_too_short": "is empty",
}


def one_of_keys(known: Mapping[str, Any]) -> BeforeValidator:
    """Return a validator that replaces a word, such as a unit, by its entry in ``known``."""

    def look_up(value: object) -> Any:
        if not isinstance(value, str) or value not in known:
            raise PydanticCustomError("unknown", "unknown")
        return known[value]

    return BeforeValidator(look_up)


def read_json(model: type[M], path: Path, remedy: str = "") -> M:
    """Return a file as a model. Raises ToolOutputError if it is missing, empty, cut, or does not fit the model."""
    return checked_json(model, tool_files.read_json(path, remedy), path.name)


def checked_json(model: type[M], content: object, file: str = "") -> M:
    """Return decoded JSON as a model. Raises ToolOutputError with ``file``, the key and the name of its object."""
    try:
        return model.model_validate(content)
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        words = _WORDS.get(first["type"], "is {}, which is not valid").format(tool_files.shown(first["input"]))
        raise ToolOutputError(f"{_place(content, first['loc'], file)} {words}") from error


def _place(content: object, location: Sequence[str | int], file: str) -> str:
    """Return a location such as ``out.json: stats.data[2] of test_x``, relative to the last object with a name."""
    owner, keys = "", ""
    for step in location:
        called = _object_names(content)
        if called and isinstance(called[0], str) and step not in _NAMES:
            owner, keys = f" of {tool_files.clean_name(called[0])[:80]}", ""
        keys += f"[{step}]" if isinstance(step, int) else f".{tool_files.clean_name(step)[:80]}"
        content = _item_of(content, step)
    where = f"{keys.removeprefix('.')}{owner}"
    return ": ".join(filter(None, (file, where))) or "it"


def _item_of(content: object, step: str | int) -> object:
    """Return an item of a list or object, None if it does not exist."""
    if isinstance(content, list):
        return content[step] if isinstance(step, int) and step < len(content) else None
    return content.get(step) if isinstance(content, dict) else None


def _object_names(content: object) -> list[object]:
    """Return the names of a piece of JSON; pyperf has them in the metadata."""
    pieces = (content, content.get("metadata")) if isinstance(content, dict) else ()
    return [piece[key] for piece in pieces if isinstance(piece, dict) for key in _NAMES if key in piece]
