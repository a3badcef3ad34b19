"""What one mutated input led to, and whether that was right."""

from __future__ import annotations

import json
import math
import signal
import traceback
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from random import Random

from perfflow.errors import ToolOutputError, UserError
from tests.damage import cut, damage
from tests.mutate.parsers import Answer, Parser, Summary, summary
from tests.mutate.plain_readers import Files, Key

SECONDS = 10.0
"""An input that keeps a parser busy for longer hangs it."""
_LONGEST_REASON = 2000
_NEVER_ZERO = {"time", "instructions", "samples", "heap_peak", "top share"}


class Outcome(StrEnum):
    """How an input ended; all but the first two are defects."""

    ERROR = "named error"
    RIGHT = "right answer"
    WRONG = "wrong answer"
    ZERO = "silent zero"
    TRACEBACK = "traceback"
    HANG = "hang"


GOOD = (Outcome.ERROR, Outcome.RIGHT)


class Mutation(StrEnum):
    """What was done to one file of a case."""

    NEUTRAL = "neutral"
    CUT = "cut"
    DAMAGE = "damage"


@dataclass(frozen=True, slots=True)
class Judged:
    """An outcome, and why it is what it is."""

    outcome: Outcome
    why: str = ""


class HangError(Exception):
    """Raised in the middle of whatever took too long."""


@contextmanager
def time_limit(seconds: float = SECONDS) -> Iterator[None]:
    """Raise HangError in the block once the seconds have passed. For the main thread alone."""

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
    """Return the content after one mutation of a kind drawn by chance, and the kind."""
    draw = random.random()
    if draw < 0.1 and (same := neutral(content, random)) is not None:
        return Mutation.NEUTRAL, same
    if draw < 0.25:
        return Mutation.CUT, cut(content, random)
    return Mutation.DAMAGE, damage(content, random)


def neutral(content: bytes, random: Random) -> bytes | None:
    """Return JSON that says the same: other spaces, order of keys, a key nobody knows; None for what is no JSON."""
    try:
        value = json.loads(content)
    except ValueError:
        return None
    if isinstance(value, dict):
        items = list(value.items())
        random.shuffle(items)
        value = dict(items) | {"zz-unknown": [1, {"name": None}]}
    return json.dumps(value, indent=random.choice([None, 0, 4]), ensure_ascii=random.random() < 0.5).encode()


def judge(parser: Parser, folder: Path, files: Files, kind: Mutation, intact: Answer) -> Judged:
    """Ask the parser for an answer to the files in ``folder``, and hold it against the plain reading of them."""
    try:
        with time_limit():
            answer = parser.read(folder)
    except (ToolOutputError, UserError, ValueError) as error:
        return _of_error(error)
    except HangError:
        return Judged(Outcome.HANG, f"longer than {SECONDS:g} s")
    except Exception:  # noqa: BLE001 (whatever else comes out of a parser is what is looked for)
        return Judged(Outcome.TRACEBACK, traceback.format_exc())
    return _of_answer(parser, answer, files, kind, intact)


def _of_error(error: Exception) -> Judged:
    # read_folded documents a ValueError that numbers the line; any other is no named error.
    if isinstance(error, ValueError) and not str(error).startswith("line "):
        return Judged(Outcome.TRACEBACK, repr(error))
    said = "".join(f"{problem.message}{problem.hint}" for problem in getattr(error, "problems", ())) or str(error)
    if len(said) < 10 or len(said) > _LONGEST_REASON or not said.isprintable():
        return Judged(Outcome.TRACEBACK, f"no error of one line: {said[:200]!r}")
    return Judged(Outcome.ERROR, said)


def _of_answer(parser: Parser, answer: Answer, files: Files, kind: Mutation, intact: Answer) -> Judged:
    said = "\n".join(answer.warnings)
    if not answer.figures:
        return Judged(Outcome.ZERO, "an answer without a figure")
    if kind is Mutation.NEUTRAL and not same(answer.figures, intact.figures):
        return Judged(Outcome.WRONG, "other figures, although the mutation left all of them")
    if kind is Mutation.CUT and parser.ends and not same(answer.figures, intact.figures) and "cut short" not in said:
        return Judged(Outcome.WRONG, "other figures of a file that was cut, and no word of it")
    try:
        plain = {
            (parser.shown(name) if name else "", metric): summary(values)
            for (name, metric), values in parser.plain(files).items()
        }
    except Exception as error:  # noqa: BLE001 (a plain reader checks nothing, and fails as it likes)
        zero = any(value.low == 0 for value in answer.figures.values())
        return Judged(Outcome.ZERO if zero else Outcome.WRONG, f"an answer to what cannot be read: {error!r}")
    covered = {metric for _, metric in [*plain, *_covered(parser)]}
    for key in dict.fromkeys([*plain, *(key for key in answer.figures if key[1] in covered)]):
        why = _difference(key, answer.figures.get(key), plain.get(key), said)
        if why:
            zero = key in answer.figures and answer.figures[key].low == 0
            return Judged(Outcome.ZERO if zero else Outcome.WRONG, f"{key}: {why}")
    zeros = [key for key, value in answer.figures.items() if key[1] in _NEVER_ZERO and value.low == 0]
    return Judged(Outcome.ZERO, f"{zeros[0]} is 0") if zeros else Judged(Outcome.RIGHT)


def _covered(parser: Parser) -> Sequence[Key]:
    try:
        return list(parser.plain(parser.cases[0]))
    except Exception:  # noqa: BLE001 (the first case may be one of a failure)
        return []


def _difference(key: Key, answered: Summary | None, read: Summary | None, said: str) -> str:
    """Say how a figure differs from the plain reading, '' where it does not, or where a warning names what is gone."""
    if answered is None:
        # Without CPU time its parts mean nothing, so one warning speaks of both.
        return "" if key[1] in said or (key[0] and key[0][:60] in said) else f"silently lost, {read}"
    if read is None:
        return f"{answered}, of which nothing is in the file"
    return "" if close(answered, read) else f"{answered}, where the file says {read}"


def same(one: Mapping[Key, Summary], other: Mapping[Key, Summary]) -> bool:
    """Whether two answers have the same figures."""
    return one.keys() == other.keys() and all(close(one[key], other[key]) for key in one)


def close(one: Summary, other: Summary) -> bool:
    """Whether two summaries are of the same values, but for rounding."""
    pairs = zip((one.low, one.high, one.mean), (other.low, other.high, other.mean), strict=True)
    return one.n == other.n and all(math.isclose(a, b, rel_tol=1e-9, abs_tol=1e-300) for a, b in pairs)
