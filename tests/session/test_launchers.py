"""Shims of version managers and launchers are not timed, and CPU time decides about processes that take turns."""

from __future__ import annotations

import os
import shutil
import sys
from pathlib import Path

import pytest

from perfflow.model.result import Result
from tests.session.project import Project, row, samples, step

MANAGER = """#!/usr/bin/env bash
echo "$@" >> "{log}"
case "$1" in
which) echo "{root}/versions/3/bin/$2";;
version-name) echo 3;;
exec) shift; name=$1; shift; PATH="{root}/versions/3/bin:$PATH" exec "{root}/versions/3/bin/$name" "$@";;
env) shift 2; CHOSEN=3 "$@";;
esac
"""
PYENV = """#!/usr/bin/env bash
set -e
program="${{0##*/}}"
exec "{root}/libexec/{name}" exec "$program" "$@"
"""
ASDF = '#!/usr/bin/env bash\n# asdf-plugin: tool 3\nexec {root}/libexec/asdf exec "tool" "$@"\n'
LAUNCHER = """#!/usr/bin/env bash
[ "$1" != {word} ] || shift
if [ "$1" = -c ]; then set -- bash -c "$2"; fi
export LAUNCHED=yes PATH="{place}:$PATH"
"$@"
exit $?
"""
TOOL = '#!/bin/sh\necho "$0|$@|$LAUNCHED$CHOSEN$PYENV_VERSION$RBENV_VERSION" >> told\n'


def _executable(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    path.chmod(0o755)


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return a folder that is the first of PATH."""
    found = tmp_path / "place"
    found.mkdir()
    monkeypatch.setenv("PATH", f"{found}{os.pathsep}{os.environ['PATH']}")
    return found


def _manager(place: Path, name: str) -> Path:
    root = place.parent / f".{name}"
    _executable(root / "libexec" / name, MANAGER.format(root=root, log=place / "asked"))
    _executable(root / "versions/3/bin/tool", TOOL)
    _executable(place / "tool", (ASDF if name == "asdf" else PYENV).format(root=root, name=name))
    return root / "versions/3/bin/tool"


def _run(project: Project, command: str) -> tuple[Result, list[str]]:
    found = project.run(f"stages: {{baseline: [{{id: one, run: '{command}', runs: 2}}]}}\n")
    assert len(samples(found, "one", "cpu")) == 2
    return found, (project.folder / "told").read_text().splitlines()


@pytest.mark.parametrize("name", ["pyenv", "rbenv", "asdf"])
def test_the_program_behind_a_shim_is_started(name: str, project: Project, place: Path) -> None:
    real = _manager(place, name)
    found, told = _run(project, "tool 1 2")
    assert set(told) == {f"{real}|1 2|3"}
    assert "exec" not in [line.split()[0] for line in (place / "asked").read_text().splitlines()]
    notes = [text for text in step(found, "one").warnings if "shim" in text]
    assert notes == [f"{real} is started and timed directly, without the {name} shim `tool`"]


def test_a_profiler_starts_the_program_behind_a_shim_too(project: Project, place: Path) -> None:
    real = _manager(place, "pyenv")
    _executable(real, f"#!{sys.executable}\nprint(sum(number % 7 for number in range(3_000_000)))\n")
    found = project.run(
        "stages:\n  baseline: [{id: one, run: tool, runs: 2}]\n  profile: [{id: where, uses: auto, benchmark: one}]\n"
    )
    assert step(found, "where").status == "done"
    assert "exec" not in [line.split()[0] for line in (place / "asked").read_text().splitlines()]


def test_the_interpreter_of_a_script_may_be_a_shim(project: Project, place: Path) -> None:
    real = _manager(place, "pyenv")
    project.write("script", "#!/usr/bin/env tool\n", executable=True)
    _, told = _run(project, "./script 1")
    assert set(told) == {f"{real}|{project.folder}/script 1|3"}


@pytest.mark.parametrize(("command", "word"), [("uv run", "run"), ("poetry run", "run"), ("bundle exec", "exec")])
def test_the_program_behind_a_launcher_is_started_in_its_environment(
    command: str, word: str, project: Project, place: Path
) -> None:
    _executable(place / "bin/tool", TOOL)
    _executable(place / command.split(maxsplit=1)[0], LAUNCHER.format(word=word, place=place / "bin"))
    found, told = _run(project, f"{command} tool 1")
    assert set(told) == {f"{place}/bin/tool|1|yes"}
    assert any(f"without `{command}`" in text for text in step(found, "one").warnings)


def test_a_launcher_with_options_is_started_as_it_is_written(project: Project, place: Path) -> None:
    _executable(place / "bin/tool", TOOL)
    _executable(place / "uv", LAUNCHER.replace("shift", "shift 2", 1).format(word="run", place=place / "bin"))
    found, told = _run(project, "uv run --frozen tool 1")
    assert set(told) == {f"{place}/bin/tool|1|yes"}
    assert not any("without" in text for text in step(found, "one").warnings)


def test_npx_is_left_out_only_for_an_installed_package(project: Project) -> None:
    if not shutil.which("npx"):
        pytest.skip("needs npx")
    project.write("package.json", '{"name": "x", "version": "1.0.0"}')
    _executable(project.folder / "node_modules/.bin/tool", TOOL)
    found, told = _run(project, "npx tool 1")
    assert {line.split("|")[0] for line in told} == {f"{project.folder}/node_modules/.bin/tool"}
    assert any("without `npx`" in text for text in step(found, "one").warnings)


BUSY = f"{sys.executable} -c 'sum(range(12000000))'"
"""About 0.4 s of work, of which a new process that waits for a core is a small part on a busy machine."""


def _clock(project: Project, script: str) -> str:
    project.write("script", f"#!/bin/bash\n{script}\n", executable=True)
    found = project.run("stages: {baseline: [{id: one, run: ./script, runs: 2}]}\n")
    return next(item.metric for item in found.benchmarks if item.gating)


def test_cpu_time_decides_about_processes_that_take_turns(project: Project) -> None:
    assert _clock(project, f"{BUSY}\n{BUSY}") == "cpu"
    assert row(project.run("stages: {baseline: [{id: one, run: ./script, runs: 2}]}\n"), "one", "turns").baseline


@pytest.mark.parametrize("script", [f"{BUSY} &\n{BUSY}\nwait", f"{BUSY}\nsleep 0.3\n:"])
def test_wall_time_decides_about_processes_that_run_at_once_or_wait(script: str, project: Project) -> None:
    assert _clock(project, script) == "time"
