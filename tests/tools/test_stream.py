"""``stream``: the machine that its driver sees, the peak among its tries, and real measurements."""

from __future__ import annotations

import json
import os
import platform
import re
import shutil
import signal
import subprocess
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, get_args

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from pydantic import ValidationError

from perfflow.model.errors import ToolOutputError
from perfflow.model.readings import Parsed
from perfflow.tools.linux import stream
from perfflow.tools.linux.drivers import stream_run
from tests.long import rest_long
from tests.tools.flows import result_in, run_flow
from tests.tools.harness import USAGE, call_of, parsed_of, run, start, why

GIB = 1 << 30


def tree(root: Path, files: dict[str, str]) -> Path:
    for name, text in files.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(f"{text}\n")
    return root


def cache(cpu: int, index: int, level: int, size: str, shared: str, kind: str = "Unified") -> dict[str, str]:
    told = {"level": str(level), "size": size, "shared_cpu_list": shared, "type": kind}
    return {f"sys/devices/system/cpu/cpu{cpu}/cache/index{index}/{name}": text for name, text in told.items()}


def test_last_caches_are_counted_once_each(tmp_path: Path) -> None:
    files: dict[str, str] = {}
    for cpu in range(4):
        files |= cache(cpu, 0, 1, "32K", str(cpu), "Data") | cache(cpu, 1, 1, "32K", str(cpu), "Instruction")
        files |= cache(cpu, 2, 2, "1024K", str(cpu)) | cache(cpu, 3, 3, "32768K", "0-1" if cpu < 2 else "2-3")
    root = tree(tmp_path, files)
    assert stream_run.last_caches(root, [0, 1]) == 32 << 20
    assert stream_run.last_caches(root, [0, 1, 2]) == 64 << 20
    assert stream_run.last_caches(root, [9]) == 0


def test_the_last_cache_may_be_each_core_s_own_or_unsaid(tmp_path: Path) -> None:
    own = cache(0, 0, 1, "64K", "0", "Data") | cache(0, 1, 2, "1M", "0") | cache(1, 1, 2, "1M", "1")
    assert stream_run.last_caches(tree(tmp_path, own), [0, 1]) == 2 << 20
    instructions = cache(2, 0, 1, "64K", "2", "Instruction") | cache(3, 0, 3, "", "3")
    assert stream_run.last_caches(tree(tmp_path, instructions), [2, 3]) == 0


CGROUP2 = {"proc/self/cgroup": "0::/a/b", "proc/meminfo": "MemTotal: 9437184 kB\nMemAvailable: 8388608 kB"}
CGROUP1 = {
    "proc/self/cgroup": "9:name=systemd:/x\n4:memory:/docker/1\n1:cpu,cpuacct:/docker/1",
    "proc/meminfo": "MemAvailable: 8388608 kB",
}


GROUP, OLD = "sys/fs/cgroup/a/", "sys/fs/cgroup/cpu,cpuacct/docker/1/cpu.cfs_"
OLD_MEMORY = "sys/fs/cgroup/memory/memory."


@pytest.mark.parametrize(
    ("files", "cores"),
    [
        ({}, None),
        ({f"{GROUP}b/cpu.max": "max 100000"}, None),
        ({f"{GROUP}b/cpu.max": "max 100000", f"{GROUP}cpu.max": "150000 100000"}, 1.5),
        ({"sys/fs/cgroup/cpu.max": "50000 100000"}, 0.5),  # a container with its own group as the mount
        ({**CGROUP1, "sys/fs/cgroup/cpu/cpu.cfs_quota_us": "-1"}, None),
        ({**CGROUP1, f"{OLD}quota_us": "200000", f"{OLD}period_us": "100000"}, 2),
    ],
)
def test_the_quota_of_a_cgroup(files: dict[str, str], cores: float | None, tmp_path: Path) -> None:
    assert stream_run.cores_of_quota(tree(tmp_path, CGROUP2 | files)) == cores


LIMITED = {f"{GROUP}memory.max": str(3 * GIB), f"{GROUP}memory.current": str(2 * GIB)}


@pytest.mark.parametrize(
    ("files", "available"),
    [
        ({}, 8 * GIB),
        ({f"{GROUP}b/memory.max": "max", f"{GROUP}b/memory.current": "1"}, 8 * GIB),
        (LIMITED | {f"{GROUP}memory.stat": f"anon 5\ninactive_file {GIB}\n"}, 2 * GIB),
        ({**CGROUP1, f"{OLD_MEMORY}limit_in_bytes": str(GIB), f"{OLD_MEMORY}usage_in_bytes": "0"}, GIB),
    ],
)
def test_the_memory_that_is_left(files: dict[str, str], available: int, tmp_path: Path) -> None:
    assert stream_run.available_memory(tree(tmp_path, CGROUP2 | files)) == available


def test_arrays_are_beyond_the_cache_and_leave_half_of_the_memory() -> None:
    assert stream_run.sizes_of(0, 32 << 20, 64 * GIB, 8) == [128 << 20, 192 << 20, 256 << 20]
    assert stream_run.sizes_of(0, 1 << 20, 64 * GIB, 8) == [64 << 20]
    for available in (GIB, 2 * GIB, 3 * GIB, 4 * GIB):
        sizes = stream_run.sizes_of(0, 64 << 20, available, 2)
        assert 3 * sizes[-1] <= available / 2
        assert sizes == sorted(set(sizes))
    assert stream_run.sizes_of(0, 256 << 20, 4 * GIB, 2) == [4 * GIB // 6]
    assert stream_run.sizes_of(5 << 20, 256 << 20, 4 * GIB, 2) == [5 << 20]


@pytest.mark.parametrize(("size", "available"), [(GIB, 5 * GIB), (1 << 10, 5 * GIB), (0, 4 << 20)])
def test_sizes_that_cannot_be_are_refused(size: int, available: int, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as caught:
        stream_run.sizes_of(size, 32 << 20, available, 4)
    assert caught.value.code == 2
    assert "MiB" in capsys.readouterr().err


AMAZON = {"sys/class/dmi/id/sys_vendor": "Amazon EC2"}


@pytest.mark.parametrize(
    ("files", "virtual"),
    [
        ({}, False),
        ({"proc/cpuinfo": "processor: 0\nflags\t\t: fpu sse2 hypervisor avx"}, True),
        ({"proc/cpuinfo": "flags : fpu sse2"}, False),
        ({"sys/hypervisor/type": "xen"}, True),
        (AMAZON | {"sys/class/dmi/id/product_name": "m6g.large"}, True),
        (AMAZON | {"sys/class/dmi/id/product_name": "m6g.metal"}, False),
    ],
)
def test_a_hypervisor_is_seen(files: dict[str, str], virtual: bool, tmp_path: Path) -> None:
    assert stream_run.is_virtual(tree(tmp_path, files)) is virtual


# The peak among the tries, on lines that the test wrote

MACHINE = {"kind": "machine", "cores": 4, "allowed": 4, "quota": None, "threads": 4}
MACHINE |= {"cache": 32 << 20, "available": 16 << 30, "hypervisor": False}
BUILT = {"kind": "built", "compiler": "gcc 12.2.0", "width": 32, "set": "AVX2", "fused": True, "chains": 12}
BUILT |= {"unused": ""}
Lines = list[dict[str, Any]]


def moved(kernel: str, seconds: float, round: int = 1, array: int = 128 << 20, bytes: int = 3 << 30) -> dict[str, Any]:
    return {"kind": "bandwidth", "kernel": kernel, "array": array, "round": round, "bytes": bytes, "seconds": seconds}


def calculated(precision: str, seconds: float, round: int = 1, flops: float = 1e9) -> dict[str, Any]:
    return {"kind": "flops", "precision": precision, "round": round, "flops": flops, "seconds": seconds}


def parsed(folder: Path, tries: Sequence[dict[str, Any]], precisions: Sequence[str] = (), **machine: Any) -> Parsed:
    end = {"kind": "end", "tries": len(tries)}
    lines = [MACHINE | machine, BUILT | {key: machine[key] for key in BUILT if key in machine}, *tries, end]
    (folder / "tries.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    return stream.parse(call_of("stream", folder, precisions=list(precisions)), USAGE)


def peaks(found: Parsed) -> dict[str, float]:
    return {f"{peak.metric} {peak.precision}".strip(): peak.value for peak in found.peaks}


SECONDS = st.floats(1e-4, 10)
KERNELS, ARRAYS = st.sampled_from(get_args(stream.Kernel)), st.sampled_from([128 << 20, 256 << 20])
MOVED = st.builds(moved, KERNELS, SECONDS, st.integers(0, 9), ARRAYS, st.integers(1 << 20, 1 << 34))
CALCULATED = st.builds(
    calculated, st.sampled_from(get_args(stream.Precision)), SECONDS, st.integers(0, 9), st.integers(10**6, 10**12)
)


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
@given(st.lists(MOVED, min_size=1, max_size=20), st.lists(CALCULATED, max_size=20), st.randoms())
def test_the_peak_is_the_best_try_and_never_more(tmp_path: Path, moves: Lines, sums: Lines, random: Any) -> None:
    # Everything that was tried was also tried after the warm-up.
    tries = [*moves, *sums]
    tries += [{**line, "round": 1} for line in tries]
    random.shuffle(tries)
    rates: dict[str, list[float]] = {}
    for line in (line for line in tries if line["round"]):
        if line["kind"] == "bandwidth":
            rates.setdefault("bandwidth", []).append(line["bytes"] / line["seconds"])
        else:
            rates.setdefault(f"flops {line['precision']}", []).append(line["flops"] / line["seconds"])
    assert peaks(parsed(tmp_path, tries)) == {name: max(values) for name, values in rates.items()}


def test_the_first_round_warms_up(tmp_path: Path) -> None:
    found = parsed(tmp_path, [moved("load", 0.01, round=0), moved("load", 0.02), moved("load", 0.021, round=2)])
    assert peaks(found) == {"bandwidth": (3 << 30) / 0.02}
    with pytest.raises(ToolOutputError, match="tried only once"):
        parsed(tmp_path, [moved("load", 0.01, round=0)])


def test_it_says_how_the_peak_was_found(tmp_path: Path) -> None:
    tries = [moved("triad", 0.02), moved("load", 0.01), moved("load", 0.0101), calculated("f32", 0.01)]
    bandwidth, flops = parsed(tmp_path, tries).peaks
    assert bandwidth.how == (
        "load (triad: 150 GiB/s), 3 arrays of 128 MiB (4 × the last-level cache of 32 MiB), 4 threads, best of 2, "
        "gcc 12.2.0; cache lines that are read only to be overwritten are not counted, as in STREAM"
    )
    assert flops.how == (
        "12 chains of fused multiply-adds per thread in vectors of 32 B (AVX2), 4 threads, best of 1, gcc 12.2.0"
    )
    unfused = parsed(tmp_path, tries, fused=False, set="", threads=1, cores=1).peaks[1].how
    assert unfused.startswith("12 chains of multiplications and additions per thread in vectors of 32 B, 1 thread,")


QUIET = [moved("triad", 0.01), moved("triad", 0.0102), calculated("f64", 0.01)]


SLOW, SLOWER = [moved("triad", 0.02)] * 2, [calculated("f64", 0.02), calculated("f64", 0.03)]
LARGE = [moved("triad", 0.02, array=256 << 20)] * 2
DOUBTS: list[tuple[dict[str, Any], Lines, tuple[str, ...], str]] = [
    ({}, [], (), ""),
    ({"threads": 2, "allowed": 2}, [], (), "2 of 4 cores were used, and the peaks are only of these"),
    ({"threads": 2, "quota": 1.5}, [], (), "2 of 4 cores were used (the quota is 1.5)"),
    ({"quota": 3.5}, [], (), "the quota of 3.5 cores throttles 4 threads"),
    ({"hypervisor": True}, [], (), "this is a virtual machine"),
    ({"cache": 0}, [], (), "the size of the last-level cache is unknown"),
    ({"cache": 256 << 20}, [], (), "arrays of 128 MiB are 0.5 × the last-level cache of 256 MiB"),
    ({"unused": "SVE"}, [], (), "SVE, which may have wider vectors, was not used"),
    ({}, [], ("f64", "f16"), "has no arithmetic in f16"),
    ({}, SLOW, (), "bandwidth: half of the tries were 26% or more below the best"),
    ({}, SLOWER, (), "flops f64: half of the tries were 50% or more below the best"),
    ({}, LARGE, (), "arrays of 256 MiB were 50% slower than those of 128 MiB"),
]


@pytest.mark.parametrize(("machine", "more", "precisions", "wanted"), DOUBTS, ids=[doubt[-1] for doubt in DOUBTS])
def test_what_speaks_against_a_peak_is_said(
    machine: dict[str, Any], more: Lines, precisions: tuple[str, ...], wanted: str, tmp_path: Path
) -> None:
    warnings = parsed(tmp_path, [*QUIET, *more], precisions, **machine).warnings
    assert [wanted in warning for warning in warnings] == ([True] if wanted else [])


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        ({"kernel": "swap"}, "kernel is 'swap', which is not valid"),
        ({"kernel": None}, "kernel is null, which is not valid"),
        ({"seconds": 0}, "seconds is 0, which is not valid"),
        ({"bytes": -1}, "bytes is -1, which is not valid"),
        ({"kind": "latency"}, "has a line that is not a try"),
        ({"kind": ["flops"]}, "has a line that is not a try"),
        ({"round": 0.5}, "round is 0.5, not a whole number"),
        ({"array": 0}, "array is 0"),
    ],
    ids=str,
)
def test_a_line_that_cannot_be_is_an_error(line: dict[str, Any], reason: str, tmp_path: Path) -> None:
    with pytest.raises(ToolOutputError, match=reason):
        parsed(tmp_path, [*QUIET, moved("load", 0.01) | line])


@pytest.mark.parametrize(
    ("size", "reason"),
    [(5, "write a size with its unit"), ("5 apples", "unknown unit"), ("3s", "unit of time"), ("0B", "greater than")],
)
def test_a_size_has_a_unit(size: object, reason: str) -> None:
    assert stream.StreamOptions.model_validate({"size": "1.5KiB"}).size == 1536
    with pytest.raises(ValidationError, match=reason):
        stream.StreamOptions.model_validate({"size": size})


def test_tries_that_are_missing_are_missed(tmp_path: Path) -> None:
    with pytest.raises(ToolOutputError, match="no try of the bandwidth"):
        parsed(tmp_path, [calculated("f32", 0.01)])
    parsed(tmp_path, QUIET)
    lines = (tmp_path / "tries.jsonl").read_text().splitlines(keepends=True)
    (tmp_path / "tries.jsonl").write_text("".join(lines[:3] + lines[4:]))
    with pytest.raises(ToolOutputError, match="has 2 tries instead of 3"):
        stream.parse(call_of("stream", tmp_path), USAGE)
    (tmp_path / "tries.jsonl").write_text("".join(lines[:-2]))
    with pytest.raises(ToolOutputError, match=r"it was killed before its last try.*smaller `size`"):
        stream.parse(call_of("stream", tmp_path), USAGE)


# Real measurements

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
@pytest.mark.parametrize("set_", rest_long(SETS, keep=2))
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


@pytest.mark.parametrize("right", rest_long(WRONG, keep=2))
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
    done = run_flow(tmp_path, {"baseline": [step]}, path=f"{fake.parent}:{os.environ['PATH']}")
    assert done.returncode == 3
    assert reason in done.stderr


def test_its_peaks_are_those_of_targets_and_of_the_roofline(tmp_path: Path) -> None:
    work = {"bytes": 8, "flops": 1, "precision": "f64"}
    steps: list[dict[str, Any]] = [{"id": "roof", "uses": "stream", "with": SHORT}]
    steps += [{"id": "nap", "uses": "command", "runs": 6, "work": work, "with": {"command": "sleep 0.001"}}]
    done = run_flow(tmp_path, {"baseline": steps}, {"nap": {"throughput": "≥70% of peak"}})
    # Eight bytes per millisecond are far below it.
    assert done.returncode == 1, done.stderr
    result = result_in(tmp_path)
    found = {(peak["metric"], peak["precision"]): peak["value"] for peak in result["peaks"]}
    assert found.keys() >= {("bandwidth", ""), ("flops", "f64")}
    (target,) = result["targets"]
    assert (target["status"], target["peak"]) == ("not met", found["bandwidth", ""])
    assert target["peak_source"] == "found by step roof"
    assert [point["benchmark"] for point in result["roofline"]] == ["nap"]
    assert "roof" not in {row["name"] for row in result["benchmarks"]}
