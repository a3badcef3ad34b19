"""``iostat``: sample the load of the machine's disks and processors while the command runs.

The figures are of the whole machine, not only of the command. iostat is stopped by SIGINT, after which it completes its
JSON; after SIGTERM it does not.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from statistics import fmean

from pydantic import AliasPath, Field

from perfflow.model.errors import ToolOutputError
from perfflow.model.metrics import builtin_metrics
from perfflow.model.readings import Parsed, Usage, reading_of_many
from perfflow.tools import parsed_output, tool_files
from perfflow.tools.adapter import Adapter, Call, CommandOptions, Invocation, Program, Role, leaves
from perfflow.tools.parsed_output import Figure, Json

_FILE = "iostat.json"
# Shares of the processors' time. Processes of low priority (`nice`) count as user.
_SHARES = ("user", "system", "iowait", "steal", "idle")
_BEGINS = 2.0
_KIB = 1024.0
# Devices on top of other disks, which would be counted twice, and devices without storage.
_NO_DISK = re.compile(r"(?:loop|ram|zram|dm-|md|sr|fd|nbd)\d")
_STOLEN = 0.05
_WAITED = 0.2
# In percentage points; six shares are rounded to 0.01%.
_ROUNDED = 1.0


class IostatOptions(CommandOptions):
    """``with`` keys of ``uses: iostat``."""

    interval: int = Field(default=1, ge=1, le=60, description="Seconds between samples.")
    disks: list[str] = Field(default_factory=list, description="Names of disks, such as `sda` (default: all).")


class _Disk(Json):
    """One disk: throughput in KiB/s, and the share of time in which it was busy, in percent."""

    name: str = Field(alias="disk_device", min_length=1)
    read: Figure = Field(alias="rkB/s")
    write: Figure = Field(alias="wkB/s")
    util: Figure


class _IostatSample(Json):
    """One interval."""

    processors: dict[str, Figure] = Field(alias="avg-cpu")
    disks: list[_Disk] = Field(alias="disk")


class _Host(Json):
    statistics: list[_IostatSample]


class _IostatFile(Json):
    hosts: list[_Host] = Field(validation_alias=AliasPath("sysstat", "hosts"), min_length=1, max_length=1)


def invocations(call: Call[IostatOptions]) -> tuple[Invocation, ...]:
    """Sample while the command runs, without the first sample, which covers the time since boot."""
    interval = str(call.options.interval)
    argv = (call.program or "iostat", "-x", "-y", "-k", "-o", "JSON", interval)
    # POSIXLY_CORRECT can change the units; S_TIME_FORMAT and the locale can change the text.
    env = {"LC_ALL": "C", "S_COLORS": "never"}
    return (Invocation(argv, env, _FILE, beside=_BEGINS), Invocation(call.command))


def parse(call: Call[IostatOptions], usage: Usage) -> Parsed:
    """Read the distribution of every figure over the samples of one interval each.

    Raises ToolOutputError if the JSON is cut or invalid, if a disk does not exist, or if the command ended before the
    first sample.
    """
    (host,) = parsed_output.read_json(_IostatFile, call.folder / _FILE).hosts
    series: dict[str, list[float]] = {}
    for sample in host.statistics:
        for metric, value in _figures(sample, call.options.disks):
            series.setdefault(metric, []).append(value)
    if not series:
        raise ToolOutputError(
            f"the command ended within {call.options.interval} s, before the first sample: give it more work"
        )
    stolen, waited = (fmean(series[metric]) for metric in ("cpu_steal", "cpu_iowait"))
    warnings = {
        f"the hypervisor gave {stolen:.0%} of the processors' time to other machines": stolen > _STOLEN,
        f"the processors waited for disks {waited:.0%} of the time": waited > _WAITED,
        "iostat found no disk, so disk_util, disk_read and disk_write are missing": "disk_util" not in series,
    }
    readings = tuple(reading_of_many(metric, values) for metric, values in series.items())
    return Parsed(readings, warnings=tuple(warning for warning, is_so in warnings.items() if is_so))


def _figures(sample: _IostatSample, wanted: list[str]) -> Iterator[tuple[str, float]]:
    """Yield the figures of one interval: shares (0 to 1) and B/s, without those of disks if there is no disk."""
    percents = {name: value for name, value in sample.processors.items() if name in (*_SHARES, "nice")}
    if len(percents) <= len(_SHARES) or abs(sum(percents.values()) - 100) > _ROUNDED:
        raise ToolOutputError(f"{_FILE} is damaged: the shares of the processors add up to {sum(percents.values()):g}%")
    percents["user"] += percents["nice"]
    yield from ((f"cpu_{name}", percents[name] / 100) for name in _SHARES)
    if chosen := _chosen(sample.disks, wanted):
        yield "disk_util", max(min(1.0, disk.util / 100) for disk in chosen)
        yield "disk_read", tool_files.number(sum(disk.read for disk in chosen) * _KIB, "disk_read")
        yield "disk_write", tool_files.number(sum(disk.write for disk in chosen) * _KIB, "disk_write")


def _chosen(disks: list[_Disk], wanted: list[str]) -> list[_Disk]:
    """Return the wanted disks, by default all physical disks. Raises ToolOutputError for an unknown disk."""
    names = [disk.name for disk in disks]
    if len(set(names)) < len(names):
        raise ToolOutputError(f"{_FILE} lists a disk twice")
    if missing := [name for name in wanted if name not in names]:
        there = ", ".join(tool_files.clean_name(name)[:40] for name in names[:8])
        raise ToolOutputError(f"there is no disk {missing[0][:40]!r}; available disks: {there or 'none'}")
    return [disk for disk in disks if (disk.name in wanted if wanted else not _NO_DISK.match(disk.name))]


ADAPTER = Adapter(
    name="iostat",
    role=Role.PROFILE,
    options=IostatOptions,
    program=Program("iostat", "apt-get install sysstat", version=("-V",)),
    metrics=builtin_metrics("disk_util", "disk_read", "disk_write", *(f"cpu_{name}" for name in _SHARES)),
    passes_stdout=True,
    invocations=invocations,
    outputs=leaves(_FILE),
    parse=parse,
)
