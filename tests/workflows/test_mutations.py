"""Good workflows with something broken in them: always problems or a plan, never another exception."""

from __future__ import annotations

from pathlib import Path
from random import Random

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from perfflow.model.errors import UserError
from perfflow.session.open_workflow import open_workflow

ROOT = Path(__file__).parents[2]
SOURCES = sorted(
    [*(ROOT / "tests" / "workflows").glob("*/*.yaml"), *(ROOT / "workflows").glob("*.yaml")],
    key=lambda path: path.name,
)
TEXTS = [path.read_text() for path in SOURCES]
ODD = [
    *"\t\0\x1b\x85\u2028\ufeff😀\\\"'`|>&*!%@#?:-,[]{}",
    *("${{", "}}", "${{ x }}", "<<: ", "*a", "&a ", "!!python/none "),
]
SCALARS = [
    *("", "~", "true", "no", "0", "-1", "1e400", ".nan", "9" * 400, "0x", "[]", "{}", "[[[]]]", "{a: {b: c}}", "{? a}"),
    *("text", '""', '"\\0"', "<1s", ">2", "≥1x", "5%", "10 parsec", "1m", "**", '"*"', "a" * 300, '"${{ params.x }}"'),
    *('"${{ matrix.size }}"', '"${{ 10 ** 10 ** 10 }}"', '"${{ }}"', "'(?P<a>'", "baseline", "steps", "lib:x"),
    "../x.yaml",
]


def delete_line(lines: list[str], random: Random) -> None:
    lines.pop(random.randrange(len(lines)))


def repeat_line(lines: list[str], random: Random) -> None:
    lines.insert(random.randrange(len(lines)), random.choice(lines))


def swap_lines(lines: list[str], random: Random) -> None:
    one, other = random.randrange(len(lines)), random.randrange(len(lines))
    lines[one], lines[other] = lines[other], lines[one]


def shift_line(lines: list[str], random: Random) -> None:
    number = random.randrange(len(lines))
    lines[number] = random.choice(["  ", " ", "    - ", "\t"]) + lines[number]


def replace_value(lines: list[str], random: Random) -> None:
    number = random.randrange(len(lines))
    key, colon, _ = lines[number].partition(": ")
    lines[number] = f"{key}: {random.choice(SCALARS)}" if colon else random.choice(SCALARS)


def replace_word(lines: list[str], random: Random) -> None:
    number = random.randrange(len(lines))
    words = lines[number].split(" ")
    words[random.randrange(len(words))] = random.choice([*SCALARS, random.choice(random.choice(lines).split(" "))])
    lines[number] = " ".join(words)


def insert_odd(lines: list[str], random: Random) -> None:
    number = random.randrange(len(lines))
    column = random.randrange(len(lines[number]) + 1)
    lines[number] = lines[number][:column] + random.choice(ODD) + lines[number][column:]


def cut_off(lines: list[str], random: Random) -> None:
    number = random.randrange(len(lines))
    lines[number] = lines[number][: random.randrange(len(lines[number]) + 1)]


MUTATIONS = (delete_line, repeat_line, swap_lines, shift_line, replace_value, replace_word, insert_odd, cut_off)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("mutations")
    for path in SOURCES:
        (folder / path.name).write_bytes(path.read_bytes())
    return folder


@settings(suppress_health_check=[HealthCheck.too_slow])
@given(
    text=st.sampled_from(TEXTS),
    mutations=st.lists(st.sampled_from(MUTATIONS), min_size=1, max_size=6),
    random=st.randoms(use_true_random=False),
)
def test_a_broken_workflow_gives_problems_or_a_plan(
    folder: Path, text: str, mutations: list[object], random: Random
) -> None:
    lines = text.split("\n") or [""]
    for mutate in mutations:
        if lines and callable(mutate):
            mutate(lines, random)
    path = folder / "mutated.yaml"
    path.write_text("\n".join(lines), encoding="utf-8", newline="")
    try:
        opened = open_workflow(str(path), ["size=3"])
        problems = (*opened.problems, *opened.unavailable)
    except UserError as error:
        problems = error.problems
        assert problems
    for problem in problems:
        assert problem.render()
        assert problem.message
        if problem.place:
            assert problem.place.line >= 1
            assert problem.place.column >= 1
