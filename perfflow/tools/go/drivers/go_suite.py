"""Build the test binary of each Go package with benchmarks, and record their names and how to start them.

    python go_suite.py FOLDER SETTINGS
    python go_suite.py FOLDER

SETTINGS is JSON: ``go``, the program; ``packages``, patterns; ``flags`` of the build; ``filter``, a pattern of
benchmarks. It runs in the folder of a module or of a workspace. The binaries are in FOLDER/bin, and suite.json in
FOLDER has the package, working directory and benchmarks of each, and the folder of each module. Only a run tells the
names of sub-benchmarks, so every benchmark runs once. The number of processors is the suffix of every name, so it is
fixed here for all later runs. If a package cannot be built or listed, or has no benchmark, the exit status is 1, with
the reason on stderr. The second form prints the names in suite.json, one per line.

A bare interpreter runs this file, so it uses only the standard library.
"""

# ruff: noqa: D103

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from subprocess import PIPE
from typing import Any

ALL = "./..."
OLDEST = 1, 19
"""The first version whose ``go list -json`` takes the names of fields."""
DECLARED = re.compile(rb"^func Benchmark(?![a-z])", re.MULTILINE)
# The name is printed before a benchmark that runs, whose own output may follow it.
STARTED = re.compile(r"^(Benchmark(?![a-z])\S*) *\t", re.MULTILINE)
FAILED = re.compile(r"^\s*--- FAIL: (Benchmark\S*)", re.MULTILINE)
PANIC = re.compile(r"^(panic: .*|fatal error: .*)", re.MULTILINE)


def main() -> None:
    folder = Path(sys.argv[1])
    if sys.argv[2:]:
        write(folder, json.loads(sys.argv[2]))
    else:
        suite = json.loads((folder / "suite.json").read_text(encoding="utf-8"))
        text = "".join(f"{name}\n" for bench in suite["benches"] for name in bench["ids"])
        sys.stdout.buffer.write(text.encode("utf-8", "replace"))


def write(folder: Path, settings: Mapping[str, Any]) -> None:
    (folder / "suite.json").unlink(missing_ok=True)
    go = settings["go"]
    require_version(go)
    processors = os.environ.get("GOMAXPROCS") or str(len(os.sched_getaffinity(0)))
    packages = list(with_benchmarks(go, settings["packages"] or everything(go), settings["flags"]))
    if not packages:
        sys.exit("no package here has benchmarks: functions `func BenchmarkName(b *testing.B)` in files *_test.go")
    shown = short_names(packages)
    benches: list[dict[str, Any]] = []
    for package in packages:
        # Not numbered, so that a package has the same path on both sides where one of them lacks another package.
        place = folder / "bin" / package["ImportPath"]
        place.mkdir(parents=True, exist_ok=True)
        program = place / f"{Path(package['ImportPath']).name}.test"
        bench = {"package": package["ImportPath"], "cwd": package["Dir"], "program": str(program)}
        argv = [go, "test", "-trimpath", "-c", "-o", str(program), *settings["flags"], package["ImportPath"]]
        if subprocess.run(argv, stdout=sys.stderr, check=False).returncode:
            sys.exit(1)
        own_names = names(bench, settings["filter"], processors)
        bench["ids"] = {f"{shown[package['ImportPath']]}.{name}": name for name in own_names}
        if bench["ids"]:
            benches.append(bench)
    if not benches:
        sys.exit("no benchmark matches the filter" if settings["filter"] else "every benchmark skips itself")
    modules = {found["Path"]: found["Dir"] for package in packages if (found := package.get("Module"))}
    suite = {"benches": benches, "processors": processors, "modules": modules}
    (folder / "suite.json").write_text(json.dumps(suite, indent=1) + "\n", encoding="utf-8")


def short_names(packages: Sequence[Mapping[str, Any]]) -> dict[str, str]:
    """Return the packages' paths inside their modules by import path; whole import paths if two are alike."""
    found: dict[str, str] = {}
    for package in packages:
        path, module = package["ImportPath"], (package.get("Module") or {}).get("Path", "")
        # A module's path may end with its major version, such as /v2.
        found[path] = path.removeprefix(f"{module}/") if path != module else package["Name"]
    return found if len(set(found.values())) == len(found) else {path: path for path in found}


def require_version(go: str) -> None:
    text = subprocess.run([go, "env", "GOVERSION"], stdout=PIPE, text=True, check=False).stdout.strip()
    version = re.match(r"go(\d+)\.(\d+)", text)
    if version and (int(version[1]), int(version[2])) < OLDEST:
        sys.exit(f"{text} is too old: Go {'.'.join(map(str, OLDEST))} or later is needed")


def everything(go: str) -> list[str]:
    """Return patterns of all packages: of the module, or of each module of a workspace here."""
    if not Path("go.work").is_file():
        return [ALL]
    done = subprocess.run([go, "work", "edit", "-json"], stdout=PIPE, text=True, check=False)
    if done.returncode:
        sys.exit(1)
    folders = [item["DiskPath"] for item in json.loads(done.stdout).get("Use") or []]
    return [f"{'' if folder.startswith(('/', '.')) else './'}{folder.rstrip('/')}/..." for folder in folders] or [ALL]


def with_benchmarks(go: str, patterns: Sequence[str], flags: Sequence[str]) -> Iterator[dict[str, Any]]:
    """Yield the packages with benchmarks, sorted by import path."""
    argv = [go, "list", "-json=ImportPath,Name,Dir,TestGoFiles,XTestGoFiles,Module", *flags, *patterns]
    done = subprocess.run(argv, stdout=PIPE, text=True, check=False)
    if done.returncode:
        sys.exit(1)
    decoder, text = json.JSONDecoder(), done.stdout.strip()
    found: list[dict[str, Any]] = []
    while text:
        package, end = decoder.raw_decode(text)
        files = [*(package.get("TestGoFiles") or []), *(package.get("XTestGoFiles") or [])]
        if any(DECLARED.search((Path(package["Dir"]) / name).read_bytes()) for name in files):
            found.append(package)
        text = text[end:].lstrip()
    yield from sorted(found, key=lambda package: str(package["ImportPath"]))


def names(bench: Mapping[str, Any], pattern: str, processors: str) -> list[str]:
    """Return the benchmarks of a package, each of which runs once. One that fails belongs to them."""
    argv = [bench["program"], "-test.run", "^$", "-test.bench", pattern or ".", "-test.benchtime", "1x"]
    env = os.environ | {"GOMAXPROCS": processors}
    try:
        done = subprocess.run(argv, capture_output=True, cwd=bench["cwd"], env=env, check=False)
    except OSError as error:
        sys.exit(f"{bench['package']}: its test binary does not run: {error.strerror}")
    text = done.stdout.decode("utf-8", "replace")
    suffix = "" if processors == "1" else f"-{processors}"
    found = [name.removesuffix(suffix) for name in STARTED.findall(text)]
    failed = [name.removesuffix(suffix) for name in FAILED.findall(text)]
    # A benchmark fails also if one of its sub-benchmarks does.
    all_names = dict.fromkeys([*found, *failed])
    leaves = [name for name in all_names if not any(other.startswith(f"{name}/") for other in all_names)]
    if done.returncode and not failed:
        said = PANIC.search(done.stderr.decode("utf-8", "replace"))
        sys.exit(f"{bench['package']}: {said[1] if said else f'its benchmarks exit with {done.returncode}'}")
    return leaves


if __name__ == "__main__":
    main()
