"""The parts of the experiment that compare real programs beside a neighbour, and those that replay recorded runs."""

from __future__ import annotations

import contextlib
import gzip
import itertools
import json
import random
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from dataclasses import dataclass
from pathlib import Path

from benchmarks.verdict_experiment import live, look, programs, replay
from benchmarks.verdict_experiment.log import Entry, Session

CHUNK = 100
"""Pairs recorded by one call."""
WAITING, TOTAL = 0.001, 0.020
"""Seconds that a program waits, and that it takes in all, before it waits longer."""
SUITE_SECONDS = (0.010, 0.020)


@dataclass(frozen=True, slots=True)
class TrialKind:
    """One kind of trial: which program, how long it takes in s (a range), and how much slower the second one is."""

    name: str
    mode: str
    seconds: tuple[float, float]
    factor: float
    other_build: bool = False


SAME = (
    TrialKind("identical, cpu", "cpu", (0.010, 0.025), 1.0),
    TrialKind("identical, memory", "mem", (0.010, 0.025), 1.0),
)
SLOWER = (
    TrialKind("1% slower, cpu", "cpu", (0.025, 0.025), 1.01),
    TrialKind("2% slower, cpu", "cpu", (0.025, 0.025), 1.02),
    TrialKind("two builds: 2% slower, cpu", "cpu", (0.025, 0.025), 1.02, other_build=True),
)
PEERS = (
    TrialKind("hyperfine: identical, cpu", "cpu", (0.025, 0.025), 1.0),
    TrialKind("hyperfine: identical, memory", "mem", (0.016, 0.016), 1.0),
    TrialKind("hyperfine: 2% slower, cpu", "cpu", (0.025, 0.025), 1.02),
)
BUDGET = "4s"
"""Of identical programs: an alarm of the looks that a longer one allows is as likely, and there are thousands."""
WAITS = tuple((mode, percent) for mode in ("sleep", "lock", "read") for percent in (0, 5, 10, 15))
RECORDED = {"cpu": 0.025, "mem": 0.016}
"""Mode -> seconds of a recorded process."""

Judged = Callable[[list[str], list[str], int], Entry]


def same(session: Session) -> None:
    """Compare identical programs."""
    session.note({"budget": BUDGET})
    _compare(session, SAME, lambda old, new, seed: live.perfflow(old, new, seed, BUDGET))


def slower(session: Session) -> None:
    """Compare programs of which the second does more: of one file, and of two builds."""
    _compare(session, SLOWER, live.perfflow)


def peers(session: Session) -> None:
    """Let hyperfine compare such programs."""
    _compare(session, PEERS, lambda old, new, _: live.hyperfine(old, new))


def _compare(session: Session, kinds: Sequence[TrialKind], judged: Judged) -> None:
    with _beside_neighbour(session, sorted({kind.mode for kind in kinds})) as (program, costs):
        other = programs.build(session.folder, "other")
        for number, kind, rng in session.trials(kinds):
            seconds, seed = rng.uniform(*kind.seconds), rng.randrange(2**31)
            amounts = [costs[kind.mode].amount(seconds * factor) for factor in (1.0, kind.factor)]
            old, new = (
                [str(file), kind.mode, str(amount)]
                for file, amount in zip((program, other if kind.other_build else program), amounts, strict=True)
            )
            found = judged(old, new, seed)
            session.note({"trial": number, "kind": kind.name, "amounts": amounts, "seed": seed, **found})


@contextlib.contextmanager
def _beside_neighbour(session: Session, modes: Sequence[str]) -> Iterator[tuple[Path, dict[str, programs.Cost]]]:
    """The program, what its modes cost while it is alone, and then a neighbour beside it."""
    program = programs.build(session.folder)
    costs = {mode: programs.cost(program, mode) for mode in modes}
    session.note({"neighbour": "one core, half of the time, in bursts of 5 to 105 ms"})
    with programs.neighbour(program):
        yield program, costs


def waits(session: Session) -> None:
    """Compare programs that compute most of the time, and then wait: the second one longer, by a share of the whole."""
    file = session.folder / "blocks"
    file.write_bytes(random.Random(session.seed).randbytes(2**22))
    with _beside_neighbour(session, ["cpu"]) as (program, costs):
        amount = str(costs["cpu"].amount(TOTAL - WAITING))
        each = {"sleep": 1e-6, "lock": 1e-6, "read": programs.seconds_of_a_block(program, file)}
        for number, (mode, percent), rng in session.trials(WAITS):
            seconds, seed = (WAITING, WAITING + TOTAL * percent / 100), rng.randrange(2**31)
            old, new = ([str(program), mode, amount, str(round(waited / each[mode])), str(file)] for waited in seconds)
            with programs.lock_keeper(program, file):
                found = live.perfflow(old, new, seed)
            session.note({"trial": number, "waits": mode, "percent": percent, "seed": seed, **found})


def suites_live(session: Session) -> None:
    """Run suites of 100 memory-bound benchmarks of which five are 2% slower."""
    with _beside_neighbour(session, ["mem"]) as (program, costs):
        for number, factor, rng in session.trials([1.02]):
            seed, changed = rng.randrange(2**31), set(rng.sample(range(replay.BENCHMARKS), replay.CHANGED))
            commands = []
            for at in range(replay.BENCHMARKS):
                seconds = rng.uniform(*SUITE_SECONDS)
                amounts = [costs["mem"].amount(seconds * by) for by in (1.0, factor if at in changed else 1.0)]
                old, new = ([str(program), "mem", str(amount)] for amount in amounts)
                commands.append((old, new))
            found = live.suite(commands, seed)
            called = {int(name[1:]) for name in found.pop("called")}
            told = {"changed": len(changed), "found": len(called & changed), "alarms": len(called - changed)}
            session.note({"trial": number, "live suite": "mem", "factor": factor, "seed": seed, **told, **found})


def record(session: Session) -> None:
    """Record processes to replay: ``count`` of each program, in calls of 100 pairs."""
    with _beside_neighbour(session, list(RECORDED)) as (program, costs):
        for number, mode, rng in session.trials(list(RECORDED)):
            command = [str(program), mode, str(costs[mode].amount(RECORDED[mode]))]
            lines = [json.dumps(found) + "\n" for found in live.trace(command, CHUNK, rng.randrange(2**31))]
            with gzip.open(_recording(session, mode), "at", encoding="utf-8") as stream:
                stream.writelines(lines)
            session.note({"trial": number, "recorded": mode, "processes": len(lines)})


def _recording(session: Session, mode: str) -> Path:
    return session.out / f"recorded-{mode}.jsonl.gz"


def suites(session: Session) -> None:
    """Replay recorded processes as suites: ``count`` of memory-bound ones without a change, a tenth of all others."""
    done = {(entry["suite"], entry["factor"], entry["draw"]) for entry in session.entries if "suite" in entry}
    few = -(-session.count // 10)
    many = ("mem", 1.0)
    counts = {kind: few for kind in itertools.product(RECORDED, (1.0, 1.02, 1.05)) if kind != many}
    # Last, since the others are few and fast.
    counts[many] = session.count
    with ProcessPoolExecutor() as pool:
        pending = {
            pool.submit(replay.suite_of, _recording(session, mode), factor, seed): (mode, factor, draw, seed)
            for (mode, factor), count in counts.items()
            for draw in range(count)
            if (mode, factor, draw) not in done
            for seed in [session.draws(mode, factor, draw).randrange(2**31)]
        }
        for future in as_completed(pending):
            mode, factor, draw, seed = pending[future]
            session.note({"suite": mode, "factor": factor, "draw": draw, "seed": seed, **future.result()})


def blocks(session: Session) -> None:
    """Judge the recorded processes in blocks, by the rules of others, and measure what one look costs."""
    if session.noted("look"):
        return
    for mode in RECORDED:
        trace = replay.recorded(_recording(session, mode))
        for factor in (1.0, 1.02, 1.05):
            for found in replay.blocks(trace, factor):
                session.note({"blocks": mode, "factor": factor, **found})
    session.note({"look": look.seconds()})
