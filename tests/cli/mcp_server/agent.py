"""An MCP client from the SDK, connected to a real server through pipes."""

from __future__ import annotations

import json
import os
import sys
import tempfile
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeVar

import anyio
from mcp import Client, StdioServerParameters, stdio_client
from mcp.types import TextContent, Tool

from tests.cli.shell import fork_server

T = TypeVar("T")


@dataclass
class ToolAnswer:
    """The answer of a tool: ``data``, or ``error`` if it failed. ``size``: in bytes. ``progress``: lines."""

    data: dict[str, Any]
    error: str
    size: int = 0
    progress: list[str] = field(default_factory=list)
    counts: list[float] = field(default_factory=list)


class Agent:
    """One session with a server. ``log``: the stderr of the server."""

    def __init__(self, client: Client, log: Path) -> None:
        self.client, self.log = client, log

    async def tools(self) -> dict[str, Tool]:
        return {tool.name: tool for tool in (await self.client.list_tools()).tools}

    async def call(self, name: str, /, **arguments: Any) -> ToolAnswer:
        """Call a tool, whose answer is sent once, as JSON."""
        said = ToolAnswer({}, "")

        async def note(progress: float, total: float | None, message: str | None) -> None:
            said.counts.append(progress)
            said.progress.append(message or "")

        found = await self.client.call_tool(name, arguments, progress_callback=note)
        (content,) = found.content
        assert isinstance(content, TextContent)
        assert found.structured_content is None
        if found.is_error:
            said.error = content.text
        else:
            said.data, said.size = json.loads(content.text), len(content.text.encode())
        return said


@asynccontextmanager
async def session(folder: Path, *flags: str, fresh: bool = False) -> AsyncIterator[Agent]:
    """Start a server in a folder and connect a client to it. ``fresh``: by an interpreter of its own."""
    command, *args = [sys.executable, "-m", "perfflow"] if fresh else [str(fork_server().commands / "perfflow")]
    args += ["mcp", *flags]
    server = StdioServerParameters(command=command, args=args, cwd=folder, env=dict(os.environ))
    with tempfile.NamedTemporaryFile("w", suffix=".log") as log:
        async with Client(stdio_client(server, errlog=log.file)) as client:  # type: ignore[arg-type]
            await client.list_tools()
            yield Agent(client, Path(log.name))


def ask(folder: Path, flags: str, *calls: tuple[str, dict[str, Any]]) -> list[ToolAnswer]:
    """Return the answers to calls of tools, one after the other in a new session."""

    async def script(agent: Agent) -> list[ToolAnswer]:
        return [await agent.call(name, **arguments) for name, arguments in calls]

    return talk(folder, script, *flags.split())


def talk(folder: Path, script: Callable[[Agent], Awaitable[T]], *flags: str, fresh: bool = False) -> T:
    """Run an agent's script in a new session."""

    async def talking() -> T:
        async with session(folder, *flags, fresh=fresh) as agent:
            return await script(agent)

    return anyio.run(talking)
