"""A tool's call as a ``perfflow`` command in a process of its own, with its progress and its end.

Not in this process, for four reasons: ^C and SIGTERM reach the main thread alone, which serves the protocol; standard
output belongs to the protocol; what measures is started by a process that does nothing else meanwhile; and a client
gets what a user of the command gets, since it is the same command.
"""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import sys
import tempfile
from collections.abc import Awaitable, Callable, Sequence
from typing import Any, BinaryIO

import anyio
from anyio.abc import Process
from anyio.streams.text import TextReceiveStream

from perfflow.cli.mcp_server.limits import Limits
from perfflow.model.errors import UserError

Say = Callable[[str], Awaitable[None]]
"""Tells the client how far a call is."""
BEAT = 10.0
"""Seconds of silence after which a client is told that a call still goes on; many give up on one that says nothing."""
_GRACE = 60.0
"""Seconds in which an interrupted command writes what it measured."""
_MOST_SAID = 200
"""Lines of a failed command that its error repeats."""


class Calls:
    """Starts commands, one that measures at a time, and ends those that nobody waits for any more."""

    def __init__(self, limits: Limits) -> None:
        self._limits = limits
        self._measuring = anyio.Lock()
        self._running: set[Process] = set()

    async def look(self, words: Sequence[str]) -> Any:
        """Return what a command that executes nothing prints as JSON. Raises UserError with its message."""
        return await self._perform(words, _say_nothing)

    async def measure(self, words: Sequence[str], say: Say) -> Any:
        """Return what a command that measures prints as JSON; ``say`` gets its lines of progress.

        Where the caller is cancelled, the command is interrupted as by ^C: it keeps what it measured, and ends all that
        it started. Raises UserError with the command's message where it prints no JSON.
        """
        if self._measuring.locked():
            await say("waiting: another call of this session measures")
        async with self._measuring:
            return await self._perform(words, say)

    async def end(self) -> None:
        """Interrupt all commands, and wait until they have ended."""
        async with anyio.create_task_group() as group:
            for process in self._running:
                group.start_soon(_interrupt, process)

    async def _perform(self, words: Sequence[str], say: Say) -> Any:
        # A file, so that nobody has to read it for the command to end.
        with tempfile.TemporaryFile() as output:
            status, said = await self._ended(words, output, say)
            output.seek(0)
            text = output.read()
        try:
            return json.loads(text)
        except ValueError:
            message = "\n".join(said[-_MOST_SAID:]) or f"perfflow {words[0]} ended with exit status {status}"
            raise UserError.of(message.removeprefix("error: ")) from None

    async def _ended(self, words: Sequence[str], output: BinaryIO, say: Say) -> tuple[int, list[str]]:
        """Start a command and wait for it; returns its exit status, and the lines that it wrote to stderr."""
        # -P: what lies in the project is not to be taken for a module of Python.
        argv = [sys.executable, "-P", "-m", "perfflow.cli.mcp_server.child", str(os.getpid()), *words]
        process = await anyio.open_process(
            argv,
            cwd=self._limits.root,
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.PIPE,
            start_new_session=True,
        )
        self._running.add(process)
        said = _Said(say)
        try:
            async with anyio.create_task_group() as group:
                group.start_soon(said.beat)
                await said.listen(process)
                group.cancel_scope.cancel()
            return await process.wait(), said.lines
        finally:
            with anyio.CancelScope(shield=True):
                await _interrupt(process)
                await process.aclose()
            self._running.discard(process)


class _Said:
    """What a command says on stderr, line by line, and that it goes on where it says nothing."""

    def __init__(self, say: Say) -> None:
        self.lines: list[str] = []
        self._say, self._silent = say, 0.0

    async def listen(self, process: Process) -> None:
        """Pass on each line, until the stream ends."""
        rest = ""
        if process.stderr is None:
            return
        async for text in TextReceiveStream(process.stderr, errors="backslashreplace"):
            *lines, rest = (rest + text).split("\n")
            for line in lines:
                await self._pass_on(line)
        if rest:
            await self._pass_on(rest)

    async def beat(self) -> None:
        """Say again what was said last, where that was long ago."""
        while True:
            await anyio.sleep(BEAT)
            self._silent += BEAT
            last = self.lines[-1] if self.lines else "started"
            if self._silent > BEAT:
                await self._say(f"{last} (for {self._silent:.0f} s)")

    async def _pass_on(self, line: str) -> None:
        self._silent = 0.0
        self.lines.append(line)
        if line.strip():
            await self._say(line)


async def _say_nothing(_: str) -> None:
    """Say nothing."""


async def _interrupt(process: Process) -> None:
    """End a command as ^C does, and by force where it takes too long; nothing where it has ended."""
    if process.returncode is not None:
        return
    with contextlib.suppress(ProcessLookupError):
        process.send_signal(signal.SIGTERM)
    with anyio.move_on_after(_GRACE):
        await process.wait()
    if process.returncode is None:
        # perfflow's own small process sees it go, and ends what it had started.
        with contextlib.suppress(ProcessLookupError):
            process.kill()
        await process.wait()
