"""``ncu``: counters of each launch of a CUDA kernel from NVIDIA's Nsight Compute, or from an existing report.

ncu replays each launch once per pass, with flushed caches: its times are those of a kernel alone. ncu itself converts
its report to CSV, which needs no GPU. The raw page has the figures, by the ids of ncu's metrics, and the details page
has the advice of its rules.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Literal

from pydantic import Field, model_validator

from perfflow.model.errors import ToolOutputError
from perfflow.model.kernels import together
from perfflow.model.metrics import builtin_metrics
from perfflow.model.readings import Parsed, Profile, Usage
from perfflow.tools import tool_files
from perfflow.tools.adapter import Adapter, Call, CommandOptions, Invocation, Program, Role, leaves
from perfflow.tools.nvidia import ncu_kernels, ncu_launch, ncu_table

_TABLE, _DETAILS, _KERNELS = "ncu.csv", "ncu-details.csv", "kernels.json"
_REPORT, _LOG = "report.ncu-rep", "ncu.log"
_REPORTS = (".ncu-rep", ".nsight-cuprof-report")
# The same sections in every version. Newer versions call this set `basic`, older ones `default`.
_BASIC = ("LaunchStats", "Occupancy", "SpeedOfLight")


_REASONS: Mapping[str, str] = {
    "ERR_NVGPUCTRPERM": "only administrators can read the counters of the GPU (ERR_NVGPUCTRPERM): run as root or with "
    "CAP_SYS_ADMIN, or load the driver with NVreg_RestrictProfilingToAdminUsers=0",
    r"failed to connect to the CUDA driver|no CUDA-capable device|CUDA driver could not be|libcuda\.so": "no NVIDIA "
    "GPU was found: ncu cannot connect to the CUDA driver",
    "driver is not compatible|driver (?:version )?is (?:insufficient|too old)|not supported on": "this version of ncu "
    "does not support the GPU or its driver: {text}",
    "driver resource was unavailable|concurrently collecting|another (?:tool|profiler)|DCGM": "another profiler uses "
    "the counters of the GPU: stop it, or pause DCGM with `dcgmi profile --pause`",
    "Could not open report": "the report does not exist: {text}",
    "Failed to (?:load|open) report": "ncu cannot read the report: it is damaged, cut short or of a newer version",
    r"application returned an error code \((?P<code>-?\d{1,10})\)": "the program exited with {code} under ncu",
    "^==ERROR== ": "ncu failed: {text}",
    "No kernels were profiled": "no kernel was profiled: the program launched no kernel on a GPU, or `kernel`, `skip` "
    "and `nvtx` excluded all of them",
}
"""ncu's messages when it measured nothing, and the reason for each, the most specific first."""


class Options(CommandOptions):
    """``with`` keys of ``uses: ncu``."""

    report: str = Field(
        default="",
        description="Read this report instead of profiling: a .ncu-rep, or the output of `ncu --csv --page raw` or "
        "`--page details`.",
    )
    kernel: str = Field(
        default="", description="Only profile kernels whose function name matches this regular expression."
    )
    skip: int = Field(default=0, ge=0, description="Number of launches of these kernels to skip at the start.")
    launches: int = Field(default=100, ge=0, description="Profile at most this many launches; 0 means all.")
    set: Literal["basic", "detailed", "full"] = Field(
        default="detailed",
        description="Set of metrics: `basic` (throughput, occupancy), `detailed` (also warp states, caches, roofline) "
        "or `full`.",
    )
    sections: list[str] = Field(default=[], description="Sections of ncu to collect instead of a set.")
    metrics: list[str] = Field(default=[], description="Additional metrics of ncu to collect, by their ids.")
    replay: Literal["kernel", "application", "range"] = Field(
        default="kernel", description="What to run again for each pass: `kernel`, `application` or `range`."
    )
    nvtx: str = Field(default="", description="Only profile launches in this NVTX range, as with `--nvtx-include`.")
    clock_control: Literal["none", "base"] = Field(
        default="none",
        description="`base` locks the clocks of the GPU while it is profiled, which needs permission.",
    )

    @model_validator(mode="after")
    def _one_source(self) -> Options:
        if self.report and self.command is not None:
            raise ValueError("set either `report`, which is read, or `command`, which is run")
        return self


def needs_program(values: Mapping[str, object]) -> bool:
    """Return whether a step with these keys needs ncu: a report in CSV is read without it."""
    report = values.get("report")
    return not (isinstance(report, str) and report and not report.endswith(_REPORTS))


def invocations(call: Call[Options]) -> tuple[Invocation, ...]:
    """Profile into a report and let ncu print both pages of it, or read an existing report.

    Raises ToolOutputError if launches are to be selected from a report in CSV, which ncu does not read.
    """
    options, program = call.options, call.program or "ncu"
    if not options.report:
        return (Invocation(_profiling(call, program, options)), *_printing(program, str(call.folder / _REPORT), ()))
    if options.report.endswith(_REPORTS):
        return _printing(program, options.report, _chosen(options))
    if options.kernel or options.skip:
        raise ToolOutputError("`kernel` and `skip` select launches of a .ncu-rep, not of a report in CSV")
    return (Invocation(("/bin/cat", "--", options.report), stdout=_TABLE),)


def _profiling(call: Call, program: str, options: Options) -> tuple[str, ...]:
    sections = options.sections or (_BASIC if options.set == "basic" else ())
    collected = [word for name in sections for word in ("--section", name)] or ["--set", options.set]
    return (
        *(program, "--log-file", str(call.folder / _LOG), "--force-overwrite", "--export", str(call.folder / _REPORT)),
        *("--target-processes", "all", "--replay-mode", options.replay),
        *("--clock-control", options.clock_control, *collected),
        *(("--metrics", ",".join(options.metrics)) if options.metrics else ()),
        *(("--nvtx", "--nvtx-include", options.nvtx) if options.nvtx else ()),
        *(*_chosen(options), *call.command),
    )


def _chosen(options: Options) -> tuple[str, ...]:
    """Return the arguments that select launches."""
    return (
        *(("--kernel-name", f"regex:{options.kernel}") if options.kernel else ()),
        *(("--launch-skip", str(options.skip)) if options.skip else ()),
        *(("--launch-count", str(options.launches)) if options.launches else ()),
    )


def _printing(program: str, report: str, chosen: tuple[str, ...]) -> tuple[Invocation, ...]:
    """Return the processes that print both pages of a report, in one notation for every locale."""
    argv = (program, "--import", report, "--csv", "--print-units", "base", *chosen)
    pages = {"raw": _TABLE, "details": _DETAILS}
    return tuple(Invocation((*argv, "--page", page), {"LC_ALL": "C"}, file) for page, file in pages.items())


def parse(call: Call[Options], usage: Usage) -> Parsed:
    """Read the figures of every kernel, one benchmark per kernel unless the step names one, and write kernels.json.

    Raises ToolOutputError with a remedy if nothing was profiled, or if a page is truncated or damaged.
    """
    options, folder = call.options, call.folder
    if why := reason(*(tool_files.last_bytes(folder, file) for file in (_LOG, "stderr", _TABLE, _DETAILS))):
        raise ToolOutputError(why)
    missing = f"check that {options.report[:100]!r} exists" if options.report else "ncu printed no page of its report"
    text = tool_files.read_text(folder / _TABLE, tool_files.clean_name(missing))
    table = ncu_table.read(_TABLE, text)
    warnings = list(table.warnings)
    if (folder / _DETAILS).exists():
        details = ncu_table.read(_DETAILS, tool_files.read_text(folder / _DETAILS))
        _add_rules(table, details)
        warnings += details.warnings
        if len(details.launches) < len(table.launches):
            told = f"{len(details.launches):,} of {len(table.launches):,} launches"
            warnings.append(f"{_DETAILS} contains {told}: it may be cut short, so advice may be missing")
    if not table.launches:
        raise ToolOutputError(f"{_TABLE} contains no launch: `kernel`, `skip` and `nvtx` may exclude all of them")
    kernels = ncu_kernels.gather(ncu_launch.measure(table))
    whole = bool(call.benchmark) and "*" not in call.benchmark
    readings = tuple(ncu_kernels.readings(kernels, whole=whole))
    if not readings:
        raise ToolOutputError(f"{_TABLE} contains no metric that perfflow reads: collect a `set`, or more `sections`")
    ncu_kernels.write(folder / _KERNELS, kernels)
    warnings += ncu_kernels.warnings(kernels)
    if whole and len(kernels) > 1:
        warnings.append(
            f"the figures are of {len(kernels)} kernels together, weighted by time: select one with `kernel`"
        )
    if len(table.launches) == options.launches and not options.report:
        warnings.append(f"profiling stopped after {options.launches:,} launches: set `launches` to profile more")
    facts = tuple(ncu_kernels.facts(kernels))
    made = [Profile(_REPORT, "ncu-report")] if tool_files.left(folder / _REPORT) else []
    return Parsed(
        readings,
        tuple(ncu_kernels.hotspots(kernels)),
        (*made, Profile(_KERNELS, "ncu-kernels")),
        tuple(warnings),
        peaks=tuple(ncu_kernels.peaks(kernels)),
        device=together(item.device for item in facts),
        kernels=facts,
    )


def reason(*texts: str) -> str:
    """Return why nothing was measured, from ncu's messages, with a remedy; '' if none is known.

    Only lines that begin with ``==ERROR==`` or ``==WARNING==`` are ncu's: a program may print the same words.
    """
    lines = [line for text in texts for line in text.splitlines() if line.startswith(("==ERROR==", "==WARNING=="))]
    first = next((line.removeprefix("==ERROR== ") for line in lines if line.startswith("==ERROR== ")), "")
    return tool_files.why("\n".join(lines), _REASONS, re.IGNORECASE | re.MULTILINE, text=first)


def _add_rules(table: ncu_table.Table, details: ncu_table.Table) -> None:
    """Add the rules' advice to each launch. Raises ToolOutputError if the pages are of different reports."""
    by_id = {launch.id: launch for launch in table.launches}
    for item in details.launches:
        launch = by_id.get(item.id)
        if launch is None or launch.kernel != item.kernel:
            raise ToolOutputError(f"{_DETAILS} and {_TABLE} are not of the same launches: one is cut or damaged")
        launch.rules.extend(item.rules)


ADAPTER = Adapter(
    name="ncu",
    role=Role.PROFILE,
    options=Options,
    program=Program(
        "ncu",
        "apt-get install nsight-compute",
        instead="it is in Debian's non-free section and in NVIDIA's CUDA toolkit",
    ),
    metrics=builtin_metrics(*ncu_launch.METRICS),
    attaches=("report",),
    needs_program=needs_program,
    suite=True,
    gpu=True,
    finds_peaks=True,
    invocations=invocations,
    outputs=leaves(_TABLE),
    parse=parse,
)
