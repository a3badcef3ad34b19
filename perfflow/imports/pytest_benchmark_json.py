"""``pytest --benchmark-json``: the rounds of each benchmark, in s per iteration.

Files of ``--benchmark-save`` and ``--benchmark-autosave`` have the rounds only with ``--benchmark-save-data``.
"""

from __future__ import annotations

from collections.abc import Mapping

from perfflow.errors import ToolOutputError
from perfflow.imports.imported import Imported, JsonFormat, Samples, label
from perfflow.imports.json_parts import facts, part, parts, values, word

TOOL = "pytest-benchmark"

# --benchmark-timer can be time.process_time, which counts what the process used instead of the time that went by.
_CPU_TIMERS = ("process_time", "thread_time")


def recognises(content: Mapping[str, object]) -> bool:
    """Whether the object has benchmarks and what pytest-benchmark tells of the machine."""
    return isinstance(content.get("benchmarks"), list) and isinstance(content.get("machine_info"), dict)


def parse(content: Mapping[str, object]) -> Imported:
    """Read every benchmark under its full name. Raises ToolOutputError for nonsense and where rounds are missing."""
    samples = Samples()
    for benchmark in parts(content, "benchmarks"):
        _add(samples, benchmark)
    info = part(content, "machine_info")
    cpu = part(info, "cpu")
    machine = facts(
        cpu=cpu.get("brand_raw"),
        cpus=cpu.get("count"),
        os=info.get("system"),
        kernel=info.get("release"),
        arch=info.get("machine"),
        python=info.get("python_version"),
    )
    return samples.imported(TOOL, content.get("version"), machine)


def _add(samples: Samples, benchmark: Mapping[str, object]) -> None:
    name = word(benchmark, "fullname", "name")
    stats = part(benchmark, "stats")
    if not stats.get("data"):
        raise ToolOutputError(f"{label(name)} has statistics, but not the rounds they were made of")
    timer = part(benchmark, "options").get("timer", "")
    metric = "cpu" if isinstance(timer, str) and timer.endswith(_CPU_TIMERS) else "time"
    for value in values(stats, "data"):
        samples.add(name, metric, value)


FORMAT = JsonFormat(TOOL, "pytest --benchmark-json FILE", recognises, parse)
