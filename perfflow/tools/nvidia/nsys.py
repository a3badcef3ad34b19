"""``nsys``: a timeline of GPU work from NVIDIA's Nsight Systems: kernels, copies, CUDA calls, ranges and idle time.

drivers/nsys_run.py profiles, exports the report to SQLite and writes its sums to ``nsys.json``. Sampling and context
switches are off: without hardware counters nsys hangs on them.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Annotated

from pydantic import AfterValidator, Field, TypeAdapter, ValidationError

from perfflow.model.errors import ToolOutputError
from perfflow.model.kernels import GPU, KernelResult, together
from perfflow.model.metrics import builtin_metrics
from perfflow.model.readings import Hotspot, Parsed, Peak, Profile, Reading, StackCounts, Usage
from perfflow.tools import python_command, tool_files
from perfflow.tools.adapter import Adapter, Call, CommandOptions, Invocation, Program, Role, Seconds, leaves
from perfflow.tools.nvidia.nsys_report import EventSums, NsysReport, ProfiledGpu, longest_first

NAME = "nsys"

_DRIVER = python_command.driver_command("nsys_run.py", __file__)
_FILE, _FOLDED = "nsys.json", "threads.folded"
_KEPT = ("report.nsys-rep", "report.sqlite")
_LARGEST = 20
_NANO = 1e-9
_READ_BY_NSYS = (".nsys-rep", ".qdrep")
# The form of ``Row.launch``. For a kernel launched in several ways, it is the way with the most time.
_SHAPE = re.compile(r"grid (\d{1,10})x(\d{1,10})x(\d{1,10}), block (\d{1,10})x(\d{1,10})x(\d{1,10})", re.ASCII)
_REST = re.compile(r"\b(\d{1,10}) registers(?:, (\d{1,10}) B shared(?: \((\d{1,10}) B dynamic\))?)?", re.ASCII)
_CAPABILITY = re.compile(r"compute capability (\d{1,2}\.\d)", re.ASCII)


def _whole_seconds(value: float) -> float:
    """Refuse fractions, which nsys rounds to 0 or refuses. Raises ValueError."""
    if not value.is_integer():
        raise ValueError("nsys takes whole seconds, such as 2s")
    return value


WholeSeconds = Annotated[Seconds, AfterValidator(_whole_seconds)]


class NsysOptions(CommandOptions):
    """``with`` keys of ``uses: nsys``."""

    trace: list[Annotated[str, Field(pattern=r"^[a-z0-9-]+$")]] = Field(
        default=["cuda", "nvtx", "osrt"],
        min_length=1,
        description="What to trace, as for `nsys profile --trace`: cuda, nvtx, osrt, cublas, cudnn, mpi, openacc, ...",
    )
    delay: WholeSeconds | None = Field(
        default=None, ge=1, le=86400, description="Start profiling after this many whole seconds."
    )
    duration: WholeSeconds | None = Field(
        default=None, ge=1, le=86400, description="Profile for this many whole seconds, then end the program."
    )
    capture_range: str = Field(
        default="",
        pattern=r"^(?:cudaProfilerApi|nvtx:.{1,200})?$",
        description="Profile only between cudaProfilerStart and cudaProfilerStop (cudaProfilerApi), or within the "
        "first NVTX range of a name (nvtx:NAME, nvtx:NAME@DOMAIN).",
    )
    report: str = Field(
        default="",
        description="Path or glob of an existing report to read instead of profiling: a .nsys-rep or .sqlite, or "
        "tables of `nsys stats` as .csv or .json.",
    )
    keep_report: bool = Field(
        default=False,
        description="Also keep the report itself (.nsys-rep, .sqlite). It contains all environment variables of the "
        "program, including secrets.",
    )


def needs_program(values: Mapping[str, object]) -> bool:
    """Return whether a step with these keys needs nsys: an exported report is read without it."""
    report = str(values.get("report") or "")
    return not report or report.endswith(_READ_BY_NSYS)


def invocations(call: Call[NsysOptions]) -> tuple[Invocation, ...]:
    """Profile the command, export the report and sum it up, or sum up an existing report."""
    options = call.options
    settings = {"keep": options.keep_report, "timed": options.duration is not None, "report": options.report}
    words = [f"--trace={','.join(options.trace)}", "--sample=none", "--cpuctxsw=none"]
    words += [f"--delay={options.delay:.0f}"] if options.delay else []
    words += [f"--duration={options.duration:.0f}"] if options.duration else []
    kind, _, name = options.capture_range.partition(":")
    # By default nsys ends the program at the end of the range.
    words += [f"--capture-range={kind}", "--capture-range-end=stop"] if kind else []
    words += [f"--nvtx-capture={name}"] if name else []
    # By default only registered NVTX strings count.
    env = {"NSYS_NVTX_PROFILER_REGISTER_ONLY": "0"} if name else {}
    program = call.program or "nsys"
    return (Invocation((*_DRIVER, str(call.folder), json.dumps(settings), program, *words, *call.command), env),)


def parse(call: Call[NsysOptions], usage: Usage) -> Parsed:
    """Turn the sums into metrics and hotspots: kernels and copies by device time, calls and ranges by thread time.

    Raises ToolOutputError with nsys's reason, if nothing was recorded, or if the file is truncated or invalid.
    """
    options = call.options
    report = _report(call.folder / _FILE)
    if report.holds_nothing:
        traced = ", ".join(options.trace)
        raise ToolOutputError(f"nothing was recorded of {options.report or traced}: check that the program uses it")
    if report.stacks:
        (call.folder / _FOLDED).write_text(report.stacks, encoding="utf-8")
    folded = [Profile(_FOLDED, "folded", StackCounts("ns", by_thread=True))] if report.stacks else []
    kept = [name for name in _KEPT if options.keep_report and (call.folder / name).is_file()]
    return Parsed(
        tuple(Reading(metric, value) for metric, value in _figures(report)),
        (*_on_device(report), *_on_threads(report)),
        (Profile(_FILE, "nsys-summary"), *folded, *(Profile(name, "nsys-report") for name in kept)),
        (*_warnings(options, report, kept),),
        peaks=tuple(_peaks(report)),
        device=_device_of(report),
        kernels=tuple(_facts(report)),
    )


def _report(path: Path) -> NsysReport:
    text = tool_files.read_text(path)
    try:
        report = TypeAdapter(NsysReport).validate_json(text)
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        where = ".".join(map(str, first["loc"]))[:80]
        raise ToolOutputError(f"{path.name} is damaged: {tool_files.clean_name(where + ' ' + first['msg'])}") from error
    if report.error:
        raise ToolOutputError(tool_files.clean_name(report.error))
    # Values that equal their default are written, too, so a missing one means damage.
    if json.loads(report.to_json()) != {"error": "", **json.loads(text)}:
        raise ToolOutputError(f"{path.name} is damaged: a figure or a table of it is missing")
    return report


def _figures(report: NsysReport) -> Iterator[tuple[str, float]]:
    """Yield the metrics of the report. A metric without events is left out instead of 0."""
    busy, span = sum(device.busy for device in report.devices), sum(device.span for device in report.devices)
    if span:
        yield "gpu_time", busy * _NANO
        yield "gpu_idle", max(0.0, 1.0 - busy / span)
    if report.kernels:
        yield "kernel_time_sum", sum(row.total for row in report.kernels) * _NANO
        yield "kernel_launches", float(sum(row.calls for row in report.kernels))
    if copies := [row for row in report.memory if "memcpy" in row.name]:
        took = sum(row.total for row in copies) * _NANO
        yield "memcpy_time", took
        sizes = [row.size for row in copies if row.size is not None]
        if len(sizes) == len(copies):
            yield "memcpy_bytes", float(sum(sizes))
            yield from [("memcpy_bandwidth", sum(sizes) / took)] if took else []
    for metric, rows in (("cuda_api_time", report.api), ("osrt_time", report.os)):
        if rows:
            yield metric, sum(row.own or 0.0 for row in rows) * _NANO


def _peaks(report: NsysReport) -> Iterator[Peak]:
    """Yield the memory bandwidth of the GPUs, computed by the driver from clock and bus."""
    for device in report.devices:
        if device.bandwidth:
            how = f"memory of {device.name} by its clock and bus, as its driver reports it; not measured"
            yield Peak("bandwidth", device.bandwidth, how=how, device=_name_of(device))


def _device_of(report: NsysReport) -> str:
    """Return the GPU of a report by its driver's name; '' if nothing ran on one."""
    return together(map(_name_of, report.devices)) or (GPU if report.kernels or report.memory else "")


def _name_of(device: ProfiledGpu) -> str:
    """Return a GPU's name without the number that distinguishes GPUs of the same name."""
    return re.sub(r" \(\d+\)\Z", "", device.name) or GPU


def _facts(report: NsysReport) -> Iterator[KernelResult]:
    """Yield the facts of the kernels with the most time, each with the launch sizes of most of its time."""
    whole = math.fsum(row.total for row in report.kernels)
    about = report.devices[0].about if len(report.devices) == 1 else ""
    capability = match[1] if (match := _CAPABILITY.search(about)) else ""
    for row in longest_first(report.kernels)[:_LARGEST]:
        shape, rest = _SHAPE.match(row.launch), _REST.search(row.launch)
        sizes = [int(size) for size in shape.groups()] if shape else []
        is_known = bool(sizes) and max(sizes) < 2**31
        total, dynamic = (int(rest[2] or 0), int(rest[3] or 0)) if rest else (0, 0)
        yield KernelResult(
            name=row.name,
            source=NAME,
            device=_device_of(report),
            capability=capability,
            launches=row.calls,
            seconds=row.median / 1e9,
            share=row.total / whole if whole else None,
            grid=math.prod(sizes[:3]) if is_known else None,
            threads=math.prod(sizes[3:]) if is_known else None,
            registers=int(rest[1]) if rest else None,
            shared_static=max(0, total - dynamic) if rest else None,
            shared_dynamic=dynamic if rest else None,
        )


def _on_device(report: NsysReport) -> Iterator[Hotspot]:
    """Yield the kernels and copies with the most device time. Times of overlapping streams are summed."""
    rows = longest_first([*report.kernels, *report.memory])
    whole = sum(row.total for row in rows)
    for row in rows[:_LARGEST]:
        if share := row.total and row.total / whole:
            yield Hotspot(row.name, share, "device time", NAME, cause=f"measured: {_of_device(row)}")


def _of_device(row: EventSums) -> str:
    if row.size is not None:
        return f"{_calls(row, 'operation')}, {row.size:,} B at {row.size / row.total:.3g} GB/s"
    return ", ".join(filter(None, [_calls(row, "launch"), row.launch]))


def _on_threads(report: NsysReport) -> Iterator[Hotspot]:
    """Yield CUDA calls and NVTX ranges with the most own time, as shares of the time of threads that have any.

    Sums of ``nsys stats`` have no threads: there, shares are of the time of all calls.
    """
    rows = [(row, "CUDA call") for row in report.api] + [(row, "NVTX range") for row in report.ranges]
    whole = report.threads or sum(row.own or 0.0 for row, _ in rows)
    beside = "" if report.threads else ", as a share of the time in CUDA calls"
    for row, kind in sorted(rows, key=lambda item: (-(item[0].own or 0.0), item[0].name))[:_LARGEST]:
        if share := row.own and row.own / whole:
            cause = f"measured: {kind}, {_calls(row, 'call' if kind == 'CUDA call' else 'time')}{beside}"
            yield Hotspot(row.name, share, "time", NAME, cause=cause)


def _calls(row: EventSums, what: str) -> str:
    ending = "" if row.calls == 1 else "es" if what.endswith("ch") else "s"
    median = f"{row.median / 1e6:.4g} ms" if row.median >= 1e6 else f"{row.median / 1e3:.3g} us"
    return f"{row.calls:,} {what}{ending}, median {median}"


def _warnings(options: NsysOptions, report: NsysReport, kept: Sequence[str]) -> Iterator[str]:
    """Yield warnings about the source of the report and about data that it lacks."""
    yield from map(tool_files.clean_name, report.notes)
    if options.report:
        yield f"figures are those of {tool_files.clean_name(options.report)[:100]}; nothing was run"
        if not report.kernels:
            yield "the report contains no kernel: none ran, they were not traced, or `report` lacks their table"
    elif "cuda" in options.trace and not report.kernels:
        yield "no kernel was recorded: the program started none, or there is no GPU that nsys can trace"
    if report.kernels and not report.devices:
        yield "gpu_time and gpu_idle are missing: add the .sqlite or the table of all kernels (cuda_gpu_trace)"
    if len(report.devices) > 1:
        shares = (f"{device.name} {1 - device.busy / device.span:.1%}" for device in report.devices if device.span)
        yield f"gpu_idle is that of {len(report.devices)} GPUs together: {', '.join(shares)}"
    if kept:
        yield f"{' and '.join(kept)} contain the environment of the program with all its secrets: do not publish them"


ADAPTER = Adapter(
    name=NAME,
    role=Role.PROFILE,
    options=NsysOptions,
    program=Program(
        "nsys", "apt-get install nsight-systems (Debian's non-free), or https://developer.nvidia.com/nsight-systems"
    ),
    metrics=builtin_metrics(
        *("gpu_time", "gpu_idle", "kernel_time_sum", "kernel_launches", "memcpy_time", "memcpy_bytes"),
        *("memcpy_bandwidth", "cuda_api_time", "osrt_time"),
    ),
    attaches=("report",),
    needs_program=needs_program,
    gpu=True,
    finds_peaks=True,
    invocations=invocations,
    outputs=leaves(_FILE),
    parse=parse,
)
