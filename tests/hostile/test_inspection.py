"""Looking at somebody else's project is harmless, whatever it holds: nothing hangs, leaks, runs or breaks."""

from __future__ import annotations

from collections.abc import Collection
from pathlib import Path

import pytest

from tests.cli.shell import perfflow
from tests.hostile.place import BENCH, SECONDS, SECRET, Looked, Place, look
from tests.hostile.texts import MIB, TEXTS
from tests.hostile.traps import TRAPS, trap_in
from tests.long import rest_long

USUAL = {0, 1, 2, 3, 4}
"""Statuses of commands that came to an end of their own."""
COMMANDS = ("\x1b", "\x07", "\u202e", "\u2066")
"""What no terminal should get from a file's text."""
DEAR = (
    *("many texts with expressions", "more steps than are planned", "many benchmarks and many globs", "many matrices"),
    *("path with a relative folder", "path with a link into the project", "extends the environment by a link"),
)
"""Variants that take seconds and resemble others; only ``sh scripts/test long`` tries them."""


def tried(names: Collection[str]) -> list[object]:
    """Return the names for ``parametrize``; those of ``DEAR`` are only for the long tests."""
    first = [name for name in names if name not in DEAR]
    return rest_long([*first, *(name for name in names if name in DEAR)], keep=len(first))


def require_harmless(place: Place, looked: Looked, commands: int) -> None:
    shown = looked.output[-3000:]
    assert not place.tripped.exists(), place.tripped.read_text() + shown
    assert SECRET not in looked.output
    assert len(looked.ended) == commands, f"signal {looked.signal} after {len(looked.ended)} commands: {shown}"
    for status, seconds in looked.ended:
        assert status in USUAL, shown
        assert seconds < SECONDS, shown
    assert "Traceback" not in looked.output


# All of them load the file first, and `plan` does all that `validate` does. `make` looks at the whole folder, too.
@pytest.mark.parametrize("words", [("plan",), pytest.param(("make", "validate", "show"), marks=pytest.mark.long)])
@pytest.mark.parametrize("name", tried(TEXTS))
def test_a_text_that_asks_for_too_much_is_refused_within_the_limits(
    name: str, words: tuple[str, ...], tmp_path: Path
) -> None:
    place = Place.made(tmp_path)
    text = TEXTS[name]()
    raw = text if isinstance(text, bytes) else text.encode("utf-8", "surrogatepass")
    assert len(raw) <= MIB + 1
    place.write(raw)
    if "make" in words:
        place.write(raw, "workflows/named.yaml")
    looked = look(place, [["make"] if word == "make" else [word, "flow.yaml"] for word in words], forked=True)
    require_harmless(place, looked, len(words))
    assert not [letter for letter in COMMANDS if letter in looked.output]


def test_a_folder_of_such_texts_is_looked_at_within_the_limits(tmp_path: Path) -> None:
    place = Place.made(tmp_path)
    names = ("only NULs", "more than 1 MiB", "invalid UTF-8 far down a long line", "indented maps in maps", "a range")
    for number, name in enumerate(names):
        text = TEXTS[name]()
        place.write(text, f"workflows/w{number}.yaml")
    looked = look(place, [["make"]], forked=True)
    require_harmless(place, looked, 1)
    assert not [letter for letter in COMMANDS if letter in looked.output]


@pytest.mark.parametrize("name", tried(TRAPS))
def test_a_trap_of_a_project_is_not_sprung(name: str, tmp_path: Path) -> None:
    place = Place.made(tmp_path)
    trap = trap_in(place, TRAPS[name])
    # The kernel shows the environment with which a process was started, so that one must hold the secret.
    started = bool(trap.env) or "environment" in name
    looked = look(place, trap.commands, trap.env, forked=not started)
    require_harmless(place, looked, len(trap.commands))
    assert [text for text in trap.says if text not in looked.output] == []
    assert not [letter for letter in COMMANDS if letter in looked.output]


@pytest.mark.long  # waits until each limit is reached
def test_the_tripwire_and_the_limits_would_be_noticed(tmp_path: Path) -> None:
    place = Place.made(tmp_path)
    place.write("perfflow: 1\nstages: {baseline: [{id: a, run: ./trip}]}\n")
    looked = look(place, [["run", "flow.yaml", "--progress", "off"]])
    assert place.tripped.exists(), looked.output
    with pytest.raises(AssertionError):
        require_harmless(place, looked, 1)


def test_modules_of_the_current_folder_are_not_imported(tmp_path: Path) -> None:
    place = Place.made(tmp_path)
    place.write("perfflow: 1\n" + BENCH)
    for name in ("click", "yaml", "pydantic", "jinja2", "platformdirs"):
        place.write(f"open({str(place.tripped)!r}, 'w').write('imported')\n", f"{name}.py")
    done = perfflow("plan", "flow.yaml", cwd=place.project)
    assert (done.returncode, place.tripped.exists()) == (0, False), done.stderr


def test_there_are_many_hostile_files() -> None:
    assert len(TEXTS) + len(TRAPS) >= 60
