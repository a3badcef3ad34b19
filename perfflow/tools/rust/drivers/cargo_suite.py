"""List the benchmarks in the executables that ``cargo bench --no-run`` built, and record how to start them.

    python cargo_suite.py FOLDER CARGO [FILTER]
    python cargo_suite.py FOLDER

FOLDER has cargo.json, cargo's messages. Each executable is copied to FOLDER/bin, since the next build, with other
features or settings, may write to the same path. suite.json in FOLDER has its working directory and environment, as
cargo would set them, its benchmarks, and whether it has source lines. The exit status is 1 with a reason on stderr if
cargo did not report success, if an executable cannot be listed, or if there is no benchmark. The second form prints the
names from the list, one per line.

A bare interpreter runs this file, so it uses only the standard library.
"""

# ruff: noqa: D103

from __future__ import annotations

import json
import mmap
import os
import re
import shutil
import struct
import subprocess
import sys
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from subprocess import DEVNULL, PIPE
from typing import Any

LISTED = re.compile(r"^(?P<name>.+): benchmark$")
OLD_CRITERION = re.compile(r"^.+: bench$")
LIBTEST = re.compile(r"^\d+ tests?, \d+ benchmarks?$")
# A line of divan's list, which is a tree.
BRANCH = re.compile(r"^(?P<above>(?:│  |   )*)[├╰]─ (?P<name>.*\S)")
IGNORED = "(ignored)"
PATIENCE = 300
"""Time limit for listing in s; listing also sets up the benchmarks, which may take long."""
LINES = (1, 2, "1", "2", "limited", "full", "line-tables-only")
"""Kinds of debug information with source lines."""
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
    path = folder / "cargo.json"
    try:
        messages = list(messages_in(path.read_text(encoding="utf-8", errors="replace") if path.exists() else ""))
    except ValueError:
        sys.exit(f"{path.name} is cut short: cargo did not say that the build is finished")
    # cargo names them in the order in which they were finished, which is another one each time.
    artifacts = sorted(filter(is_benchmark, messages), key=lambda each: (each["manifest_path"], each["target"]["name"]))
    if not artifacts:
        sys.exit("cargo built no bench target")
    packages = packages_of(cargo)
    scripts = {each["package_id"]: each for each in messages if each.get("reason") == "build-script-executed"}
    benches: list[dict[str, Any]] = []
    harnesses: set[str] = set()
    for artifact in artifacts:
        identity = artifact["package_id"]
        bench = described(artifact, packages.get(identity, {}), scripts.get(identity, {}), cargo)
        listed(bench, artifact, patterns)
        harnesses.add(bench["harness"])
        if bench["ids"]:
            # The copy keeps its name, since profilers show the file of a function.
            place = folder / "bin" / str(len(benches))
            place.mkdir(parents=True, exist_ok=True)
            bench["program"] = copied(Path(artifact["executable"]), place / bench["target"])
            benches.append(bench)
    name_apart(benches)
    if not benches:
        if not patterns:
            sys.exit("the bench targets hold no benchmark")
        hint = "; for libtest it is a part of the name, not a regular expression" if "libtest" in harnesses else ""
        sys.exit(f"no benchmark matches the filter{hint}")
    machine = sections(Path(sys.executable)).get(b"")
    for bench in benches:
        found = sections(Path(bench["program"]))
        bench["lines"] = bench["lines"] and b".debug_line" in found
        # A clock can be preloaded into programs of this machine that are linked dynamically.
        bench["steps"] = found.get(b"") == machine and b"clock_gettime\0" in found.get(b".dynstr", b"")
    ids = {each["package_id"] for each in messages if each.get("reason") == "compiler-artifact"}
    suite = {
        "benches": benches,
        "target": str(target_of(Path(artifacts[0]["executable"]))),
        "outside": sorted(package_name(identity) for identity in ids - packages.keys() if "path+file" in identity),
    }
    (folder / "suite.json").write_text(json.dumps(suite, indent=1) + "\n", encoding="utf-8")


def messages_in(text: str) -> Iterator[dict[str, Any]]:
    """Yield cargo's messages. Raises ValueError if they are cut or the build did not succeed."""
    finished = False
    for line in text.splitlines():
        # Build scripts and compiler wrappers may print between the messages.
        if line.startswith("{"):
            message = json.loads(line)
            finished = finished or (message.get("reason") == "build-finished" and message.get("success") is True)
            yield message
    if not finished:
        raise ValueError("cargo did not say that the build is finished")


def is_benchmark(message: Mapping[str, Any]) -> bool:
    """Whether a message is about an executable with benchmarks, not about a binary that was built for them."""
    is_built = message.get("reason") == "compiler-artifact" and message["executable"]
    return bool(is_built and message["profile"]["test"])


def packages_of(cargo: str) -> dict[str, dict[str, Any]]:
    """Return cargo's description of the workspace's packages by their ids."""
    argv = [cargo, "metadata", "--no-deps", "--format-version", "1", "--offline"]
    done = subprocess.run(argv, stdout=PIPE, check=True)
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
        "lines": artifact["profile"].get("debuginfo") in LINES,
    }


def target_of(executable: Path) -> Path:
    """Return the target folder, which is above the folders of a profile and a platform."""
    return next((folder for folder in executable.parents if (folder / ".rustc_info.json").exists()), executable.parent)


def package_name(identity: str) -> str:
    """Return the package's name from its id: ``path+file:///a/b#name@0.1.0``, ``..b#0.1.0``, old: ``b 0.1.0 (..)``."""
    if "#" not in identity:
        return identity.partition(" ")[0]
    where, _, what = identity.partition("#")
    return what.split("@")[0] if "@" in what else where.rstrip("/").rpartition("/")[2].partition("?")[0]


def sections(path: Path) -> dict[bytes, bytes]:
    """Return the sections of a 64-bit ELF file by name: .dynstr with its contents, others empty; b"" is the machine.

    Other files have no sections.
    """
    with path.open("rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as content:
        if content[:5] != b"\x7fELF\2":
            return {}
        order = "<" if content[5] == 1 else ">"
        (start,) = struct.unpack_from(order + "Q", content, 40)
        size, count, names = struct.unpack_from(order + "HHH", content, 58)
        entries = [struct.unpack_from(order + "I20xQQ", content, start + size * number) for number in range(count)]
        found = {}
        for name, place, length in entries:
            at = entries[names][1] + name
            section = content[at : content.find(b"\0", at)]
            found[section] = content[place : place + length] if section == b".dynstr" else b""
        # Last, since the first section has no name either.
        found[b""] = content[4:6] + content[18:20]
    return found


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
    """Return the compiler's folders of shared libraries, for programs linked with ``prefer-dynamic``."""
    argv = [os.environ.get("RUSTC", "rustc"), "--print", "sysroot", "--print", "target-libdir"]
    try:
        done = subprocess.run(argv, stdout=PIPE, stderr=DEVNULL, check=True, encoding="utf-8")
    except (OSError, subprocess.CalledProcessError):
        return []
    sysroot, *rest = done.stdout.splitlines()
    return [*rest, f"{sysroot}/lib"]


def listed(bench: dict[str, Any], artifact: Mapping[str, Any], patterns: Sequence[str]) -> None:
    """Add the benchmarks' ids and the harness. libtest ends its list with a total, divan draws a tree."""
    argv = [artifact["executable"], "--bench", "--list", *patterns]
    lines = printed(bench, argv, {})
    names = [match["name"] for match in map(LISTED.match, lines) if match]
    if not names and any(map(OLD_CRITERION.match, lines)):
        sys.exit(
            f'{bench["target"]} has criterion before 0.4, which is not supported: set criterion = "0.5" in Cargo.toml'
        )
    is_libtest, is_divan = any(map(LIBTEST.match, lines)), any(map(BRANCH.match, lines))
    if is_divan:
        names = of_divan(bench, artifact["executable"], patterns)
    elif not names and not is_libtest and not patterns and any(line.strip() for line in lines):
        what = "something else when asked for its benchmarks: not of criterion, divan or libtest"
        sys.exit(f"{bench['target']} prints {what}")
    bench["harness"] = "divan" if is_divan else "libtest" if is_libtest else "criterion"
    bench["ids"] = {shown(name, artifact) if is_divan else name: name for name in names}


def of_divan(bench: Mapping[str, Any], program: str, patterns: Sequence[str]) -> list[str]:
    """Return the whole names of divan's benchmarks, without ignored ones.

    divan lists them only for cargo-nextest, before 0.1.19 not at all: then each runs once, and the tree has them.
    """
    terse = output_of(bench, [program, "--bench", "--list", *patterns, "--format=terse"], {"NEXTEST": "1"})
    if not isinstance(terse, int):
        return [match["name"] for match in map(LISTED.match, terse) if match]
    return list(leaves(printed(bench, [program, "--bench", "--test", *patterns], {})))


def leaves(lines: Iterable[str]) -> Iterator[str]:
    """Yield the paths of the leaves of divan's tree: ``target::group::benchmark``."""
    entries = [(0, "")]
    for line in lines:
        if branch := BRANCH.match(line):
            entries.append((len(branch["above"]) // 3 + 1, branch["name"]))
        elif line.strip() and len(entries) == 1:
            entries = [(0, line.strip())]
    path: list[str] = []
    for (depth, name), (after, _) in zip(entries, [*entries[1:], (0, "")], strict=True):
        path = [*path[:depth], name]
        if 0 < depth >= after and not name.endswith(IGNORED):
            yield "::".join(path)


def printed(bench: Mapping[str, Any], argv: Sequence[str], env: Mapping[str, str]) -> list[str]:
    """Return the lines that an executable prints when asked for its benchmarks."""
    found = output_of(bench, argv, env)
    if isinstance(found, int):
        said = f"{argv[0]} {' '.join(argv[1:3])} exited with {found}"
        sys.exit(f"{bench['target']} does not list its benchmarks ({said})")
    return found


def output_of(bench: Mapping[str, Any], argv: Sequence[str], env: Mapping[str, str]) -> list[str] | int:
    """Return the lines that an executable prints, or its exit status if it failed."""
    cwd, variables = bench["cwd"], {**os.environ, **bench["env"], **env}
    try:
        done = subprocess.run(argv, cwd=cwd, env=variables, stdin=DEVNULL, stdout=PIPE, timeout=PATIENCE, check=False)
    except OSError as error:
        sys.exit(f"{bench['target']} cannot be asked for its benchmarks: {argv[0]}: {error.strerror}")
    except subprocess.TimeoutExpired:
        sys.exit(f"{bench['target']} does not list its benchmarks within {PATIENCE} s")
    return done.returncode or done.stdout.decode("utf-8", "replace").splitlines()


def shown(path: str, artifact: Mapping[str, Any]) -> str:
    """Return the name of a divan benchmark: its path in the bench target."""
    target = artifact["target"]["name"].replace("-", "_")
    return path.removeprefix(f"{target}::").replace("::", "/")


def copied(path: Path, target: Path) -> str:
    # The previous copy may still be running if a run was interrupted.
    target.unlink(missing_ok=True)
    try:
        shutil.copy2(path, target)
    except OSError as error:
        sys.exit(f"what cargo built cannot be copied: {path}: {error.strerror}")
    return str(target)


def name_apart(benches: Iterable[dict[str, Any]]) -> None:
    """Prefix ids that occur more than once with the target's name, and the package's if targets share a name."""
    ids = Counter(name for bench in benches for name in bench["ids"])
    targets = Counter(bench["target"] for bench in benches)
    for bench in benches:
        where = bench["target"] if targets[bench["target"]] == 1 else f"{bench['package']}/{bench['target']}"
        bench["ids"] = {name if ids[name] == 1 else f"{where}/{name}": own for name, own in bench["ids"].items()}


if __name__ == "__main__":
    main()
