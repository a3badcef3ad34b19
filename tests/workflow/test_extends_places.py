"""An error about any value of an extended workflow has the file, line and column of the value."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from perfflow.model.errors import Severity
from perfflow.session.open_workflow import open_workflow

Key = tuple[str, ...]

# Locations, each with a valid and an invalid value. `#` precedes the id of a step.
VALUES: Mapping[Key, tuple[str, str]] = {
    ("description",): ("words", "[1]"),
    ("env", "A"): ("1", "[1]"),
    ("env", "B"): ("2", "{C: 3}"),
    ("data",): ("[a.txt]", "{a: b}"),
    ("defaults", "timeout"): ("3m", "3"),
    ("defaults", "env", "D"): ("x", "[]"),
    ("thresholds", "concern"): ("4%", "four"),
    ("thresholds", "for", "core/**", "action"): ("9%", "9s"),
    ("targets", "program", "time"): ("<50ms", "<50KB"),
    ("targets", "program", "rss"): ("<64MiB", "<64ms"),
    ("params", "size", "default"): ("10", "many"),
    ("stages", "build", "#make", "timeout"): ("3m", "3"),
    ("stages", "build", "#make", "retries"): ("2", "two"),
    ("stages", "baseline", "#program", "with", "command"): ("sleep 1", "{a: b}"),
    ("stages", "baseline", "#program", "with", "shell"): ("true", "perhaps"),
    ("stages", "baseline", "#program", "budget"): ("5s", "5"),
    ("stages", "baseline", "#program", "candidate"): ("sleep 2", "{nope: 1}"),
    ("stages", "verify", "#tests", "name"): ("t", "[t]"),
    ("stages", "verify", "#tests", "needs"): ("[make]", "[nowhere]"),
}
# Other values that each location needs.
FIXED: Mapping[Key, str] = {
    ("params", "size", "type"): "integer",
    ("params", "size", "default"): "10",
    ("stages", "build", "#make", "run"): "make",
    ("stages", "baseline", "#program", "uses"): "command",
    ("stages", "verify", "#tests", "run"): "make test",
}
# In order of stages, since a step cannot need a step of a later stage.
ORDER = sorted(
    {*VALUES, *FIXED},
    key=lambda key: (
        key[0] == "stages",
        ["build", "baseline", "verify"].index(key[1]) if key[0] == "stages" else 0,
        key,
    ),
)
DOES = ("stages", "baseline", "#program", "with", "command")


def text_of(values: Mapping[Key, str], head: str) -> tuple[str, dict[Key, tuple[int, int]]]:
    """Return a file with these values in block style, and the line and column at which each value starts."""
    lines = ["perfflow: 1", *([head] if head else [])]
    places: dict[Key, tuple[int, int]] = {}
    for key, value, indent, lead in _rows(values):
        lines.append(f"{' ' * indent}{lead}{value}")
        if value:
            places[key] = (len(lines), len(lines[-1]) - len(value) + 1)
    return "\n".join(lines) + "\n", places


def _rows(values: Mapping[Key, str], prefix: Key = (), indent: int = 0) -> Iterator[tuple[Key, str, int, str]]:
    below = dict.fromkeys(key[len(prefix)] for key in values if key[: len(prefix)] == prefix)
    for word in below:
        key = (*prefix, word)
        name = f'"{word}"' if "*" in word else word
        if key in values:
            yield key, values[key], indent, f"{name}: "
        elif word.startswith("#"):
            yield key, "", indent, f"- id: {word[1:]}"
            yield from _rows(values, key, indent + 2)
        else:
            yield key, "", indent, f"{name}:"
            yield from _rows(values, key, indent + 2)


@st.composite
def families(draw: st.DrawFn) -> tuple[list[dict[Key, str]], int, Key]:
    """Return values divided among two or three files, nearest first, and the file and key of the wrong value."""
    count = draw(st.integers(2, 3))
    files: list[dict[Key, str]] = [{} for _ in range(count)]
    for key, (good, _) in VALUES.items():
        holders = draw(st.sets(st.integers(0, count - 1), min_size=1 if key == DOES else 0))
        for number in sorted(holders):
            files[number][key] = good
    files[-1] = {key: FIXED.get(key, files[-1].get(key, "")) for key in ORDER if key in FIXED or key in files[-1]}
    choices = [(number, key) for number, held in enumerate(files) for key in held if key in VALUES]
    number, key = draw(st.sampled_from(sorted(choices)))
    files[number][key] = VALUES[key][1]
    return files, number, key


def require_shown(files: list[dict[Key, str]], wrong: int, key: Key) -> None:
    """Only the value of ``key`` in the file ``wrong`` is reported, unless a nearer file replaces it."""
    with tempfile.TemporaryDirectory() as name:
        folder, found = Path(name), (0, 0)
        for number, values in enumerate(files):
            head = f"extends: f{number + 1}.yaml" if number + 1 < len(files) else ""
            text, places = text_of(values, head)
            (folder / f"f{number}.yaml").write_text(text)
            if number == wrong:
                found = places[key]
        problems = [item for item in open_workflow(str(folder / "f0.yaml")).problems if item.severity is Severity.ERROR]
    seen = {(Path(item.place.file).name, item.place.line, item.place.column) for item in problems if item.place}
    assert len(seen) == len({item.place for item in problems})
    # A value that a nearer file replaces is not part of the workflow.
    replaced = any(key in values for values in files[:wrong])
    assert {place[:2] for place in seen} == (set() if replaced else {(f"f{wrong}.yaml", found[0])})
    assert {place[2] for place in seen} <= {found[1], found[1] + len("[")}


@given(families())
def test_a_wrong_value_is_shown_where_it_stands(family: tuple[list[dict[Key, str]], int, Key]) -> None:
    require_shown(*family)


@pytest.mark.parametrize("wrong", [0, 1])
@pytest.mark.parametrize("key", VALUES, ids="/".join)
def test_each_value_is_shown_in_either_file(key: Key, wrong: int) -> None:
    every = {**FIXED, **{name: good for name, (good, _) in VALUES.items()}}
    files = [{}, {name: every[name] for name in ORDER}]
    if wrong == 0:
        files[0] = {name: every[name] for name in ORDER if name in VALUES}
    files[wrong][key] = VALUES[key][1]
    require_shown(files, wrong, key)
