"""A harness as many are written: it runs the checks of a workflow on a patch, then times both sides once.

``python3 naive.py WORKSPACE WORKFLOW PATCH`` prints the gain as JSON: the base's time divided by that of the patch, and
whether the checks passed. It knows the few keys that the workflows of the victims have, and nothing of perfflow.
"""

from __future__ import annotations

import json
import os
import resource
import shutil
import subprocess
import sys
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import yaml

SEED = "1"
MARKS = {"PERFFLOW_PADDING": "xxxx", "PYTHONHASHSEED": "0"}
"""What only timed runs have in their environment."""
SHARED = (".venv", "cache")
"""Folders of the project that both sides have in common."""


class Side:
    """One side: its tree, and its own copy of the workflow."""

    def __init__(self, tree: Path, workflow: str) -> None:
        """Tree: the folder that programs run in."""
        self.tree = tree
        text = (tree / workflow).read_text().replace("${{ pair.seed }}", SEED)
        self.workflow: dict[str, Any] = yaml.safe_load(text)
        self.env = {**os.environ, **self.workflow.get("env", {})}

    def steps(self, stage: str) -> list[dict[str, Any]]:
        """Return the steps of a stage."""
        found: list[dict[str, Any]] = self.workflow["stages"].get(stage, [])
        return found

    def build(self) -> None:
        """Run the steps that build."""
        for step in self.steps("build"):
            subprocess.run(step["run"], shell=True, cwd=self.tree, env=self.env, check=True)  # noqa: S602 - a workflow

    def output(self) -> str:
        """Return what the program prints."""
        done = subprocess.run(
            self.steps("baseline")[-1]["run"].split(), cwd=self.tree, env=self.env, stdout=subprocess.PIPE, check=False
        )
        return done.stdout.decode()

    def passes(self, base: Side) -> bool:
        """Return whether the checks pass: the tests, and only without tests the output."""
        steps = self.steps("verify")
        return all(self._passes(step, base) for step in [step for step in steps if "run" in step] or steps)

    def _passes(self, step: Mapping[str, Any], base: Side) -> bool:
        if "run" in step:
            done = subprocess.run(step["run"].split(), cwd=self.tree, env=self.env, capture_output=True, check=False)
            return done.returncode == 0
        given = step.get("with", {})
        actual = self.output()
        expected = (self.tree / given["expected"]).read_text() if "expected" in given else base.output()
        return _close(expected.split(), actual.split(), given.get("relative", 0.0))

    def seconds(self, folder: Path) -> float:
        """Run the first step that measures, once, and return its time."""
        step, env = self.steps("baseline")[0], {**self.env, **MARKS}
        if "uses" in step:
            out = folder / "suite.json"
            argv = [*f"python3 -m pytest -q {step['with']['paths']}".split(), f"--benchmark-json={out}"]
            subprocess.run(argv, cwd=self.tree, env=env, check=True, capture_output=True)
            mean: float = json.loads(out.read_text())["benchmarks"][0]["stats"]["mean"]
            return mean
        began, used = time.perf_counter(), _cpu()
        subprocess.run(step["run"].split(), cwd=self.tree, env=env, stdout=subprocess.DEVNULL, check=False)
        is_cpu = self.workflow["stages"]["optimize"].get("objective", "").endswith(" cpu")
        return _cpu() - used if is_cpu else time.perf_counter() - began


def _cpu() -> float:
    usage = resource.getrusage(resource.RUSAGE_CHILDREN)
    return usage.ru_utime + usage.ru_stime


def _close(expected: list[str], actual: list[str], relative: float) -> bool:
    if not relative:
        return expected == actual
    pairs = zip(expected, actual, strict=False)
    return len(expected) == len(actual) and all(abs(float(a) - float(b)) <= relative * abs(float(a)) for a, b in pairs)


def main() -> None:
    """Judge one patch."""
    folder, workflow, patch = Path(sys.argv[1]), sys.argv[2], Path(sys.argv[3])
    trees = [folder / "sides" / name for name in ("base", "patch")]
    for tree in trees:
        shutil.copytree(folder / "project", tree, symlinks=True, ignore=shutil.ignore_patterns(*SHARED))
        for name in SHARED:
            if (folder / "project" / name).exists():
                (tree / name).symlink_to(folder / "project" / name)
    apply = ["git", "apply", "--unidiff-zero", "--whitespace=nowarn", str(patch)]
    subprocess.run(apply, cwd=trees[1], check=True)
    base, patched = (Side(tree, workflow) for tree in trees)
    base.build()
    patched.build()
    passed = patched.passes(base)
    samples = folder / "events.jsonl"
    for name, side in (("base", base), ("patch", patched)):
        took = side.seconds(folder)
        with samples.open("a") as file:
            file.write(json.dumps({name: took}) + "\n")
    found: dict[str, float] = {}
    for line in samples.read_text().splitlines():
        found |= json.loads(line)
    print(json.dumps({"passed": passed, "speedup": found["base"] / found["patch"]}))


if __name__ == "__main__":
    main()
