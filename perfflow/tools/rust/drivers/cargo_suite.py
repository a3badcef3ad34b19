"""Write which benchmarks there are in the executables that ``cargo bench --no-run`` built, and how to start each.

    python cargo_suite.py FOLDER CARGO [FILTER]
    python cargo_suite.py FOLDER

FOLDER holds cargo.json, cargo's messages. Each executable is copied to FOLDER/bin, since the next build, with other
features or settings, may write to the same path. suite.json in FOLDER says where it starts and in which environment,
which are what cargo would give it, and the benchmarks it lists. The exit status is 1, with a reason on stderr, if
cargo did not say that all went well, one of them cannot be listed, or there is no benchmark. The second form prints
the names that were found, one a line.

Run by a bare interpreter, so: standard library only.
"""

# ruff: noqa: D103

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from collections import Counter
from pathlib import Path

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence
    from typing import Any

LISTED = re.compile(r"^(?P<name>.+): benchmark$")
LIBTEST = re.compile(r"^\d+ tests?, \d+ benchmarks?$")
PATIENCE = 300
"""Seconds for listing; setting up the benchmarks, which listing does too, may take a while."""
LIBRARIES = "DYLD_FALLBACK_LIBRARY_PATH" if sys.platform == "darwin" else "LD_LIBRARY_PATH"


def main() -> None:
    folder = Path(sys.argv[1])
    if sys.argv[2:]:
        write(folder, sys.argv[2], sys.argv[3:])
    else:
        suite = json.loads((folder / "suite.json").read_text(encoding="utf-8"))
        text = "".join(f"{name}\n" for bench in suite["benches"] for name in bench["ids"])
        sys.stdout.buffer.write(text.encode("utf-8", "replace"))


def write(folder: Path, cargo: str, patterns: Sequence[str]) -> None:
    (folder / "suite.json").unlink(missing_ok=True)
    messages = all_messages(folder / "cargo.json")
    # cargo names them in the order in which they were finished, which is another one each time.
    artifacts = sorted(filter(is_benchmark, messages), key=lambda each: (each["manifest_path"], each["target"]["name"]))
    if not artifacts:
        sys.exit("cargo built no bench target")
    packages = packages_of(cargo)
    scripts = {
        str(message["package_id"]): message for message in messages if message["reason"] == "build-script-executed"
    }
    benches: list[dict[str, Any]] = []
    for artifact in artifacts:
        package = packages.get(str(artifact["package_id"]), {})
        bench = described(artifact, package, scripts.get(str(artifact["package_id"]), {}), cargo)
        listed(bench, artifact, patterns)
        if bench["ids"]:
            # Profilers name the file a function is in, so it keeps its name.
            place = folder / "bin" / str(len(benches))
            place.mkdir(parents=True, exist_ok=True)
            bench["program"] = copied(Path(artifact["executable"]), place / bench["target"])
            benches.append(bench)
    name_apart(benches)
    if not benches:
        sys.exit("no benchmark matches the filter" if patterns else "the bench targets hold no benchmark")
    (folder / "suite.json").write_text(json.dumps({"benches": benches}, indent=1) + "\n", encoding="utf-8")


def messages_of(path: Path) -> Iterator[dict[str, Any]]:
    finished = False
    for line in path.read_text(encoding="utf-8", errors="replace").splitlines() if path.exists() else ():
        # Build scripts and wrappers of the compiler may print between the messages.
        if line.startswith("{"):
            message = json.loads(line)
            finished = finished or (message["reason"] == "build-finished" and message["success"] is True)
            yield message
    if not finished:
        sys.exit(f"{path.name} is cut short: cargo did not say that the build is finished")


def all_messages(path: Path) -> list[dict[str, Any]]:
    try:
        return list(messages_of(path))
    except (ValueError, LookupError, TypeError):
        sys.exit(f"{path.name} is cut short or nothing of cargo's")


def is_benchmark(message: Mapping[str, Any]) -> bool:
    """Tell whether a message is of an executable that runs benchmarks, and not of a binary that was built for them."""
    return bool(message["reason"] == "compiler-artifact" and message["executable"] and message["profile"]["test"])


def packages_of(cargo: str) -> dict[str, dict[str, Any]]:
    """Return cargo's description of the workspace's packages by their ids."""
    argv = [cargo, "metadata", "--no-deps", "--format-version", "1", "--offline"]
    done = subprocess.run(argv, stdout=subprocess.PIPE, check=True)
    return {package["id"]: package for package in json.loads(done.stdout)["packages"]}


def described(
    artifact: Mapping[str, Any], package: Mapping[str, Any], script: Mapping[str, Any], cargo: str
) -> dict[str, Any]:
    manifest = Path(artifact["manifest_path"])
    libraries = [path.partition("=")[2] or path for path in script.get("linked_paths", ())]
    beside = Path(artifact["executable"]).parent
    libraries += [str(beside), str(beside.parent), *standard_libraries(), *filter(None, [os.environ.get(LIBRARIES)])]
    env = {"CARGO": cargo, "CARGO_MANIFEST_DIR": str(manifest.parent), "CARGO_MANIFEST_PATH": str(manifest)}
    env |= dict(script.get("env", ())) | ({"OUT_DIR": script["out_dir"]} if script.get("out_dir") else {})
    env |= {LIBRARIES: os.pathsep.join(dict.fromkeys(libraries))} | facts(package)
    return {
        "package": package.get("name", manifest.parent.name),
        "target": artifact["target"]["name"],
        "cwd": str(manifest.parent),
        "env": env,
    }


def facts(package: Mapping[str, Any]) -> dict[str, str]:
    """Return the variables CARGO_PKG_*."""
    version = str(package.get("version", ""))
    numbers, _, pre = version.partition("+")[0].partition("-")
    major, minor, patch = [*numbers.split("."), "", ""][:3]
    told = {"VERSION": version, "VERSION_MAJOR": major, "VERSION_MINOR": minor, "VERSION_PATCH": patch}
    told |= {"VERSION_PRE": pre, "AUTHORS": ":".join(package.get("authors", ()))}
    for key in ("name", "description", "homepage", "repository", "license", "license_file", "rust_version", "readme"):
        told[key.upper()] = package.get(key) or ""
    return {f"CARGO_PKG_{key}": value for key, value in told.items()}


def standard_libraries() -> list[str]:
    """Return the compiler's folders of shared libraries, for programs that prefer them."""
    argv = [os.environ.get("RUSTC", "rustc"), "--print", "sysroot", "--print", "target-libdir"]
    try:
        done = subprocess.run(argv, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, check=True, encoding="utf-8")
    except (OSError, subprocess.CalledProcessError):
        return []
    sysroot, *rest = done.stdout.splitlines()
    return [*rest, f"{sysroot}/lib"]


def listed(bench: dict[str, Any], artifact: Mapping[str, Any], patterns: Sequence[str]) -> None:
    """Add the benchmarks' ids and the harness: libtest ends its list with a sum, criterion does not."""
    argv = [artifact["executable"], "--bench", "--list", *patterns]
    env, said = {**os.environ, **bench["env"]}, f"{artifact['executable']} --bench --list"
    try:
        done = subprocess.run(
            argv,
            cwd=bench["cwd"],
            env=env,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            timeout=PATIENCE,
            check=True,
        )
    except OSError as error:
        sys.exit(f"{bench['target']} cannot be asked for its benchmarks: {artifact['executable']}: {error.strerror}")
    except subprocess.CalledProcessError as error:
        sys.exit(f"{bench['target']} does not list its benchmarks ({said} exited with {error.returncode})")
    except subprocess.TimeoutExpired:
        sys.exit(f"{bench['target']} does not list its benchmarks within {PATIENCE} s")
    lines = done.stdout.decode("utf-8", "replace").splitlines()
    names = [match["name"] for match in map(LISTED.match, lines) if match]
    is_libtest = any(LIBTEST.match(line) for line in lines)
    if not names and not is_libtest and not patterns and any(line.strip() for line in lines):
        sys.exit(f"{bench['target']} prints something else when asked for its benchmarks: not of criterion or libtest")
    bench["harness"] = "libtest" if is_libtest else "criterion"
    bench["ids"] = {name: name for name in names}


def copied(path: Path, target: Path) -> str:
    # The one before may be running still where a run was interrupted.
    target.unlink(missing_ok=True)
    try:
        shutil.copy2(path, target)
    except OSError as error:
        sys.exit(f"what cargo built cannot be copied: {path}: {error.strerror}")
    return str(target)


def name_apart(benches: Iterable[dict[str, Any]]) -> None:
    """Give benchmarks that share an id their target's name too, and where that is shared the package's."""
    ids = Counter(name for bench in benches for name in bench["ids"])
    targets = Counter(bench["target"] for bench in benches)
    for bench in benches:
        where = bench["target"] if targets[bench["target"]] == 1 else f"{bench['package']}/{bench['target']}"
        bench["ids"] = {name if ids[name] == 1 else f"{where}/{name}": name for name in bench["ids"]}


if __name__ == "__main__":
    main()
