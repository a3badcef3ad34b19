"""Makes the pictures of docs/gallery.md, of public projects: ``python -m scripts.gallery CLONES [NAME ...]``.

CLONES has a clone of each project in ``gallery.yaml``, in a folder of the repository's name. A gate compares both
commits with a workflow by ``perfflow init``, and its run is kept in CLONES/gallery/NAME. Later calls only write its
report and its pictures again, as after a change of the report; ``--measure`` measures again. At the end, a row of the
page's table is printed for each project. Needs the tools of the projects: cargo, Go, Node.js with npm, asv, cmake.
"""

from __future__ import annotations

import argparse
import json
import shutil
import subprocess
import sys
from collections import Counter
from pathlib import Path
from typing import Any

import yaml

from benchmarks import replay
from scripts import screenshots

TABLE = Path(__file__).with_suffix(".yaml")
PERFFLOW = (sys.executable, "-m", "perfflow")


def projects() -> dict[str, dict[str, Any]]:
    """Return the projects by their names, each with the keys of the change in the other table."""
    known = {change["name"]: change for change in yaml.safe_load(replay.TABLE.read_text())}
    table = yaml.safe_load(TABLE.read_text())
    return {item["name"]: {**known.get(item.get("replay"), {}), **item} for item in table}


def measured(project: dict[str, Any], clones: Path, run: Path) -> None:
    """Gate the change of a project and keep the run. Raises SystemExit if nothing was measured."""
    clone = replay.clone_of(project, clones)
    tree = clones / f"{clone.name}-gallery"
    if tree.exists():  # packages that were installed there are none of the project's files
        replay.git(clone, "worktree", "remove", "--force", str(tree))
    base, overlays = replay.prepared(project, clone, tree, backwards=False)
    if project.get("prepare"):
        subprocess.run(["sh", "-c", project["prepare"]], cwd=tree, check=True)
    flow = tree / "workflows" / f"{project['name']}.yaml"
    flow.unlink(missing_ok=True)
    if project.get("workflow"):
        flow.parent.mkdir(exist_ok=True)
        flow.write_text(project["workflow"].replace("name: replay", f"name: {project['name']}"))
    else:
        subprocess.run([*PERFFLOW, "init", "--name", project["name"]], cwd=tree, check=True)
    shutil.rmtree(run, ignore_errors=True)
    run.parent.mkdir(exist_ok=True)
    words = [*PERFFLOW, "gate", str(flow), "--base", base, "--head", "HEAD", "--out", str(run), *overlays]
    done = subprocess.run([*words, *project["options"]], cwd=tree, check=False)
    if not (run / "result.json").is_file():
        sys.exit(f"{project['name']}: the gate measured nothing, and exited with {done.returncode}")


def row(project: dict[str, Any], run: Path) -> str:
    """Return the row of a project in the table of the page."""
    result = json.loads((run / "result.json").read_text())
    rows = [item for item in result["benchmarks"] if item["gating"]]
    timed = [item for item in rows if not item.get("unchanged")]
    counts = Counter(item["decision"] for item in timed)
    decided = ", ".join(f"{number} {word}" for word, number in counts.most_common())
    repository = project["repository"]
    link = f"[{repository}](https://github.com/{repository})"
    seconds = result["run"]["seconds"] - sum(step["waited"] for step in result["steps"])
    cells = [link, f"`{project['head']}`", f"{len(rows)}", decided or "none timed", f"{seconds:.0f} s"]
    return f"| {' | '.join(cells)} |"


def main() -> None:
    """Make the pictures of the chosen projects."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("clones", type=Path)
    parser.add_argument("names", nargs="*", help="names of projects; default: all")
    parser.add_argument("--measure", action="store_true", help="measure again what was measured before")
    asked = parser.parse_args()
    known = projects()
    if unknown := set(asked.names) - set(known):
        parser.error(f"unknown: {', '.join(unknown)}; known: {', '.join(known)}")
    runs = {name: asked.clones.resolve() / "gallery" / name for name in asked.names or known}
    for name, run in runs.items():
        if asked.measure or not (run / "result.json").is_file():
            measured(known[name], asked.clones.resolve(), run)
        # Without its own folder in front, the run could be taken for the name of another.
        subprocess.run([*PERFFLOW, "report", str(run)], check=False, stdout=subprocess.DEVNULL)
    screenshots.main([f"{name}={run}" for name, run in runs.items()])
    print("| project | commit | benchmarks | decided | time |\n|---|---|--:|---|--:|")
    for name, run in runs.items():
        print(row(known[name], run))


if __name__ == "__main__":
    main()
