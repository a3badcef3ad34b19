"""The recorder does not change a build, and records its links."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
from collections.abc import Mapping
from pathlib import Path

import pytest

from perfflow.execute.layouts.refusal import LayoutsRefusedError
from perfflow.execute.layouts.relinking import forget, recording
from tests.execute.layouts.builds import Project, needs, order, project, require_layouts

pytestmark = needs("gcc", "clang", "make", "ld.lld")


def links(found: Project) -> int:
    return len(list(found.recordings.glob("links/*/link.json")))


def shell(found: Project, command: str, env: Mapping[str, str] | None = None) -> subprocess.CompletedProcess[str]:
    """Run a command without the recorder, or with an environment of it."""
    argv = ["bash", "-ec", command]
    return subprocess.run(argv, cwd=found.folder, env=env, capture_output=True, text=True, check=False)


def has_sections(found: Project) -> bool:
    return b".text.f3" in (found.folder / "called.o").read_bytes()


def test_status_and_output_are_those_of_the_driver(c_project: Project) -> None:
    (c_project.folder / "bad.c").write_text("int main(void) { return nowhere(); }\n#warning look here\n")
    commands = ["gcc -c bad.c -o bad.o", "gcc bad.o -o bad", "gcc bad.c -o bad", "gcc none.o", "gcc", "gcc --version"]
    for command in commands:
        plain, seen = shell(c_project, command), c_project.attempt(command)
        assert (seen.returncode, seen.stdout) == (plain.returncode, plain.stdout)
        assert seen.stderr.count("\n") == plain.stderr.count("\n")
    assert links(c_project) == 0


def test_a_driver_that_a_signal_ends_ends_the_recorder_by_it(c_project: Project, tmp_path: Path) -> None:
    driver = tmp_path / "bin" / "gcc"
    driver.parent.mkdir()
    driver.write_text("#!/bin/sh\nkill -TERM $$\n")
    driver.chmod(0o755)
    environment = recording({"PATH": f"{driver.parent}:/usr/bin:/bin"}, c_project.recordings)
    command = [str(shutil.which("gcc", path=environment["PATH"])), "main.o"]
    assert subprocess.run(command, env=environment, check=False).returncode == -signal.SIGTERM


def test_compiles_and_libraries_are_not_recorded(c_project: Project) -> None:
    c_project.build(
        "gcc -c called.c; gcc -shared -fPIC called.c -o libcalled.so; gcc -E main.c; gcc -r called.o -o r.o"
    )
    assert links(c_project) == 0
    assert has_sections(c_project)


@pytest.mark.parametrize("obstacle", ["unwritable", "a file", "gone"])
def test_a_build_succeeds_where_nothing_can_be_recorded(c_project: Project, obstacle: str) -> None:
    environment = recording(os.environ, c_project.recordings)
    if obstacle == "unwritable":
        # Not even root can write to /proc.
        environment["PERFFLOW_LINK_RECORDINGS"] = "/proc"
    elif obstacle == "a file":
        (c_project.recordings / "links").write_text("")
    else:
        shutil.rmtree(c_project.recordings)
        environment["PERFFLOW_LINK_PYTHON"] = "/nowhere"
    command = "gcc -fprofile-use -Wno-missing-profile -c called.c && gcc main.c called.o -o program"
    done = shell(c_project, command, environment)
    assert (done.returncode, done.stderr) == (0, "")
    assert (c_project.folder / "program").exists()


def test_a_full_disk_leaves_the_build_alone_and_no_half_recording(c_project: Project) -> None:
    # A file size limit simulates a full disk: the executable fits, the record of the link does not.
    c_project.build("ulimit -f 60; gcc main.c called.c -o program $(printf -- '-DX%0999d ' $(seq 1 90))")
    assert list((c_project.recordings / "links").iterdir()) == []


def test_only_the_variables_that_drivers_read_are_stored(c_project: Project) -> None:
    c_project.build("gcc main.c called.c -o program", DEPLOY="s3cret", LIBRARY_PATH="/opt/some")
    stored = next(c_project.recordings.glob("links/*/link.json")).read_text()
    assert "/opt/some" in stored
    assert "s3cret" not in stored


def test_assembly_on_the_way_keeps_the_sections(c_project: Project) -> None:
    c_project.build("gcc -S called.c -o called.s; clang -Werror -c called.s -o called.o")
    assert has_sections(c_project)


def test_a_later_link_replaces_the_record_of_the_first(c_project: Project) -> None:
    for define in ("-DFIRST", "-DSECOND"):
        c_project.build(f"gcc {define} main.c called.c -o program")
    assert links(c_project) == len(list((c_project.recordings / "links").iterdir())) == 1
    assert "-DSECOND" in next(c_project.recordings.glob("links/*/link.json")).read_text()


def test_make_may_run_in_parallel_and_remove_what_it_made_on_the_way(c_project: Project) -> None:
    programs = [f"program{number}" for number in range(8)]
    # make removes intermediate objects of a chain of rules.
    (c_project.folder / "Makefile").write_text(
        f"all: {' '.join(programs)}\nprogram%: main%.o called%.o\n\t$(CC) $^ -o $@\n"
        "%.o: %.c\n\t$(CC) -O1 -c $< -o $@\nmain%.c: main.c\n\tcp $< $@\ncalled%.c: called.c\n\tcp $< $@\n"
    )
    c_project.build("make -j8")
    assert links(c_project) == len(programs)
    assert not (c_project.folder / "main3.o").exists()
    executable = c_project.folder / "program3"
    require_layouts(c_project.relinker("program3"), executable, c_project.work / "out")


def test_names_may_hold_anything(tmp_path: Path) -> None:
    hostile = project(tmp_path / "ho 'st\"il\ne, $HOME`x`", "pro ject")
    (hostile.folder / "called.c").rename(hostile.folder / "ca'l\"l\n e,d.c")
    hostile.build("gcc -c ./*.c; gcc ./*.o -o 'my, p\"rog'; rm ./*.o; gcc ./*.c -o '  one'")
    for name in ('my, p"rog', "  one"):
        require_layouts(hostile.relinker(name), hostile.folder / name, hostile.work / "out")


def test_the_compiler_that_cmake_stores_works_without_a_recording(c_project: Project) -> None:
    environment = recording(os.environ, c_project.recordings)
    stored = str(shutil.which("gcc", path=environment["PATH"]))
    assert not stored.startswith(str(c_project.recordings))
    shutil.rmtree(c_project.recordings)
    assert shell(c_project, f"{stored} -c called.c; {stored} main.c called.o -o program").returncode == 0
    assert not has_sections(c_project)


def test_a_compiler_cache_before_the_recorder_does_not_start_it_in_a_circle(c_project: Project, tmp_path: Path) -> None:
    cache = tmp_path / "cache-bin"
    cache.mkdir()
    # Like ccache, run the next driver of the same name on PATH.
    (cache / "gcc").write_text(
        '#!/bin/bash\nfor d in ${PATH//:/ }; do [ "$d" = "${0%/*}" ] || { [ -x $d/gcc ] && exec $d/gcc "$@"; }; done\n'
    )
    (cache / "gcc").chmod(0o755)
    c_project.build("gcc main.c called.c -o program", PATH=f"{cache}:{os.environ['PATH']}")
    c_project.build(f"PATH={cache}:$PATH; gcc main.c called.c -o other")
    assert links(c_project) == 2


def test_what_is_forgotten_is_linked_again(c_project: Project) -> None:
    (c_project.folder / "Makefile").write_text("program: main.o called.o\n\t$(CC) $^ -o $@\n")
    c_project.build("make")
    shutil.rmtree(c_project.recordings)
    c_project.build("make")
    with pytest.raises(LayoutsRefusedError, match="no link of program was recorded"):
        c_project.relinker("program")
    forget(c_project.folder / "program")
    assert "-c" not in c_project.build("make").stdout
    assert order(c_project.folder / "program")
    c_project.relinker("program")
