"""Writes a first workflow for a project according to its kind. It has comments and can run unchanged."""

from __future__ import annotations

import os
import re
import shlex
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path

from perfflow.library import cargo_starter, detect_project, search_path, starter_templates
from perfflow.library.detect_project import LOOKED_FOR, Built, DetectedProject, ProjectKind
from perfflow.library.project_files import ProjectFiles, can_be_named
from perfflow.library.starter_text import Starter, comment, fit, quoted, quoted_list
from perfflow.model.errors import UserError
from perfflow.tools.python_command import is_interpreter
from perfflow.trees.build_folders import ENVIRONMENTS
from perfflow.trees.ignored import tops
from perfflow.trees.python_layout import import_folders
from perfflow.trees.shared_installs import Prepared, faults, is_installed


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
    ProjectKind.GO: "Go",
    ProjectKind.NODE: "Node.js",
    ProjectKind.MAVEN: "Maven",
    ProjectKind.GRADLE: "Gradle",
}
_OF_PYTHON = (ProjectKind.PYTEST, ProjectKind.PYPERF, ProjectKind.ASV)
_MOST_PATHS = 40
_PYTHONS = (".venv/bin/python", "venv/bin/python")
_MODULE = re.compile(r"^module\s+(\S+)", re.MULTILINE)
_BUILDS = re.compile(r"^      run: .*(?:-o|-B) build\b", re.MULTILINE)
_GO_BENCHMARK = re.compile(r"^func Benchmark\w*\(", re.MULTILINE)


def start(folder: Path, root: Path, *, kind: ProjectKind | None, command: str, name: str) -> Start:
    """Write the text of a first workflow for the project in ``folder`` of the tree at ``root``.

    Raises UserError if the files do not show what to measure.
    """
    files = ProjectFiles(folder)
    found = detect_project.kinds(files)
    chosen = kind or _chosen(found, command)
    starter = _STARTERS[chosen](files, command)
    given, name = name, _without_suffix(name)
    final = name or _own(fit(starter.name) or "perf")
    if given and (not name or fit(name) != name):
        raise UserError.of(f"{given!r} is not a name for a workflow", "use letters, digits, `_`, `.` and `-`")
    inside = folder.relative_to(root) if folder.is_relative_to(root) else Path()
    head = starter_templates.WHERE.replace("@FOLDER@", quoted(str(inside))) if inside != Path() else ""
    python = _python(folder, root)
    head += _own_packages(folder, root) if chosen in _OF_PYTHON else ""
    text = starter.text.replace("@WHERE@", head + _shared(folder, root)).replace("@NAME@", final)
    others = tuple(item for item in found if item.kind is not chosen) if not (command or kind) else ()
    note = starter.note or _note(found, chosen)
    text = text.replace("@PROFILE@", starter_templates.SUITE_PROFILE).replace("@PYTHON@", quoted(python))
    return Start(final, text, starter.about, note, others, _unignored(text, folder, root))


def _chosen(found: tuple[DetectedProject, ...], command: str) -> ProjectKind:
    """Return the kind of project. With a command it is ``cargo`` or ``command``."""
    kinds = [item.kind for item in found]
    if not command:
        return kinds[0] if kinds else ProjectKind.COMMAND
    return ProjectKind.CARGO if ProjectKind.CARGO in kinds else ProjectKind.COMMAND


def _note(found: tuple[DetectedProject, ...], chosen: ProjectKind) -> str:
    """Return a note for kinds of projects that perfflow detects but has no adapter for."""
    kinds = [chosen, *(item.kind for item in found[:1] if chosen is ProjectKind.COMMAND)]
    known = next((_NO_ADAPTER[kind] for kind in kinds if kind in _NO_ADAPTER), "")
    return f"perfflow has no adapter for {known} projects, so this measures a command" if known else ""


def _unignored(text: str, folder: Path, root: Path) -> str:
    """Return the folder that a workflow builds into if git does not ignore it, else ''."""
    if not ((root / ".git").exists() and folder.is_relative_to(root) and _BUILDS.search(text)):
        return ""
    path = str((folder / "build").relative_to(root))
    # The folder may not exist yet, and a pattern such as `build/` only matches a folder.
    return "" if tops(root, [f"{path}/program"]) else path


def _without_suffix(name: str) -> str:
    """Return a name without the suffix of a workflow file, which users may have typed."""
    suffix = next((suffix for suffix in search_path.SUFFIXES if name.endswith(suffix)), "")
    return name.removesuffix(suffix)


def _own(name: str) -> str:
    """Return a default name that does not hide a workflow of the library."""
    return f"{name}-perf" if (search_path.SHIPPED / f"{name}.yaml").is_file() else name


def _python(folder: Path, root: Path) -> str:
    """Return the interpreter of the project's environment, relative to ``folder``, else the one on PATH."""
    places = (place / name for place in dict.fromkeys((folder, root)) for name in _PYTHONS)
    return next((os.path.relpath(place, folder) for place in places if place.exists()), "python3")


def _own_packages(folder: Path, root: Path) -> str:
    """Return the lines that let a suite import the project's packages, '' if an environment here has them."""
    environments = (place / name for place in (folder, root) for name in ENVIRONMENTS)
    if any(is_installed(folder, place) for place in environments):
        return ""
    folders = [os.path.relpath(place, folder) for place in import_folders(folder) if can_be_named(str(place))]
    return starter_templates.OWN_PACKAGES.replace("@FOLDERS@", quoted(os.pathsep.join(folders)))


def _shared(folder: Path, root: Path) -> str:
    """Return the lines that share ignored environments with every tree, and comments on those that cannot be shared."""
    if not (root / ".git").exists():
        return ""
    there = [place / name for place in dict.fromkeys((folder, root)) for name in ENVIRONMENTS]
    paths = [str(place.relative_to(root)) for place in there if place.is_dir() and place.is_relative_to(root)]
    ignored = [path for path, top in tops(root, paths).items() if top == path]
    wrong = {path: next(faults(root, path, ignored, Prepared(builds=False, sets_path=False)), None) for path in ignored}
    fine = [path for path, fault in wrong.items() if fault is None]
    lines = starter_templates.SHARE.replace("@SHARED@", quoted_list(fine)) if fine else ""
    for fault in wrong.values():
        if fault:
            lines += starter_templates.NOT_SHARED.replace("@WHY@", comment(f"{fault.message}; {fault.hint}"))
    return lines


def _of_command(files: ProjectFiles, command: str) -> Starter:
    if not command:
        hint = f"name a command: perfflow init --command './program --size 10'; looked for: {LOOKED_FOR}"
        raise UserError.of("the files here do not show what to measure", hint)
    built = detect_project.cmake_program(files) if command.startswith("build/") else None
    goal = detect_project.make_goal(files)
    build = built.build if built else f"make {goal}" if goal else ""
    return _measured(files, command, build, f"a command{f', built by `{build}`' if build else ''}")


def _measured(
    files: ProjectFiles, command: str, build: str, about: str, note: str = "", profile: str = starter_templates.NATIVE
) -> Starter:
    """Return a workflow for a command, with profilers for its language. ``note``: a comment above the command."""
    words = command.split()
    is_python = bool(words) and is_interpreter(words[0])
    text = starter_templates.COMMAND.replace("@PROFILE@", starter_templates.PYTHON if is_python else profile)
    text = text.replace("@BUILD_STAGE@", _build_stage(build)).replace("@NOTE@", f"      # {note}\n" if note else "")
    about = about.replace("a command", "a Python command", 1) if is_python else about
    return Starter(text.replace("@COMMAND@", quoted(command)), files.folder.name, about)


def _build_stage(command: str) -> str:
    return starter_templates.BUILD.replace("@BUILD@", quoted(command)) if command else ""


def _of_google(files: ProjectFiles, command: str) -> Starter:
    built = Built(command, "") if command else detect_project.google_program(files)
    if built is None:
        raise UserError.of("the files do not show which program to run", "name it: --command build/bench")
    others = f"\n        # Also here: {', '.join(built.others)}" if built.others else ""
    text = starter_templates.GOOGLE.replace("@BUILD_STAGE@", _build_stage(built.build)).replace("@OTHERS@", others)
    about = "a Google Benchmark program" + (f", {built.program}, built by `{built.build}`" if built.build else "")
    return Starter(text.replace("@COMMAND@", quoted(built.program)), files.folder.name, about)


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
    text = starter_templates.PYTEST.replace("@PATHS@", quoted_list(sorted(paths) or ["."]))
    return Starter(text, files.folder.name, f"the pytest-benchmark suite in {shown}")


def _of_asv(files: ProjectFiles, command: str) -> Starter:
    settings = detect_project.asv_settings(files)
    if command or not settings:
        raise UserError.of(
            "no asv.conf.json here, or --command was given", "run perfflow init in the project, without --command"
        )
    text = starter_templates.ASV.replace("@CONFIG@", quoted(settings[0]))
    return Starter(text, files.folder.name, f"the asv suite of {settings[0]}")


def _of_pyperf(files: ProjectFiles, command: str) -> Starter:
    scripts = detect_project.pyperf_scripts(files)[:_MOST_PATHS]
    if command or not scripts:
        raise UserError.of("no script here has a pyperf.Runner, or --command was given", "see the docs of pyperf")
    text = starter_templates.PYPERF.replace("@STEPS@", "".join(_pyperf_steps(scripts)))
    return Starter(text, files.folder.name, f"the pyperf benchmarks of {', '.join(scripts[:3])}")


def _pyperf_steps(scripts: list[str]) -> Iterator[str]:
    """Yield a step for each script. With several scripts, benchmark names include the script, since they may repeat."""
    used: set[str] = set()
    for number, script in enumerate(scripts, 1):
        stem = fit(Path(script).stem).replace("-", "_") or "script"
        own = stem if stem not in used and stem[0] != "." else f"{stem.lstrip('.')}-{number}"
        used.add(own)
        step = starter_templates.PYPERF_STEP.replace("@ID@", own).replace(
            "@PREFIX@", f"{own}/" if len(scripts) > 1 else ""
        )
        yield step.replace("@SCRIPT@", quoted(script))


def _of_go(files: ProjectFiles, command: str) -> Starter:
    module = _MODULE.search(files.text("go.mod"))
    name = module[1].rpartition("/")[2] if module else files.folder.name
    tested = [path for path, text in files.having("func Benchmark", "_test.go") if _GO_BENCHMARK.search(text)]
    build = note = ""
    if not command and tested:
        first, *others = dict.fromkeys(f"./{path.parent}".removesuffix("/.") for path in map(Path, tested))
        build = f"go test -c -o build/bench.test {shlex.quote(first)}"
        command = "build/bench.test -test.run '^$' -test.bench . -test.benchtime 100x"
        note = "The number of iterations is fixed, so that the time of the whole command can be compared."
        note += " Raise it until a run takes about a second."
        note += f" More benchmarks are in {comment(', '.join(others))}." if others else ""
    elif not command and files.text("main.go"):
        build, command = f"go build -o build/{fit(name)} .", f"build/{fit(name)}"
    command = command or "go test -count=1 ./..."
    starter = _measured(files, command, build, "a command of a Go project", note, starter_templates.PROFILE)
    return replace(starter, name=name)


def _of_node(files: ProjectFiles, command: str) -> Starter:
    found = detect_project.package(files)
    scripts = found.get("scripts")
    script = next(
        (name for name in ("bench", "benchmark", "perf") if isinstance(scripts, dict) and name in scripts), ""
    )
    main = found.get("main")
    is_there = isinstance(main, str) and main in files.named(".js", ".mjs", ".cjs")
    other = f"node {shlex.quote(str(main))}" if is_there else "npm test --silent"
    guess = f"npm run --silent {script}" if script else other
    starter = _measured(files, command or guess, "", "a command of a Node.js project", profile=starter_templates.NODE)
    name = found.get("name")
    return replace(starter, name=name if isinstance(name, str) else files.folder.name)


def _of_maven(files: ProjectFiles, command: str) -> Starter:
    return _of_java(files, command, "mvn -q test", "a command of a Maven project")


def _of_gradle(files: ProjectFiles, command: str) -> Starter:
    program = "./gradlew" if (files.folder / "gradlew").is_file() else "gradle"
    return _of_java(
        files, command, f"{program} --quiet --no-daemon test --rerun-tasks", "a command of a Gradle project"
    )


def _of_java(files: ProjectFiles, command: str, guess: str, about: str) -> Starter:
    return _measured(files, command or guess, "", about, "" if command else _INSTEAD, starter_templates.JAVA)


_INSTEAD = "Runs all tests by default. Better: name a program that does the work you care about."


def _of_cmake(files: ProjectFiles, command: str) -> Starter:
    built = detect_project.cmake_program(files)
    if built is None:
        raise UserError.of("CMakeLists.txt adds no executable", "name a command: --command 'build/program'")
    starter = _measured(files, command or built.program, built.build, f"a command, built by `{built.build}`")
    return replace(starter, name=files.folder.name)


_STARTERS: Mapping[ProjectKind, Callable[[ProjectFiles, str], Starter]] = {
    ProjectKind.COMMAND: _of_command,
    ProjectKind.CARGO: cargo_starter.write,
    ProjectKind.PYTEST: _of_suite,
    ProjectKind.GOOGLE: _of_google,
    ProjectKind.ASV: _of_asv,
    ProjectKind.PYPERF: _of_pyperf,
    ProjectKind.GO: _of_go,
    ProjectKind.NODE: _of_node,
    ProjectKind.MAVEN: _of_maven,
    ProjectKind.GRADLE: _of_gradle,
    ProjectKind.CMAKE: _of_cmake,
}
