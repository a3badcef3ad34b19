"""What perfflow itself costs: ``python -m benchmarks.runner`` (some minutes; ``--help`` for smaller counts).

Prints a table of CPU and wall time (medians of rounds in random order) and of their ratio to a plain Python loop, make,
doit, snakemake and hyperfine in the same run. Times are those of one machine; the ratios are what counts.
"""

from __future__ import annotations

import argparse
import json
import platform
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from benchmarks.overhead import peers
from benchmarks.overhead.peers import PERFFLOW, Write
from benchmarks.overhead.timing import Cost, Job, take

JUDGED = (0, 1, 4)
"""Exits of a comparison that took place."""
NAP, SLEEP = 0.1, 3.1
CHAIN, FREE = False, True


@dataclass(frozen=True, slots=True)
class Counts:
    """How much of everything; ``few`` and ``many`` steps give a slope, ``plan`` steps are planned."""

    rounds: int
    few: int
    many: int
    plan: int
    runs: int


def start_up(folder: Path, counts: Counts) -> None:
    """Print what the words that do nothing cost."""
    words: dict[str, tuple[str, ...]] = {"python -c pass": (sys.executable, "-c", "pass")}
    words |= {f"perfflow {option}": (*PERFFLOW, option) for option in ("--version", "--help")}
    found = take({name: Job(argv, folder) for name, argv in words.items()}, 3 * counts.rounds)
    table("Start-up", found, "python -c pass")


def steps(folder: Path, counts: Counts, others: Mapping[str, Write]) -> None:
    """Print what a run of one step costs, and each further one."""
    writes: dict[str, Write] = {"subprocess.run": peers.python_loop, "perfflow": peers.perfflow, **others}
    one = take({name: write(folder, 1, CHAIN) for name, write in writes.items()}, counts.rounds)
    bare = take({"python -c pass": Job((sys.executable, "-c", "pass"), folder)}, counts.rounds)
    table("A run of one step", {**bare, **one}, "python -c pass")
    writes["folder and files of a step, alone"] = peers.files
    for free, title in ((CHAIN, "chain"), (FREE, "free of each other, two at a time")):
        jobs = {
            f"{name} {count}": write(folder, count, free)
            for name, write in writes.items()
            for count in (counts.few, counts.many)
        }
        quick = {name: job for name, job in jobs.items() if not name.startswith("snakemake")}
        # Minutes a round, and an order of magnitude apart from the others: once is enough.
        slow = {name: job for name, job in jobs.items() if name not in quick}
        totals = take(quick, counts.rounds) | take(slow, 1, warm=False)
        further = counts.many - counts.few
        found = {n: (totals[f"{n} {counts.many}"] - totals[f"{n} {counts.few}"]).each(further) for n in writes}
        table(f"Each further step, {title} ({counts.few} to {counts.many})", found, "subprocess.run")


def planning(folder: Path, counts: Counts) -> None:
    """Print what reading and planning cost, and whether they grow with the square of the steps."""
    sizes = {f"plan, {n} steps": ("plan", n) for n in (counts.plan, counts.plan * 5 // 2, counts.plan * 5)}
    # Two lines a step, and four of a head.
    sizes |= {f"validate, {2 * n + 4} lines": ("validate", n) for n in (counts.plan // 2, counts.plan * 5 // 2)}
    jobs = {
        name: Job((*PERFFLOW, word, str(peers.workflow(folder, size, free=False))), folder)
        for name, (word, size) in sizes.items()
    }
    bare = {"python -c pass": Job((sys.executable, "-c", "pass"), folder)}
    table("Planning and validating a chain", take({**bare, **jobs}, counts.rounds), "python -c pass")


def resuming(folder: Path, counts: Counts) -> None:
    """Print what it costs to go on with a run in which nothing is left to do."""
    file, done = str(peers.workflow(folder, counts.few, free=False)), str(folder / "done")
    run = (*PERFFLOW, "run", file, "--progress", "off")
    subprocess.run([*run, "--out", done], cwd=folder, check=False, capture_output=True)
    jobs = {
        "python -c pass": Job((sys.executable, "-c", "pass"), folder),
        f"run of {counts.few} steps": Job((*run, "--out", "@"), folder, peers.UNMEASURED),
        "resumed, nothing left": Job((*run, f"--resume={done}"), folder, peers.UNMEASURED),
    }
    table("Resuming a finished run", take(jobs, counts.rounds), "python -c pass")


def timing(folder: Path, counts: Counts) -> None:
    """Print what a timed run of ``true`` costs beside the program, and what is reported for it."""
    few, many = counts.runs // 10, counts.runs
    jobs = {f"perfflow {count}": Job(_compare(count), folder, JUDGED) for count in (few, many)}
    jobs |= {f"hyperfine -N {count}": Job(_hyperfine(count), folder) for count in (few, many)}
    totals = take(jobs, counts.rounds)
    # Runs, of which a pair is two.
    each = {
        name: (totals[f"{name} {many}"] - totals[f"{name} {few}"]).each(2 * (many - few))
        for name in ("hyperfine -N", "perfflow")
    }
    own = Cost(*_reported_by_hyperfine(folder, many))
    table("A timed run of `true`, the program included", {"the program": own, **each}, "hyperfine -N")
    added = {name: cost - own for name, cost in each.items()}
    table("A timed run of `true`, less the program", added, "hyperfine -N")
    print("\n### Reported for `true`\n\n| by | median, wall |\n|---|--:|")
    print(f"| hyperfine -N | {_ms(own.wall)} |\n| perfflow | {_ms(_reported_by_perfflow(folder, many))} |")


def waiting(folder: Path, counts: Counts) -> None:
    """Print what perfflow uses while the program that it waits for sleeps."""
    jobs = {}
    for seconds in (NAP, SLEEP):
        file = folder / f"sleep-{seconds}.yaml"
        step = f"{{id: s, uses: command, with: {{command: sleep {seconds}}}, runs: 1}}"
        file.write_text(f"perfflow: 1\nname: sleep\nstages:\n  baseline:\n    - {step}\n")
        jobs[str(seconds)] = Job((*PERFFLOW, "run", str(file), "--progress", "off", "--out", "@"), folder, JUDGED)
    found = take(jobs, counts.rounds)
    used = (found[str(SLEEP)].cpu - found[str(NAP)].cpu) / (found[str(SLEEP)].wall - found[str(NAP)].wall)
    print(f"\nCPU used while a timed program sleeps: {used:.1%} of a core")


def _compare(pairs: int) -> tuple[str, ...]:
    return (*PERFFLOW, "compare", f"--runs={pairs}", "--out", "@", "--", "true", "true")


def _hyperfine(pairs: int, *more: str) -> tuple[str, ...]:
    return ("hyperfine", "-N", "--style=none", "--warmup=1", f"--runs={2 * pairs}", *more, "true")


def _reported_by_hyperfine(folder: Path, pairs: int) -> tuple[float, float]:
    """Seconds, wall and CPU, of the program as hyperfine saw it."""
    file = folder / "hyperfine.json"
    subprocess.run(_hyperfine(pairs, f"--export-json={file}"), check=True, capture_output=True)
    (found,) = json.loads(file.read_text())["results"]
    return found["median"], found["user"] + found["system"]


def _reported_by_perfflow(folder: Path, pairs: int) -> float:
    argv = (*PERFFLOW, "compare", f"--runs={pairs}", "--json", f"--out={folder / 'reported'}", "--", "true", "true")
    done = subprocess.run(argv, capture_output=True, text=True, check=False)
    rows = json.loads(done.stdout)["benchmarks"]
    value: float = next(row["baseline"]["value"] for row in rows if row["metric"] == "time")
    return value


def table(title: str, found: Mapping[str, Cost], base: str) -> None:
    """Print costs and their ratios to one of them."""
    print(f"\n### {title}\n\n| | CPU | wall | CPU, ratio | wall, ratio |\n|---|--:|--:|--:|--:|")
    of = found[base]
    for name, cost in found.items():
        ratios = f"{cost.cpu / of.cpu:.2f} | {cost.wall / of.wall:.2f}" if of.cpu > 0 < of.wall else "- | -"
        print(f"| {name} | {_ms(cost.cpu)} | {_ms(cost.wall)} | {ratios} |", flush=True)


def _ms(seconds: float) -> str:
    return f"{seconds * 1000:.2f} ms"


def _machine() -> str:
    names = [line.partition(":")[2].strip() for line in _cpuinfo() if line.startswith("model name")]
    load = Path("/proc/loadavg").read_text().split()[0]
    python = f"Python {platform.python_version()}"
    return f"{len(names)} x {names[0] if names else platform.machine()}, {platform.release()}, {python}, load {load}"


def _cpuinfo() -> Sequence[str]:
    return Path("/proc/cpuinfo").read_text().splitlines()


def _file_system(folder: Path) -> str:
    done = subprocess.run(["stat", "-f", "-c", "%T", str(folder)], capture_output=True, text=True, check=False)
    return done.stdout.strip() or "file system unknown"


def _asked() -> tuple[Counts, bool, str | None]:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    defaults = {"rounds": 5, "few": 100, "many": 600, "plan": 1000, "runs": 200}
    for name, count in defaults.items():
        parser.add_argument(f"--{name}", type=int, default=count, help="default: %(default)s")
    parser.add_argument("--no-peers", action="store_true", help="leave make, doit and snakemake out")
    parser.add_argument("--folder", help="where the runners keep their files; default: that for temporary files")
    given = parser.parse_args()
    return Counts(**{name: getattr(given, name) for name in defaults}), not given.no_peers, given.folder


def main() -> None:
    """Print everything; about what is missing, that it is."""
    counts, compared, place = _asked()
    # Also for what the programs that are measured make for themselves.
    tempfile.tempdir = place
    others = dict(peers.found()) if compared else {}
    with tempfile.TemporaryDirectory() as made:
        folder = Path(made)
        about = f"medians of {counts.rounds} rounds; files on {_file_system(folder)}"
        print(f"{datetime.now(UTC):%Y-%m-%d}, {_machine()}; {about}")
        start_up(folder, counts)
        steps(folder, counts, others)
        planning(folder, counts)
        resuming(folder, counts)
        if shutil.which("hyperfine"):
            timing(folder, counts)
        else:
            print("skipped: hyperfine is not on PATH")
        waiting(folder, counts)


if __name__ == "__main__":
    main()
