"""Captures real output into data/ for a new version of a tool: ``python -m tests.tools.capture [TOOL ...]``.

Programs are built in /tmp/demo, so that the fixtures contain no developer's folders; the driver's path is replaced.
The variable CASE selects a single case.
"""

from __future__ import annotations

import gzip
import json
import os
import platform
import re
import shutil
import subprocess
import sys
import tempfile
import time
import tomllib
from contextlib import ExitStack
from pathlib import Path
from typing import Any

from perfflow.execute.prepare import version
from tests.tools.harness import CRATE, DATA, EXAMPLES, PROGRAMS, SORTS, asv_suite, call_of, compiler, run, tool
from tests.tools.mojo_sources import OLD
from tests.tools.nsys import databases, headers

DEMO = Path("/tmp/demo")
PYTHON = "/usr/bin/python3"
HOT, HOT_PY = str(DEMO / "hot"), str(DEMO / "hot.py")
GROWS = str(DEMO / "grows.py")
SERVE, SLEEP = f"{PYTHON} {DEMO}/serve.py", "/bin/sleep 60"
"""Processes to inspect, for the option ``pid``."""
TASKS = str(DEMO / "tasks")
SAXPY = str(DEMO / "saxpy")
SAXPYS = {
    "scalar": ["-O2", "-fno-tree-vectorize"],
    "avx2": ["-O3", "-mavx2", "-mfma"],
    "avx512": ["-O3", "-march=x86-64-v4", "-mprefer-vector-width=512"],
    "stripped": ["-O3", "-s"],
}
GBENCH = str(DEMO / "gbench")
SUITE = {"python": sys.executable, "paths": "speed.py", "args": ["--benchmark-max-time=0.002"]}
PYPERF = {"python": sys.executable, "script": str(DEMO / "perf_script.py")}
ASV = {"python": sys.executable, "config": str(DEMO / "asv" / "asv.conf.json")}
DRIVERS = b"/opt/perfflow/tools/drivers"
UNREAD = {"cargo.json", "listing.out", "stderr", "estimates.json", "tukey.json"}
VERSIONS: dict[str, tuple[str, ...]] = {
    "line-profiler": (sys.executable, "-c", "import line_profiler as p; print(p.__version__)"),
    "memray": (sys.executable, "-c", "import memray; print(memray.__version__)"),
    "scalene": (sys.executable, "-m", "scalene", "--version"),
    "pytest-benchmark": (sys.executable, "-c", "import pytest_benchmark as p; print(p.__version__)"),
    "pyperf": (sys.executable, "-c", "import pyperf as p; print(p.__version__)"),
    "asv": (sys.executable, "-c", "import asv_runner as p; print(p.__version__)"),
    "google-benchmark": ("dpkg-query", "--show", "--showformat=${source:Upstream-Version}", "libbenchmark-dev"),
}
# tool -> case -> command and options
CASES: dict[str, dict[str, tuple[list[str], dict[str, Any]]]] = {
    "hyperfine": {
        "plain": ([HOT, "100000"], {}),
        "shell": ([f"{HOT} 100000 | cat"], {"shell": True}),
        "exit-3": ([HOT, "1000", "3"], {}),
    },
    "massif": {
        "c": ([HOT, "1000"], {}),
        "stacks": ([HOT, "1000"], {"stacks": True}),
        "fork": ([str(DEMO / "forks")], {}),
        "leaks": ([str(DEMO / "leaks")], {}),
        "no-heap": ([str(DEMO / "idle")], {}),
    },
    "perf": {
        "dwarf": ([HOT, "700000"], {}),
        "no-call-graph": ([HOT, "3000000"], {"call_graph": "none"}),
        "python-fp": ([PYTHON, HOT_PY, "8"], {"call_graph": "fp"}),
        "no-samples": ([str(DEMO / "idle")], {}),
        "rust": ([TASKS, "150000"], {}),
        "not-inlined": ([TASKS, "150000"], {"inline_limit": 0}),
    },
    "simd-share": {
        "scalar": ([f"{SAXPY}-scalar", "300000"], {}),
        "avx2": ([f"{SAXPY}-avx2", "1000000"], {}),
        "avx512": ([f"{SAXPY}-avx512", "3000000"], {}),
        "stripped": ([f"{SAXPY}-stripped", "1000000"], {}),
        "integers": ([f"{SAXPY}-scalar", "100000", "integers"], {}),
        "few": ([f"{SAXPY}-scalar", "10000"], {}),
        "no-samples": ([str(DEMO / "idle")], {}),
        "mojo": ([f"{SAXPY}-mojo", "5000000"], {}),
    },
    "cargo-flamegraph": {"rust": ([TASKS, "150000"], {})},
    "heaptrack": {
        "c": ([HOT, "1000"], {}),
        "leaks": ([str(DEMO / "leaks")], {}),
        "rust": ([TASKS, "1000"], {}),
    },
    "perf-stat": {
        "no-pmu": ([HOT, "1000000"], {}),
        "crash": ([str(DEMO / "crash")], {}),
        "not-found": ([str(DEMO / "missing")], {}),
    },
    "py-spy": {
        "plain": ([PYTHON, HOT_PY, "150"], {}),
        "native": ([PYTHON, HOT_PY, "150"], {"native": True}),
        "subprocesses": (
            [PYTHON, "-c", f"import subprocess as s; s.run(['{PYTHON}', '{HOT_PY}', '100'])"],
            {"subprocesses": True},
        ),
        "exit-3": ([PYTHON, HOT_PY, "40", "3"], {}),
        "speedscope": ([PYTHON, HOT_PY, "150"], {"format": "speedscope"}),
        "speedscope-processes": (
            [PYTHON, "-c", f"import subprocess as s; s.run(['{PYTHON}', '{HOT_PY}', '100'])"],
            {"format": "speedscope", "subprocesses": True, "native": True},
        ),
        "attached": ([], {"pid": SERVE, "duration": "1s"}),
        "attached-gil": (["/bin/sleep", "1"], {"pid": SERVE, "gil": True}),
        "not-there": ([], {"pid": 4194304, "duration": "1s"}),
        "not-python": ([], {"pid": SLEEP, "duration": "1s"}),
    },
    "py-spy-dump": {"plain": ([], {"pid": SERVE})},
    "scalene": {
        "plain": ([sys.executable, HOT_PY, "250"], {"memory": False}),
        "memory": ([sys.executable, str(DEMO / "copies.py"), "150"], {}),
        "exit-3": ([sys.executable, HOT_PY, "100", "3"], {"memory": False}),
        "too-short": ([sys.executable, HOT_PY, "1"], {"memory": False, "rate": 1}),
    },
    "cprofile": {"plain": ([PYTHON, HOT_PY, "5"], {}), "exit-3": ([PYTHON, HOT_PY, "1", "3"], {})},
    # These three are libraries of the program's own interpreter.
    "line-profiler": {
        "plain": ([sys.executable, HOT_PY, "5"], {}),
        "nothing": ([sys.executable, HOT_PY, "1"], {"profile": ["json"]}),
        "exit-3": ([sys.executable, HOT_PY, "1", "3"], {}),
    },
    "memory-profiler": {
        "plain": ([sys.executable, GROWS, "60"], {}),
        "lines": ([sys.executable, GROWS, "2"], {"profile": ["__main__"]}),
        "exit-3": ([sys.executable, GROWS, "2", "3"], {}),
    },
    "memray": {
        "plain": ([sys.executable, GROWS, "10"], {}),
        "fork": (
            [sys.executable, "-c", "import os; x = 'x' * 999_999; os.fork() or bytes(3_000_000)"],
            {"follow_fork": True},
        ),
        "native": ([sys.executable, GROWS, "2"], {"native": True}),
        "exit-3": ([sys.executable, GROWS, "2", "3"], {}),
    },
    "tracemalloc": {
        "plain": ([PYTHON, GROWS, "10"], {}),
        "brief-peak": ([PYTHON, "-c", "bytes(50_000_000)"], {}),
        "exit-3": ([PYTHON, GROWS, "2", "3"], {}),
    },
    "callgrind": {
        "c": ([HOT, "1000"], {}),
        "fork": ([str(DEMO / "forks")], {}),
        "parts": ([str(DEMO / "parts")], {}),
        "tiny": ([str(DEMO / "tiny")], {}),
        # Changes of the format by a user's own settings of valgrind.
        "instructions-and-jumps": (
            [str(DEMO / "parts")],
            {"env": {"VALGRIND_OPTS": "--dump-instr=yes --collect-jumps=yes --combine-dumps=yes"}},
        ),
    },
    "cachegrind": {
        "c": ([HOT, "1000"], {}),
        "no-cache": ([HOT, "1000"], {"cache": False, "branches": True}),
        "tiny": ([str(DEMO / "tiny")], {}),
        "fork": ([str(DEMO / "forks")], {}),
        "rust": ([TASKS, "1000"], {}),
    },
    "dhat": {
        "c": ([HOT, "1000"], {}),
        "cpp": ([str(DEMO / "allocs")], {}),
        "fork": ([str(DEMO / "forks")], {}),
        "no-heap": ([str(DEMO / "idle")], {}),
        "rust": ([TASKS, "1000"], {}),
    },
    "strace": {
        "plain": (["/bin/ls", "/"], {}),
        "files": ([PYTHON, "-S", str(DEMO / "reopens.py"), "20"], {"files": True}),
        "not-found": ([str(DEMO / "missing")], {}),
    },
    "iostat": {"plain": (["/bin/sleep", "3.3"], {}), "too-short": (["/bin/true"], {})},
    "slow-callbacks": {
        "plain": ([PYTHON, str(DEMO / "blocking.py")], {}),
        "exit-3": ([PYTHON, str(DEMO / "blocking.py"), "3"], {}),
        "no-loop": ([PYTHON, "-c", "pass"], {}),
    },
    "sql-log": {
        "plain": ([PYTHON, str(DEMO / "rows.py"), "4"], {}),
        "exit-3": ([PYTHON, str(DEMO / "rows.py"), "4", "3"], {}),
        "no-statement": ([PYTHON, "-c", "pass"], {}),
    },
    "pytest-benchmark": {
        "plain": ([], SUITE),
        "failing": ([], {**SUITE, "args": ["--benchmark-max-time=0.001"], "select": "small", "paths": "broken.py"}),
        "nothing": ([], {**SUITE, "select": "timing"}),
        "xdist": ([], {**SUITE, "args": ["-n2"]}),
    },
    "timeit": {
        "plain": ([], {"python": PYTHON, "stmt": "sorted(values)", "setup": "values = list(range(99))"}),
        "short": ([], {"python": PYTHON, "stmt": "pass", "number": 1, "repeat": 3}),
        "raises": ([], {"python": PYTHON, "stmt": "[][0]"}),
    },
    "pyperf": {
        "plain": ([], {**PYPERF, "args": "--processes=2 --values=3 --min-time=0.001"}),
        "stmt": ([], {"python": sys.executable, "stmt": "sum(values)", "setup": "values = range(99)"}),
        "memory": ([], {**PYPERF, "memory": True, "args": "--processes=2 --values=1 --min-time=0.001"}),
        "raises": ([], {"python": sys.executable, "stmt": "[][0]"}),
    },
    "asv": {
        "plain": ([], ASV),
        "own-figure": ([], {**ASV, "bench": "track"}),
        "failing": ([], {**ASV, "bench": "failing", "config": str(DEMO / "asv" / "failing.json")}),
    },
    "stream": {
        "plain": ([], {"seconds": "10ms", "size": "128MiB"}),
        "sizes": ([], {"seconds": "10ms", "precisions": ["f64", "f16"]}),
        "one-thread": ([], {"seconds": "10ms", "size": "16MiB", "threads": 1, "precisions": ["f32"]}),
        "too-large": ([], {"size": "100000GiB"}),
    },
    "google-benchmark": {
        "plain": ([GBENCH, "--benchmark_min_time=0.001"], {}),
        "repetitions": ([GBENCH, "--benchmark_min_time=0.001", "--benchmark_repetitions=5"], {"filter": "add"}),
        "error": ([str(DEMO / "broken"), "--benchmark_min_time=0.001"], {"filter": "broken"}),
        "no-match": ([GBENCH], {"filter": "nothing"}),
    },
}


def main() -> None:
    """Build the programs and capture every case; test_golden.py then writes the golden files."""
    DEMO.mkdir(exist_ok=True)
    os.chdir(DEMO)
    apart = {
        "cargo": _capture_crates,
        "cuda-bench": _capture_kernels,
        "mojo": _capture_mojo,
        "nsys": _capture_nsys,
        "nvcc": _capture_nvcc,
        "torch": _capture_torch,
        "triton-bench": _capture_triton,
    }
    if sys.argv[1:] and sys.argv[1] in apart:
        apart[sys.argv[1]]()
        return
    for source in PROGRAMS.iterdir():
        shutil.copy(source, DEMO)
        if source.suffix in {".c", ".cpp", ".rs"}:
            subprocess.run(compiler(Path(source.name), DEMO / source.stem), check=True)
    subprocess.run([*compiler(Path("gbench.cpp"), DEMO / "broken"), "-DBROKEN"], check=True)
    _build_saxpys()
    (DEMO / "broken.py").write_text((DEMO / "speed.py").read_text().replace("assert benchmark", "assert not benchmark"))
    asv_suite(DEMO / "asv")
    for name in sys.argv[1:] or CASES:
        cases = CASES[name]
        version = _version(name)
        for case, (command, options) in cases.items():
            if os.environ.get("CASE", case) != case:
                continue
            _capture(name, DATA / name / version / case, command, options)


def _build_saxpys() -> None:
    """Build one loop for several kinds of vector register, also in Mojo if it is installed."""
    for name, flags in SAXPYS.items():
        subprocess.run(["cc", "-g", *flags, "-o", f"{SAXPY}-{name}", "saxpy.c"], check=True)
    if mojo := shutil.which("mojo"):
        subprocess.run(
            [mojo, "build", "-O3", "--debug-level=line-tables", "-o", f"{SAXPY}-mojo", "saxpy.mojo"], check=True
        )


def _capture_crates() -> None:
    """Capture the output of cargo, and the files of criterion, divan and libtest, in a folder for each version."""
    os.environ |= {"RUSTC_BOOTSTRAP": "1", "CARGO_TARGET_DIR": str(DEMO / "target")}
    rust = subprocess.run(["rustc", "--version"], capture_output=True, text=True, check=True).stdout.split()[1]
    for criterion in ("0.5.1", "0.8.2"):
        crate = DEMO / f"criterion-{criterion}"
        shutil.copytree(CRATE, crate, dirs_exist_ok=True)
        for manifest in (crate / "Cargo.toml", crate / "second" / "Cargo.toml"):
            features = "" if criterion[:3] == "0.8" else ', features = ["cargo_bench_support"]'
            text = manifest.read_text().replace("default-features = false", f"default-features = false{features}")
            manifest.write_text(text.replace('version = "0.8"', f'version = "={criterion}"'))
        (crate / "Cargo.lock").unlink()
        short = {"crate": str(crate), "args": "--quiet"}
        target = DATA / "cargo-bench" / criterion
        _capture("cargo-bench", target / "plain", [], {**short, "bench": "conductor", "filter": "conductor"})
        _capture("cargo-bench", target / "odd-names", [], {**short, "bench": "odd"})
    _capture("cargo-bench", DATA / "cargo-bench" / f"libtest-{rust}" / "plain", [], {**short, "bench": "plain"})
    sorts = DEMO / "sorts"
    shutil.copytree(SORTS, sorts, dirs_exist_ok=True)
    divan = tomllib.loads((sorts / "Cargo.lock").read_text())["package"]
    of_divan = next(package["version"] for package in divan if package["name"] == "divan")
    _capture("cargo-bench", DATA / "cargo-bench" / f"divan-{of_divan}" / "plain", [], {"crate": str(sorts)})
    build = {"crate": str(crate), "benches": ["conductor", "odd"], "examples": True, "tests": True}
    _capture("cargo-build", DATA / "cargo-build" / rust / "plain", [], build)
    (crate / "src" / "main.rs").write_text("fn main() { missing(); }\n")
    _capture("cargo-build", DATA / "cargo-build" / rust / "error", [], {"crate": str(crate)})


def _capture_kernels() -> None:
    """Capture the output of the example program for the CPU, also with invalid flags."""
    program = DEMO / "kernels-cpu"
    subprocess.run(compiler(EXAMPLES / "gpu-kernels/kernels_cpu.cpp", program), check=True)
    target = DATA / "cuda-bench" / "cpu"
    _capture("cuda-bench", target / "plain", [str(program), "--bench", "--n=64", "--repeats=5"], {})
    _capture("cuda-bench", target / "no-such-kernel", [str(program), "--bench", "--kernel=no/such"], {})


def _capture_nvcc() -> None:
    """Capture the output of nvcc and ptxas, and code without a program, which is small."""
    shutil.copy(PROGRAMS / "crowded.cu", DEMO)
    target, source = DATA / "nvcc" / version(call_of("nvcc", DEMO).program), {"file": "crowded.cu"}
    _capture(
        "nvcc", target / "plain", [], {**source, "arch": ["sm_80", "sm_90"], "flags": "-fatbin --compress-mode=size"}
    )
    _capture("nvcc", target / "error", [], {**source, "arch": "sm_80", "flags": "-DBROKEN"})
    _capture("nvcc", target / "unknown-architecture", [], {**source, "arch": "sm_35"})


def _capture_triton() -> None:
    """Capture do_bench of the Triton in PERFFLOW_TORCH's interpreter, with a clock, and without a GPU."""
    python = os.environ["PERFFLOW_TORCH"]
    said = subprocess.run([python, "-c", "import triton; print(triton.__version__)"], capture_output=True, check=True)
    target = DATA / "triton-bench" / said.stdout.decode().strip()
    (DEMO / "bench.py").write_text("import triton.testing\n\ntriton.testing.do_bench(lambda: None)\n")
    shutil.copy(PROGRAMS / "triton_cpu.py", DEMO)
    _capture("triton-bench", target / "cpu", [], {"script": "triton_cpu.py", "python": python})
    _capture("triton-bench", target / "no-gpu", [], {"script": "bench.py", "python": python})


def _capture_torch() -> None:
    """Capture traces of the PyTorch in PERFFLOW_TORCH's interpreter."""
    python = os.environ["PERFFLOW_TORCH"]
    said = subprocess.run([python, "-c", "import torch; print(torch.__version__)"], capture_output=True, check=True)
    target = DATA / "torch-profiler" / said.stdout.decode().partition("+")[0].strip()
    loop, examples = str(PROGRAMS / "torch_loop.py"), Path(__file__).parents[2] / "examples" / "torch-training"
    few = ["--profile-steps", "3", "--show", "loss", "--records", "48", "--batch", "8", "--epochs", "1"]
    ranks = ["--trace", "rank{rank}.json.gz", "--trace-steps", "3", "--records", "128"]
    cases = {
        "small": ([loop, "small.json"], "small.json"),
        "no-schedule": ([loop, "no-schedule.json", "--no-schedule"], "no-schedule.json"),
        "train": ([str(examples / "train.py"), "--profile", "train.json.gz", *few], "train.json.gz"),
        "ranks": ([str(examples / "ddp.py"), *ranks], "rank*.json.gz"),
    }
    for case, (command, trace) in cases.items():
        _capture("torch-profiler", target / case, [python, *command], {"trace": trace})
        (target / case / "stderr").unlink(missing_ok=True)


def _capture_nsys() -> None:
    """Capture the summaries of real reports from a machine without a GPU, and of a synthetic report."""
    program = headers.build(DEMO / "ranges")
    target = DATA / "nsys" / _version("nsys").partition(".1-")[0]
    _capture("nsys", target / "ranges", [str(program)], {})
    _capture("nsys", target / "nothing", ["/bin/true"], {"trace": ["nvtx"]})
    _capture("nsys", target / "exit-3", ["/bin/sh", "-c", "exit 3"], {})
    built = databases.build(DEMO / "saxpy.sqlite")
    _capture("nsys", DATA / "nsys" / "2025.3-synthetic" / "gpu", [], {"report": str(built)})
    built.unlink()


def _capture_mojo() -> None:
    """Capture the output of programs with Mojo's benchmark module, and the compiler's errors for older dialects."""
    mojo = Path(str(shutil.which("mojo")))
    target = DATA / "mojo-bench" / _version("mojo-bench")
    for name in ("mojo_sums", "mojo_reports"):
        subprocess.run([mojo, "build", "-O3", "-o", DEMO / name, PROGRAMS / f"{name}.mojo"], check=True)
    sums, reports = str(DEMO / "mojo_sums"), str(DEMO / "mojo_reports")
    cases: dict[str, tuple[list[str], dict[str, Any]]] = {
        "plain": ([sums], {}),
        "repetitions": ([sums], {"repetitions": 3}),
        "verbose": ([sums, "--verbose"], {"repetitions": 2}),
        "one": ([sums, "--only", "sum/simd"], {}),
        # As with a program that chooses the form itself.
        "table": (["sh", "-c", f"{sums} --verbose"], {}),
        "tabular": (["sh", "-c", f"{sums} --format tabular"], {}),
        "nothing": ([sums, "-t"], {}),
        "reports": ([reports], {}),
        "report": (["sh", "-c", f"{reports} once"], {}),
        "raises": ([sums, "-r", "x"], {}),
    }
    for case, (command, options) in cases.items():
        _capture("mojo-bench", target / case, command, options)
    for case, (source, _) in OLD.items():
        (DEMO / "old.mojo").write_text(source)
        _capture("mojo-bench", target / f"old-{case}", [], {"file": str(DEMO / "old.mojo")})
    for file in target.glob("*/stderr"):
        file.write_text(file.read_text().replace(f"{mojo.parent}/", "/opt/mojo/bin/"))


def _version(name: str) -> str:
    """Return the first word with a digit that the tool, or else the interpreter, prints as its version."""
    adapter = tool(name)
    argv = VERSIONS.get(name, (PYTHON, "--version"))
    if adapter.program:
        argv = (call_of(name, DEMO, HOT).program, *adapter.program.version)
    printed = subprocess.run(argv, capture_output=True, text=True, check=True).stdout
    # cc (Debian 12.2.0-14) 12.2.0
    printed = re.sub(r"\(.*?\)", "", printed.replace("strace -- version", ""))
    return next(word for word in printed.replace("valgrind-", "").split() if word[0].isdigit())


def _capture(name: str, target: Path, command: list[str], options: dict[str, Any]) -> None:
    with tempfile.TemporaryDirectory() as temporary, ExitStack() as stack:
        if isinstance(options.get("pid"), str):
            process = stack.enter_context(subprocess.Popen(options["pid"].split(), stdout=subprocess.DEVNULL))
            stack.callback(process.kill)
            time.sleep(1)
            options = {**options, "pid": process.pid}
        ran = run(name, Path(temporary) / "out", *command, **options)
        target.mkdir(parents=True, exist_ok=True)
        for file in ran.call.folder.rglob("*"):
            # Binary files and criterion's own statistics are not parsed.
            if file.is_dir() or file.parents[1].name == "bin" or (name == "cargo-bench" and file.name in UNREAD):
                continue
            if name == "stream" == file.name:
                continue
            if file.name.endswith(".json.gz"):
                place = target / file.name
                place.write_bytes(gzip.compress(_of_no_machine(gzip.decompress(file.read_bytes())), mtime=0))
            elif (
                file.suffix not in {".data", ".prof", ".zst", ".gz"}
                and not file.name.startswith("memray.bin")
                and (file.name != "stderr" or file.stat().st_size)
            ):
                content = file.read_bytes().replace(str(ran.call.folder).encode(), b"/tmp/out")
                place = target / file.relative_to(ran.call.folder)
                place.parent.mkdir(parents=True, exist_ok=True)
                place.write_bytes(_of_no_machine(content))


def _of_no_machine(content: bytes) -> bytes:
    """Remove data about the machine and the environment of a capture."""
    content = content.replace(f'"{platform.node()}"'.encode(), b'"demo"').replace(sys.prefix.encode(), b"/opt/venv")
    tools = re.escape(str(Path(__file__).parents[2] / "perfflow/tools").encode())
    content = re.sub(tools + rb"/(\w+/)?drivers", DRIVERS, content)
    content = content.replace(str(Path.home()).encode(), b"/home/demo")
    if content.startswith(b'{"reason":"compiler-artifact"'):
        # Only programs are read, not the many crates of a registry.
        kept = [line for line in content.splitlines(keepends=True) if b'"executable":"' in line or b"finished" in line]
        return b"".join(kept)
    if b'"max_footprint_mb"' in content:
        return json.dumps(_without_timelines(json.loads(content))).encode() + b"\n"
    if not content.lstrip().startswith(b'{\n    "machine_info"'):
        return content
    return json.dumps({**json.loads(content), "machine_info": {}, "commit_info": {}}, indent=1).encode() + b"\n"


def _without_timelines(data: Any) -> Any:
    """Remove the memory curves of scalene's profile, which are most of it and are not read."""
    if isinstance(data, dict):
        unread = ("samples", "memory_samples", "memory_stacks")
        return {key: [] if key in unread else _without_timelines(value) for key, value in data.items()}
    return [_without_timelines(item) for item in data] if isinstance(data, list) else data


if __name__ == "__main__":
    main()
