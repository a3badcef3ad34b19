"""Write a first workflow for a project by its kind: a template in ``starters``, with what the project's files show.

It has comments, and can run unchanged.
"""

from __future__ import annotations

import json
import os
import re
import shlex
import shutil
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from typing import Any

from jinja2 import Environment, FileSystemLoader, StrictUndefined

from perfflow.library import cpp_projects, detect_project, search_path
from perfflow.library.cpp_projects import BuiltProgram
from perfflow.library.detect_project import LOOKED_FOR, DetectedProject, ProjectKind, manifest
from perfflow.library.project_files import ProjectFiles, can_be_named
from perfflow.model.errors import UserError
from perfflow.tools.python_command import is_interpreter
from perfflow.tools.tool_files import why
from perfflow.trees.python_layout import import_folders
from perfflow.trees.shared_installs import Prepared, faults, is_installed
from perfflow.trees.slots import ENVIRONMENTS
from perfflow.trees.snapshots import tops

_FOLDER = Path(__file__).with_name("starters")


_PLAIN = re.compile(r"[A-Za-z0-9_][\w.+-]*")
_NO_NAME = re.compile(r"[^A-Za-z0-9_.-]+")


@dataclass(frozen=True)
class Starter:
    """A workflow for one kind of project: its template with values, its name, what it measures, a note for the user."""

    template: str
    values: Mapping[str, Any]
    name: str
    about: str
    note: str = ""


@cache
def templates() -> Environment:
    """Return the environment of the templates. Workflows have ``${{ }}`` themselves, so values are in ``<< >>``."""
    found = Environment(
        loader=FileSystemLoader(_FOLDER),
        undefined=StrictUndefined,
        variable_start_string="<<",
        variable_end_string=">>",
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
        autoescape=False,  # noqa: S701 (YAML; names are quoted by the filter)
    )
    found.filters["yaml"] = lambda value: quoted(value) if isinstance(value, str) else quoted_list(value)
    return found


def fit(name: str) -> str:
    """Return a name that is valid for a workflow file, '' if no character is valid."""
    return _NO_NAME.sub("-", name).strip("-.")[:100]


def quoted(text: str) -> str:
    """Return text as a YAML string in double quotes. Line separators are escaped, since YAML would fold them."""
    text = json.dumps(text, ensure_ascii=False)
    return "".join(c if c.isprintable() else f"\\U{ord(c):08x}" for c in text)


def quoted_list(texts: Iterable[str]) -> str:
    """Return texts as a YAML list on one line."""
    return f"[{', '.join(map(quoted, texts))}]"


def comment(text: str) -> str:
    """Return text for a comment: one line of characters that YAML allows."""
    return "".join(c if c.isprintable() else "?" for c in " ".join(text.split()))


def is_plain(name: str) -> bool:
    """Return whether a name from a project can be used in a command or an expression without quotes."""
    return bool(_PLAIN.fullmatch(name))


def write_cargo_starter(files: ProjectFiles, command: str) -> Starter:
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
    values = {"harness": harness, "benches": benches, "members": members}
    note = "benches with #[bench] need a nightly Rust: rustup override set nightly" if harness == "libtest" else ""
    where = f" ({', '.join(members)})" if members else ""
    about = f"the {harness} benchmarks of a Cargo project{where}: {', '.join(benches)}"
    return Starter("cargo-bench", values, name, about, note)


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
    examples = not command and not programs
    if examples:
        # The examples of a library are programs.
        programs = [f"examples/{example}" for example in _sources(files.folder / "examples")]
    if not command and not programs:
        hint = (
            "run perfflow init in a member of the workspace" if not name else "name one: --command 'target/release/x'"
        )
        raise UserError.of("the crate has no program to measure", hint)
    measured = command or f"target/release/{programs[0]}"
    others = [f"target/release/{other}" for other in programs[1:]] if not command else []
    values = {"command": measured, "others": others, "examples": examples, "language": "native"}
    about = f"the program {measured} of a Cargo project"
    return Starter("cargo-program", values, name or files.folder.name, about)


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


@dataclass(frozen=True)
class Start:
    """A workflow to write: its name, text, what it measures, and other kinds of the project."""

    name: str
    text: str
    about: str
    note: str = ""
    others: tuple[DetectedProject, ...] = ()
    unignored: str = ""
    """The folder that it builds into, if git does not ignore it."""


_NO_ADAPTER: Mapping[ProjectKind, str] = {
    ProjectKind.NODE: "there are no benchmarks of tinybench, mitata or vitest",
    ProjectKind.MAVEN: "there are no JMH benchmarks",
    ProjectKind.GRADLE: "there are no JMH benchmarks",
}
_JUDGES_PATCHES = ("command", "cargo-program", "cargo-bench", "pytest-benchmark")
"""Templates that can check a patch: by the output of the program, or by tests."""
_OF_PYTHON = (ProjectKind.PYTEST, ProjectKind.PYPERF, ProjectKind.ASV)
_MOST_PATHS = 40
_PYTHONS = (".venv/bin/python", "venv/bin/python")
_MODULE = re.compile(r"^module\s+(\S+)", re.MULTILINE)
_BUILDS = re.compile(r"^      run: .*(?:-o|-B|meson setup) build\b", re.MULTILINE)
_VERSION_OF_MODULE = re.compile(r"/v\d+\Z")
_GO_BENCHMARK = re.compile(r"^func (Benchmark(?![a-z])\w*)\(", re.MULTILINE)


def start(
    folder: Path, root: Path, *, kind: ProjectKind | None, command: str, name: str, patches: bool = False
) -> Start:
    """Write the text of a first workflow for the project in ``folder`` of the tree at ``root``.

    ``patches``: also judge patches. Raises UserError if the files do not show what to measure, or how to check a patch.
    """
    files = ProjectFiles(folder)
    kinds = detect_project.kinds(files)
    chosen = kind or _chosen(kinds, command)
    starter = _of_build(files, command) or _STARTERS[chosen](files, command)
    if patches and starter.template not in _JUDGES_PATCHES:
        text = f"the files show how to measure {starter.about}, but not how to check a patch"
        raise UserError.of(text, "name a command that prints its result, or add a stage `optimize` to a workflow")
    given, name = name, _without_suffix(name)
    final = name or _own(fit(starter.name) or "perf")
    if given and (not name or fit(name) != name):
        raise UserError.of(f"{given!r} is not a name for a workflow", "use letters, digits, `_`, `.` and `-`")
    inside = folder.relative_to(root) if folder.is_relative_to(root) else Path()
    shared, not_shared = _shared(folder, root)
    text = (
        templates()
        .get_template(f"{starter.template}.yaml.j2")
        .render(
            name=final,
            folder=str(inside) if inside != Path() else "",
            packages=_own_packages(folder, root) if chosen in _OF_PYTHON else "",
            python=_python(folder, root),
            shared=shared,
            not_shared=not_shared,
            patches=patches,
            **starter.values,
        )
    )
    others = tuple(item for item in kinds if item.kind is not chosen) if not (command or kind) else ()
    note = starter.note or (_note(kinds, chosen) if starter.template == "command" else "")
    return Start(final, text, starter.about, note, others, _unignored(text, folder, root))


def _chosen(found: tuple[DetectedProject, ...], command: str) -> ProjectKind:
    """Return the kind of project. With a command it is ``cargo`` or ``command``."""
    kinds = [item.kind for item in found]
    if not command:
        return kinds[0] if kinds else ProjectKind.COMMAND
    return ProjectKind.CARGO if ProjectKind.CARGO in kinds else ProjectKind.COMMAND


def _note(found: tuple[DetectedProject, ...], chosen: ProjectKind) -> str:
    """Return why the workflow measures a command although the kind of project is known; '' if it does not say why."""
    kinds = [chosen, *(item.kind for item in found[:1] if chosen is ProjectKind.COMMAND)]
    known = next((_NO_ADAPTER[kind] for kind in kinds if kind in _NO_ADAPTER), "")
    return f"{known}, so this measures a command" if known else ""


def _unignored(text: str, folder: Path, root: Path) -> str:
    """Return the folder that a workflow builds into if git does not ignore it, else ''."""
    if not ((root / ".git").exists() and folder.is_relative_to(root) and _BUILDS.search(text)):
        return ""
    path = str((folder / "build").relative_to(root))
    # The folder may not exist yet, and a pattern such as `build/` only matches a folder.
    return "" if tops(root, [f"{path}/program"]) else path


def _without_suffix(name: str) -> str:
    """Return a name without the suffix of a workflow file, which users may have typed."""
    suffix = next((suffix for suffix in search_path.WORKFLOW_SUFFIXES if name.endswith(suffix)), "")
    return name.removesuffix(suffix)


def _own(name: str) -> str:
    """Return a default name that does not hide a workflow of the library."""
    return f"{name}-perf" if (search_path.SHIPPED / f"{name}.yaml").is_file() else name


def _python(folder: Path, root: Path) -> str:
    """Return the interpreter of the project's environment, relative to ``folder``, else the one on PATH."""
    places = (place / name for place in dict.fromkeys((folder, root)) for name in _PYTHONS)
    return next((os.path.relpath(place, folder) for place in places if place.exists()), "python3")


def _own_packages(folder: Path, root: Path) -> str:
    """Return the folders from which a suite imports the project's packages, '' if an environment here has them."""
    environments = (place / name for place in (folder, root) for name in ENVIRONMENTS)
    if any(is_installed(folder, place) for place in environments):
        return ""
    folders = [os.path.relpath(place, folder) for place in import_folders(folder) if can_be_named(str(place))]
    return os.pathsep.join(folders)


def _shared(folder: Path, root: Path) -> tuple[list[str], list[str]]:
    """Return the ignored environments to share with every tree, and why others cannot be shared."""
    if not (root / ".git").exists():
        return [], []
    there = [place / name for place in dict.fromkeys((folder, root)) for name in ENVIRONMENTS]
    paths = [str(place.relative_to(root)) for place in there if place.is_dir() and place.is_relative_to(root)]
    ignored = [path for path, top in tops(root, paths).items() if top == path]
    wrong = {path: next(faults(root, path, ignored, Prepared(builds=False, sets_path=False)), None) for path in ignored}
    fine = [path for path, fault in wrong.items() if fault is None]
    return fine, [comment(f"{fault.message}; {fault.hint}") for fault in wrong.values() if fault]


def _of_command(files: ProjectFiles, command: str) -> Starter:
    if not command:
        hint = f"name a command: perfflow init --command './program --size 10'; looked for: {LOOKED_FOR}"
        raise UserError.of("the files here do not show what to measure", hint)
    built = cpp_projects.cmake_program(files) if command.startswith("build/") else None
    goal = cpp_projects.make_goal(files)
    build = built.build if built else f"make {goal}" if goal else ""
    return _measured(files, command, build, f"a command{f', built by `{build}`' if build else ''}")


def _measured(
    files: ProjectFiles, command: str, build: str, about: str, remark: str = "", language: str = "native"
) -> Starter:
    """Return a workflow for a command, with profilers for its language. ``remark``: a comment above the command."""
    words = command.split()
    if words and is_interpreter(words[0]):
        language, about = "python", about.replace("a command", "a Python command", 1)
    elif words and Path(words[0]).name == "java":
        language = "jvm"
    values = {"command": command, "build": build, "remark": remark, "language": language}
    return Starter("command", values, files.folder.name, about)


_NODE = ("node", "--perf-basic-prof-only-functions")
_LOADS = ("oha", "vegeta", "wrk")
"""Tools that send requests, the best first."""


def _of_service(files: ProjectFiles, command: str) -> Starter:
    if not command and not (programs := detect_project.servers(files, ".py")):
        raise UserError.of("no Python file here serves requests", "name the server: --command './server --port $PORT'")
    words = command.split()
    language = "python" if not command or is_interpreter(words[0]) else "node" if words[0] == "node" else "native"
    return _serving(files, command or shlex.join(["python3", programs[0]]), language)


def _serving(files: ProjectFiles, command: str, language: str, build: str = "") -> Starter:
    """Return a workflow for a server in the background, to which a tool that is installed sends requests."""
    load = next((tool for tool in _LOADS if shutil.which(tool)), _LOADS[0])
    values = {"command": command, "build": build, "language": language, "load": load}
    note = "the server must listen on the port in $PORT, which perfflow chooses; see `build` in the file"
    missing = "" if shutil.which(load) else f"; {load} sends the requests, and is not installed"
    return Starter(
        "service", values, files.folder.name, f"the server `{command}`, under load of {load}", note + missing
    )


_CLEANING: Mapping[str, str] = {
    r"make(?: -j ?\d*| all| build)*": "make clean",
    r"cargo build(?: -\S+)*": "cargo clean",
    r"cmake --build (?P<folder>[\w./-]+)(?: -.*)?": "cmake --build {folder} --target clean",
    r"ninja(?: -j ?\d*)*": "ninja -t clean",
}
"""Commands that only build, each with the one that removes what it built."""


def _of_build(files: ProjectFiles, command: str) -> Starter | None:
    """Return a workflow for the time of a build, which would do nothing the second time; None for other commands."""
    clean = why(command, {rf"\A{pattern}\Z": clean for pattern, clean in _CLEANING.items()})
    if not clean or (command.startswith("make") and not cpp_projects.cleans_by_make(files)):
        return None
    values = {"command": command, "clean": clean}
    return Starter("build-time", values, f"{files.folder.name}-build", f"the time of the build `{command}`")


def _of_sqlite(files: ProjectFiles, command: str) -> Starter:
    scripts = detect_project.queries(files)[:_MOST_PATHS]
    if command or not scripts:
        hint = "run perfflow init beside an SQLite database (.db, .sqlite) and scripts (.sql), without --command"
        raise UserError.of("no SQL script here begins with a query, or --command was given", hint)
    database = detect_project.databases(files)[0]
    values = {"scripts": list(_with_ids(scripts)), "database": database}
    return Starter("sqlite3", values, files.folder.name, f"the queries {', '.join(scripts[:3])} on {database}")


def _of_cpp(files: ProjectFiles, command: str, uses: str, found: BuiltProgram | None, filter_: str = "") -> Starter:
    """Return a workflow for a program with benchmarks: ``found``, or the command. ``filter_``: which to run."""
    built = BuiltProgram(command, "") if command else found
    if built is None:
        raise UserError.of("the files do not show which program to run", "name it: --command build/bench")
    values = {"uses": uses, "command": built.program, "build": built.build, "others": built.others, "filter": filter_}
    library = {"google-benchmark": "Google Benchmark", "catch2": "Catch2"}.get(uses, uses)
    by = f", built by `{built.build}`" if built.build else ""
    return Starter("cpp-bench", values, files.folder.name, f"a {library} program, {built.program}{by}")


def _of_google(files: ProjectFiles, command: str) -> Starter:
    return _of_cpp(files, command, "google-benchmark", cpp_projects.google_program(files))


def _of_catch2(files: ProjectFiles, command: str) -> Starter:
    found = cpp_projects.program_with(files, cpp_projects.CATCH2)
    return _of_cpp(files, command, "catch2", found, cpp_projects.catch2_tag(files))


def _of_nanobench(files: ProjectFiles, command: str) -> Starter:
    return _of_cpp(files, command, "nanobench", cpp_projects.program_with(files, cpp_projects.NANOBENCH))


def _of_suite(files: ProjectFiles, command: str) -> Starter:
    if command:
        raise UserError.of("a pytest suite takes no --command", "leave out --command, or leave out --kind")
    paths = detect_project.benchmark_tests(files)[:_MOST_PATHS]
    needed = "" if paths else detect_project.requires_pytest_benchmark(files)
    if not paths and not needed:
        raise UserError.of(
            "no test here uses the fixture `benchmark` of pytest-benchmark", "see the docs of pytest-benchmark"
        )
    shown = f"{', '.join(paths[:3])}{', ...' if paths[3:] else ''}" if paths else f"the tests ({needed} requires it)"
    values = {"paths": sorted(paths) or ["."]}
    return Starter("pytest-benchmark", values, files.folder.name, f"the pytest-benchmark suite in {shown}")


def _of_asv(files: ProjectFiles, command: str) -> Starter:
    settings = detect_project.asv_settings(files)
    if command or not settings:
        raise UserError.of(
            "no asv.conf.json here, or --command was given", "run perfflow init in the project, without --command"
        )
    return Starter("asv", {"config": settings[0]}, files.folder.name, f"the asv suite of {settings[0]}")


def _of_pyperf(files: ProjectFiles, command: str) -> Starter:
    scripts = detect_project.pyperf_scripts(files)[:_MOST_PATHS]
    if command or not scripts:
        raise UserError.of("no script here has a pyperf.Runner, or --command was given", "see the docs of pyperf")
    values = {"scripts": list(_with_ids(scripts))}
    return Starter("pyperf", values, files.folder.name, f"the pyperf benchmarks of {', '.join(scripts[:3])}")


def _with_ids(scripts: list[str]) -> Iterator[tuple[str, str]]:
    """Yield the id of the step of each script, and the script."""
    used: set[str] = set()
    for number, script in enumerate(scripts, 1):
        stem = fit(Path(script).stem).replace("-", "_") or "script"
        own = stem if stem not in used and stem[0] != "." else f"{stem.lstrip('.')}-{number}"
        used.add(own)
        yield own, script


def _of_go(files: ProjectFiles, command: str) -> Starter:
    module = _MODULE.search(files.text("go.mod"))
    name = _VERSION_OF_MODULE.sub("", module[1]).rpartition("/")[2] if module else files.folder.name
    tested = [path for path, text in files.having("func Benchmark", "_test.go") if _GO_BENCHMARK.search(text)]
    if not command and tested:
        return _go_suite(files, name, tested)
    build = ""
    if not command and detect_project.servers(files, ".go")[:1] == ["main.go"]:
        build = f"go build -o build/{fit(name)} ."
        return replace(_serving(files, f"build/{fit(name)}", "native", build), name=name)
    if not command and files.text("main.go"):
        build, command = f"go build -o build/{fit(name)} .", f"build/{fit(name)}"
    starter = _measured(files, command or "go test -count=1 ./...", build, "a command of a Go project", language="go")
    return replace(starter, name=name)


def _go_suite(files: ProjectFiles, name: str, tested: list[str]) -> Starter:
    """Return a workflow for the benchmarks of a Go module or workspace here, or of each module in its own folder."""
    folders = [Path(path).parent for path in files.named("/go.mod")]
    tops = [Path()] if files.text("go.work") else folders
    deepest_first = sorted(tops, key=lambda top: -len(top.parts))
    used = {next((top for top in deepest_first if Path(path).is_relative_to(top)), Path()) for path in tested}
    modules = [("suite" if len(used) == 1 else fit(str(top)) or "suite", str(top)) for top in sorted(used)]
    first = Path(tested[0]).parent
    example = f"{first.name or name}.{_GO_BENCHMARK.findall(files.text(tested[0]))[0]}"
    packages = list(dict.fromkeys(f"./{Path(path).parent}".removesuffix("/.") for path in tested))
    shown = f"{', '.join(packages[:3])}{', ...' if packages[3:] else ''}"
    return Starter("go-bench", {"modules": modules, "example": example}, name, f"the Go benchmarks in {shown}")


def _of_node(files: ProjectFiles, command: str) -> Starter:
    package = detect_project.package(files)
    scripts = package.get("scripts")
    script = next(
        (name for name in ("bench", "benchmark", "perf") if isinstance(scripts, dict) and name in scripts), ""
    )
    main = package.get("main")
    is_there = isinstance(main, str) and main in files.named(".js", ".mjs", ".cjs")
    other = f"node {shlex.quote(str(main))}" if is_there else "npm test --silent"
    guess = f"npm run --silent {script}" if script else other
    name = package.get("name")
    name = name if isinstance(name, str) else files.folder.name
    # Those of all packages of a workspace: their folders may have the benchmarks.
    packages = [detect_project.package(files, path) for path in files.named("/package.json")]
    asked = {name: each for of in packages for key in _ASKED for name, each in _mapping(of, key).items()}
    if not command and (suite := _node_suite(files, name, asked)):
        return suite
    served = detect_project.servers(files, ".js")
    if not (command or script) and (main in served or (not is_there and served)):
        return replace(_serving(files, shlex.join([*_NODE, str(main) if is_there else served[0]]), "node"), name=name)
    if script and not command:
        _require_fixed_work(guess, next((library for library in _OF_NODE if library in asked), ""))
    starter = _measured(files, command or guess, "", "a command of a Node.js project", language="node")
    return replace(starter, name=name)


def _node_suite(files: ProjectFiles, name: str, asked: Mapping[str, Any]) -> Starter | None:
    """Return a workflow for benchmarks of tinybench, mitata or vitest; None if there are none."""
    for library in ("tinybench", "mitata"):
        sources = [path for path, text in files.having(library, *_SCRIPTS) if re.search(_IMPORTS.format(library), text)]
        if sources and library in asked:
            typed = any(path.endswith(("ts", "mts", "cts")) for path in sources)
            values = {"sources": sources[:_MOST_PATHS], "node_args": "--import tsx" if typed else "", "runner": library}
            note = "TypeScript needs a loader: npm install --save-dev tsx" if typed and "tsx" not in asked else ""
            about = f"the {library} benchmarks in {', '.join(sources[:3])}{', ...' if sources[3:] else ''}"
            return Starter("node-bench", values, name, about, note)
    if "vitest" in asked and files.named(*(f".bench{suffix}" for suffix in _SCRIPTS)):
        values = {"sources": [], "node_args": "", "runner": "vitest"}
        return Starter("node-bench", values, name, "the benchmarks of `vitest bench`")
    return None


_ASKED = ("dependencies", "devDependencies")


def _mapping(package: Mapping[str, Any], key: str) -> Mapping[str, Any]:
    found = package.get(key)
    return found if isinstance(found, dict) else {}


def _require_fixed_work(command: str, library: str) -> None:
    """Raise UserError for a command whose benchmarks run for a fixed time, if a library that does so is named."""
    if library:
        text = f"{library} runs each benchmark for a fixed time, so the time of `{command}` shows nothing of the code"
        hint = "measure a program that does a fixed amount of work: perfflow init --command './program --size 10'"
        raise UserError.of(text, f"{hint}; or read the figures that it prints with the key `parse`")


def _of_maven(files: ProjectFiles, command: str) -> Starter:
    if not command and (suite := _jmh_suite(files, "pom.xml")):
        return suite
    return _of_java(files, command, "mvn -q test", "a command of a Maven project")


def _of_gradle(files: ProjectFiles, command: str) -> Starter:
    if not command and (suite := _jmh_suite(files, "build.gradle", "build.gradle.kts")):
        return suite
    program = "./gradlew" if (files.folder / "gradlew").is_file() else "gradle"
    return _of_java(
        files, command, f"{program} --quiet --no-daemon test --rerun-tasks", "a command of a Gradle project"
    )


def _jmh_suite(files: ProjectFiles, *builds: str) -> Starter | None:
    """Return a workflow for JMH benchmarks, which the project itself or one of its modules has; None if there are none.

    Raises UserError if they are in no jar, since they run for a fixed time and so cannot be measured as a command.
    """
    folders = {str(Path(path).parent): files.text(path) for path in files.named(*(f"/{name}" for name in builds))}
    if not any("jmh" in text for text in folders.values()):
        return None
    sources = [path for path, text in files.having("@Benchmark", *_OF_JVM) if "org.openjdk.jmh" in text]
    packed = [path for path in sources if "src/test/" not in path]
    if not packed:
        _require_fixed_work("the tests", "JMH")
    first = packed[0]
    deepest_first = sorted(folders, key=lambda folder: -len(Path(folder).parts))
    found = next(folder for folder in deepest_first if Path(first).is_relative_to(folder))
    # A folder that the project above does not name builds alone.
    is_module = found != "." and Path(found).name in folders.get(".", "")
    name = files.folder.name
    values = {
        "project": "." if is_module else found,
        "module": (found.replace("/", ":") if "pom.xml" not in builds else found) if is_module else "",
        "example": f"{Path(first).stem}.{_BENCHMARK.findall(files.text(first))[0]}",
    }
    shown = f"{', '.join(packed[:3])}{', ...' if packed[3:] else ''}"
    return Starter("jmh", values, name, f"the JMH benchmarks in {shown}")


def _of_java(files: ProjectFiles, command: str, guess: str, about: str) -> Starter:
    return _measured(files, command or guess, "", about, "" if command else _INSTEAD, "java")


_OF_JVM = (".java", ".kt", ".scala", ".groovy")
# The first method after the annotation, which others may follow.
_BENCHMARK = re.compile(r"@Benchmark\b[^(){;]{0,200}?(?:\([^()]*\)[^(){;]{0,200}?)*?\b(\w+)\s*\(")
_SCRIPTS = (".js", ".mjs", ".cjs", ".ts", ".mts", ".cts")
_IMPORTS = r"(?:from\s*|import\s*|require\()[\"']{}[\"']"
_OF_NODE = ("tinybench", "mitata", "vitest", "benchmark")
"""Packages whose benchmarks run for a fixed time."""
_INSTEAD = "Runs all tests by default. Better: name a program that does the work you care about."


def _of_cmake(files: ProjectFiles, command: str) -> Starter:
    built = cpp_projects.cmake_program(files)
    if built is None:
        raise UserError.of("CMakeLists.txt adds no executable", "name a command: --command 'build/program'")
    starter = _measured(files, command or built.program, built.build, f"a command, built by `{built.build}`")
    return replace(starter, name=files.folder.name)


_STARTERS: Mapping[ProjectKind, Callable[[ProjectFiles, str], Starter]] = {
    ProjectKind.COMMAND: _of_command,
    ProjectKind.CARGO: write_cargo_starter,
    ProjectKind.PYTEST: _of_suite,
    ProjectKind.GOOGLE: _of_google,
    ProjectKind.CATCH2: _of_catch2,
    ProjectKind.NANOBENCH: _of_nanobench,
    ProjectKind.ASV: _of_asv,
    ProjectKind.PYPERF: _of_pyperf,
    ProjectKind.GO: _of_go,
    ProjectKind.NODE: _of_node,
    ProjectKind.MAVEN: _of_maven,
    ProjectKind.GRADLE: _of_gradle,
    ProjectKind.CMAKE: _of_cmake,
    ProjectKind.SERVICE: _of_service,
    ProjectKind.SQLITE: _of_sqlite,
}
