"""``jfr``: CPU time and allocations of a Java program or JMH benchmark by function, from JDK Flight Recorder.

It needs nothing but a JDK. With ``lib``, async-profiler records in the same format, and also sees native code.
``drivers/Stacks.java`` turns the recording into stacks, with the files of the project's classes.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Annotated

from pydantic import Field

from perfflow.model.errors import ToolOutputError
from perfflow.model.readings import Parsed, Profile, Usage
from perfflow.model.stacks import Frame
from perfflow.tools import parsed_output, sampled_stacks, tool_files
from perfflow.tools.adapter import Adapter, Call, CommandOptions, Invocation, Profiler, ProfilingMethod, Role, may_leave
from perfflow.tools.jvm.jmh import MAIN
from perfflow.tools.parsed_output import Json, Whole
from perfflow.tools.sampled_stacks import Sample

NAME = "jfr"
_DRIVERS = Path(__file__).with_name("drivers")
_RECORDING, _STACKS = "recording.jfr", "stacks.json"
# Without them, samples are attributed to the next place where a thread can be stopped.
_EXACT_LINES = ("-XX:+UnlockDiagnosticVMOptions", "-XX:+DebugNonSafepoints")
_DEEPEST = 256
# A program that runs briefly is not worth the best compiler.
_SHORT = ("-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC")


_RESULTS = "org.openjdk.jmh.results."
"""What the function that JMH writes for a benchmark calls after it."""


class JfrOptions(CommandOptions):
    """``with`` keys of ``uses: jfr``."""

    lib: str = Field(
        default="", description="The path of libasyncProfiler.so, which then records instead of JDK Flight Recorder."
    )


class _RecordedFrame(Json):
    name: Annotated[str, Field(min_length=1)]
    file: str
    line: Whole


class _Stacks(Json):
    """The driver's output: a row has a value, and the indices of its frames, root first."""

    frames: list[_RecordedFrame]
    time: list[Annotated[list[Whole], Field(min_length=2)]]
    bytes: list[Annotated[list[Whole], Field(min_length=2)]]

    def of(self, rows: list[list[int]]) -> Iterator[Sample]:
        """Yield the stacks of one kind, root first. Raises ToolOutputError for a frame that is not there."""
        frames = [
            Frame(tool_files.clean_name(each.name), tool_files.clean_name(each.file) if each.file else "", each.line)
            for each in self.frames
        ]
        for value, *stack in rows:
            if max(stack) >= len(frames):
                raise ToolOutputError(f"{_STACKS} is damaged: a stack has an unknown frame")
            if not any(frames[index].name.startswith(_RESULTS) for index in stack):
                yield tuple(frames[index] for index in stack), value


def invocations(call: Call[JfrOptions]) -> tuple[Invocation, ...]:
    """Record the program, then read the recording."""
    recording = call.folder / _RECORDING
    lib = call.options.lib
    recorder = (
        (f"-agentpath:{lib}=start,event=itimer,interval=5ms,alloc=512k,jstackdepth={_DEEPEST},jfr,file={recording}",)
        if lib
        else (
            f"-XX:FlightRecorderOptions=stackdepth={_DEEPEST}",
            f"-XX:StartFlightRecording=settings={_DRIVERS / 'stacks.jfc'},filename={recording},dumponexit=true",
        )
    )
    options = (*_EXACT_LINES, *recorder)
    java, *words = call.command or ("java",)
    if MAIN in words:
        # JMH passes them to the JVM of the benchmark. Benchmarks declare options to append, and hardly any to prepend.
        text = " ".join(f'"{option}"' if " " in option else option for option in options)
        argv = (java, *words, "-jvmArgsPrepend", text)
    else:
        argv = (java, *options, *words)
    convert = (java, *_SHORT, str(_DRIVERS / "Stacks.java"), str(call.folder))
    return (Invocation(argv, stdout="java.txt"), Invocation(convert, stdout=_STACKS, stderr="stacks.stderr"))


def parse(call: Call, _usage: Usage) -> Parsed:
    """Rank the functions by their own CPU time, and by the bytes that they allocate.

    Raises ToolOutputError if the command does not start java, if there is no recording, or if no sample is of the
    program.
    """
    if not call.command or Path(call.command[0]).name != "java":
        raise ToolOutputError("jfr needs a command that begins with `java`, or a benchmark of `uses: jmh`")
    said = tool_files.last_words(call.folder) or "the program was killed"
    stacks = parsed_output.read_json(_Stacks, call.folder / _STACKS, said)
    found = list(stacks.of(stacks.time)), list(stacks.of(stacks.bytes))
    return sampled_stacks.parsed(call, NAME, found, [Profile(_RECORDING, NAME)], collector="", metric="alloc")


ADAPTER = Adapter(
    NAME,
    Role.PROFILE,
    invocations,
    parse,
    options=JfrOptions,
    outputs=may_leave(_RECORDING, _STACKS),
    profiler=Profiler(method=ProfilingMethod.SAMPLES, sees="CPU time and allocated bytes"),
)
