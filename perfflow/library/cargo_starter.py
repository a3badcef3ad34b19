"""Writes a first workflow for a crate: for its criterion, divan or libtest benchmarks, else for one of its programs."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from perfflow.library import starter_templates
from perfflow.library.detect_project import manifest
from perfflow.library.project_files import ProjectFiles
from perfflow.library.starter_text import Starter, is_plain, quoted, quoted_list
from perfflow.model.errors import UserError


def write(files: ProjectFiles, command: str) -> Starter:
    """Return a first workflow for a crate. Raises UserError if it has no Cargo.toml or nothing to measure."""
    path = files.folder / "Cargo.toml"
    if not path.is_file():
        raise UserError.of(f"{path}: no such file", "run perfflow init in the folder of a crate")
    try:
        data = manifest(files)
    except ValueError as error:
        raise UserError.of(f"cannot read {path}: {error}", "run `cargo check`") from error
    package = data.get("package")
    name = str(package.get("name", "")) if isinstance(package, dict) else ""
    if not command:
        for harness, benches_of in (("criterion", _criterion), ("divan", _divan), ("libtest", _libtest)):
            if benches := list(benches_of(files, data)):
                return _suite(harness, benches, name or files.folder.name)
            members = {member: list(benches_of(files, each, folder)) for member, each, folder in _members(files, data)}
            if benches := list(dict.fromkeys(bench for each in members.values() for bench in each)):
                return _suite(harness, benches, name or files.folder.name, [each for each in members if members[each]])
    return _program(files, data, name, command)


def _suite(harness: str, benches: list[str], name: str, members: list[str] | None = None) -> Starter:
    packages = f"package: {quoted_list(members)}, " if members else ""
    text = starter_templates.CRITERION.replace("@PACKAGES@", packages)
    text = text.replace("@BENCHES@", quoted_list(benches)).replace("@HARNESS@", harness)
    note = "benches with #[bench] need a nightly Rust: rustup override set nightly" if harness == "libtest" else ""
    where = f" ({', '.join(members)})" if members else ""
    return Starter(text, name, f"the {harness} benchmarks of a Cargo project{where}: {', '.join(benches)}", note)


def _members(files: ProjectFiles, data: dict[str, Any]) -> Iterator[tuple[str, dict[str, Any], str]]:
    """Yield name, manifest and folder of the packages in a workspace."""
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
            yield name, member, folder


def _program(files: ProjectFiles, data: dict[str, Any], name: str, command: str) -> Starter:
    programs = list(dict.fromkeys(_programs(files.folder, data, name)))
    what = ""
    if not command and not programs:
        # The examples of a library are programs.
        programs = [f"examples/{example}" for example in _sources(files.folder / "examples")]
        what = " --examples"
    if not command and not programs:
        hint = (
            "run perfflow init in a member of the workspace" if not name else "name one: --command 'target/release/x'"
        )
        raise UserError.of("the crate has no program to measure", hint)
    measured = command or f"target/release/{programs[0]}"
    others = [f"target/release/{other}" for other in programs[1:]] if not command else []
    note = f"\n      # Also here: {', '.join(others)}" if others else ""
    text = starter_templates.CARGO.replace("@COMMAND@", quoted(measured)).replace("@OTHERS@", note)
    text = text.replace("@PROFILE@", starter_templates.NATIVE)
    about = f"the program {measured} of a Cargo project"
    return Starter(text.replace("@WHAT@", what), name or files.folder.name, about)


def _criterion(files: ProjectFiles, data: dict[str, Any], folder: str = "") -> Iterator[str]:
    return _without_harness(files, data, folder, "criterion")


def _divan(files: ProjectFiles, data: dict[str, Any], folder: str = "") -> Iterator[str]:
    return _without_harness(files, data, folder, "divan")


def _without_harness(files: ProjectFiles, data: dict[str, Any], folder: str, library: str) -> Iterator[str]:
    """Yield the bench targets of a library: targets without Rust's own harness whose source mentions it."""
    declared = data.get("bench")
    for item in declared if isinstance(declared, list) else []:
        name = item.get("name") if isinstance(item, dict) else None
        if isinstance(name, str) and is_plain(name) and item.get("harness") is False:
            own = item.get("path")
            paths = [own] if isinstance(own, str) else [f"benches/{name}.rs", f"benches/{name}/main.rs"]
            if any(library in files.text(f"{folder}{path}") for path in paths):
                yield name


def _libtest(files: ProjectFiles, _data: dict[str, Any], folder: str = "") -> Iterator[str]:
    """Yield the bench targets with benchmarks of Rust's own harness, possibly generated by macros."""
    for path in files.named(".rs"):
        name = path.removeprefix(f"{folder}benches/").removesuffix(".rs")
        if path == f"{folder}benches/{name}.rs" and is_plain(name):
            text = files.text(path)
            if "#[bench]" in text or "extern crate test" in text:
                yield name


def _programs(folder: Path, data: dict[str, Any], name: str) -> Iterator[str]:
    """Yield the binaries of a crate: declared ones, src/main.rs and src/bin/."""
    declared = data.get("bin")
    for item in declared if isinstance(declared, list) else []:
        if isinstance(item, dict) and isinstance(item.get("name"), str) and is_plain(item["name"]):
            yield item["name"]
    if is_plain(name) and (folder / "src" / "main.rs").is_file():
        yield name
    yield from _sources(folder / "src" / "bin")


def _sources(folder: Path) -> Iterator[str]:
    """Yield the programs that cargo finds in a folder: files, or folders with a main.rs."""
    for path in sorted(folder.glob("*")):
        if is_plain(path.stem) and (path.suffix == ".rs" or (path / "main.rs").is_file()):
            yield path.stem
