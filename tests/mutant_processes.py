"""The processes in which the tests meet a mutant of ``tests.mutants``: forked, in a copy of the tree."""

from __future__ import annotations

import gc
import inspect
import multiprocessing
import os
import resource
import signal
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from multiprocessing.connection import Connection
from pathlib import Path
from types import CodeType, FunctionType
from typing import Self

import pytest

_FORK = multiprocessing.get_context("fork")


class _Chosen:
    """Runs these tests alone, in this order."""

    def __init__(self, nodes: Sequence[str]) -> None:
        self._rank = {node: rank for rank, node in enumerate(nodes)}

    @pytest.hookimpl(trylast=True)
    def pytest_collection_modifyitems(self, items: list[pytest.Item]) -> None:
        items[:] = sorted(
            (item for item in items if item.nodeid in self._rank), key=lambda item: self._rank[item.nodeid]
        )


def run_tests(words: Sequence[str], plugin: object) -> int:
    """Run tests in this process, a fresh one whose folder is the copy, without shrinking what hypothesis finds."""
    import hypothesis

    phases = (hypothesis.Phase.explicit, hypothesis.Phase.generate)
    hypothesis.settings.register_profile("mutants", database=None, phases=phases, deadline=None)
    hypothesis.settings.load_profile("mutants")
    for name in [name for name in sys.modules if name.partition(".")[0] in ("tests", "perfflow")]:
        del sys.modules[name]
    sys.path[:0] = [os.environ["PYTHONPATH"]]
    plugins = (
        "-pno:cacheprovider -pno:rerunfailures -pno:xdist -pno:cov -pno:benchmark --timeout=0 --hypothesis-seed=0 -xqq"
    )
    plugins += " -Wignore::pytest.PytestAssertRewriteWarning"
    return int(pytest.main([*plugins.split(), *words], plugins=[plugin]))


def _meet(nodes: Sequence[str]) -> int:
    return run_tests(sorted({node.partition("::")[0] for node in nodes}), _Chosen(nodes))


def _functions(code: CodeType) -> Iterator[CodeType]:
    """The code of each function of a module, and of its classes; what is inside a function is part of it."""
    for part in code.co_consts:
        if isinstance(part, CodeType):
            yield from [part] if part.co_flags & inspect.CO_OPTIMIZED else _functions(part)


def _outside(code: CodeType) -> list[object]:
    """What a module, and each of its classes, executes when it is imported."""
    parts = (part for part in code.co_consts if isinstance(part, CodeType) and not part.co_flags & inspect.CO_OPTIMIZED)
    plain = [(type(part), repr(part)) for part in code.co_consts if not isinstance(part, CodeType)]
    return [code.co_code, code.co_names, plain, *map(_outside, parts)]


def new_code(path: Path, mutated: bytes) -> dict[CodeType, CodeType]:
    """The code of the functions that a mutant changes, each with its new one; none where it changes more."""
    before, after = (compile(text, str(path), "exec", dont_inherit=True) for text in (path.read_bytes(), mutated))
    if _outside(before) != _outside(after):
        return {}
    both = zip(_functions(before), _functions(after), strict=True)
    return {old: new for old, new in both if old != new}


class _Collected:
    """Collects the tests once, and lets each mutant meet its own in a fork in which its functions have new code."""

    def __init__(self, root: Path, requests: Connection) -> None:
        self._root, self._requests = root, requests
        self._failed = False

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        self._failed |= report.failed

    def pytest_runtestloop(self, session: pytest.Session) -> bool:
        items = {item.nodeid: item for item in session.items}
        found = [each for each in gc.get_objects() if isinstance(each, FunctionType)]
        functions = [each for each in found if each.__code__.co_filename.startswith(str(self._root))]
        gc.freeze()
        with suppress(EOFError):
            while True:
                path, source, nodes, limit = self._requests.recv()
                changed = new_code(path, source)
                mutated = [each for each in functions if each.__code__ in changed]
                # A change that moves lines gives all functions below it new code as well.
                met = bool(changed) and next(iter(changed)) in {each.__code__ for each in mutated}
                chosen = [items[node] for node in nodes]
                status = in_process(self._root, limit, self._met, mutated, changed, chosen) if met else -1
                self._requests.send(status)
        return True

    def _met(
        self, mutated: Sequence[FunctionType], changed: Mapping[CodeType, CodeType], chosen: Sequence[pytest.Item]
    ) -> int:
        for each in mutated:
            each.__code__ = changed[each.__code__]
        for item, following in zip(chosen, [*chosen[1:], None], strict=True):
            item.config.hook.pytest_runtest_protocol(item=item, nextitem=following)
            if self._failed:
                return int(pytest.ExitCode.TESTS_FAILED)
        return int(pytest.ExitCode.OK)


class Collected:
    """A process that has collected the tests ``nodes`` of the copy."""

    def __init__(self, root: Path, nodes: Iterable[str]) -> None:
        self._requests, other = _FORK.Pipe()
        self._files = sorted({node.partition("::")[0] for node in nodes})
        self._process = _FORK.Process(target=self._work, args=(root, other))
        self._process.start()
        other.close()

    def _work(self, root: Path, requests: Connection) -> None:
        # So that the end of the process that asks is seen here.
        self._requests.close()
        _enter(root)
        run_tests(self._files, _Collected(root, requests))

    def met(self, path: Path, mutated: bytes, nodes: Sequence[str], limit: int) -> int | None:
        """The status of the tests where they met a mutant, None after ``limit`` seconds, -1 where none could."""
        self._requests.send((path, mutated, nodes, limit))
        status: int | None = self._requests.recv()
        return status

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        """End the process, and the mutant that it is at."""
        self._process.terminate()
        self._process.join()


def said(root: Path) -> Path:
    """Where the last process that worked in a copy printed to."""
    return root.with_suffix(".log")


def _enter(root: Path) -> None:
    """Make a copy the folder of this process, and print beside it."""
    os.chdir(root)
    os.environ.update(PYTHONPATH=str(root))
    out = os.open(said(root), os.O_RDWR | os.O_CREAT | os.O_TRUNC)
    for stream in (0, 1, 2):
        os.dup2(out, stream)


def in_process(root: Path, limit: int, work: Callable[..., int | None], *given: object) -> int | None:
    """What ``work`` returns in a process forked for it, whose folder is ``root``; None if it needs ``limit`` seconds.

    These are of a processor, since a busy machine takes longer; ten times as many may pass by the clock.
    """

    def child() -> None:
        os.setsid()
        resource.setrlimit(resource.RLIMIT_CPU, (limit, limit + 5))
        _enter(root)
        os._exit(work(*given) or 0)

    process = _FORK.Process(target=child)
    process.start()
    try:
        process.join(10 * limit)
        status = None if process.exitcode == -signal.SIGXCPU else process.exitcode
    finally:
        if process.pid:
            with suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
    process.join()
    return status


def met_in_file(root: Path, path: Path, mutated: bytes, nodes: Sequence[str], limit: int, stamp: int) -> int | None:
    """The same of a mutant that is put into its file of the copy, and taken out again."""
    source = path.read_bytes()
    path.write_bytes(mutated)
    # Bytecode is told from its source by the second of its last change and its size, which two mutants may share.
    os.utime(path, (stamp, stamp))
    try:
        return in_process(root, limit, _meet, nodes)
    finally:
        path.write_bytes(source)
