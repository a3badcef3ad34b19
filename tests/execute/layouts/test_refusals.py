"""Executables without layouts, each refused with a reason and a remedy."""

from __future__ import annotations

import pytest

from perfflow.execute.layouts.refusal import LayoutsRefusedError
from perfflow.execute.layouts.relinking import Relinker
from tests.execute.layouts.builds import Project, needs

pytestmark = needs("gcc", "ld.lld")


SCRIPT = "echo 'SECTIONS {} INSERT AFTER .data;' >own.ld;"
ORDERED = "-Wl,--symbol-ordering-file=order"


def built(project: Project, command: str) -> Relinker:
    project.build(command)
    return project.relinker("program")


@pytest.mark.parametrize(
    ("command", "reason"),
    [
        ("gcc -fprofile-use -Wno-missing-profile -c main.c called.c; gcc main.o called.o -o program", "with a profile"),
        ("gcc -fprofile-use=x -Wno-missing-profile main.c called.c -o program", r"a profile \(-fprofile-use=x\)"),
        (f"{SCRIPT} gcc main.c called.c -T own.ld -o program", "linker script"),
        (f"{SCRIPT} gcc main.c called.c -Wl,--script=own.ld -o program", r"linker script .*\(--script=own.ld\)"),
        (f"{SCRIPT} gcc main.c called.c own.ld -o program", r"linker script .*\(own.ld\)"),
        (f"touch order; gcc -fuse-ld=lld {ORDERED} main.c called.c -o program", "its own function order"),
        ("echo 'void _start(void) {}' >k.c; gcc -nostdlib -static k.c -o program", "linked with -nostdlib"),
        ("echo 'void _start(void) {}' >k.c; gcc -Wl,-rpath, -nostdlib k.c -o program", "linked with -nostdlib"),
        ("gcc main.c called.c -Wl,--build-id=uuid -o program", "different bytes than its build did"),
        ("gcc main.c called.c -o program; strip program", "changed after it was linked"),
        ("$(type -ap gcc | tail -1) main.c called.c -o program", "no link of program was recorded"),
        ("cat main.c called.c | gcc -x c - -o program", "no link of program was recorded"),
        ("printf 'exit 0' >program", "no link of program was recorded"),
        ("rm -f program", "program cannot be read: No such file or directory"),
        (
            "gcc -shared -fPIC called.c -o libcalled.so; gcc main.c ./libcalled.so -o program; touch libcalled.so",
            r"\./libcalled\.so has changed since program was linked",
        ),
    ],
)
def test_refused(c_project: Project, command: str, reason: str) -> None:
    with pytest.raises(LayoutsRefusedError, match=reason) as refused:
        built(c_project, command)
    assert "\n" not in str(refused.value)


@pytest.mark.parametrize(
    "command",
    [
        # A version script is no layout.
        "echo 'V1 { global: main; local: *; };' >v; gcc main.c called.c -Wl,--version-script=v -o program",
        # The name of a folder is no option.
        "mkdir lib; gcc main.c called.c -L lib -o program",
    ],
)
def test_not_refused(c_project: Project, command: str) -> None:
    assert built(c_project, command).seconds > 0


def test_seeds_begin_at_one(c_project: Project) -> None:
    found = built(c_project, "gcc main.c called.c -o program")
    with pytest.raises(ValueError, match="below 1"):
        found.link(0, c_project.work / "out")


def test_a_link_that_fails_later_leaves_no_file(c_project: Project) -> None:
    found = built(c_project, "gcc main.c called.c -o program")
    with pytest.raises(LayoutsRefusedError, match="could not be linked again"):
        found.link(1, c_project.work / "missing" / "out")
