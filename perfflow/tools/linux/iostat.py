"""``iostat``: how busy the machine's disks and processors were while the command ran, sampled beside it.

The figures are the whole machine's, not the command's alone. SIGTERM would leave JSON without its end, so iostat is
stopped by SIGINT, which lets it write that.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from statistics import fmean
from typing import cast

from pydantic import Field

from perfflow.errors import ToolOutputError
from perfflow.samples.metrics import of_perfflow
from perfflow.samples.readings import Parsed, Usage, reading_of_many
from perfflow.tools import tool_files
from perfflow.tools.adapter import Adapter, Call, CommandOptions, Invocation, Program, Role

_FILE = "iostat.json"
_SHARES: Mapping[str, str] = {
    "user": "cpu_user",
    "system": "cpu_system",
    "iowait": "cpu_iowait",
    "steal": "cpu_steal",
    "idle": "cpu_idle",
}
_BEGINS = 2.0
_KIB = 1024.0
# What lies on top of a disk, or holds nothing of its own, would be counted twice.
_NO_DISK = re.compile(r"(?:loop|ram|zram|dm-|md|sr|fd|nbd)\d")
_STOLEN = 0.05
_WAITED = 0.2
# Shares are rounded to a hundredth of a percent, six of them.
_ROUNDED = 1.0


class Options(CommandOptions):
    """``with`` keys of ``uses: iostat``."""

    interval: int = Field(default=1, ge=1, le=60, description="Seconds from sample to sample.")
    disks: list[str] = Field(default_factory=list, description="Names of disks such as `sda`; default all that are.")


Sample = Mapping[str, float]
"""Figures of one interval by metric: shares (0 to 1) and B/s; none of disks where there are none."""


def invocations(call: Call) -> tuple[Invocation, ...]:
    """Sample without an end, beside the command. The first sample, since the machine was started, is left out."""
    interval = str(cast(Options, call.options).interval)
    argv = (call.program or "iostat", "-x", "-y", "-k", "-o", "JSON", interval)
    # POSIXLY_CORRECT would change the units, S_TIME_FORMAT and the locale the text.
    env = {"LC_ALL": "C", "S_COLORS": "never"}
    return (Invocation(argv, env, _FILE, beside=_BEGINS), Invocation(call.command))


def outputs(call: Call) -> tuple[Path, ...]:
    """The samples."""
    return (call.folder / _FILE,)


def parse(call: Call, usage: Usage) -> Parsed:
    """Read the distribution of every figure over the samples, each of one interval.

    Raises ToolOutputError if the JSON is cut or nonsense, if a disk is not there, or if the command ended before the
    first sample.
    """
    options = cast(Options, call.options)
    statistics = _statistics(tool_files.read_json(call.folder / _FILE))
    if not statistics:
        raise ToolOutputError(
            f"the command ended within {options.interval} s, before the first sample: give it more work"
        )
    samples = [_sample(item, options.disks) for item in statistics]
    series: dict[str, list[float]] = {}
    for sample in samples:
        for metric, value in sample.items():
            series.setdefault(metric, []).append(value)
    readings = tuple(reading_of_many(metric, values) for metric, values in series.items())
    return Parsed(readings, warnings=tuple(_warnings(series)))


def _statistics(content: object) -> list[object]:
    """Return the samples of ``sysstat.hosts[0].statistics``. Raises ToolOutputError where there is no such list."""
    hosts = _map(_map(content).get("sysstat")).get("hosts")
    if not isinstance(hosts, list) or len(hosts) != 1:
        raise ToolOutputError(f"{_FILE} holds no statistics of a host")
    found = _map(hosts[0]).get("statistics")
    if not isinstance(found, list):
        raise ToolOutputError(f"{_FILE} holds no statistics of a host")
    return found


def _map(value: object) -> Mapping[str, object]:
    if not isinstance(value, dict):
        raise ToolOutputError(f"{_FILE} holds no statistics of a host")
    return value


def _sample(item: object, wanted: list[str]) -> Sample:
    fields = _map(item)
    processors, disks = fields.get("avg-cpu"), fields.get("disk")
    if not isinstance(processors, dict) or not isinstance(disks, list):
        raise ToolOutputError(f"{_FILE} holds a sample without processors or disks")
    percents = {name: _percent(processors, name) for name in (*_SHARES, "nice")}
    if abs(sum(percents.values()) - 100) > _ROUNDED:
        raise ToolOutputError(f"{_FILE} is damaged: the shares of the processors add up to {sum(percents.values()):g}%")
    found = {metric: percents[name] / 100 for name, metric in _SHARES.items()}
    # Processes of low priority are no system's work.
    found["cpu_user"] = (percents["user"] + percents["nice"]) / 100
    chosen = list(_chosen([_map(disk) for disk in disks], wanted))
    if chosen:
        found["disk_util"] = max(min(1.0, tool_files.number(disk.get("util"), "util") / 100) for disk in chosen)
        for metric, key in (("disk_read", "rkB/s"), ("disk_write", "wkB/s")):
            found[metric] = sum(tool_files.number(disk.get(key), key) for disk in chosen) * _KIB
    return found


def _percent(fields: Mapping[str, object], name: str) -> float:
    return tool_files.number(fields.get(name), f"share of {name}")


def _chosen(disks: list[Mapping[str, object]], wanted: list[str]) -> Iterable[Mapping[str, object]]:
    """The disks that are asked for, or all that are no more than a view of another one."""
    names = [disk.get("disk_device") for disk in disks]
    if not all(isinstance(name, str) and name for name in names) or len(set(map(str, names))) < len(names):
        raise ToolOutputError(f"{_FILE} holds a disk without a name of its own")
    if missing := [name for name in wanted if name not in names]:
        there = ", ".join(tool_files.clean_name(str(name))[:40] for name in names[:8])
        raise ToolOutputError(f"there is no disk {missing[0][:40]!r}; there are: {there or 'none'}")
    pairs = zip(names, disks, strict=True)
    return (disk for name, disk in pairs if (name in wanted if wanted else not _NO_DISK.match(str(name))))


def _warnings(series: Mapping[str, Sequence[float]]) -> Iterator[str]:
    """Say where others took the processors away, where they waited for disks, and where no disk was seen."""
    stolen, waited = (fmean(series[metric]) for metric in ("cpu_steal", "cpu_iowait"))
    if stolen > _STOLEN:
        yield f"the hypervisor gave {stolen:.0%} of the processors' time to others"
    if waited > _WAITED:
        yield f"the processors waited for disks {waited:.0%} of the time"
    if "disk_util" not in series:
        yield "iostat saw no disk, so there is no disk_util, disk_read and disk_write"


ADAPTER = Adapter(
    name="iostat",
    role=Role.PROFILE,
    options=Options,
    program=Program("iostat", "apt-get install sysstat", version=("-V",)),
    metrics=of_perfflow("disk_util", "disk_read", "disk_write", *_SHARES.values()),
    passes_stdout=True,
    invocations=invocations,
    outputs=outputs,
    parse=parse,
)
