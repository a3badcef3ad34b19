"""Real ``stream``: the compiled code, measurements on this machine, refusals and failures."""

from __future__ import annotations

import json
import os
import platform
import re
import shutil
import signal
import subprocess
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any, get_args

import pytest

from perfflow.model.errors import ToolOutputError
from perfflow.tools.linux import stream
from tests.cli.shell import perfflow
from tests.tools.harness import USAGE, call_of, parsed_of, run, start, why

SOURCE = Path(stream.__file__).with_name("drivers") / "stream.c"
SHORT: dict[str, Any] = {"seconds": "20ms", "size": "4MiB"}
COMPILERS = [name for name in ("gcc", "clang") if shutil.which(name)]
X86 = platform.machine() == "x86_64"
# For each instruction set: its flags, the packed operations of a chain of f64, and their registers.
SETS: Mapping[str, tuple[list[str], str, str]] = {
    "AVX-512": (["-march=skylake-avx512", "-mprefer-vector-width=512"], r"vfmadd\d+pd", "zmm"),
    "AVX2": (["-march=haswell"], r"vfmadd\d+pd", "ymm"),
    "AVX": (["-march=sandybridge"], r"v(mul|add)pd", "ymm"),
    "SSE2": (["-march=x86-64"], r"(mul|add)pd", "xmm"),
}


def _compile(compiler: str, flags: list[str], target: Path, source: Path = SOURCE) -> Path:
    argv = [compiler, "-O3", "-ffp-contract=fast", "-pthread", "-Wall", "-Wextra", "-Werror", *flags]
    subprocess.run([*argv, "-o", str(target), str(source)], check=True, timeout=900)
    return target


def _instructions(program: Path, function: str) -> list[str]:
    """Return the instructions of a function, with their operands."""
    argv = ["objdump", "-d", "--no-show-raw-insn", f"--disassemble={function}", str(program)]
    text = subprocess.run(argv, check=True, capture_output=True, text=True, timeout=900).stdout
    return [line.split("\t")[1] for line in text.splitlines() if re.match(r"\s+[0-9a-f]+:\t", line)]


@pytest.mark.skipif(not X86, reason="instructions of x86_64")
@pytest.mark.parametrize("set_", SETS)
@pytest.mark.parametrize("compiler", COMPILERS)
def test_every_chain_is_packed_and_none_is_folded_away(compiler: str, set_: str, tmp_path: Path) -> None:
    flags, packed, register = SETS[set_]
    program = _compile(compiler, flags, tmp_path / "stream")
    chains = 24 if set_ == "AVX-512" else 12
    for precision, kind in (("f64", "pd"), ("f32", "ps")):
        found = _instructions(program, f"chains_{precision}")
        operations = [line for line in found if re.match(packed.replace("pd", kind), line)]
        assert len([line for line in operations if register in line]) >= chains
        # Up to two scalar operations fill the vectors of factors.
        assert len([line for line in found if re.match(rf"v?(fmadd\d+|mul|add)s{kind[1]}", line)]) <= 2
    names = subprocess.run(["nm", "--undefined-only", program], capture_output=True, text=True, check=True).stdout
    assert "memcpy" not in names
    if set_ in {"SSE2", "AVX"}:  # Every processor that runs the tests has it.
        done = subprocess.run([program, "0.01", "0", "0", "1048576", "f64,f32"], capture_output=True, check=True)
        built = json.loads(done.stdout.splitlines()[0])
        assert (built["set"], built["fused"], built["chains"]) == (set_, False, chains)


def test_it_finds_the_peaks_of_this_machine(tmp_path: Path) -> None:
    parsed = parsed_of(run("stream", tmp_path, **SHORT))
    found = {(peak.metric, peak.precision) for peak in parsed.peaks}
    assert found >= {("bandwidth", ""), ("flops", "f64"), ("flops", "f32")}
    machine, _, groups = stream.read(tmp_path / "tries.jsonl")
    assert {group.name for group in groups if group.metric == "bandwidth"} == set(get_args(stream.Kernel))
    assert all(len(group.values) >= 3 for group in groups)
    assert machine.threads == len(os.sched_getaffinity(0)) or machine.quota
    # A line is 3 arrays, of which a core reads or writes 8 B an element.
    line = json.loads((tmp_path / "tries.jsonl").read_text().splitlines()[2])
    assert line["bytes"] == 2 * line["array"] <= 2 * (4 << 20)


def test_it_uses_as_many_threads_as_it_is_told_to(tmp_path: Path) -> None:
    parsed = parsed_of(run("stream", tmp_path, **SHORT, threads=1, precisions=["f32"]))
    assert [peak.precision for peak in parsed.peaks] == ["", "f32"]
    assert all("1 thread, " in peak.how for peak in parsed.peaks)


@pytest.mark.parametrize(
    ("options", "reason"),
    [
        ({"threads": 4096}, "4096 threads were asked for, but this process may use .* cores: name fewer"),
        ({"size": "100000GiB"}, "are more than half of the .* available: name a smaller size"),
        ({"size": "4KiB"}, "too small for .* threads: name at least"),
    ],
    ids=str,
)
def test_what_cannot_be_had_is_refused(options: dict[str, object], reason: str, tmp_path: Path) -> None:
    assert re.search(reason, why("stream", call_of("stream", tmp_path, **(SHORT | options))))


WRONG = {
    "b[k] = factor * c[k]": "b[k] = 0.421 * c[k]",
    "c[k] = a[k] + b[k]": "if (k % 64) c[k] = a[k] + b[k]",
    "sums[k - i] += a[k] + b[k] + c[k]": "sums[k - i] += a[k] + b[k]",
    "#define STEP(i) x##i += x##i * a;": "#define STEP(i) x##i += a;",
}


@pytest.mark.parametrize("right", WRONG)
def test_a_wrong_result_is_no_peak(right: str, tmp_path: Path) -> None:
    text = SOURCE.read_text()
    assert text.count(right) == 1
    (tmp_path / "wrong.c").write_text(text.replace(right, WRONG[right]))
    program = _compile("cc", ["-Wno-unused"], tmp_path / "stream", tmp_path / "wrong.c")
    call = call_of("stream", tmp_path, **SHORT)
    assert call.place / "stream" == program
    (step,) = stream.invocations(call)
    assert start(step, tmp_path) == 1
    with pytest.raises(ToolOutputError, match="a result is wrong"):
        stream.parse(call, USAGE)


def test_one_that_is_killed_says_what_may_help(tmp_path: Path) -> None:
    call = call_of("stream", tmp_path, seconds="60s", size="4MiB")
    for step in stream.preparations(call):
        assert start(step, tmp_path) == 0
    (step,) = stream.invocations(call)
    with (tmp_path / "tries.jsonl").open("wb") as output, subprocess.Popen(step.argv, stdout=output) as process:
        while b"\n" not in (tmp_path / "tries.jsonl").read_bytes():
            time.sleep(0.01)
        process.send_signal(signal.SIGKILL)
    with pytest.raises(ToolOutputError, match="was killed before its last try: if it ran out of memory"):
        stream.parse(call, USAGE)


@pytest.mark.parametrize(
    ("said", "reason"),
    [
        ("stream.c:28:10: fatal error: pthread.h: No such file or directory", "headers: apt-get install gcc libc6-dev"),
        ("cc1: error: bad value (‘native’) for ‘-march=’ switch", "was not built: bad value"),
    ],
)
def test_a_compiler_that_fails_is_quoted(said: str, reason: str, tmp_path: Path) -> None:
    fake = tmp_path / "bin" / "cc"
    fake.parent.mkdir()
    fake.write_text(f'#!/bin/sh\ncase "$*" in *--version*) echo 1.0; exit;; esac\necho "{said}" >&2\nexit 1\n')
    fake.chmod(0o755)
    step = {"id": "roof", "uses": "stream", "with": SHORT}
    (tmp_path / "flow.yaml").write_text(json.dumps({"perfflow": 1, "stages": {"baseline": [step]}}))
    done = perfflow("run", "flow.yaml", cwd=tmp_path, path=f"{fake.parent}:{os.environ['PATH']}")
    assert done.returncode == 3
    assert reason in done.stderr


def test_its_peaks_are_those_of_targets_and_of_the_roofline(tmp_path: Path) -> None:
    work = {"bytes": 8, "flops": 1, "precision": "f64"}
    steps: list[dict[str, Any]] = [{"id": "roof", "uses": "stream", "with": SHORT}]
    steps += [{"id": "nap", "uses": "command", "runs": 6, "work": work, "with": {"command": "sleep 0.001"}}]
    flow = {"perfflow": 1, "targets": {"nap": {"throughput": "≥70% of peak"}}, "stages": {"baseline": steps}}
    (tmp_path / "flow.yaml").write_text(json.dumps(flow))
    done = perfflow("run", "flow.yaml", "--json", cwd=tmp_path)
    # Eight bytes per millisecond are far below it.
    assert done.returncode == 1, done.stderr
    result = json.loads(done.stdout)
    found = {(peak["metric"], peak["precision"]): peak["value"] for peak in result["peaks"]}
    assert found.keys() >= {("bandwidth", ""), ("flops", "f64")}
    (target,) = result["targets"]
    assert (target["status"], target["peak"]) == ("not met", found["bandwidth", ""])
    assert target["peak_source"] == "found by step roof"
    assert [point["benchmark"] for point in result["roofline"]] == ["nap"]
    assert "roof" not in {row["name"] for row in result["benchmarks"]}
