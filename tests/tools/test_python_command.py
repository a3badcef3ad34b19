from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from perfflow.model.errors import ToolOutputError
from perfflow.tools import python_command
from perfflow.tools.python import in_program
from perfflow.tools.python_command import Form, PythonCommand

WORDS = st.text(st.characters(exclude_characters="\0", exclude_categories=["Cs"]), min_size=1, max_size=8)
VALUES = st.sampled_from(["dev", "importtime", "-c", "-m", "ignore::Warning", "x y", "--"])
ONE = st.sampled_from("bBdEIOPqsSuv")
# The command line and its meaning.
FLAGS = st.one_of(
    st.text(ONE, min_size=1, max_size=4).map(lambda letters: (["-" + letters], ["-" + letters])),
    st.tuples(st.text(ONE, max_size=2), st.sampled_from("WX"), VALUES, st.booleans()).map(
        lambda x: (
            [f"-{x[0]}{x[1]}{x[2]}"] if x[3] else [f"-{x[0]}{x[1]}", x[2]],
            [f"-{x[0]}{x[1]}", x[2]],
        )
    ),
    st.just((["--check-hash-based-pycs", "always"], ["--check-hash-based-pycs", "always"])),
)


@given(st.lists(FLAGS, max_size=4), st.sampled_from(Form), st.lists(WORDS, min_size=1, max_size=5), st.booleans(), ONE)
def test_takes_apart_what_was_put_together(
    flags: list[tuple[list[str], list[str]]], form: Form, words: list[str], joined: bool, letter: str
) -> None:
    target, *arguments = words
    typed = [word for one, _ in flags for word in one]
    meant = [word for _, one in flags for word in one]
    if form is Form.SCRIPT:
        target = "s" + target
        typed += ["--", target] if joined else [target]
    else:
        short = "c" if form is Form.CODE else "m"
        typed += [f"-{letter}{short}{target}"] if joined else [f"-{short}", target]
        meant += [f"-{letter}"] if joined else []
    found = python_command.split(["/usr/bin/python3.12", *typed, *arguments])
    assert found == PythonCommand("/usr/bin/python3.12", tuple(meant), form, target, tuple(arguments))


@given(st.lists(st.sampled_from(["-c", "-m", "-u", "-X", "--", "-", "a.py", "-Wd", "-uXm", "--x", "", "-h"]) | WORDS))
def test_any_words_are_split_or_refused(words: list[str]) -> None:
    try:
        found = python_command.split(["python", *words])
    except ToolOutputError as error:
        reason = str(error)
    else:
        reason = "write the command as it is"
        assert found.arguments == tuple(words[len(words) - len(found.arguments) :])
        assert found.target or found.form is not Form.SCRIPT
    assert "write the command as" in reason


@pytest.mark.parametrize("name", ["python", "python3", "python3.13", "/a/b/python2.7", "python3.13t", "pypy3"])
def test_interpreters(name: str) -> None:
    assert python_command.split([name, "x.py"]).interpreter == name


@pytest.mark.parametrize(
    ("command", "reason"),
    [
        ([], "no command"),
        (["/bin/bash", "-c", "python x.py"], "bash"),
        (["env", "A=1", "python", "x.py"], "'env'"),
        (["./pythonic", "x.py"], "not with python"),
        (["python"], "no Python program"),
        (["python", "-u"], "no Python program"),
        (["python", "-"], "standard input"),
        (["python", "--", ""], "standard input"),
        (["python", "-i", "x.py"], "terminal"),
        (["python", "-uVc", "x"], "runs no program"),
        (["python", "-Z", "x.py"], "-Z"),
        (["python", "-X"], "has no value"),
        (["python", "-m"], "has no value"),
        (["python", "--help"], "--help"),
        (["python", "--check-hash-based-pycs"], "check-hash"),
    ],
)
def test_refused_with_a_remedy(command: list[str], reason: str) -> None:
    with pytest.raises(ToolOutputError, match="write the command as") as caught:
        python_command.split(command)
    assert reason in str(caught.value)


def test_driver_stands_between_flags_and_program() -> None:
    argv = in_program.under_driver(["python3", "-X", "dev", "-m", "pkg", "-x"], "python_run.py", ["/out"])
    driver = Path(argv[3])
    assert driver.is_file()
    assert (*argv[:3], *argv[4:]) == ("python3", "-X", "dev", "/out", "module", "pkg", "-x")
