"""Mutate inputs of a parser and judge its answers. The same seed gives the same inputs.

An input leads to a named error, a right answer, or a defect. ``neutral`` mutations keep the meaning, so they must not
change the answer. ``damage`` damages files at random: their bytes, and their nodes if they are JSON.
"""

from __future__ import annotations

import json
import math
import re
import signal
import tempfile
import traceback
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from copy import deepcopy
from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path
from random import Random
from typing import Any, Literal, NamedTuple

from perfflow.model.errors import ToolOutputError, UserError
from perfflow.model.readings import Parsed, Profile, Reading
from perfflow.model.stacks import read_folded

Files = Mapping[str, bytes]
"""Contents of files by path below a folder."""
Key = tuple[str, str]
"""Benchmark and metric."""
LARGEST = 20_000
"""Largest case in bytes. Larger files only take more time."""


class Summary(NamedTuple):
    """A summary of the values of one metric of one benchmark, since some parsers only keep a summary."""

    n: int
    low: float
    high: float
    mean: float


class Answer(NamedTuple):
    """The figures that a parser read, and its warnings."""

    figures: Mapping[Key, Summary]
    warnings: Sequence[str] = ()


@dataclass(frozen=True, slots=True)
class Parser:
    """A parser with real cases.

    ``ends``: whether the format marks its end, so that cuts must be detected. ``skipped``: files that it does not read.
    """

    name: str
    cases: Sequence[Files]
    read: Callable[[Path], Answer]
    ends: bool = True
    skipped: Sequence[str] = ()


SECONDS = 10.0
"""A parser that takes longer for an input hangs."""
_LONGEST_REASON = 2000
_NEVER_ZERO = {"time", "instructions", "samples", "heap_peak", "top share"}


class Outcome(StrEnum):
    """The outcome of an input. All except the first two are defects."""

    ERROR = "named error"
    RIGHT = "right answer"
    WRONG = "wrong answer"
    ZERO = "silent zero"
    TRACEBACK = "traceback"
    HANG = "hang"


GOOD = (Outcome.ERROR, Outcome.RIGHT)


Mutation = Literal["neutral", "cut", "damage"]
"""The kind of change to one file of a case."""


class Judged(NamedTuple):
    """An outcome and its reason."""

    outcome: Outcome
    why: str = ""


class HangError(Exception):
    """Raised inside code that took too long."""


@contextmanager
def time_limit(seconds: float = SECONDS) -> Iterator[None]:
    """Raise HangError in the block after this time. Only for the main thread."""

    def stop(_number: int, _frame: object) -> None:
        raise HangError

    before = signal.signal(signal.SIGALRM, stop)
    signal.setitimer(signal.ITIMER_REAL, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


def mutate(content: bytes, random: Random) -> tuple[Mutation, bytes]:
    """Return the content after one random mutation, and its kind."""
    draw = random.random()
    if draw < 0.1 and (same := neutral(content, random)) is not None:
        return "neutral", same
    if draw < 0.25:
        return "cut", cut(content, random)
    return "damage", damage(content, random)


def neutral(content: bytes, random: Random) -> bytes | None:
    """Return JSON with the same meaning: other spaces, another order, an unknown key. Return None if it is not JSON."""
    try:
        value = json.loads(content)
    except ValueError:
        return None
    if isinstance(value, dict):
        items = list(value.items())
        random.shuffle(items)
        value = dict(items) | {"zz-unknown": [1, {"name": None}]}
    return json.dumps(value, indent=random.choice([None, 0, 4]), ensure_ascii=random.random() < 0.5).encode()


def judge(parser: Parser, folder: Path, kind: Mutation, intact: Answer) -> Judged:
    """Parse the files in ``folder`` and judge the answer."""
    try:
        with time_limit():
            answer = parser.read(folder)
    except (ToolOutputError, UserError, ValueError) as error:
        return _of_error(error)
    except HangError:
        return Judged(Outcome.HANG, f"longer than {SECONDS:g} s")
    except Exception:  # noqa: BLE001 (any other exception is a defect to report)
        return Judged(Outcome.TRACEBACK, traceback.format_exc())
    return _of_answer(parser, answer, kind, intact)


def _of_error(error: Exception) -> Judged:
    # read_folded documents a ValueError with the line number. Any other ValueError is a defect.
    if isinstance(error, ValueError) and not str(error).startswith("line "):
        return Judged(Outcome.TRACEBACK, repr(error))
    said = "".join(f"{problem.message}{problem.hint}" for problem in getattr(error, "problems", ())) or str(error)
    if len(said) < 10 or len(said) > _LONGEST_REASON or not said.isprintable():
        return Judged(Outcome.TRACEBACK, f"no error of one line: {said[:200]!r}")
    return Judged(Outcome.ERROR, said)


def _of_answer(parser: Parser, answer: Answer, kind: Mutation, intact: Answer) -> Judged:
    said = "\n".join(answer.warnings)
    if not answer.figures:
        return Judged(Outcome.ZERO, "an answer without a figure")
    changed = not same(answer.figures, intact.figures)
    if kind == "neutral" and changed:
        return Judged(Outcome.WRONG, "other figures, although the mutation kept the meaning")
    if kind == "cut" and parser.ends and changed and "cut short" not in said:
        return Judged(Outcome.WRONG, "other figures of a cut file, without a warning")
    zeros = [key for key, value in answer.figures.items() if key[1] in _NEVER_ZERO and value.low == 0]
    return Judged(Outcome.ZERO, f"{zeros[0]} is 0") if zeros else Judged(Outcome.RIGHT)


def same(one: Mapping[Key, Summary], other: Mapping[Key, Summary]) -> bool:
    """Return whether two answers have the same figures."""
    return one.keys() == other.keys() and all(close(one[key], other[key]) for key in one)


def close(one: Summary, other: Summary) -> bool:
    """Return whether two summaries are equal except for rounding."""
    pairs = zip((one.low, one.high, one.mean), (other.low, other.high, other.mean), strict=True)
    return one.n == other.n and all(math.isclose(a, b, rel_tol=1e-9, abs_tol=1e-300) for a, b in pairs)


def answer_of(parsed: Parsed, folder: Path) -> Answer:
    """Return the figures that an adapter read; for profiles the number of samples or the share of the first hotspot."""
    found = answer_of_readings(parsed.readings)
    found |= {(peak.precision, peak.metric): Summary(1, *[peak.value] * 3) for peak in parsed.peaks}
    if any(profile.path == "stacks.folded" and not _is_estimate(profile) for profile in parsed.profiles):
        total = sum(read_folded((folder / "stacks.folded").read_text(encoding="utf-8")).values())
        found["", "samples"] = Summary(1, total, total, total)
    elif parsed.hotspots:
        top = parsed.hotspots[0].share
        found["", "top share"] = Summary(1, top, top, top)
    return Answer(found, parsed.warnings)


def _is_estimate(profile: Profile) -> bool:
    return profile.stacks is not None and profile.stacks.is_call_pairs


def answer_of_readings(readings: Sequence[Reading]) -> dict[Key, Summary]:
    """Return readings as figures. Raises AssertionError if they contradict each other."""
    found: dict[Key, Summary] = {}
    for item in readings:
        inner = item.inner or {"n": 1, "min": item.value, "max": item.value, "mean": item.value}
        assert (item.benchmark, item.metric) not in found, f"two readings of {item.metric} of {item.benchmark}"
        low, high = inner.get("min", item.value), inner.get("max", item.value)
        assert low <= item.value <= high, f"{item.metric} is not within its own values"
        found[item.benchmark, item.metric] = Summary(int(inner.get("n", 1)), low, high, inner.get("mean", item.value))
    return found


def summary(values: Sequence[float]) -> Summary:
    """Summarize values."""
    return Summary(len(values), min(values), max(values), sum(values) / len(values))


KEPT = 5
"""Number of defects to keep with their bytes."""


@dataclass
class Tally:
    """The outcomes of all inputs of one parser. ``defects``: the first defects."""

    name: str
    inputs: int = 0
    outcomes: Counter[str] = field(default_factory=Counter)
    defects: list[tuple[Judged, str]] = field(default_factory=list)

    def take(self, judged: Judged, what: str) -> None:
        """Count one input, described by ``what``."""
        self.inputs += 1
        self.outcomes[judged.outcome] += 1
        if judged.outcome not in GOOD and len(self.defects) < KEPT:
            self.defects.append((judged, what))


class _Case(NamedTuple):
    """The files of one case on disk, and the answer for the intact files."""

    folder: Path
    files: Files
    intact: Answer


def run(parser: Parser, examples: int, seed: int) -> Tally:
    """Mutate one file of one case, ``examples`` times, and judge the answers of the parser."""
    random = Random(f"{seed} {parser.name}")
    tally = Tally(parser.name)
    with tempfile.TemporaryDirectory(prefix="mutate-") as temporary:
        cases = _written(parser, Path(temporary))
        for _ in range(examples):
            case = random.choice(cases)
            name = random.choice([file for file in case.files if file not in parser.skipped])
            kind, content = mutate(case.files[name], random)
            path = case.folder / name
            path.write_bytes(content)
            judged = judge(parser, case.folder, kind, case.intact)
            tally.take(judged, f"{kind} of {name}: {content[:3000]!r}")
            path.write_bytes(case.files[name])
    return tally


def _written(parser: Parser, target: Path) -> list[_Case]:
    """Write the cases that the parser accepts, the small ones if there are any. Rejected cases test nothing."""
    cases = []
    for number, files in enumerate(parser.cases):
        folder = target / str(number)
        for name, content in files.items():
            path = folder / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(content)
        try:
            cases.append(_Case(folder, files, parser.read(folder)))
        except (ToolOutputError, UserError):
            continue
    cases = [case for case in cases if set(case.files) - set(parser.skipped)]
    small = [case for case in cases if sum(map(len, case.files.values())) <= LARGEST]
    return small or cases


_NUMBER = re.compile(rb"\d+(?:\.\d+)?")
_NUMBERS = [b"0", b"-1", b"-0.0", b"1e999", b"1e-320", b"NaN", b"Infinity", b"9" * 30, b"1" * 5000, b"1.5", b"", b"x"]
_BRACKETS = [b"{" * 50, b"[" * 3000, b";" * 50, b"(" * 50]
_PIECES = [*_BRACKETS, b"\\ud800", b"\x1b[31m", b"A" * 9000, b"\x00", b"\n", b"\xff\xfe", b'"', b"-2"]
_ODD = [None, True, False, 0, -1, 10**30, 1e300, 1e-320, float("nan"), float("inf"), "", "x", "\ud800", "b" * 900]
_NESTED: list[Any] = [[], {}, [[]], [{}], [None], [-1], {"a": 1}, {"value": 1, "unit": "second"}]


def damage(content: bytes, random: Random) -> bytes:
    """Return the content with one to three kinds of damage."""
    for _ in range(random.randint(1, 3)):
        content = random.choice(_ACCIDENTS)(content, random)
    return content


def flip(content: bytes, random: Random) -> bytes:
    """Replace one byte."""
    at = random.randint(0, max(0, len(content) - 1))
    return content[:at] + bytes([random.randint(0, 255)]) + content[at + 1 :]


def cut(content: bytes, random: Random) -> bytes:
    """Remove the end."""
    return content[: random.randint(0, len(content))]


def without_line(content: bytes, random: Random) -> bytes:
    """Remove one line."""
    lines = content.splitlines(keepends=True)
    at = random.randint(0, len(lines))
    return b"".join(lines[:at] + lines[at + 1 :])


def double_line(content: bytes, random: Random) -> bytes:
    """Repeat one line so that it occurs two to four times."""
    lines = content.splitlines(keepends=True)
    at = random.randint(0, len(lines))
    return b"".join(lines[:at] + lines[at : at + 1] * random.randint(2, 4) + lines[at + 1 :])


def renumber(content: bytes, random: Random) -> bytes:
    """Replace one number by another, or by something else."""
    found = list(_NUMBER.finditer(content))
    if not found:
        return content
    match = random.choice(found)
    return content[: match.start()] + random.choice(_NUMBERS) + content[match.end() :]


def splice(content: bytes, random: Random) -> bytes:
    """Insert a few bytes."""
    at = random.randint(0, len(content))
    piece = random.choice(_PIECES) if random.randint(0, 1) else random.randbytes(random.randint(0, 8))
    return content[:at] + piece + content[at:]


def edit(content: bytes, random: Random) -> bytes:
    """Replace, remove or repeat one node of the JSON, or of one line if the content is JSON lines."""
    lines = content.splitlines(keepends=True)
    at = random.randint(0, max(0, len(lines) - 1))
    for before, text, after in ((b"", content, b""), (b"".join(lines[:at]), b"".join(lines[at : at + 1]), b"\n")):
        try:
            root = {"": json.loads(text)}
        except (ValueError, RecursionError):
            continue
        _edit_node(root, random)
        return before + json.dumps(root.get("")).encode() + after + (b"".join(lines[at + 1 :]) if after else b"")
    return content


def _edit_node(root: dict[str, Any], random: Random) -> None:
    parent: Any = root
    key: Any = ""
    while isinstance(parent[key], dict | list) and parent[key] and random.randint(0, 5):
        parent = parent[key]
        key = random.choice(list(parent) if isinstance(parent, dict) else range(len(parent)))
    if random.randint(0, 3):
        # Copied, because a later damage may change the inserted value.
        parent[key] = deepcopy(random.choice([*_ODD, *_NESTED]))
    elif isinstance(parent, list):
        parent.append(parent[key])
    else:
        del parent[key]


_ACCIDENTS = (flip, cut, without_line, double_line, renumber, splice, edit)
