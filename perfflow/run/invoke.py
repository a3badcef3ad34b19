"""Start what is ready; exit status, valid fresh output files, and what they say are three separate facts."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from perfflow.errors import ToolOutputError
from perfflow.process.child import Attendant, Ended, Finished, StartError, find_program
from perfflow.run.prepare import Ready
from perfflow.run.sampler import STDERR, Sampler
from perfflow.samples.readings import Parsed, Usage
from perfflow.tools.protocol import Call, Invocation, Role, Tool, good_statuses, needs_python, preparations
from perfflow.tools.tool_files import last_words

TAIL_LINES = 20
_TAIL_BYTES = 8192
_CLOCK_TICK = 0.05
_ELF = b"\x7fELF"


@dataclass(eq=False)
class Failure(Exception):  # noqa: N818 (a fact about a step that is passed on, not only raised)
    """A process that did not do what it should: what happened, whether by time limit, and where its output is."""

    reason: str
    timeout: bool = False
    exit_code: int | None = None
    log: Path | None = None


@dataclass(frozen=True, slots=True)
class Invoked:
    """One call that went well: what the adapter read, and the process's own resource usage."""

    parsed: Parsed
    usage: Usage
    exit_code: int
    paused: bool = False
    """Whether one of its processes was stopped for a while (^Z), which is in its wall time."""


def run(attendant: Attendant, ready: Ready, folder: Path) -> Invoked:
    """Run all processes of one call and parse what they left in ``folder``, which exists. Raises Failure."""
    tool, call = ready.tool, ready.call
    if call and needs_python(tool, call):
        call = replace(call, command=(_real_python(attendant, ready, folder), *call.command[1:]))
        ready = replace(ready, call=call)
    try:
        invocations = ready.invocations()
    except ToolOutputError as error:
        raise Failure(str(error)) from error
    if not tool or not call:
        done = _start(attendant, ready, invocations[0], folder)
        _require_success(done, ready, invocations[0], folder)
        require_space(folder)
        return Invoked(Parsed(), done.usage, done.status, done.paused > 0)
    for path in tool.outputs(call):
        path.unlink(missing_ok=True)
    began, clock = time.time(), time.monotonic()
    usage, status, paused = _invoke(attendant, ready, tool, call, invocations, folder)
    require_space(folder)
    # Where the clock was set back meanwhile, files carry times before `began`, and the start is found from the end.
    started = min(began, time.time() - (time.monotonic() - clock))
    for path in tool.outputs(call):
        require_fresh(path, started, folder / "stderr")
    try:
        return Invoked(tool.parse(call, usage), usage, status, paused)
    except ToolOutputError as error:
        raise Failure(f"{tool.NAME}: {error}", exit_code=status, log=folder / "stderr") from error


def _invoke(
    attendant: Attendant, ready: Ready, tool: Tool, call: Call, invocations: Sequence[Invocation], folder: Path
) -> tuple[Usage, int, bool]:
    """Run the processes of a call in order, samplers beside what follows them. Raises Failure at the first that fails.

    Returns what the first one used, how the last one ended, and whether one was paused.
    """
    usage, status, paused = None, 0, False
    sampler: Invocation | None = None
    for invocation in invocations:
        if invocation.beside:
            sampler = invocation
            continue
        if sampler:
            done, sampler = _watch(attendant, ready, sampler, invocation, folder), None
        else:
            done = _start(attendant, ready, invocation, folder)
            if done.status not in good_statuses(tool):
                _explain(tool, call, done.status, folder)
        usage, status, paused = usage or done.usage, done.status, paused or done.paused > 0
        _require_success(done, ready, invocation, folder)
    return usage or Usage(0.0), status, paused


def prepare(attendant: Attendant, ready: Ready) -> None:
    """Run what an adapter needs once a side before anything is listed or timed, such as a build. Raises Failure."""
    tool, call = ready.tool, ready.call
    if not tool or not call or not (steps := preparations(tool, call)):
        return
    call.place.mkdir(parents=True, exist_ok=True)
    for step in steps:
        done = _start(attendant, ready, step, call.place)
        if done.status:
            _explain(tool, call, done.status, call.place)
        _require_success(done, ready, step, call.place)


def benchmarks(attendant: Attendant, ready: Ready, folder: Path) -> tuple[str, ...]:
    """Ids that a suite lists, one a line; () for a tool of one command. Raises Failure, also for an empty list."""
    listing = ready.tool.enumerate(ready.call) if ready.tool and ready.call else None
    if listing is None:
        return ()
    folder.mkdir(parents=True, exist_ok=True)
    listing = replace(listing, stdout=listing.stdout or "ids")
    done = _start(attendant, ready, listing, folder)
    # No adapter reads what went wrong here, so the last line stands for the reason.
    _require_success(done, ready, listing, folder, last_words(folder))
    text = (folder / listing.stdout).read_text(encoding="utf-8", errors="replace")
    found = tuple(dict.fromkeys(line.strip() for line in text.splitlines() if line.strip()))
    if not found:
        raise Failure("the suite lists no benchmark", log=folder / "stderr")
    return found


def _watch(attendant: Attendant, ready: Ready, beside: Invocation, watched: Invocation, folder: Path) -> Finished:
    """Run a process with a sampler beside it. Raises Failure where the sampler fails and what it watches does not."""
    with Sampler(beside, ready.env, ready.cwd / beside.cwd, folder) as sampler:
        if sampler.wait_until_begun():
            done = _start(attendant, ready, watched, folder)
            sampler.stop()
            if not sampler.trouble or done.status:
                # Of a command that failed the sampler knows nothing.
                return done
    if ready.tool and ready.call and sampler.exit_code:
        _explain(ready.tool, ready.call, sampler.exit_code, folder)
    raise Failure(sampler.trouble, exit_code=sampler.exit_code, log=folder / STDERR)


def _explain(tool: Tool, call: Call, status: int, folder: Path) -> None:
    """A tool that failed may have left a better reason than its exit status. Raises Failure with it."""
    try:
        tool.parse(call, Usage(0.0))
    except ToolOutputError as error:
        reason = f"{tool.NAME}: {error} (exit status {status})"
        raise Failure(reason, exit_code=status, log=folder / "stderr") from error


def _start(attendant: Attendant, ready: Ready, invocation: Invocation, folder: Path) -> Finished:
    name = Path(invocation.argv[0]).name
    log = folder / invocation.stderr
    cwd = ready.cwd / invocation.cwd
    if not cwd.is_dir():
        raise Failure(f"{cwd}: no such folder")
    try:
        done = attendant.run(
            invocation.argv,
            env={**ready.env, **invocation.env},
            cwd=cwd,
            stdout=folder / invocation.stdout if invocation.stdout else None,
            stderr=log,
            timeout=ready.timeout,
            account=ready.planned.role is not Role.WORK,
        )
    except StartError as error:
        raise Failure(str(error)) from error
    if done.ended is Ended.TIMEOUT:
        raise Failure(f"{name} ran into the time limit of {ready.timeout:g} s", timeout=True, log=log)
    if done.ended is Ended.STOPPED:
        raise KeyboardInterrupt
    return done


def _require_success(done: Finished, ready: Ready, invocation: Invocation, folder: Path, said: str = "") -> None:
    if done.status not in good_statuses(ready.tool):
        name = ready.planned.id if ready.tool is None else Path(invocation.argv[0]).name
        how = f"was killed by signal {-done.status}" if done.status < 0 else f"exited with {done.status}"
        reason = f"{name} {how}" + (f": {said}" if said else "")
        raise Failure(reason, exit_code=done.status, log=_telling_log(folder, invocation))


def _telling_log(folder: Path, invocation: Invocation) -> Path:
    """Where the reason of a failure most likely is: test programs write theirs to standard output."""
    stderr = folder / invocation.stderr
    said_nothing = not stderr.exists() or stderr.stat().st_size == 0
    return folder / invocation.stdout if invocation.stdout and said_nothing else stderr


Written = tuple[int, int, int] | None
"""What tells one state of a file from another; None where there is no file."""


def written(path: Path | None) -> Written:
    """The state of a file, such that a process started from now on cannot write it and leave the state the same."""
    try:
        status = path.stat() if path else None
    except OSError:
        return None
    if status is None:
        return None
    # Kernels stamp files by a clock of 1 to 10 ms; within one tick a second write would look like the first.
    wait = status.st_mtime + _CLOCK_TICK - time.time()
    if 0 < wait <= _CLOCK_TICK:
        time.sleep(wait)
    return status.st_mtime_ns, status.st_size, status.st_ino


def require_fresh(path: Path, started: float, log: Path, who: str = "the tool") -> None:
    """A file that is missing, empty or older than the start is no output, whatever the exit status says.

    Raises Failure.
    """
    status = require_there(path, log, who)
    # File systems stamp with the kernel's coarse clock, which lags by up to a tick.
    if status.st_mtime < started - _CLOCK_TICK:
        raise Failure(f"{path.name} is older than the run", log=log)


def require_there(path: Path, log: Path, who: str = "the tool") -> os.stat_result:
    """A file that is missing or empty is no output; one that was up to date may be old. Raises Failure."""
    try:
        status = path.stat()
    except OSError as error:
        raise Failure(f"{who} left no {path.name}", log=log) from error
    if status.st_size == 0:
        raise Failure(f"{who} left an empty {path.name}", log=log)
    return status


def require_space(folder: Path) -> None:
    """On a full disk output may have been cut, where the program that wrote it does not look. Raises Failure."""
    try:
        disk = os.statvfs(folder)
    except FileNotFoundError as error:
        raise Failure(f"{folder} was removed while the step ran") from error
    # What has no blocks (some network and user-space file systems) does not tell.
    if disk.f_blocks and not disk.f_bavail:
        raise Failure(f"the disk of {folder} is full, so what was written may have been cut", log=folder / "stderr")


def _real_python(attendant: Attendant, ready: Ready, folder: Path) -> str:
    """The interpreter behind a shim: profilers of a pyenv shim would profile bash."""
    command = ready.call.command[0] if ready.call else ""
    found = find_program(command, ready.env.get("PATH", ""), ready.cwd)
    if found is None:
        raise Failure(f"{command}: not found or not executable")
    if _is_binary(Path(found)):
        return found
    answer = folder / "interpreter"
    argv = [found, "-c", "import sys; print(sys.executable)"]
    try:
        attendant.run(argv, env=ready.env, cwd=ready.cwd, stdout=answer, stderr=folder / "stderr", timeout=30)
    except StartError as error:
        raise Failure(str(error)) from error
    name = answer.read_text(encoding="utf-8", errors="replace").strip()
    if not Path(name).is_file():
        raise Failure(f"{command} is not a Python interpreter", log=folder / "stderr")
    return name


def _is_binary(path: Path) -> bool:
    """Whether it is no script; a program that may be executed and not read is not one either."""
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
    """Yield the last lines of a log, control characters made visible."""
    try:
        raw = _last_bytes(path) if path else b""
    except OSError:
        return
    for line in raw.decode("utf-8", "replace").splitlines()[-TAIL_LINES:]:
        yield "".join(letter if letter.isprintable() or letter == "\t" else f"\\x{ord(letter):02x}" for letter in line)
