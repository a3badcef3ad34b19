"""Judge the corpus by the real command: ``python -m benchmarks.referee [NAMES...]`` (an hour for all; ``--help``).

Prints a table of what must become of each patch and what became of it, and the totals. ``--naive`` judges by a harness
that times both sides once instead, and shows what each trick would have claimed there.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, TextIO

from benchmarks.referee.corpus import HERE, NOT_KEPT, Entry, Kind, entries
from benchmarks.referee.workspace import PERFFLOW, Workspace, prepared
from perfflow.model.judging import Outcome

ESCAPED = "escaped"
"""What became of a patch that left something outside of its tree, whatever was decided."""
FAILED = "failed"
"""What became of a patch on which the command itself failed."""
_CAUGHT = (Outcome.NO_GAIN, Outcome.HARMFUL, Outcome.INCORRECT, Outcome.FORBIDDEN, Outcome.UNDECIDED)
"""What a trick is to come to. That nothing could be judged is no success of a referee."""


@dataclass(frozen=True, slots=True)
class Judged:
    """What became of a patch. effect: the estimate and its interval, shares of the base's time. seconds: all of it."""

    name: str
    kind: str
    must: tuple[str, ...]
    decision: str
    code: str
    flags: tuple[str, ...]
    effect: Mapping[str, float | None] | None
    seconds: float
    reason: str
    is_as_asked: bool


def judged(entry: Entry, budget: str) -> Judged:
    """Judge an entry in a new workspace."""
    with prepared(entry) as space:
        space.copy_harness(PERFFLOW)
        patch = space.submitted()
        patches = [
            shutil.copy(patch, patch.with_name(f"{entry.name}-{number}.patch")) for number in range(entry.copies)
        ]
        argv = [sys.executable, "-m", "perfflow", "judge", *map(str, patches), "--workflow", space.workflow]
        env = {**space.env, "PYTHONPATH": str(space.folder / "harness")}
        done = subprocess.run(
            [*argv, "--json", "--budget", budget],
            cwd=space.project,
            env=env,
            capture_output=True,
            text=True,
            check=False,
        )
        lines = [json.loads(line) for line in done.stdout.splitlines() if line.startswith("{")]
        if len(lines) != entry.copies:
            reason = f"exit {done.returncode}: {done.stderr.strip()[-2000:]}"
            return _judged(
                entry, space, {"decision": FAILED, "code": "", "flags": (), "effect": None, "reason": reason}, 0.0
            )
        # Of several copies the one that went best for the patch counts.
        line = max(
            lines, key=lambda one: (not entry.allows(one["decision"], one["code"], one["flags"]), one["seconds"])
        )
        return _judged(entry, space, line, sum(one["seconds"] for one in lines))


def _judged(entry: Entry, space: Workspace, line: Mapping[str, Any], seconds: float) -> Judged:
    escaped = space.left_behind()
    allowed = entry.allows(line["decision"], line["code"], line["flags"])
    return Judged(
        name=entry.name,
        kind=entry.kind,
        must=entry.must,
        decision=ESCAPED if escaped else line["decision"],
        code=line["code"],
        flags=tuple(line["flags"]),
        effect=line["effect"],
        seconds=seconds,
        reason=", ".join(escaped) or line["reason"],
        is_as_asked=allowed and not escaped,
    )


def naive(entry: Entry) -> dict[str, Any]:
    """Return what a harness that times both sides once says of an entry: whether its checks pass, and the speedup."""
    with prepared(entry) as space:
        harness = space.copy_harness(HERE / "naive.py")
        argv = [sys.executable, str(harness), str(space.folder), space.workflow, str(space.submitted())]
        done = subprocess.run(argv, cwd=space.folder, env=space.env, capture_output=True, text=True, check=False)
        found: dict[str, Any] = {"passed": False, "speedup": None}
        if done.returncode == 0:
            found = json.loads(done.stdout.splitlines()[-1])
        elif done.returncode == -signal.SIGKILL:
            found["note"] = "the harness was killed"
        else:
            found["note"] = done.stderr.strip().splitlines()[-1]
        left = [str(Path(path).relative_to(space.folder)) for path in space.left_behind()]
        return {"name": entry.name, "kind": entry.kind, **found, "left": left}


def table(results: Sequence[Judged]) -> Iterator[str]:
    """Yield the lines of the table."""
    yield "| name | must | got | code | flags | effect | s |"
    yield "|---|---|---|---|---|---|--:|"
    for one in results:
        mark = "" if one.is_as_asked else " **(!)**"
        must = "not kept" if one.must == NOT_KEPT else " or ".join(one.must)
        cells = (one.name, must, one.decision + mark, one.code, ", ".join(one.flags))
        yield f"| {' | '.join(cells)} | {_percents(one.effect)} | {one.seconds:.0f} |"


def totals(results: Sequence[Judged]) -> Iterator[str]:
    """Yield how many tricks were caught, gains kept, and others kept."""
    tricks, gains, rest = ([one for one in results if one.kind == kind] for kind in Kind)
    if tricks:
        caught = [one for one in tricks if one.decision in _CAUGHT]
        flagged = [one.name for one in tricks if one.decision == Outcome.KEPT and one.flags]
        yield f"{len(caught)} of {len(tricks)} tricks caught"
        if flagged:
            yield f"kept with a flag: {', '.join(flagged)}"
        others = [f"{one.name} ({one.decision})" for one in tricks if one not in caught and one.name not in flagged]
        if others:
            yield f"neither caught nor kept with a flag: {', '.join(others)}"
    for title, chosen in (("gains", gains), ("others", rest)):
        if chosen:
            yield f"{sum(one.decision == Outcome.KEPT for one in chosen)} of {len(chosen)} {title} kept"
    unasked = [one.name for one in results if not one.is_as_asked]
    if unasked:
        yield f"not as the corpus asks: {', '.join(unasked)}"


def stored(path: Path) -> list[dict[str, Any]]:
    """Return the results in a file of JSON lines, the last one of each patch, in the order of the corpus."""
    found = {one["name"]: one for one in map(json.loads, path.read_text().splitlines())}
    return [found[entry.name] for entry in entries() if entry.name in found]


def as_judged(result: Mapping[str, Any]) -> Judged:
    """Return a stored result."""
    return Judged(**{**result, "must": tuple(result["must"]), "flags": tuple(result["flags"])})


def page() -> Iterator[str]:
    """Yield the lines of dev/experiments/referee.md."""
    results, naives = [as_judged(one) for one in stored(RESULTS)], stored(NAIVE)
    yield from ("# Patches that a referee must judge", "", "Written by `python -m benchmarks.referee --page`.")
    yield "`python -m benchmarks.referee` judges them: each in a new project, by `perfflow judge`."
    yield from ("", *(f"- {line}" for line in totals(results)), "", "## What became of them", "", *table(results))
    yield from ("", "## What a naive harness says of the tricks", "")
    yield "It runs the checks of the workflow, then each side once, on a machine that others used as well."
    yield from ("", *naive_table(naives))


_EXPERIMENTS = HERE.parents[1] / "dev" / "experiments"
RESULTS, NAIVE = _EXPERIMENTS / "referee.jsonl", _EXPERIMENTS / "referee-naive.jsonl"
"""The stored results of both harnesses."""
LEAST = 0.10
"""The gain, as a share of the base's time, that the naive harness keeps."""


def evidence_table(results: Sequence[Judged], naives: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    """Yield how many tricks each of both harnesses kept."""
    yield "| judged by | tricks | kept | kept without a warning |"
    yield "|---|--:|--:|--:|"
    tricks = [one for one in naives if one["kind"] == Kind.TRICK]
    kept = [one for one in tricks if one["passed"] and one["speedup"] and 1 - 1 / one["speedup"] > LEAST]
    yield f"| checks, then one run of each side | {len(tricks)} | {len(kept)} | {len(kept)} |"
    judged_tricks = [one for one in results if one.kind == Kind.TRICK]
    passed = [one for one in judged_tricks if one.decision not in _CAUGHT]
    silent = [one for one in passed if one.decision != Outcome.KEPT or not one.flags]
    yield f"| `perfflow judge` | {len(judged_tricks)} | {len(passed)} | {len(silent)} |"


def naive_table(results: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    """Yield what the naive harness says of each entry."""
    yield "| name | checks | claimed | left behind |"
    yield "|---|---|--:|---|"
    for one in results:
        speedup = one["note"] if one["speedup"] is None else f"{one['speedup']:.2f}x"
        yield f"| {one['name']} | {'pass' if one['passed'] else 'fail'} | {speedup} | {', '.join(one['left'])} |"


def _percents(effect: Mapping[str, float | None] | None) -> str:
    if not effect or effect.get("value") is None:
        return ""
    value, low, high = (effect.get(key) for key in ("value", "low", "high"))
    shown = "" if low is None or high is None else f" [{low:+.1%}, {high:+.1%}]"
    return f"{value:+.1%}{shown}"


def _asked() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*", help="entries of the corpus, or tricks, gains, others; default: all")
    parser.add_argument("--budget", default="180s", help="time for each patch; default: %(default)s")
    parser.add_argument("--twice", action="store_true", help="judge each twice, and list those that differ")
    parser.add_argument("--subset", action="store_true", help="only those that are cheap")
    parser.add_argument("--naive", action="store_true", help="by a harness that times both sides once")
    parser.add_argument("--page", action="store_true", help="print dev/experiments/referee.md from the stored results")
    parser.add_argument("--out", type=Path, help="file to which each result is appended as a JSON line")
    return parser.parse_args()


def _chosen(names: Sequence[str], *, subset: bool) -> list[Entry]:
    kinds = [name for name in names if name in tuple(Kind)]
    found = entries([name for name in names if name not in kinds]) if len(kinds) < len(names) or not names else []
    found += [entry for entry in entries() if entry.kind in kinds]
    return [entry for entry in found if entry.subset] if subset else found


def _written(result: Mapping[str, Any], out: TextIO | None) -> None:
    if out:
        out.write(json.dumps(result) + "\n")
        out.flush()


def main() -> int:
    """Judge what is asked for; 1 if anything is not as the corpus asks."""
    given = _asked()
    if given.page:
        print(*page(), sep="\n")
        return 0
    try:
        chosen = _chosen(given.names, subset=given.subset)
    except KeyError as error:
        print(f"no entry {error}; tricks.yaml, gains.yaml and others.yaml list them", file=sys.stderr)
        return 2
    with given.out.open("a") if given.out else Path(os.devnull).open("w") as out:
        if given.naive:
            found = []
            for entry in chosen:
                found.append(naive(entry))
                _written(found[-1], out)
                print(f"{entry.name}: {found[-1]}", file=sys.stderr, flush=True)
            print(*naive_table(found), sep="\n")
            return 0
        found_all, flipped = list[Judged](), list[str]()
        for entry in chosen:
            looks = [judged(entry, given.budget) for _ in range(1 + given.twice)]
            for one in looks:
                _written(asdict(one), out)
                print(f"{one.name}: {one.decision} ({one.code}) {one.seconds:.1f} s: {one.reason}", file=sys.stderr)
            found_all.append(looks[0])
            if len({one.decision for one in looks}) > 1:
                flipped.append(f"{entry.name} ({' and '.join(one.decision for one in looks)})")
        print(*table(found_all), "", *totals(found_all), sep="\n")
        if given.twice:
            print(f"decided otherwise the second time: {', '.join(flipped) or 'none'}")
        return int(any(not one.is_as_asked for one in found_all))


if __name__ == "__main__":
    sys.exit(main())
