"""Run the call of a tool as a ``perfflow`` command in its own process, and report its progress.

A separate process has four reasons. Only the main thread gets ^C and SIGTERM, and it serves the protocol. The protocol
uses standard output. A process that starts measured programs must do nothing else meanwhile. And the client gets the
same results as a user of the command.
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

from perfflow.cli.mcp_server.limits import SessionLimits
from perfflow.model.errors import UserError

Say = Callable[[str], Awaitable[None]]
"""Reports the progress of a call to the client."""
BEAT = 10.0
"""Seconds between progress reports of a silent call. Many clients give up on calls without progress."""
_GRACE = 60.0
"""Seconds that an interrupted command has to write its samples."""
_MOST_LINES = 200
"""Lines of a failed command that its error contains."""


class Calls:
    """Starts commands, and ends commands whose caller was cancelled. Only one command measures at a time."""

    def __init__(self, limits: SessionLimits) -> None:
        self._limits = limits
        self._measuring = anyio.Lock()
        self._running: set[Process] = set()

    async def look(self, words: Sequence[str]) -> Any:
        """Return the JSON output of a command that executes nothing. Raises UserError with its message."""
        return await self._perform(words, _discard)

    async def measure(self, words: Sequence[str], say: Say) -> Any:
        """Return the JSON output of a command that measures. ``say`` gets its lines of progress.

        If the caller is cancelled, the command is interrupted as by ^C: it stores its samples and ends all processes
        that it started. Raises UserError with the message of the command if it prints no JSON.
        """
        if self._measuring.locked():
            await say("waiting: another call of this session is measuring")
        async with self._measuring:
            return await self._perform(words, say)

    async def end(self) -> None:
        """Interrupt all commands, and wait for them to end."""
        async with anyio.create_task_group() as group:
            for process in self._running:
                group.start_soon(_interrupt, process)

    async def _perform(self, words: Sequence[str], say: Say) -> Any:
        for word in words:
            if readable(word) != word:
                message = f"{readable(word)[:100]!r} contains half a character (a lone surrogate)"
                raise UserError.of(message, "send valid Unicode")
        # Write output to a file. With a pipe, the command could block until somebody reads it.
        with tempfile.TemporaryFile() as output:
            status, lines = await self._ended(words, output, say)
            output.seek(0)
            text = output.read()
        try:
            return _readable(json.loads(text))
        except ValueError:
            message = "\n".join(lines[-_MOST_LINES:]) or f"perfflow {words[0]} ended with exit status {status}"
            raise UserError.of(message.removeprefix("error: ")) from None

    async def _ended(self, words: Sequence[str], output: BinaryIO, say: Say) -> tuple[int, list[str]]:
        """Run a command. Return its exit status and the lines that it wrote to stderr."""
        process = await anyio.open_process(
            _command(words),
            cwd=self._limits.root,
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.PIPE,
            start_new_session=True,
        )
        self._running.add(process)
        relay = _StderrRelay(say)
        try:
            async with anyio.create_task_group() as group:
                group.start_soon(relay.beat)
                await relay.listen(process)
                group.cancel_scope.cancel()
            return await process.wait(), relay.lines
        finally:
            with anyio.CancelScope(shield=True):
                await _interrupt(process)
                await process.aclose()
            self._running.discard(process)


def _command(words: Sequence[str]) -> list[str]:
    # -P: do not import Python modules from the project.
    return [sys.executable, "-P", "-m", "perfflow.cli.mcp_server.child", str(os.getpid()), *words]


def readable(text: str) -> str:
    """Return a text that can be sent: lone surrogates are spelled out."""
    return text.encode("utf-8", "backslashreplace").decode()


def _readable(value: Any) -> Any:
    if isinstance(value, str):
        return readable(value)
    if isinstance(value, list):
        return [_readable(item) for item in value]
    if isinstance(value, dict):
        return {readable(key): _readable(item) for key, item in value.items()}
    return value


class _StderrRelay:
    """Passes on the stderr of a command line by line, and repeats the last line while the command is silent."""

    def __init__(self, say: Say) -> None:
        self.lines: list[str] = []
        self._say, self._silent = say, 0.0

    async def listen(self, process: Process) -> None:
        """Pass on each line until the stream ends."""
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
        """Repeat the last line, with the time since then, while the command is silent."""
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


async def _discard(_: str) -> None:
    """Discard progress."""


async def _interrupt(process: Process) -> None:
    """Interrupt a command as ^C does, and kill it if it takes too long. Does nothing if it has ended."""
    if process.returncode is not None:
        return
    with contextlib.suppress(ProcessLookupError):
        process.send_signal(signal.SIGTERM)
    with anyio.move_on_after(_GRACE):
        await process.wait()
    if process.returncode is None:
        # perfflow's spawner notices that the command was killed, and ends the processes that it started.
        with contextlib.suppress(ProcessLookupError):
            process.kill()
        await process.wait()
