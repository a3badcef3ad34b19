"""Captures real output into data/ for a new version of a tool: ``python -m tests.tools.capture [TOOL ...]``.

``captures.yaml`` has the cases. Programs are built in /tmp/demo, so that the fixtures contain no developer's folders;
the driver's path is replaced. The variable CASE selects a single case.
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
from collections.abc import Mapping
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import yaml

from perfflow.execute.prepare import version
from perfflow.tools.registry import FILES
from tests.store.history import databases as postgres
from tests.toolchains import MAVEN_PROJECT, node_project
from tests.tools import servers
from tests.tools.harness import (
    CRATE,
    DATA,
    EXAMPLES,
    GO_MODULE,
    HERE,
    NANOBENCH,
    PROGRAMS,
    SORTS,
    asv_suite,
    build_catch2,
    build_nanobench,
    call_of,
    compiler,
    run,
    tool,
)
from tests.tools.mojo_sources import OLD
from tests.tools.nsys import databases, headers

DEMO = Path("/tmp/demo")
PYTHON = "/usr/bin/python3"
TORCH = os.environ.get("PERFFLOW_TORCH", "python3")
MOJO = shutil.which("mojo") or ""
WORDS = {"$DEMO": DEMO, "$PYTHON": PYTHON, "$VENV": sys.executable, "$TORCH": TORCH, "$EXAMPLES": EXAMPLES}
SAXPYS = {
    "scalar": ["-O2", "-fno-tree-vectorize"],
    "avx2": ["-O3", "-mavx2", "-mfma"],
    "avx512": ["-O3", "-march=x86-64-v4", "-mprefer-vector-width=512"],
    "stripped": ["-O3", "-s"],
}
DRIVERS = b"/opt/perfflow/tools/drivers"
UNREAD = {"cargo.json", "listing.out", "stderr", "estimates.json", "tukey.json"}
BINARY = {".data", ".prof", ".zst", ".gz", ".jfr"}
OF_VENV = {"line-profiler": "line_profiler", "memray": "memray", "pytest-benchmark": "pytest_benchmark"}
OF_VENV |= {"pyperf": "pyperf", "asv": "asv_runner"}
"""Tools that are modules of these tests' interpreter."""
ASKED = "import %s as module; print(module.__version__)"
VERSIONS: Mapping[str, tuple[str, ...]] = {
    **{name: (sys.executable, "-c", ASKED % module) for name, module in OF_VENV.items()},
    "scalene": (sys.executable, "-m", "scalene", "--version"),
    "go-pprof": ("go", "env", "GOVERSION"),
    "size": ("size", "--version"),
    "vegeta": ("sh", "-c", "go version -m $(command -v vegeta) | grep mod"),
    "wrk": ("dpkg-query", "--show", "--showformat=${source:Upstream-Version}", "wrk"),
    "node-profile": ("node", "--version"),
    "catch2": ("dpkg-query", "--show", "--showformat=${source:Upstream-Version}", "catch2"),
    "nanobench": ("awk", '/define ANKERL_NANOBENCH_VERSION/ {printf "%s%s", dot, $3; dot = "."}', str(NANOBENCH)),
    "jfr": ("java", "--version"),
    "google-benchmark": ("dpkg-query", "--show", "--showformat=${source:Upstream-Version}", "libbenchmark-dev"),
    "triton-bench": (TORCH, "-c", "import triton; print(triton.__version__)"),
    "torch-profiler": (TORCH, "-c", "import torch; print(torch.__version__.partition('+')[0])"),
}
BUILT = {"catch2": build_catch2, "nanobench": build_nanobench}
"""Tools whose program is built by a function of the tests."""
NAMES = {"mojo": "mojo-bench", "torch": "torch-profiler"}
"""Tools by other names in captures.yaml."""


def main() -> None:
    """Build the programs and capture every case; test_golden.py then writes the golden files."""
    DEMO.mkdir(exist_ok=True)
    os.chdir(DEMO)
    with ExitStack() as stack:
        _capture_all(sys.argv[1:], stack)


def _capture_all(names: list[str], stack: ExitStack) -> None:
    text = (HERE / "captures.yaml").read_text()
    served = {"$SERVER": servers.address()}
    if "pgbench" in names:
        served["$POSTGRES"] = stack.enter_context(postgres.server())
    for word, place in {**WORDS, **served}.items():
        text = text.replace(word, str(place))
    cases = yaml.safe_load(text)
    _build(names)
    for word in names or [name for name in cases if name not in APART]:
        if word in BUILT:
            BUILT[word](DEMO)
        if word == "cargo":
            _capture_crates()
            continue
        name = NAMES.get(word, word)
        target = DATA / name / _version(name)
        for case, options in cases[word].items():
            if os.environ.get("CASE", case) == case:
                _capture(name, target / case, **options)
        if word == "nsys":
            built = databases.build(DEMO / "saxpy.sqlite")
            _capture("nsys", DATA / "nsys" / "2025.3-synthetic" / "gpu", report=str(built))
        for case, (source, _) in OLD.items() if word == "mojo" else ():
            (DEMO / "old.mojo").write_text(source)
            _capture(name, target / f"old-{case}", file=str(DEMO / "old.mojo"))


APART = {
    "catch2",
    "cuda-bench",
    "go-bench",
    "go-pprof",
    "jfr",
    "jmh",
    "mojo",
    "nanobench",
    "node-bench",
    "node-profile",
    "nsys",
    "nvcc",
    "pgbench",
    "size",
    "torch",
    "triton-bench",
    "vegeta",
    "wrk",
}
"""Tools that are only captured if they are named, since they must be installed first, or built for."""


def _build(names: list[str]) -> None:
    """Compile the programs, and those of the tools that are named."""
    for source in PROGRAMS.iterdir():
        shutil.copy(source, DEMO)
        if source.suffix in {".c", ".cpp", ".rs"}:
            subprocess.run(compiler(Path(source.name), DEMO / source.stem), check=True)
    subprocess.run([*compiler(Path("gbench.cpp"), DEMO / "broken"), "-DBROKEN"], check=True)
    for name, flags in SAXPYS.items():
        subprocess.run(["cc", "-g", *flags, "-o", f"saxpy-{name}", "saxpy.c"], check=True)
    of_mojo = {"saxpy": "saxpy-mojo"}
    if "mojo" in names:
        of_mojo |= {name: name for name in ("mojo_sums", "mojo_reports")}
    for name, built in of_mojo.items() if MOJO else ():
        argv = [MOJO, "build", "-O3", "--debug-level=line-tables", "-o", built, f"{name}.mojo"]
        subprocess.run(argv, check=True)
    (DEMO / "broken.py").write_text((DEMO / "speed.py").read_text().replace("assert benchmark", "assert not benchmark"))
    (DEMO / "bench.py").write_text("import triton.testing\n\ntriton.testing.do_bench(lambda: None)\n")
    asv_suite(DEMO / "asv")
    (DEMO / "package").mkdir(exist_ok=True)
    (DEMO / "package" / "package.json").write_text('{"name": "demo", "version": "1.0.0"}\n')
    _build_projects({*names})
    if "cuda-bench" in names:
        kernels = compiler(EXAMPLES / "gpu-kernels/kernels_cpu.cpp", DEMO / "kernels-cpu")
        subprocess.run(kernels, check=True)
    if "nsys" in names:
        headers.build(DEMO / "ranges")


def _build_projects(names: set[str]) -> None:
    """Copy and build the projects of the tools that are named."""
    if {"node-bench", "node-profile"} & names:
        os.chdir(node_project(DEMO / "node"))
    if {"go-bench", "go-pprof"} & names:
        shutil.copytree(GO_MODULE, DEMO / "go", dirs_exist_ok=True)
        subprocess.run(["go", "test", "-trimpath", "-c", "-o", "text.test", "./text"], cwd=DEMO / "go", check=True)
    if {"jmh", "jfr"} & names:
        for name in ("maven", "maven-broken", "maven-other"):
            shutil.copytree(MAVEN_PROJECT, DEMO / name, dirs_exist_ok=True)
        source = DEMO / "maven-broken/core/src/main/java/org/example/Words.java"
        source.write_text(source.read_text().replace("words++", "missing++"))
        subprocess.run(["mvn", "-q", "-B", "-o", "package"], cwd=DEMO / "maven", check=True)


def _capture_crates() -> None:
    """Capture the output of cargo, and the files of criterion, divan and libtest, in a folder for each version."""
    os.environ |= {"RUSTC_BOOTSTRAP": "1", "CARGO_TARGET_DIR": str(DEMO / "target")}
    rust = subprocess.run(["rustc", "--version"], capture_output=True, text=True, check=True).stdout.split()[1]
    bench, build = DATA / "cargo-bench", DATA / "cargo-build" / rust
    for criterion in ("0.5.1", "0.8.2"):
        crate = DEMO / f"criterion-{criterion}"
        shutil.copytree(CRATE, crate, dirs_exist_ok=True)
        for manifest in (crate / "Cargo.toml", crate / "second" / "Cargo.toml"):
            features = "" if criterion[:3] == "0.8" else ', features = ["cargo_bench_support"]'
            text = manifest.read_text().replace("default-features = false", f"default-features = false{features}")
            manifest.write_text(text.replace('version = "0.8"', f'version = "={criterion}"'))
        (crate / "Cargo.lock").unlink()
        short: dict[str, Any] = {"crate": str(crate), "args": "--quiet"}
        _capture("cargo-bench", bench / criterion / "plain", **short, bench="conductor", filter="conductor")
        _capture("cargo-bench", bench / criterion / "odd-names", **short, bench="odd")
    _capture("cargo-bench", bench / f"libtest-{rust}" / "plain", **short, bench="plain")
    sorts = Path(shutil.copytree(SORTS, DEMO / "sorts", dirs_exist_ok=True))
    packages = tomllib.loads((sorts / "Cargo.lock").read_text())["package"]
    divan = next(package["version"] for package in packages if package["name"] == "divan")
    _capture("cargo-bench", bench / f"divan-{divan}" / "plain", crate=str(sorts))
    targets: dict[str, Any] = {"benches": ["conductor", "odd"], "examples": True, "tests": True}
    _capture("cargo-build", build / "plain", crate=str(crate), **targets)
    (crate / "src" / "main.rs").write_text("fn main() { missing(); }\n")
    _capture("cargo-build", build / "error", crate=str(crate))


def _version(name: str) -> str:
    """Return the first word with a digit that the tool, or else the interpreter, prints as its version."""
    if name == "cuda-bench":
        return "cpu"
    adapter = tool(name)
    if name == "nvcc":
        return version(call_of(name, DEMO).program)
    argv = VERSIONS.get(name, (PYTHON, "--version"))
    if adapter.program and name not in VERSIONS:
        argv = (call_of(name, DEMO, str(DEMO / "hot")).program, *adapter.program.version)
    printed = subprocess.run(argv, capture_output=True, text=True, check=True).stdout
    # cc (Debian 12.2.0-14) 12.2.0
    printed = re.sub(r"\(.*?\)|\b(?:go|v)(?=\d)", "", printed.replace("strace -- version", ""))
    found = next(word for word in printed.replace("valgrind-", "").split() if word[0].isdigit())
    return found.partition(".1-")[0] if name == "nsys" else found


def _capture(name: str, target: Path, command: list[str] | None = None, **options: Any) -> None:
    with tempfile.TemporaryDirectory() as temporary, ExitStack() as stack:
        if isinstance(options.get("pid"), str):
            process = stack.enter_context(subprocess.Popen(options["pid"].split(), stdout=subprocess.DEVNULL))
            stack.callback(process.kill)
            time.sleep(1)
            options["pid"] = process.pid
        ran = run(name, Path(temporary) / "out", *map(str, command or ()), **options)
        for file in ran.call.folder.rglob("*"):
            place = target / file.relative_to(ran.call.folder)
            if file.is_dir() or not _is_read(name, file):
                continue
            place.parent.mkdir(parents=True, exist_ok=True)
            if file.name.endswith(".json.gz"):
                place.write_bytes(gzip.compress(_of_no_machine(gzip.decompress(file.read_bytes())), mtime=0))
            else:
                content = file.read_bytes().replace(str(ran.call.folder).encode(), b"/tmp/out")
                place.write_bytes(_of_no_machine(content))


def _is_read(name: str, file: Path) -> bool:
    """Return whether a parser reads the file: binary files and criterion's own statistics are not parsed."""
    if name in FILES:
        return file.name in {"stdout", "stderr"} and bool(file.stat().st_size)
    if file.name.endswith((".json.gz", ".pb.gz")):
        return True
    program = (
        file.parents[1].name == "bin"
        or file.suffix == ".test"
        or name == "stream" == file.name
        or file.name.startswith("memray.bin")
    )
    unread = file.name.startswith("contents-") or file.name in {
        "cargo-bench": UNREAD,
        "torch-profiler": {"stderr"},
    }.get(name, ())
    empty = file.name.endswith(("stderr", "listing.out")) and not file.stat().st_size
    return not (program or unread or empty or file.suffix in BINARY)


def _of_no_machine(content: bytes) -> bytes:
    """Remove data about the machine and the environment of a capture."""
    content = content.replace(f'"{platform.node()}"'.encode(), b'"demo"').replace(sys.prefix.encode(), b"/opt/venv")
    if "mojo" in sys.argv[1:]:
        content = content.replace(f"{Path(MOJO).parent}/".encode(), b"/opt/mojo/bin/")
    tools = re.escape(str(Path(__file__).parents[2] / "perfflow/tools").encode())
    content = re.sub(tools + rb"/(\w+/)?drivers", DRIVERS, content)
    content = content.replace(str(EXAMPLES.parent).encode(), b"/opt/perfflow")
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
