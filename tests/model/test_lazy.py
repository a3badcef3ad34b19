"""Dataclasses and patterns that are built on first use behave like those of the standard library."""

from __future__ import annotations

import copy
import dataclasses
import re
import signal
import subprocess
import sys
import threading
from collections.abc import Callable
from dataclasses import FrozenInstanceError, field

import pytest

from perfflow.model.lazy import dataclass, lazy_pattern


@dataclass(frozen=True)
class Point:
    x: int
    y: int = 2
    names: list[str] = field(default_factory=list)

    @property
    def total(self) -> int:
        return self.x + self.y


@dataclass(frozen=True)
class Named(Point):
    name: str = "?"


@dataclass
class Count:
    number: int = 0


def test_an_instance_is_that_of_a_dataclass() -> None:
    first, second = Point(1), Point(1, y=2)
    assert (first.x, first.y, first.names, first.total) == (1, 2, [], 3)
    assert first == second
    assert first.names is not second.names
    assert repr(first) == "Point(x=1, y=2, names=[])"
    assert dataclasses.asdict(dataclasses.replace(first, x=5)) == {"x": 5, "y": 2, "names": []}
    assert copy.copy(first) == first
    with pytest.raises(FrozenInstanceError):
        first.x = 3  # type: ignore[misc]
    with pytest.raises(TypeError):
        Point()  # type: ignore[call-arg]


def test_a_class_that_can_be_changed_is_not_frozen() -> None:
    count = Count()
    count.number += 1
    assert count == Count(1)


def test_the_fields_are_known_before_there_is_an_instance() -> None:
    assert [about.name for about in dataclasses.fields(Named)] == ["x", "y", "names", "name"]
    assert dataclasses.is_dataclass(Count)
    assert Named(1, name="a") == Named(1, name="a")


def test_a_class_is_made_once_however_many_threads_want_it() -> None:
    for _ in range(50):

        @dataclass(frozen=True)
        class Fresh:
            x: int
            names: list[str] = field(default_factory=list)

        made: list[object] = []
        barrier = threading.Barrier(4)

        def make(made: list[object] = made, barrier: threading.Barrier = barrier, kind: type[Fresh] = Fresh) -> None:
            barrier.wait()
            made.append(kind(1))

        threads = [threading.Thread(target=make) for _ in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert made == [Fresh(1)] * 4


def test_what_would_not_work_is_refused() -> None:
    with pytest.raises(TypeError, match="slots"):

        @dataclass(slots=True)
        class Slotted:
            x: int

    with pytest.raises(TypeError, match="__new__"):

        @dataclass
        class Wrong(Exception):  # noqa: N818
            x: int


def test_a_pattern_is_compiled_with_its_first_use() -> None:
    word = lazy_pattern(r"(?P<word>[a-z]+)", re.IGNORECASE)
    wrong = lazy_pattern("(")
    match = word.search("  Hello")
    assert match
    assert match["word"] == "Hello"
    assert word.sub("-", "a b") == "- -"
    assert word.pattern == r"(?P<word>[a-z]+)"
    with pytest.raises(re.error):
        wrong.match("")


def test_a_run_imports_nothing_that_it_does_not_use() -> None:
    probe = "import sys, perfflow.session.open_workflow, perfflow.jobs.run.run; print(*sys.modules)"
    loaded = set(
        subprocess.run([sys.executable, "-c", probe], capture_output=True, text=True, check=True).stdout.split()
    )
    assert not loaded & {
        *("networkx", "jinja2", "psutil", "ruamel", "sqlite3"),
        *("perfflow.workflow.declared_tool", "perfflow.tools.parsed_output"),
        *("perfflow.session.attribution.choose_profilers", "perfflow.plan.optimize_stage"),
    }


class Interrupting:
    """An empty `__post_init__` that interrupts the process when the class is asked for it for the first time."""

    interrupted = False

    def __get__(self, _instance: object, _owner: type) -> Callable[[], None]:
        if not Interrupting.interrupted:
            Interrupting.interrupted = True
            signal.raise_signal(signal.SIGINT)
        return lambda: None


def test_an_interruption_leaves_no_class_half_made() -> None:
    @dataclass
    class Counted:
        first: int
        __post_init__ = Interrupting()  # type: ignore[misc]

    with pytest.raises(KeyboardInterrupt):
        Counted(1)
    assert Counted(1) == Counted(1)
    assert Counted(1).first == 1
