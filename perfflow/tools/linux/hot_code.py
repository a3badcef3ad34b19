"""What drivers/hot_code.py writes: the functions that perf has samples in, with their instructions."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from perfflow.errors import ToolOutputError
from perfflow.samples.stacks import Frame
from perfflow.tools import own_code, symbol_names, tool_files
from perfflow.tools.linux import disassembly
from perfflow.tools.linux.disassembly import Instruction, Machine


@dataclass(frozen=True, slots=True)
class HotFunction:
    """A function: its symbol, '' without one, its file, samples by address, and source frames, innermost first."""

    name: str
    file: str
    samples: Mapping[int, int]
    frames: Mapping[int, tuple[Frame, ...]]
    code: tuple[Instruction, ...]

    def frame_at(self, address: int) -> Frame:
        """The innermost function of the project's own at an address, else the function in its library."""
        frames = self.frames.get(address, ())
        at = own_code.innermost(frames)
        if at is not None:
            return frames[at]
        # What stands around all that is inlined is the function itself; of some addresses the line is not known.
        if whole := next((known[-1] for known in self.frames.values() if own_code.is_own(known[-1].file)), None):
            return whole
        name = f"{self.name} ({Path(self.file).name})" if self.name else f"[{Path(self.file).name}]"
        return Frame(tool_files.clean_name(name))


@dataclass(frozen=True, slots=True)
class Elsewhere:
    """Samples in what was not disassembled: where they are, and why it was not."""

    file: str
    why: str
    samples: int


@dataclass(frozen=True, slots=True)
class HotCode:
    """A recording: samples in all and by event, functions that were disassembled, and the rest."""

    samples: int
    events: Mapping[str, int]
    functions: tuple[HotFunction, ...]
    elsewhere: tuple[Elsewhere, ...]


def read(path: Path) -> HotCode:
    """Read the driver's JSON. Raises ToolOutputError with its own reason where it failed, and if it does not add up."""
    data = tool_files.read_json(path)
    if isinstance(data, dict) and isinstance(data.get("error"), str):
        raise ToolOutputError(tool_files.clean_name(data["error"]))
    try:
        found = _hot_code(data, path.name)
    except (TypeError, KeyError, ValueError, AttributeError) as error:
        raise ToolOutputError(f"{path.name} is not what perfflow's driver writes") from error
    counted = sum(sum(item.samples.values()) for item in found.functions) + sum(
        item.samples for item in found.elsewhere
    )
    if not counted == found.samples == sum(found.events.values()):
        raise ToolOutputError(f"{path.name} is damaged: its samples do not add up")
    return found


def _hot_code(data: Any, name: str) -> HotCode:
    return HotCode(
        tool_files.whole(data["samples"], "samples"),
        {tool_files.clean_name(key): tool_files.whole(value, "samples") for key, value in data["events"].items()},
        tuple(_function(item, name) for item in data["functions"]),
        tuple(
            Elsewhere(tool_files.clean_name(file), tool_files.clean_name(why), tool_files.whole(count, "samples"))
            for file, why, count in data["elsewhere"]
        ),
    )


def _function(item: Any, name: str) -> HotFunction:
    code = disassembly.read(Machine(item["machine"]), item["listing"])
    samples = {int(key, 16): tool_files.whole(count, "samples") for key, count in item["addresses"].items()}
    if not samples or not all(samples.values()):
        raise ToolOutputError(f"{name} is damaged: a function without samples")
    symbol = tool_files.clean_name(symbol_names.plain(item["name"])) if item["name"] else ""
    frames = {int(key, 16): known for key, found in item["sources"].items() if (known := tuple(_frames(found)))}
    return HotFunction(symbol, tool_files.clean_name(item["file"]), samples, frames, code)


def _frames(found: Any) -> Iterator[Frame]:
    for function, place in found:
        file, _, line = place.rpartition(":")
        if line.isascii() and line.isdecimal() and len(line) < 10:
            yield Frame(tool_files.clean_name(symbol_names.plain(function)), tool_files.clean_name(file), int(line))
