"""``pytest --benchmark-json``: the rounds of each benchmark, in s per iteration.

Files of ``--benchmark-save`` and ``--benchmark-autosave`` have the rounds only with ``--benchmark-save-data``; of the
others mean, standard deviation and number of rounds are read.
"""

from __future__ import annotations

import math
from collections.abc import Mapping

from perfflow.tools import tool_files
from perfflow.tools.json_parts import facts, part, parts, values, word
from perfflow.tools.result_set import JsonFormat, ResultSet, Samples, Summary, label

TOOL = "pytest-benchmark"

# --benchmark-timer can be time.process_time, which counts what the process used instead of the time that went by.
_CPU_TIMERS = ("process_time", "thread_time")


def recognises(content: Mapping[str, object]) -> bool:
    """Whether the object has benchmarks and what pytest-benchmark tells of the machine."""
    return isinstance(content.get("benchmarks"), list) and isinstance(content.get("machine_info"), dict)


def parse(content: Mapping[str, object]) -> ResultSet:
    """Read every benchmark under its full name. Raises ToolOutputError for nonsense."""
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
    of_commit = part(content, "commit_info")
    told = facts(commit=of_commit.get("id") if of_commit.get("id") != "unversioned" else None)
    return samples.result_set(TOOL, content.get("version"), machine, told, content.get("datetime"))


def _add(samples: Samples, benchmark: Mapping[str, object]) -> None:
    name = word(benchmark, "fullname", "name")
    stats = part(benchmark, "stats")
    timer = part(benchmark, "options").get("timer", "")
    metric = "cpu" if isinstance(timer, str) and timer.endswith(_CPU_TIMERS) else "time"
    if stats.get("data"):
        loops = tool_files.positive(stats.get("iterations", 1), f"iterations of {label(name)}")
        for value in values(stats, "data"):
            samples.add(name, metric, value, batch=loops)
        return
    rounds = tool_files.whole(stats.get("rounds"), f"rounds of {label(name)}")
    spread = tool_files.number(stats.get("stddev"), f"stddev of {label(name)}")
    samples.add_summary(name, metric, stats.get("mean"), Summary(rounds, spread / math.sqrt(max(1, rounds))))


FORMAT = JsonFormat(TOOL, "pytest --benchmark-json FILE", recognises, parse)
