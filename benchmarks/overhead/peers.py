"""The same no-op steps for perfflow, a plain Python loop, make, doit and snakemake, each in files of its own."""

from __future__ import annotations

import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

from benchmarks.overhead.timing import Job

VENV = Path(__file__).parents[1] / ".peers"
PACKAGES = ("doit", "snakemake")
PERFFLOW = (sys.executable, "-m", "perfflow")
UNMEASURED = (3,)
"""The exit status of `perfflow run` for a workflow in which nothing is measured, such as one of no-op steps."""

Write = Callable[[Path, int, bool], Job]
"""Writes what a runner needs for so many steps, free of each other or each after the one before, and how to run it."""


def perfflow(folder: Path, steps: int, free: bool) -> Job:
    """A workflow file; two steps at a time where they are free."""
    file = workflow(folder, steps, free)
    words = ("run", str(file), "--progress", "off", "--out", "@", *(("-j", "2") if free else ()))
    return Job((*PERFFLOW, *words), folder, UNMEASURED)


def workflow(folder: Path, steps: int, free: bool) -> Path:
    """Write a workflow of steps that do nothing."""
    file = folder / f"noop-{steps}-{'free' if free else 'chain'}.yaml"
    needs = "\n      needs: []" if free else ""
    lines = (f"    - id: s{number}\n      argv: ['true']{needs}" for number in range(steps))
    file.write_text("perfflow: 1\nname: noop\nstages:\n  setup:\n" + "\n".join(lines) + "\n")
    return file


def python_loop(folder: Path, steps: int, free: bool) -> Job:
    """`subprocess.run` in a loop, in two threads where the steps are free."""
    run = "import subprocess\nrun = lambda _: subprocess.run(['true'], check=True)\n"
    one = f"for number in range({steps}): run(number)\n"
    two = f"from concurrent.futures import ThreadPoolExecutor as T\nwith T(2) as t: list(t.map(run, range({steps})))\n"
    file = folder / f"loop-{steps}-{free}.py"
    file.write_text(run + (two if free else one))
    return Job((sys.executable, str(file)), folder)


def files(folder: Path, steps: int, free: bool) -> Job:
    """What the file system alone takes for what perfflow keeps of each step: a folder and two empty files."""
    file = folder / f"files-{steps}-{free}.py"
    file.write_text(
        f"import os, sys\nfor number in range({steps}):\n"
        "    step = f'{sys.argv[1]}/{number}'\n    os.makedirs(step)\n"
        "    for name in ('stdout', 'stderr'): open(f'{step}/{name}', 'xb').close()\n"
    )
    return Job((sys.executable, str(file), "@"), folder)


def make(folder: Path, steps: int, free: bool) -> Job:
    """A makefile of phony targets."""
    file = folder / f"make-{steps}-{free}.mk"
    names = [f"s{number}" for number in range(steps)]
    rules = (
        f"{name}:{'' if free or not number else f' s{number - 1}'}\n\t@/bin/true\n" for number, name in enumerate(names)
    )
    file.write_text(f".PHONY: all {' '.join(names)}\nall: {' '.join(names)}\n" + "".join(rules))
    return Job(("make", "-f", str(file), *(("-j", "2") if free else ()), "all"), folder)


def doit(folder: Path, steps: int, free: bool) -> Job:
    """A dodo file; processes that fork where two at a time are asked for, as doit does."""
    file = folder / f"dodo_{steps}_{free}.py"
    after = "[]" if free else "[f's:{n - 1}'] if n else []"
    file.write_text(
        f"def task_s():\n    for n in range({steps}):\n"
        f"        yield {{'name': str(n), 'actions': [['true']], 'task_dep': {after}}}\n"
    )
    words = (str(VENV / "bin" / "doit"), "-f", str(file), "--db-file", "@", *(("-n", "2") if free else ()))
    return Job(words, folder)


def snakemake(folder: Path, steps: int, free: bool) -> Job:
    """Rules that touch a file each, which is how snakemake orders; the folder is a new one each time."""
    file = folder / f"snakefile-{steps}-{free}"
    rules = (
        f"rule s{n}:\n"
        + (f"    input: 's{n - 1}.done'\n" if n and not free else "")
        + f"    output: touch('s{n}.done')\n    shell: 'true'\n"
        for n in range(steps)
    )
    all_of = ", ".join(f"'s{n}.done'" for n in range(steps))
    file.write_text(f"rule all:\n    input: {all_of}\n" + "".join(rules))
    cores = "2" if free else "1"
    return Job((str(VENV / "bin" / "snakemake"), "-s", str(file), "-d", "@", "-q", "-c", cores), folder)


def found() -> Iterator[tuple[str, Write]]:
    """The runners that are there; what is missing is said."""
    if shutil.which("make"):
        yield "make", make
    else:
        print("skipped: make is not on PATH")
    _install()
    for name, write in (("doit", doit), ("snakemake", snakemake)):
        if (VENV / "bin" / name).exists():
            yield name, write
        else:
            print(f"skipped: {name} could not be installed")


def _install() -> None:
    if not (VENV / "bin" / "python").exists():
        subprocess.run([sys.executable, "-m", "venv", VENV], check=True)
    missing = [name for name in PACKAGES if not (VENV / "bin" / name).exists()]
    for name in missing:
        subprocess.run([VENV / "bin" / "pip", "install", "--quiet", name], check=False)
