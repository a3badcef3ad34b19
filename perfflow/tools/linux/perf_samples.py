"""The text of ``perf script`` with source lines: a header a sample, then its frames, the running function first.

Code that a program makes while it runs has the names that the program wrote to ``/tmp/perf-PID.map``. They are told
without the process's id, and those of Python and Node.js with the function's file, so that two runs have the same.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from perfflow.errors import ToolOutputError
from perfflow.samples.stacks import Frame
from perfflow.tools import symbol_names, tool_files

_DEEPEST = 512
# perf_text.py's last line: perf's text may be cut between two samples, where nothing else shows it.
_END = "# end"
# Before it, where perf took too long, or did not survive looking for callers and lines.
_WITHOUT = re.compile(
    r"# without (?P<what>inlined callers|perf's source lines): "
    r"(?:more than (?P<limit>[\d.e+]{1,9}) s|perf (?:was ended by signal (?P<signal>\d{1,3}) .*|exited with \d+))\Z"
)
# `hot  3980/3980    919.305178: cpu-clock:ppp: ` with the only frame on the same line if there are no call graphs.
_SAMPLE = re.compile(
    r"\s*(?P<comm>\S.{0,40}?)\s+(?:\d{1,10}/)?\d{1,10}\s+(?:\[\d+\]\s+)?\d+\.\d+:\s+"
    r"(?:(?P<period>\d{1,18})\s+)?(?P<event>\S+):(?:\s+(?P<rest>.*))?\Z"
)
_FRAME = re.compile(r"\s*(?P<ip>[0-9a-f]{1,16})\s+(?P<symbol>\S.*)\Z")
_OFFSET = re.compile(r"\+0x[0-9a-f]+\Z")
_INLINED = " (inlined)"
_SOURCE = re.compile(r"(?P<file>.*\S):(?P<line>\d{1,9})(?: \(discriminator \d+\))?\Z")
_MADE_IN = re.compile(r"perf-\d+\.map\Z|\[?JIT\]? tid \d+\Z")
# `py::inner:/src/hot.py`, and `JS:*inner /src/hot.js:1:15`, where a mark tells how far the code was optimised.
_MADE = re.compile(
    r"py::(?P<python>[^:]*):(?P<module>.*)\Z"
    r"|(?:JS|LazyCompile|Function|Script|Eval):[~^+*]?(?P<name>.*?) ?(?:file://)?(?P<file>(?:/|node:).*?)"
    r":(?P<line>\d{1,9})(?::\d+)?\Z"
)


@dataclass(slots=True)
class Sample:
    """One sample: its frames leaf first, as perf prints them.

    ``period`` is what it stands for: how many of its event happened since the one before, ns for a timer. 1 where the
    text does not tell.
    """

    comm: str
    event: str
    period: int = 1
    frames: list[tuple[Frame, str]] = field(default_factory=list)

    @property
    def leaf(self) -> Frame:
        """The function that was running; without a source it carries the library in its name."""
        if not self.frames:
            return Frame("[unknown]")
        frame, library = self.frames[0]
        if frame.file or not library or frame.name.startswith("["):
            return frame
        return Frame(f"{frame.name} ({library})")


def read(path: Path, notes: list[str]) -> Iterator[Sample]:
    """Yield the samples; what there is to say of the text is added to ``notes``.

    Raises ToolOutputError for a line that is none of perf's, or a cut.
    """
    sample: Sample | None = None
    is_ended = False
    for line in filter(str.strip, tool_files.read_lines(path)):
        is_ended = line == _END
        note = _WITHOUT.match(line)
        if note:
            notes.append(_why_without(note))
        if note or is_ended:
            continue
        header = None if line.startswith("\t") else _SAMPLE.match(line)
        if header:
            if sample:
                yield sample
            comm, event = (tool_files.clean_name(header[name]) for name in ("comm", "event"))
            sample = Sample(comm, event, int(header["period"] or 1))
        if not sample:
            raise ToolOutputError(f"{path.name} does not start with a sample: {line[:80]!r}")
        if frame := header["rest"] if header else line:
            _add(sample, frame, path.name)
    if sample and not is_ended:
        raise ToolOutputError(f"{path.name} is cut short: it has no end")
    if sample:
        yield sample


def _why_without(note: re.Match[str]) -> str:
    if note["what"] != "inlined callers":
        return (
            "perf failed while it looked for source lines, so they are addr2line's, of the addresses with most samples"
        )
    stand = "functions stand for what was inlined into them"
    if note["signal"]:
        return f"perf was ended by signal {note['signal']} while it looked for inlined callers, so {stand}"
    return f"perf needs more than {note['limit']} s to find inlined callers, so {stand}; `inline_limit` gives it more"


def _add(sample: Sample, line: str, name: str) -> None:
    """Add a frame, or the source line below a frame, to the sample."""
    is_source = line.startswith("  ") and not line.startswith("   ")
    match = None if is_source else _FRAME.match(line)
    if match:
        if len(sample.frames) >= _DEEPEST:
            raise ToolOutputError(f"{name} holds a stack of more than {_DEEPEST} frames")
        sample.frames.append(_frame(match["symbol"]))
    elif is_source and sample.frames:
        sample.frames[-1] = _with_source(sample.frames[-1], line.strip())
    else:
        raise ToolOutputError(f"{name} holds a line that is no frame: {line[:80]!r}")


def _frame(text: str) -> tuple[Frame, str]:
    """Return the frame of ``symbol (library)`` and the library's name; unknown symbols are called by their library."""
    symbol, library = _apart(text.removesuffix(_INLINED).rstrip())
    symbol = _OFFSET.sub("", symbol)
    if _MADE_IN.match(library):
        library = "JIT"
        if made := _MADE.match(symbol):
            name = tool_files.clean_name(made["python"] or made["name"] or "(anonymous)")
            return Frame(name, tool_files.clean_name(made["module"] or made["file"]), int(made["line"] or 0)), library
    name = symbol_names.plain(symbol)
    if name in {"", "[unknown]"}:
        name = f"[{library}]" if library else "[unknown]"
    return Frame(tool_files.clean_name(name)), tool_files.clean_name(library) if library else ""


def _apart(text: str) -> tuple[str, str]:
    """Split ``f(int) (/usr/lib/x.so)`` at the library, whose path may itself hold parentheses."""
    if not text.endswith(")"):
        return text, ""
    for start in (" (/", " ([", " ("):
        symbol, found, library = text.partition(start)
        if found:
            path = (start[2:] + library)[:-1].removesuffix(" (deleted)")
            return symbol, Path(path).name.strip("[]")
    return text, ""


def _with_source(frame: tuple[Frame, str], text: str) -> tuple[Frame, str]:
    """Add ``/src/hot.c:4``; ``??:0`` and ``libc.so.6[27249]`` say that there is no source."""
    match = _SOURCE.match(text.removesuffix(_INLINED))
    if not match or match["file"].startswith("??") or match["line"] == "0":
        return frame
    known, library = frame
    return Frame(known.name, tool_files.clean_name(match["file"]), int(match["line"])), library
