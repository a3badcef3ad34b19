"""Gates of projects of other communities: ``python -m benchmarks.communities go jmh mitata gbench``.

Each project counts words so many times over; head does it as often as base, or 5% or 25% more. In each of ``--times``
repetitions, ``perfflow init`` writes the workflow, and ``perfflow gate`` judges each head. For three of them, what the
community itself compares with judges the same programs: benchstat with six runs of base, then six of head; the error
bars of JMH with one fork each; the ``summary`` of mitata. Prints a line of JSON for each row of each comparison, and
with ``--page FILE`` the table of such lines. Needs Go and benchstat, Maven and Java, CMake with the libraries, or
Node.js with the packages in ``--modules``, a folder ``node_modules``.
"""

from __future__ import annotations

import argparse
import csv
import json
import os
import re
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from benchmarks.replay import git

HERE = Path(__file__).with_suffix("")
EXAMPLES = HERE.parents[1] / "examples"
BASE_WORK = 100
SUMMARY = """import {{ bench, do_not_optimize, run, summary }} from "mitata";
import {{ count as old }} from "./old.js";
import {{ count as changed }} from "./changed.js";

const text = "word ".repeat({n});
summary(() => {{
  bench("old", () => do_not_optimize(old(text)));
  bench("changed", () => do_not_optimize(changed(text)));
}});
await run({{ colors: false }});
"""


def printed(*argv: str | Path, folder: Path) -> str:
    """Run a command in a folder; return what it prints. Raises CalledProcessError."""
    return subprocess.run([*map(str, argv)], cwd=folder, check=True, capture_output=True, text=True).stdout


def project(kind: str, folder: Path, modules: Path | None, added: list[int]) -> None:
    """Write the project as a repository with the branch main and a branch for each head, named by its added percent."""
    shutil.copytree(HERE / kind, folder)
    for file in KINDS[kind].shared:
        shutil.copy(file, folder)
    ignored = ["node_modules", "target", "build", ".perfflow"]
    if (folder / "package.json").exists():
        if modules is None:
            sys.exit(f"{kind} needs --modules, a folder node_modules")
        (folder / "node_modules").symlink_to(modules)
    (folder / ".gitignore").write_text("".join(f"{name}\n" for name in ignored))
    git(folder, "init", "-qb", "main")
    git(folder, "add", "-A")
    git(folder, "commit", "-qm", "count words")
    printed(sys.executable, "-m", "perfflow", "init", folder=folder)
    git(folder, "add", "-A")
    git(folder, "commit", "-qm", "measure")
    for percent in added:
        git(folder, "checkout", "-qb", f"plus-{percent}", "main")
        source = folder / KINDS[kind].source
        text = source.read_text()
        # Without a change of its own, git and perfflow would know that head is base.
        again = re.sub(rf"\b{BASE_WORK}\b", str(BASE_WORK + BASE_WORK * percent // 100), text) + "\n"
        source.write_text(again)
        git(folder, "commit", "-qam", f"count {percent}% more")
    git(folder, "checkout", "-q", "main")


def gate(folder: Path, percent: int, budget: str) -> list[dict[str, Any]]:
    """Judge a head by perfflow; return a row for each benchmark's main metric.

    ``waited`` is how long (s) other measurements had the machine.

    ``--all``: equal programs are timed too.
    """
    (flow,) = (folder / "workflows").glob("*.yaml")
    git(folder, "checkout", "-q", f"plus-{percent}")
    argv = [sys.executable, "-m", "perfflow", "gate", str(flow), "--base", "main", "--all", "--json"]
    done = subprocess.run([*argv, "--budget", budget], cwd=folder, capture_output=True, text=True, check=False)
    if not done.stdout.startswith("{"):
        sys.exit(done.stderr)
    result = json.loads(done.stdout)
    if result["verdict"] == "error":
        sys.exit(f"{folder}: {'; '.join(item['text'] for item in result['reasons'])}")
    return [
        {"benchmark": row["name"], "metric": row["metric"], "called": row["decision"], "exit": done.returncode}
        | {"change": row["change"]["value"], "low": row["change"]["low"], "high": row["change"]["high"]}
        | {"pairs": row["pairs"], "functions": functions(result, row["name"])}
        | {"waited": sum(step["waited"] for step in result["steps"])}
        for row in result["benchmarks"]
        if row["gating"]
    ]


def functions(result: dict[str, Any], benchmark: str) -> list[str]:
    """Return the functions that a gate names for a benchmark that got slower."""
    return [item["function"] for item in result["attributions"] if item.get("benchmark") == benchmark]


def benchstat(folder: Path, percent: int) -> list[dict[str, Any]]:
    """Compare by benchstat: six runs of 50 ms of base, then six of head, at its own level of 5%."""
    files = []
    for branch in ("main", f"plus-{percent}"):
        git(folder, "checkout", "-q", branch)
        printed("go", "test", "-c", "-o", folder.parent / f"{branch}.test", ".", folder=folder)
    for branch in ("main", f"plus-{percent}"):
        argv = (folder.parent / f"{branch}.test", "-test.run", "^$", "-test.bench", ".", "-test.benchtime", "50ms")
        file = folder.parent / f"{branch}.txt"
        file.write_text(printed(*argv, "-test.count", "6", folder=folder))
        files.append(file)
    program = shutil.which("benchstat") or Path.home() / "go/bin/benchstat"
    rows = []
    for row in csv.reader(printed(program, "-format", "csv", *files, folder=folder).splitlines()):
        # NAME, base, its spread, head, its spread, "+4.8%" or "~", "p=0.002 n=6"
        if len(row) == 7 and row[6].startswith("p=") and row[0] != "geomean":
            change = None if row[5] == "~" else float(row[5].strip("%")) / 100
            called = "same" if change is None else "regressed" if change > 0 else "improved"
            rows.append({"benchmark": row[0], "called": called, "change": change})
    return rows


def error_bars(folder: Path, percent: int) -> list[dict[str, Any]]:
    """Compare by JMH: one fork a side, and different if the 99.9% intervals of the scores do not overlap."""
    sides = []
    file = folder.parent / "jmh.json"
    for branch in ("main", f"plus-{percent}"):
        git(folder, "checkout", "-q", branch)
        printed("mvn", "-q", "-B", "-DskipTests", "clean", "package", folder=folder)
        argv = ("-f", "1", "-wi", "3", "-w", "200ms", "-i", "5", "-r", "100ms", "-rf", "json", "-rff", file)
        printed("java", "-jar", "target/benchmarks.jar", *argv, folder=folder)
        sides.append(json.loads(file.read_text()))
    rows = []
    for base, head in zip(*sides, strict=True):
        old, new = base["primaryMetric"], head["primaryMetric"]
        apart = abs(new["score"] - old["score"]) > new["scoreError"] + old["scoreError"]
        slower = new["score"] > old["score"]
        called = "same" if not apart else "regressed" if slower else "improved"
        name = base["benchmark"] + "".join(f"/{key}={value}" for key, value in base.get("params", {}).items())
        rows.append({"benchmark": name, "called": called, "change": new["score"] / old["score"] - 1})
    return rows


def mitata(folder: Path, percent: int) -> list[dict[str, Any]]:
    """Compare by the summary of mitata: both functions in one process. It has no interval, so it always names one."""
    rows = []
    place = folder / ".perfflow" / "peer"
    place.mkdir(parents=True, exist_ok=True)
    for name, branch in (("old", "main"), ("changed", f"plus-{percent}")):
        (place / f"{name}.js").write_text(git(folder, "show", f"{branch}:words.js"))
    for n in (10, 100):
        script = place / "compared.js"
        script.write_text(SUMMARY.format(n=n))
        text = printed("node", script, folder=folder)
        match = re.search(r"^\s*(old|changed)\s*\n\s*(?:\S+\s*[-–]\s*)?([\d.]+)x faster than", text, re.MULTILINE)
        if match is None:
            sys.exit(f"no summary in:\n{text}")
        ratio = float(match[2])
        change = ratio - 1 if match[1] == "old" else 1 / ratio - 1
        called = "same" if ratio == 1 else "regressed" if change > 0 else "improved"
        rows.append({"benchmark": f"count n={n}", "called": called, "change": change})
    return rows


@dataclass(frozen=True)
class Kind:
    """A project: the file that says how often it counts, files that projects share, and what else compares it."""

    source: str
    shared: tuple[Path, ...] = ()
    peer: str = ""
    compare: Callable[[Path, int], list[dict[str, Any]]] | None = None


_NODE = (HERE / "words.js",)
_CPP = (HERE / "words.cpp", HERE / "words.hpp")
KINDS = {
    "go": Kind("words.go", (), "benchstat", benchstat),
    "jmh": Kind(
        "src/main/java/org/example/Words.java", (EXAMPLES / "java-words/pom.xml",), "JMH, error bars", error_bars
    ),
    "mitata": Kind("words.js", _NODE, "mitata, summary", mitata),
    "tinybench": Kind("words.js", _NODE),
    "vitest": Kind("words.js", _NODE),
    "gbench": Kind("words.cpp", _CPP),
    "catch2": Kind("words.cpp", _CPP),
    "nanobench": Kind("words.cpp", (*_CPP, EXAMPLES / "cpp-words/third_party/nanobench.h")),
}


def trials(kind: str, folder: Path, asked: argparse.Namespace) -> Iterator[dict[str, Any]]:
    """Yield the rows of all comparisons of a project."""
    project(kind, folder, asked.modules, asked.added)
    peer = KINDS[kind]
    for number in range(asked.times):
        for percent in asked.added:
            for judge, compare in (("perfflow gate", partial(gate, budget=asked.budget)), (peer.peer, peer.compare)):
                if compare is None:
                    continue
                began = time.monotonic()
                found = compare(folder, percent)
                seconds = round(time.monotonic() - began, 1)
                more = {"project": kind, "judge": judge, "added": percent, "time": number, "seconds": seconds}
                for row in found:
                    yield more | row | {"load": os.getloadavg()[1]}


def page(file: Path) -> Iterator[str]:
    """Yield the table of all lines of a file."""
    rows = [json.loads(line) for line in file.read_text().splitlines()]
    yield "| project | added | judge | rows | called slower | called faster | undecided | median seconds |"
    yield "| --- | --: | --- | --: | --: | --: | --: | --: |"
    keys = sorted({(row["project"], row["added"], row["judge"]) for row in rows})
    for kind, percent, judge in keys:
        own = [row for row in rows if (row["project"], row["added"], row["judge"]) == (kind, percent, judge)]
        counts = [sum(row["called"] == word for row in own) for word in ("regressed", "improved", "unproven")]
        spent = sorted(row["seconds"] - row.get("waited", 0.0) for row in own)[len(own) // 2]
        cells = (kind, f"{percent}%", judge, len(own), *counts, f"{spent:.0f}")
        yield f"| {' | '.join(map(str, cells))} |"


def main() -> None:
    """Parse the arguments and print what was found."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("kinds", nargs="*", choices=[*KINDS, []])
    parser.add_argument("--folder", type=Path, help="new folder for the projects")
    parser.add_argument("--modules", type=Path)
    parser.add_argument("--times", type=int, default=6)
    parser.add_argument("--added", type=int, nargs="+", default=[0, 5], help="percent of more work in head")
    parser.add_argument("--budget", default="3m")
    parser.add_argument("--page", type=Path)
    asked = parser.parse_args()
    if asked.page:
        print("\n".join(page(asked.page)))
        return
    for kind in asked.kinds:
        for row in trials(kind, asked.folder / kind, asked):
            print(json.dumps(row), flush=True)


if __name__ == "__main__":
    main()
