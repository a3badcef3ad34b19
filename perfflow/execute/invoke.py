"""Run the processes of a step, check their exit status and output files, and parse the output.

An exit status of 0, fresh output files and valid content are checked separately: none implies another.

``Sampler`` runs a sampler beside the command that it watches: it starts before the command, and SIGINT stops it
afterwards. ``trim_and_mask`` removes the middle of long output and masks secrets, in the files of a finished step. It
never works while a step runs, so that a timed command writes to a plain file and has the machine to itself.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
import time
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from pathlib import Path
from types import TracebackType
from typing import BinaryIO, Literal, Self

from perfflow.execute.child import (
    PIPE,
    ChildExit,
    Ended,
    Left,
    OutOfTimeError,
    Spawner,
    StartError,
    ending,
    find_program,
)
from perfflow.execute.launchers import behind
from perfflow.execute.prepare import PREPARE, ReadyProcess, is_bash, missing_program
from perfflow.execute.service import MOST_PRINTED, Service
from perfflow.model.errors import AdapterError, StepError, ToolOutputError
from perfflow.model.judging import Code
from perfflow.model.readings import PREPARED, Parsed, Side, Usage
from perfflow.model.secrets import Secrets, without
from perfflow.plan.plan import Planned
from perfflow.tools import regular_files
from perfflow.tools.adapter import SUCCESS, Adapter, Call, Invocation, Role
from perfflow.tools.parsed_output import PatternTimeoutError
from perfflow.tools.shell.same_output import SameOutputOptions
from perfflow.tools.tool_files import last_words

TAIL_LINES = 20
_TAIL_BYTES = 8192
_CLOCK_TICK = 0.05
_ELF = b"\x7fELF"
_MOST_OF_TOOL = 8 * 2**30
_MOST_LISTED = 16 * 2**20
_MOST_ANSWERED = 2**20
_PRELOAD = "LD_PRELOAD"
_LONGEST_ANSWER = 30.0
STALLED = (
    "perfflow's process that starts and times programs was stopped (SIGSTOP) during the run, so the time is not "
    "known; a program must not stop its parent process"
)
_TIMED = frozenset({Role.MEASURE, Role.PROFILE, Role.MACHINE})
_KEPT_FOLDERS = frozenset({"artifacts", PREPARED, *(side.value for side in Side)})
_TAKEN = "taken-"
"""Name of a file that is taken out of a sandbox, with a number."""
LEFT_RUNNING = "left-running"
"""The key of ``allow`` that lets a measured command leave processes running."""


@dataclass(eq=False)
class Failure(StepError):  # noqa: N818 (a fact about a step that is passed on, not only raised)
    """A failed process: the reason, whether it reached the time limit, its exit code and its log.

    ``argv`` is its command line if another step ran it. ``is_told``: a warning of the step has the reason already.
    ``code``: what it means for a candidate, if that is more than that the step failed.
    """

    reason: str
    timeout: bool = False
    exit_code: int | None = None
    log: Path | None = None
    argv: tuple[str, ...] = ()
    is_told: bool = False
    code: Code | None = None


class OutOfTimeFailure(Failure):
    """A process was ended, or not started, because the time of the whole command was over."""


@dataclass(frozen=True, slots=True)
class Invoked:
    """One successful call: the output that the adapter parsed, and the resource usage of the process."""

    parsed: Parsed
    usage: Usage
    exit_code: int
    paused: bool = False
    """Whether one of its processes was paused (^Z). The pause is part of its wall time."""
    left: tuple[str, ...] = ()
    """Command lines of processes that it left running, as the step allows."""


@contextmanager
def adapter_failures(tool: Adapter | None, status: int | None = None, log: Path | None = None) -> Iterator[None]:
    """Turn errors of an adapter's functions into a Failure. ``status``, ``log``: of the process they are about."""
    try:
        yield
    except (AdapterError, ToolOutputError) as error:
        # An AdapterError names the tool itself.
        name = f"{tool.name}: " if tool and isinstance(error, ToolOutputError) else ""
        raise Failure(f"{name}{error}", isinstance(error, PatternTimeoutError), exit_code=status, log=log) from error


def run(spawner: Spawner, ready: ReadyProcess, folder: Path) -> Invoked:
    """Run all processes of one call and parse their files in ``folder``, which must exist. Raises Failure."""
    with adapter_failures(ready.tool):
        tool, call = ready.tool, ready.call
        if tool and call:
            for path in tool.outputs(call):
                path.unlink(missing_ok=True)
        began, clock = time.time(), time.monotonic()
        with _in_sandbox(spawner, ready, folder, builds=ready.planned.role is Role.WORK) as inner:
            _prepare_sample(inner, ready, folder)
            if tool and call and tool.wants_python(call):
                call = replace(call, command=(_real_python(inner, ready, folder), *call.command[1:]))
                ready = replace(ready, call=call)
            invocations = ready.invocations()
            if not tool or not call:
                done = _start(inner, ready, invocations[0], folder, _left_policy(ready))
                _require_success(done, ready, invocations[0], folder)
            else:
                ended = _invoke(inner, ready, tool, call, invocations, folder)
        if not tool or not call:
            require_space(folder)
            warnings = (STALLED,) if done.stalled else ()
            return Invoked(Parsed(warnings=warnings), done.usage, done.status, done.paused > 0, done.left)
        # The first process is the tool itself; of most tools, the others convert its output.
        usage, status = (ended[0].usage, ended[-1].status) if ended else (Usage(0.0), 0)
        if len(ended) > 1:
            usage = replace(usage, rest=tuple(done.usage for done in ended[1:]))
        require_space(folder)
        # If the clock was set back during the run, file times may be before `began`, so compute the start from the end.
        started = min(began, time.time() - (time.monotonic() - clock))
        for path in tool.outputs(call):
            require_fresh(path, started, folder / "stderr")
        paused, left = any(done.paused > 0 for done in ended), tuple(name for done in ended for name in done.left)
        with adapter_failures(tool, status, folder / "stderr"):
            return Invoked(tool.parse(call, usage), usage, status, paused, left)


@contextmanager
def _in_sandbox(spawner: Spawner, ready: ReadyProcess, folder: Path, *, builds: bool = False) -> Iterator[Spawner]:
    """Yield a spawner for the processes of one call: one in a new sandbox, if the step runs in one.

    The sandbox sees ``folder``, which is empty at the start unless it builds, so that no call sees what another one
    left. Files of the tree that the step reads afterwards are taken out of it.
    """
    if ready.sandbox is None:
        yield spawner
        return
    call = ready.call
    writable, readable = [folder], [*ready.visible, *([call.kept] if call and call.kept else [])]
    if builds:
        writable += [path for path in (*readable, *([call.place] if call else [])) if path.is_dir()]
        readable = []
    else:
        _empty(folder, but=_KEPT_FOLDERS)
    read_later = [] if builds else [ready.cwd / name for name in _read_later(ready)]
    for path in read_later:
        path.unlink(missing_ok=True)
    started = [*ready.argv[:1], *([call.program, *call.command[:1]] if call else [])]
    words = ready.sandbox.words(ready.env, writable, readable, builds=builds, programs=started)
    with spawner.within(words) as inner:
        yield inner
        for number, path in enumerate(read_later):
            taken = folder / f"{_TAKEN}{number}"
            argv = ("cp", "--", str(path), str(taken))
            with suppress(StartError, OSError):
                inner.run(argv, env=ready.env, cwd=ready.cwd, account=False)
                taken.replace(path)


def _read_later(ready: ReadyProcess) -> list[str]:
    """Return the files, relative to the working directory, that perfflow reads after the call."""
    options = ready.call.options if ready.call else None
    parse = ready.planned.step.parse
    files = options.named_files if isinstance(options, SameOutputOptions) else []
    return [*files, *([parse.file] if parse and parse.file else [])]


def _empty(folder: Path, but: Collection[str]) -> None:
    for path in folder.iterdir():
        if path.name in but:
            continue
        if path.is_dir() and not path.is_symlink():
            shutil.rmtree(path)
        else:
            path.unlink()


def _prepare_sample(spawner: Spawner, ready: ReadyProcess, folder: Path) -> None:
    """Run the commands of the step's ``prepare``. Raises Failure."""
    for invocation in ready.first:
        done = _start(spawner, ready, invocation, folder)
        if done.status:
            reason = f"`{PREPARE}` {ending(done.status)}"
            log = _failure_log(folder, invocation)
            raise Failure(reason, exit_code=done.status, log=log, argv=invocation.argv)


def _invoke(
    spawner: Spawner, ready: ReadyProcess, tool: Adapter, call: Call, invocations: Sequence[Invocation], folder: Path
) -> list[ChildExit]:
    """Run the processes of a call in order, a sampler beside the process that follows it.

    Returns the exit of each process except samplers. Raises Failure at the first failed process.
    """
    ended: list[ChildExit] = []
    sampler: Invocation | None = None
    for invocation in invocations:
        if invocation.beside:
            sampler = invocation
            continue
        if sampler:
            done, sampler = _run_sampled(spawner, ready, sampler, invocation, folder), None
        else:
            done = _start(spawner, ready, invocation, folder, _left_policy(ready))
            if done.status not in tool.good_statuses:
                _raise_tool_error(tool, call, done.status, folder)
        ended.append(done)
        _require_success(done, ready, invocation, folder)
    return ended


def prepare(spawner: Spawner, ready: ReadyProcess) -> None:
    """Run the adapter's preparations, such as a build, once per side before listing and timing. Raises Failure."""
    tool, call = ready.tool, ready.call
    if not tool or not call:
        return
    with adapter_failures(tool):
        steps = tool.build.preparations(call)
    if not steps:
        return
    call.place.mkdir(parents=True, exist_ok=True)
    with _in_sandbox(spawner, ready, call.place, builds=True) as inner:
        for step in steps:
            done = _start(inner, ready, step, call.place)
            if done.status:
                _raise_tool_error(tool, call, done.status, call.place)
            _require_success(done, ready, step, call.place)


def benchmarks(spawner: Spawner, ready: ReadyProcess, folder: Path) -> tuple[str, ...]:
    """Return the ids of a suite's benchmarks, () for a tool of one command. Raises Failure, also for an empty list."""
    with adapter_failures(ready.tool):
        listing = ready.tool.suite.listing(ready.call) if ready.tool and ready.call else None
    if listing is None:
        return ()
    folder.mkdir(parents=True, exist_ok=True)
    listing = replace(listing, stdout=listing.stdout or "ids")
    with _in_sandbox(spawner, ready, folder) as inner:
        done = _start(inner, ready, listing, folder)
    # No adapter parses the error of a listing, so report the last line of its log.
    _require_success(done, ready, listing, folder, last_words(folder) or "it was to list the benchmarks")
    try:
        text = regular_files.read(folder / listing.stdout, _MOST_LISTED).decode("utf-8", "replace")
    except OSError as error:
        raise Failure(f"cannot read the list of benchmarks: {error.strerror}", log=folder / "stderr") from error
    ids = tuple(dict.fromkeys(line.strip() for line in text.splitlines() if line.strip()))
    if not ids:
        raise Failure("the suite lists no benchmark", log=folder / "stderr")
    return ids


def _run_sampled(
    spawner: Spawner, ready: ReadyProcess, beside: Invocation, watched: Invocation, folder: Path
) -> ChildExit:
    """Run a process with a sampler beside it. Raises Failure if the sampler fails and the process does not."""
    with Sampler(beside, ready.env, ready.cwd / beside.cwd, folder) as sampler:
        if sampler.wait_until_begun():
            done = _start(spawner, ready, watched, folder, _left_policy(ready))
            sampler.stop()
            if not sampler.trouble or done.status:
                # The failure of the command itself comes first; the caller reports it.
                return done
    if ready.tool and ready.call and sampler.exit_code:
        _raise_tool_error(ready.tool, ready.call, sampler.exit_code, folder)
    raise Failure(sampler.trouble, exit_code=sampler.exit_code, log=folder / STDERR)


def _raise_tool_error(tool: Adapter, call: Call, status: int, folder: Path) -> None:
    """Raise Failure if the output of a failed tool gives a better reason than its exit status."""
    try:
        tool.parse(call, Usage(0.0))
    except ToolOutputError as error:
        reason = f"{tool.name}: {error} (exit status {status})"
        raise Failure(reason, exit_code=status, log=folder / "stderr") from error
    except AdapterError:
        return  # the exit status says more than an adapter that cannot read what a failed tool left


def _left_policy(ready: ReadyProcess) -> Left:
    """Return how to treat processes that a command leaves running: the metrics of a measurement exclude their work."""
    if ready.planned.role is not Role.MEASURE:
        return Left.END
    return Left.ALLOW if LEFT_RUNNING in ready.planned.step.allow else Left.NAME


def _stdout(ready: ReadyProcess, invocation: Invocation, folder: Path) -> Path | Literal["pipe"] | None:
    """Return the destination of a process's output. The step's ``stdout`` applies to processes that run its command."""
    if invocation.stdout:
        return folder / invocation.stdout
    call = ready.call
    if not call or not call.stdout or invocation.argv[-len(call.command) :] != call.command:
        return None
    return PIPE if call.stdout == PIPE else Path(call.stdout)


def _merged(step: Mapping[str, str], own: Mapping[str, str]) -> dict[str, str]:
    """Return the environment of a process of a step; libraries that both preload are all loaded."""
    both = [env[_PRELOAD] for env in (step, own) if env.get(_PRELOAD)]
    return {**step, **own, **({_PRELOAD: ":".join(both)} if len(both) > 1 else {})}


def _start(
    spawner: Spawner, ready: ReadyProcess, invocation: Invocation, folder: Path, left: Left = Left.END
) -> ChildExit:
    log = folder / invocation.stderr
    cwd = ready.cwd / invocation.cwd if invocation.cwd else ready.cwd
    stdout = _stdout(ready, invocation, folder)
    limits = _limits(ready, invocation, log, stdout)
    try:
        done = spawner.run(
            invocation.argv,
            env=_merged(ready.env, invocation.env) if invocation.env else ready.env,
            cwd=cwd,
            stdout=stdout,
            stderr=log,
            timeout=ready.timeout,
            account=ready.planned.role is not Role.WORK,
            left=left,
            limits=limits,
            in_bash=invocation.in_bash and is_bash(invocation.argv),
            core=ready.call.core if ready.call else None,
        )
    except OutOfTimeError as error:
        raise OutOfTimeFailure(str(error), timeout=True) from error
    except StartError as error:
        if not cwd.is_dir():
            raise Failure(f"{cwd}: no such folder") from error
        # PATH may depend on an output of an earlier step, so this could not be checked before.
        missing = missing_program(ready.planned, ready.env.get("PATH", ""))
        raise Failure(missing or str(error)) from error
    if done.ended is not Ended.EXITED or done.stalled:
        if done.ended is Ended.OUT_OF_TIME:
            text = f"{Path(invocation.argv[0]).name} was ended: {spawner.deadline.reason}"
            raise OutOfTimeFailure(text, timeout=True, log=log)
        _require_end(done, ready, invocation, log, limits)
    return done


def _require_end(
    done: ChildExit, ready: ReadyProcess, invocation: Invocation, log: Path, limits: Mapping[Path, int]
) -> None:
    """Raise Failure for a process that perfflow ended or could not time, KeyboardInterrupt for one that was stopped."""
    name = Path(invocation.argv[0]).name
    if done.ended is Ended.TIMEOUT:
        raise Failure(f"{name} ran into the time limit of {ready.timeout:g} s", timeout=True, log=log)
    if done.ended is Ended.STOPPED:
        raise KeyboardInterrupt
    if done.ended is Ended.FLOODED:
        most = next((limit for path, limit in limits.items() if path.stat().st_size > limit), MOST_PRINTED)
        reason = f"{name} was ended because it printed more than {most >> 20} MiB; reduce its output"
        raise Failure(reason, exit_code=done.status, log=log)
    if done.stalled and (ready.planned.role in _TIMED or done.status):
        raise Failure(f"{name}: {STALLED}", exit_code=done.status, log=log)


def _limits(
    ready: ReadyProcess, invocation: Invocation, log: Path, stdout: Path | Literal["pipe"] | None
) -> Mapping[Path, int]:
    """Return the size limit, in bytes, of each file the process prints to. Tools get more: they may print a profile."""
    printed = stdout if invocation.stdout and isinstance(stdout, Path) else log
    most = MOST_PRINTED if ready.tool is None or printed.name in PRINTED else _MOST_OF_TOOL
    return {log: MOST_PRINTED, printed: most}


def _require_success(
    done: ChildExit, ready: ReadyProcess, invocation: Invocation, folder: Path, detail: str = ""
) -> None:
    if done.status not in (ready.tool.good_statuses if ready.tool else SUCCESS):
        name = ready.planned.id if ready.tool is None else Path(invocation.argv[0]).name
        reason = f"{name} {ending(done.status)}" + (f": {detail}" if detail else "")
        raise Failure(reason, exit_code=done.status, log=_failure_log(folder, invocation))
    if done.left and LEFT_RUNNING not in ready.planned.step.allow:
        reason = (
            f"it left processes running when it ended, and what they do is not measured: {_quoted(done.left)}; "
            f"wait for them in the command, or allow them with a reason: `allow: {{{LEFT_RUNNING}: WHY}}` "
            "(compare: --allow-left-running WHY)"
        )
        raise Failure(reason, exit_code=done.status, log=folder / invocation.stderr, code=Code.LEFT_RUNNING)


def allowed_to_run(planned: Planned, names: Sequence[str]) -> str:
    """Return a warning with the processes that a measured command left running, and the reason they are allowed."""
    return f"it left processes running ({LEFT_RUNNING}: {planned.step.allow[LEFT_RUNNING]}): {_quoted(names)}"


def _quoted(names: Sequence[str]) -> str:
    return ", ".join(f"`{name}`" if name != "..." else name for name in names)


def _failure_log(folder: Path, invocation: Invocation) -> Path:
    """Return the log that most likely holds the reason of a failure: test programs write it to standard output."""
    stderr = folder / invocation.stderr
    is_empty = not stderr.exists() or stderr.stat().st_size == 0
    return folder / invocation.stdout if invocation.stdout and is_empty else stderr


Written = tuple[int, int, int] | None
"""State of a file: modification time (ns), size and inode; None if the file does not exist."""


def written(path: Path | None) -> Written:
    """Return the state of a file. Any write by a process that starts after this call changes the state."""
    try:
        status = path.stat() if path else None
    except OSError:
        return None
    if status is None:
        return None
    # The kernel's file times have a resolution of 1 to 10 ms: two writes within one tick have the same time.
    wait = status.st_mtime + _CLOCK_TICK - time.time()
    if 0 < wait <= _CLOCK_TICK:
        time.sleep(wait)
    return status.st_mtime_ns, status.st_size, status.st_ino


def require_fresh(path: Path, started: float, log: Path) -> None:
    """Raise Failure if an output file is missing, empty or older than ``started`` (Unix time, s)."""
    status = require_there(path, log)
    # File times come from the kernel's coarse clock, which lags by up to a tick.
    if status.st_mtime < started - _CLOCK_TICK:
        raise Failure(f"{path.name} is older than the run", log=log)


def require_there(path: Path, log: Path, who: str = "the tool") -> os.stat_result:
    """Return the status of an output file of any age. Raises Failure if it is missing or empty."""
    try:
        status = path.stat()
    except OSError as error:
        raise Failure(f"{who} left no {path.name}", log=log) from error
    if status.st_size == 0:
        raise Failure(f"{who} left an empty {path.name}", log=log)
    return status


def require_space(folder: Path) -> None:
    """Raise Failure if the disk is full: a program that ignores write errors may have written incomplete output."""
    try:
        disk = os.statvfs(folder)
    except FileNotFoundError as error:
        raise Failure(f"{folder} was removed while the step ran") from error
    # File systems that report no blocks (some network and user-space ones) cannot be checked.
    if disk.f_blocks and not disk.f_bavail:
        raise Failure(f"the disk of {folder} is full, so the output may be incomplete", log=folder / "stderr")


def _real_python(spawner: Spawner, ready: ReadyProcess, folder: Path) -> str:
    """Return the path of the Python interpreter behind a shim: a profiler of a pyenv shim would profile bash."""
    command = ready.call.command[0] if ready.call else ""
    program = find_program(command, ready.env.get("PATH", ""), ready.cwd)
    if program is None:
        raise Failure(f"{command}: not found or not executable")
    if is_binary(Path(program)):
        return program
    argv = (program, "-c", "import sys; print(sys.executable)")
    name = _answer(spawner, argv, ready.env, ready.cwd, folder).strip()
    if not Path(name).is_file():
        raise Failure(f"{command} is not a Python interpreter", log=folder / "stderr")
    return name


def _answer(spawner: Spawner, argv: Sequence[str], env: Mapping[str, str], cwd: Path, folder: Path) -> str:
    """Return what a short command prints, '' if it fails. Raises Failure if it cannot be started."""
    output = folder / "answer"
    try:
        done = spawner.run(argv, env=env, cwd=cwd, stdout=output, stderr=folder / "stderr", timeout=_LONGEST_ANSWER)
        return "" if done.status else regular_files.read(output, _MOST_ANSWERED).decode("utf-8", "replace")
    except OutOfTimeError as error:
        raise OutOfTimeFailure(str(error), timeout=True) from error
    except StartError as error:
        raise Failure(str(error)) from error
    except OSError:
        return ""


def without_launchers(spawner: Spawner, ready: ReadyProcess, folder: Path) -> tuple[ReadyProcess, str]:
    """Return a call of a command without the shims and launchers before its program, and a note about them or ''."""
    call = ready.call
    if call is None or call.shell_text or not call.command:
        return ready, ""

    def ask(argv: Sequence[str], env: Mapping[str, str]) -> str:
        folder.mkdir(parents=True, exist_ok=True)
        with suppress(Failure), _in_sandbox(spawner, ready, folder) as inner:
            return _answer(inner, argv, env, ready.cwd, folder)
        return ""

    started = behind(call.command, ready.env, ready.cwd, ask)
    if not started.launchers:
        return ready, ""
    call = replace(call, command=started.argv)
    return replace(ready, argv=started.argv, env={**ready.env, **started.env}, call=call), started.note


def is_binary(path: Path) -> bool:
    """Return whether a program is a binary, not a script. An unreadable executable cannot be a script."""
    try:
        with path.open("rb") as stream:
            return stream.read(4) == _ELF
    except PermissionError:
        return True


def _last_bytes(path: Path) -> bytes:
    with path.open("rb") as stream:
        stream.seek(max(0, stream.seek(0, os.SEEK_END) - _TAIL_BYTES))
        return stream.read(_TAIL_BYTES)


def tail(path: Path | None) -> Iterator[str]:
    """Yield the last lines of a log, with control characters escaped."""
    try:
        raw = _last_bytes(path) if path else b""
    except OSError:
        return
    for line in raw.decode("utf-8", "replace").splitlines()[-TAIL_LINES:]:
        yield "".join(letter if letter.isprintable() or letter == "\t" else f"\\x{ord(letter):02x}" for letter in line)


STDERR = "sampler.stderr"
_POLL_INTERVAL, _EARLY_EXIT = 0.01, 0.1
_STOPPED = frozenset({0, -signal.SIGINT, 128 + signal.SIGINT})
"""Exit statuses of an interrupted sampler: most write their file and exit with 0, others die from the signal."""


class Sampler:
    """One sampler with its own spawner, which ends it if perfflow itself is killed.

    SIGINT is sent first, because SIGTERM makes programs such as iostat lose the end of their file.
    """

    def __init__(self, invocation: Invocation, env: Mapping[str, str], cwd: Path, folder: Path) -> None:
        """Start the sampler. Its output goes to ``folder``."""
        self._invocation, self._output = invocation, folder / invocation.stdout
        self._output.unlink(missing_ok=True)
        self._service = Service(
            Spawner(),
            invocation.argv,
            env={**env, **invocation.env},
            cwd=cwd,
            stdout=self._output,
            stderr=folder / STDERR,
        )

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()

    def wait_until_begun(self) -> bool:
        """Wait for the first output, at most as long as the invocation allows, and return whether it still runs."""
        for _ in range(max(1, round(self._invocation.beside / _POLL_INTERVAL))):
            if self._service.wait(_POLL_INTERVAL) or (self._output.exists() and self._output.stat().st_size):
                break
        # Its first output may be an error message, after which it exits.
        return not self._service.wait(_EARLY_EXIT)

    def stop(self) -> None:
        """Interrupt it, wait for its file, and end its remaining processes. Does nothing if called again."""
        self._service.stop()

    @property
    def exit_code(self) -> int | None:
        """Its exit code, or minus the signal that killed it; None if it never ran."""
        return self._service.exit_code

    @property
    def trouble(self) -> str:
        """What went wrong after it ended: it ended by itself, failed, or could not run. '' if nothing did."""
        name = Path(self._invocation.argv[0]).name
        if self._service.unexpected_end:
            return f"{name} {self._service.unexpected_end} before the command that it watches had ended"
        status = self._service.exit_code
        if status is None:
            return f"{name} did not start"
        return "" if status in _STOPPED else f"{name} {ending(status)} when perfflow interrupted it"


KEPT = 16 * 2**20
"""Bytes of output to keep. Of longer output, half of this is kept from each end."""
PRINTED = ("stdout", "stderr", STDERR, "outputs", "prepare.stdout", "prepare.stderr")
"""Files with the printed output of programs, or with outputs for later steps; all others are files of a tool."""
_UNCHANGED_FOLDERS = frozenset({"artifacts"})
"""Folders that the workflow asks to keep unchanged."""
_PATCH_SUFFIXES = (".patch", ".diff")
"""Suffixes of files that a resumed run applies to code again."""
_MOST_SEARCHED = 64 * 2**20
"""Size limit, in bytes, of a tool's file that is searched for secrets."""
_OVERLAP = 2**16
"""Upper bound of the length of a secret, in bytes: each part is searched together with this much of the next."""
_CHUNK = 2**20
_NOTE_SIZE = 128
"""Bytes reserved in each half for the line that replaces the middle."""
_BINARY_PROBE = 8192


def trim_and_mask(folder: Path, secrets: Secrets) -> set[Path]:
    """Trim and mask the files in the folder of a finished step, and return the changed ones.

    Patches, artifacts, binary files and tools' files of more than 64 MiB stay unchanged. Raises OSError.
    """
    of_bytes: Secrets | None = None
    changed = set()
    for path, size in _files(folder):
        # A file that another user wrote, as with sudo, may not be readable.
        with contextlib.suppress(PermissionError):
            of_bytes = of_bytes or secrets.as_bytes()
            if _is_changed(path, size, of_bytes):
                changed.add(path)
    return changed


def _files(folder: Path) -> Iterator[tuple[Path, int]]:
    """Yield the regular, non-empty files and their sizes in bytes, without following links."""
    waiting = [str(folder)]
    while waiting:
        try:
            with os.scandir(waiting.pop()) as scanned:
                entries = list(scanned)
        except OSError:
            continue  # another user's, or just removed by a process left running
        for entry in entries:
            if entry.is_dir(follow_symlinks=False):
                waiting += [entry.path] if entry.name not in _UNCHANGED_FOLDERS else []
            elif not entry.name.endswith(_PATCH_SUFFIXES) and (size := _size(entry)):
                yield Path(entry.path), size


def _size(entry: os.DirEntry[str]) -> int:
    """Return the size of a regular file in bytes, 0 for anything else and for a file that is gone."""
    try:
        return entry.stat(follow_symlinks=False).st_size if entry.is_file(follow_symlinks=False) else 0
    except FileNotFoundError:
        return 0


def _is_changed(path: Path, size: int, secrets: Secrets) -> bool:
    if path.name in PRINTED and size > KEPT:
        _replace(path, _ends(path, size, secrets))
        return True
    if size > _MOST_SEARCHED:
        return False
    with path.open("rb") as stream:
        if path.name not in PRINTED and b"\0" in stream.read(_BINARY_PROBE):
            return False
        stream.seek(0)
        if not any(spans for _, spans in _parts(stream, secrets)):
            return False
        stream.seek(0)
        _replace(path, (without(text, spans) for text, spans in _parts(stream, secrets)))
    return True


def _ends(path: Path, size: int, secrets: Secrets) -> Iterator[str]:
    """Yield the first part, a line about the removed middle, and the last part of a long file."""
    half = KEPT // 2 - _NOTE_SIZE
    with path.open("rb") as stream:
        # A secret may cross the border of a part, so more is read than is kept.
        first = _text(stream.read(half + _OVERLAP))
        yield _between(first, 0, half, secrets)
        yield f"\n[perfflow left out {size - 2 * half} of {size} bytes here: it keeps the first and the last 8 MiB]\n"
        stream.seek(size - half - _OVERLAP)
        last = _text(stream.read(half + _OVERLAP))
        yield _between(last, _OVERLAP, len(last), secrets)


def _between(text: str, begin: int, end: int, secrets: Secrets) -> str:
    """Return a part of a text with the secrets, or pieces of secrets, in it masked."""
    found = ((max(start, begin) - begin, min(after, end) - begin) for start, after in secrets.spans(text))
    return without(text[begin:end], [(start, after) for start, after in found if start < after])


def _parts(stream: BinaryIO, secrets: Secrets) -> Iterator[tuple[str, list[tuple[int, int]]]]:
    """Yield the file in parts, split where no secret is, with the (start, end) of the secrets in each."""
    text = ""
    while data := stream.read(_CHUNK):
        text += _text(data)
        end = max(0, len(text) - _OVERLAP)
        end = text.rfind("\n", max(0, end - _OVERLAP), end) + 1 or end
        spans = secrets.spans(text)
        crossing = next((span for span in spans if span[0] < end < span[1]), None)
        if crossing:
            end = crossing[0] or crossing[1]
        yield text[:end], [span for span in spans if span[1] <= end]
        text = text[end:]
    yield text, secrets.spans(text)


def _text(data: bytes) -> str:
    """Decode one character per byte, so that no byte is lost and no character is split."""
    return data.decode("latin-1")


def _replace(path: Path, parts: Iterator[str]) -> None:
    """Replace a file instead of writing into it: the old file may have another hard link elsewhere."""
    fresh = path.with_name(f".{path.name}.kept")
    try:
        with fresh.open("wb") as stream:
            stream.writelines(part.encode("latin-1") for part in parts)
        shutil.copymode(path, fresh)
        fresh.replace(path)
    except OSError:
        fresh.unlink(missing_ok=True)
        raise
