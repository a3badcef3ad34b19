"""A first workflow for a crate: its criterion or libtest benchmarks, else a program of it."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from perfflow.errors import UserError
from perfflow.library import starters
from perfflow.library.detecting import manifest
from perfflow.library.project_files import ProjectFiles
from perfflow.library.starter_text import Starter, command_text, is_plain, quoted_list


def write(files: ProjectFiles, command: str) -> Starter:
    """Write it. Raises UserError where there is no manifest, or nothing in the crate to measure."""
    path = files.folder / "Cargo.toml"
    if not path.is_file():
        raise UserError.of(f"{path}: no such file", "run perfflow init in the folder of a crate")
    try:
        data = manifest(files)
    except ValueError as error:
        raise UserError.of(f"cannot read {path}: {error}", "run `cargo check`") from error
    package = data.get("package")
    name = str(package.get("name", "")) if isinstance(package, dict) else ""
    for harness, benches in (("criterion", list(_criterion(files, data))), ("libtest", list(_libtest(files)))):
        if benches and not command:
            return _suite(harness, benches, name or files.folder.name)
    members = {member: benches for member, benches in _members(files, data) if benches} if not command else {}
    if members:
        benches = list(dict.fromkeys(bench for each in members.values() for bench in each))
        return _suite("criterion", benches, name or files.folder.name, list(members))
    return _program(files, data, name, command)


def _suite(harness: str, benches: list[str], name: str, members: list[str] | None = None) -> Starter:
    packages = f"package: {quoted_list(members)}\n        " if members else ""
    text = starters.CRITERION.replace("@PACKAGES@", packages)
    text = text.replace("@BENCHES@", quoted_list(benches)).replace("@HARNESS@", harness)
    note = "benches with #[bench] need a nightly Rust: rustup override set nightly" if harness == "libtest" else ""
    where = f" ({', '.join(members)})" if members else ""
    return Starter(text, name, f"the {harness} benchmarks of a Cargo project{where}: {', '.join(benches)}", note)


def _members(files: ProjectFiles, data: dict[str, Any]) -> Iterator[tuple[str, list[str]]]:
    """Packages below a workspace's folder, and the bench targets of each that criterion drives."""
    others: list[str] = []
    for path in files.named("/Cargo.toml") if "workspace" in data else ():
        folder = path.removesuffix("Cargo.toml")
        try:
            member = manifest(files, path)
        except ValueError:
            continue
        if folder and "workspace" in member:
            others.append(folder)
        package = member.get("package")
        name = package.get("name") if isinstance(package, dict) else None
        if folder and isinstance(name, str) and is_plain(name) and not folder.startswith(tuple(others)):
            yield name, list(_criterion(files, member, folder))


def _program(files: ProjectFiles, data: dict[str, Any], name: str, command: str) -> Starter:
    programs = list(dict.fromkeys(_programs(files.folder, data, name)))
    what = ""
    if not command and not programs:
        # A library's examples are programs that use it.
        programs = [f"examples/{example}" for example in _sources(files.folder / "examples")]
        what = " --examples"
    if not command and not programs:
        hint = "run perfflow init in a member of the workspace" if not name else "say it: --command 'target/release/x'"
        raise UserError.of("the crate has no program to measure", hint)
    measured = command or f"target/release/{programs[0]}"
    others = [f"target/release/{other}" for other in programs[1:]] if not command else []
    note = f"\n      # Also here: {', '.join(others)}" if others else ""
    text = starters.CARGO.replace("@COMMAND@", command_text(measured)).replace("@OTHERS@", note)
    about = f"the program {measured} of a Cargo project"
    return Starter(text.replace("@WHAT@", what), name or files.folder.name, about)


def _criterion(files: ProjectFiles, data: dict[str, Any], folder: str = "") -> Iterator[str]:
    """Names of a crate's bench targets that criterion drives: those without Rust's own harness that mention it."""
    declared = data.get("bench")
    for item in declared if isinstance(declared, list) else []:
        name = item.get("name") if isinstance(item, dict) else None
        if isinstance(name, str) and is_plain(name) and item.get("harness") is False:
            own = item.get("path")
            paths = [own] if isinstance(own, str) else [f"benches/{name}.rs", f"benches/{name}/main.rs"]
            if any("criterion" in files.text(f"{folder}{path}") for path in paths):
                yield name


def _libtest(files: ProjectFiles) -> Iterator[str]:
    """Names of bench targets with benchmarks of Rust's own harness."""
    for path, _ in files.having("#[bench]", ".rs"):
        parts = Path(path).parts
        if parts[0] == "benches" and len(parts) == 2:
            yield Path(path).stem


def _programs(folder: Path, data: dict[str, Any], name: str) -> Iterator[str]:
    """Names of a crate's binaries: declared ones, src/main.rs and src/bin/."""
    declared = data.get("bin")
    for item in declared if isinstance(declared, list) else []:
        if isinstance(item, dict) and isinstance(item.get("name"), str) and is_plain(item["name"]):
            yield item["name"]
    if is_plain(name) and (folder / "src" / "main.rs").is_file():
        yield name
    yield from _sources(folder / "src" / "bin")


def _sources(folder: Path) -> Iterator[str]:
    """Names of the programs that cargo finds in a folder: a file each, or a folder with a main.rs."""
    for path in sorted(folder.glob("*")):
        if is_plain(path.stem) and (path.suffix == ".rs" or (path / "main.rs").is_file()):
            yield path.stem
