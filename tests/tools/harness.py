"""Runs an adapter's invocations for real, as the run layer does, and shows the parsed result as JSON."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import sysconfig
import time
from collections.abc import Iterable
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import pytest

from perfflow.execute import prepare
from perfflow.model.errors import ToolOutputError
from perfflow.model.readings import Parsed, Reading, Usage
from perfflow.model.similar import kebab
from perfflow.testing.contract import check_sane
from perfflow.tools.adapter import Adapter, Call, Invocation
from perfflow.tools.registry import MODULES, find

HERE = Path(__file__).parent
PROGRAMS = HERE / "programs"
CRATE = HERE / "crates" / "hot"
SORTS = HERE / "crates" / "sorts"
GO_MODULE = HERE / "go"
DATA = HERE / "data"
EXAMPLES = HERE.parents[1] / "examples"
CPP = HERE / "cpp"
NANOBENCH = EXAMPLES / "cpp-words/third_party/nanobench.h"
USAGE = Usage(wall=1.0)
PYTHON = sys.executable


def compiler(source: Path, target: Path) -> list[str]:
    """Return the command that builds one of the programs."""
    if source.suffix == ".rs":
        return ["rustc", "-O", "-Cdebuginfo=1", "-o", str(target), str(source)]
    language = "c++" if source.suffix == ".cpp" else "cc"
    # With optimization, crash.c would not crash and leaks.c would not allocate.
    level = "-O2" if source.stem in {"hot", "gbench", "kernels_cpu"} else "-O1" if source.stem == "allocs" else "-O0"
    libraries = {"gbench": ["-lbenchmark", "-lpthread"], "tiny": ["-static", "-nostdlib"], "waits": ["-lpthread"]}.get(
        source.stem, []
    )
    return [language, "-g", level, "-w", "-o", str(target), str(source), *libraries]


def build_catch2(folder: Path) -> str:
    """Build the benchmarks of Catch2; return the program.

    Its main takes many seconds to compile with optimization, and g++ takes twice as long as clang.
    """
    source = "catch2_odd.cpp"
    version_3 = Path("/usr/include/catch2/catch_all.hpp").exists()
    libraries = ["-lCatch2Main", "-lCatch2"] if version_3 else [str(folder / "main.o")]
    if not version_3:
        faster = shutil.which("clang++") or "c++"
        subprocess.run([faster, "-O0", "-c", "-DMAIN", source, "-o", str(folder / "main.o")], cwd=CPP, check=True)
    subprocess.run(["c++", "-O1", "-g", source, "-o", str(folder / "catch2_odd"), *libraries], cwd=CPP, check=True)
    return str(folder / "catch2_odd")


def build_nanobench(folder: Path) -> str:
    """Build the benchmarks of nanobench; return the program."""
    library = ("c++", "-O0", "-x", "c++", "-DANKERL_NANOBENCH_IMPLEMENT", "-c", str(NANOBENCH))
    subprocess.run([*library, "-o", str(folder / "library.o")], check=True)
    target = folder / "nanobench_odd"
    argv = ["c++", "-O1", "-g", str(CPP / "nanobench_odd.cpp"), str(folder / "library.o"), "-o", str(target)]
    subprocess.run(argv, check=True)
    return str(target)


def asv_suite(folder: Path) -> Path:
    """Write an asv suite, and one with a failing benchmark, into a folder; return the settings of the first."""
    failing = "def time_failing():\n    raise LookupError('no such thing')\n"
    text = (PROGRAMS / "asv_demo.py").read_text()
    for name, file, source in (("benchmarks", "demo", text), ("broken", "failing", failing)):
        (folder / name).mkdir(parents=True, exist_ok=True)
        (folder / name / "__init__.py").touch()
        (folder / name / f"{file}.py").write_text(source)
    (folder / "failing.json").write_text('{"benchmark_dir": "broken"}\n')
    settings = folder / "asv.conf.json"
    settings.write_text(
        '{\n    // of a demo\n    // "benchmark_dir": "elsewhere",\n    "benchmark_dir": "benchmarks"\n}\n'
    )
    return settings


def tools() -> dict[str, Adapter]:
    """Return every adapter of the registry."""
    return {name: tool(name) for name in MODULES}


def tool(name: str) -> Adapter:
    adapter = find(name)
    assert adapter
    return adapter


def call_of(name: str, folder: Path, *command: str, **options: Any) -> Call:
    """Return a call with the program found as an installation would find it; ``sample_size`` is ``sample-size``."""
    from tests.tools.contracts import contract_of  # which imports this module

    adapter = tool(name)
    words = () if options.get("shell") else command
    text = command[0] if options.get("shell") else ""
    runs_command = adapter.takes_command
    required = {} if {"stmt", "script"} & options.keys() else contract_of(name).captured_with.get("", {})
    given = {**{key: value for key, value in required.items() if key != "command"}, **options}
    keys = {kebab(field): value for field, value in given.items()}
    known = adapter.options.model_validate({**({"command": list(command)} if runs_command else {}), **keys})
    program = ""
    if adapter.program:
        scripts = sysconfig.get_path("scripts")
        program = prepare.located(adapter.program, os.pathsep.join([scripts, os.environ["PATH"]])) or ""
        program = program or contract_of(name).stand_in
        assert program, f"{adapter.program.name} is not installed: {adapter.program.install}"
    argv = (words or (("/bin/bash", "-c", text) if text else ())) if runs_command else ()
    return Call(known, folder, program, argv, text)


@dataclass(frozen=True, slots=True)
class Ran:
    """The result of the processes: the status of the first that failed, else 0."""

    status: int
    call: Call
    adapter: Adapter

    def parse(self) -> Parsed:
        return self.adapter.parse(self.call, USAGE)


def run(name: str, folder: Path, *command: str, env: dict[str, str] | None = None, **options: Any) -> Ran:
    """Run all invocations in order until one fails."""
    return run_call(name, call_of(name, folder, *command, **options), env)


def run_call(name: str, call: Call, env: dict[str, str] | None = None) -> Ran:
    """Run all invocations of a call that has more than options."""
    adapter = tool(name)
    call.folder.mkdir(exist_ok=True)
    status = 0
    for step in adapter.build.preparations(call):
        if status := start(step, call.folder, env):
            return Ran(status, call, adapter)
    for step in adapter.build.before_each(call):
        if status := start(step, call.folder, env):
            return Ran(status, call, adapter)
    sampler: subprocess.Popen[bytes] | None = None
    for step in adapter.invocations(call):
        if step.beside:
            sampler = _begin(step, call.folder)
            continue
        status = start(step, call.folder, env)
        if sampler:
            sampler.send_signal(signal.SIGINT)
            sampler.wait(60)
        if status:
            break
    return Ran(status, call, adapter)


def _begin(step: Invocation, folder: Path) -> subprocess.Popen[bytes]:
    """Start a sampler, and wait for its first output."""
    output = folder / step.stdout
    with output.open("wb") as stdout:
        sampler = subprocess.Popen(step.argv, stdout=stdout, env={**os.environ, **step.env})
    end = time.monotonic() + step.beside
    while not output.stat().st_size and time.monotonic() < end:
        time.sleep(0.01)
    return sampler


def start(step: Invocation, folder: Path, env: dict[str, str] | None = None) -> int:
    """Run one process with its output in ``folder``; return its exit status."""
    # A profile must not contain frames of the coverage measurement of these tests.
    own = {name: value for name, value in os.environ.items() if not name.startswith("COVERAGE")}
    added = {**own, **(env or {}), **step.env}
    stdout_file = folder / step.stdout if step.stdout else Path(os.devnull)
    with (folder / step.stderr).open("ab") as stderr, stdout_file.open("wb") as stdout:
        cwd = step.cwd or None
        done = subprocess.run(step.argv, stdout=stdout, stderr=stderr, env=added, cwd=cwd, check=False, timeout=600)
        return done.returncode


def parsed_of(ran: Ran) -> Parsed:
    """Return the parsed result of processes that all succeeded."""
    assert ran.status == 0
    assert all(path.stat().st_size for path in ran.adapter.outputs(ran.call))
    parsed = ran.parse()
    check_sane(parsed)
    assert all((ran.call.folder / profile.path).stat().st_size for profile in parsed.profiles)
    return parsed


def values_of(parsed: Parsed) -> dict[str, float]:
    return {reading.metric: reading.value for reading in parsed.readings}


def values_by_name(readings: Iterable[Reading]) -> dict[tuple[str, str], float]:
    """Return the values by benchmark and metric."""
    return {(reading.benchmark, reading.metric): reading.value for reading in readings}


def failure_seen(ran: Ran) -> bool:
    """Return whether the status or the parser shows the failure."""
    if ran.status:
        return True
    try:
        ran.parse()
    except ToolOutputError:
        return True
    return False


def shown(parsed: Parsed) -> str:
    """Return the parsed result as JSON for a golden file, with only the largest costs, one line for each."""
    fields = asdict(parsed)
    for spot in fields["hotspots"]:
        assert spot.pop("benchmark") == ""  # The step sets it, not the adapter.
    for reading in fields["readings"]:
        for name in ("statistic", "tick"):
            if not reading[name]:
                reading.pop(name)
    for each, key in (
        *((peak, "device") for peak in fields["peaks"]),
        *((one, "stacks") for one in fields["profiles"]),
    ):
        if not each[key]:
            each.pop(key)
    for name in ("peaks", "device", "kernels", "failed", "few_samples"):
        if not fields[name]:
            fields.pop(name)
    added = {"step", "benchmark", "tree", "model", "bound", "because", "warnings"}
    if parsed.kernels:
        fields["kernels"] = [
            kernel.model_dump(exclude=added) | {"stalls": {item.reason: item.cycles for item in kernel.stalls}}
            for kernel in parsed.kernels
        ]
    memory = fields.pop("memory")
    fields |= {"memory": _in_short(memory)} if memory else {}
    costs = [" ".join(map(str, asdict(cost).values())) for cost in parsed.costs]
    fields.pop("costs")
    shown = {**fields, "costs": [*costs[:5], f"{len(costs)} in all"]} if costs else fields
    return json.dumps(shown, indent=1, ensure_ascii=False, default=str) + "\n"


def _in_short(memory: dict[str, Any]) -> list[str]:
    points = [f"{at:.12g}: {held:.0f}" for at, held in zip(memory["at"], memory["held"], strict=True)]
    return [memory["axis"], *points[:3], f"{len(points)} in all, the highest {max(memory['held']):.0f}"]


def listed(name: str, call: Call) -> tuple[int, list[str]]:
    """Let a suite list its benchmarks. Return the exit status and the ids."""
    call.folder.mkdir(exist_ok=True)
    listing = tool(name).suite.listing(call)
    assert listing
    step = replace(listing, stdout="ids")
    status = start(step, call.folder)
    return status, (call.folder / step.stdout).read_text().splitlines()


def why(name: str, call: Call) -> str:
    """Run a call with output that cannot be parsed, and return the reason."""
    ran = run_call(name, call)
    with pytest.raises(ToolOutputError) as caught:
        ran.parse()
    return str(caught.value)
