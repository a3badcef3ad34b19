"""The profiles with stacks of a stored run, from the folded files that its result names."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable
from pathlib import Path

from perfflow.model.metrics import METRICS
from perfflow.model.readings import StackCounts
from perfflow.model.result import ProfileResult, Result
from perfflow.model.stacks import Stack, StackProfile, read_folded
from perfflow.model.units import Dimension
from perfflow.tools import regular_files

FOLDED = "folded"
_LARGEST = 512 * 2**20
"""Size limit of a file, in bytes."""
_NANO = 1e9
_NO_FRAME = ("?",)
_OF_COUNTS = {"allocs": "allocations", "temporary_allocs": "allocations"}
"""Units of counting metrics whose name differs from their unit."""


def stack_profiles(
    folder: Path, result: Result, lost: Callable[[str], None] = lambda _reason: None
) -> list[StackProfile]:
    """Read every profile with stacks of the run in ``folder``, in the order of the result.

    Profiles that cannot be read are skipped, and ``lost`` is called with the reason: the file is missing, damaged or
    outside the folder. ``per_operation`` is the value of the stacks' metric in the benchmark's row on that side.
    """
    root, profiles = folder.resolve(), list[StackProfile]()
    numbers = Counter[tuple[str, str, str]]()
    tools = {step.id: step.tool for step in result.steps}
    for profile in result.profiles:
        counts = _counts(profile)
        if counts is None:
            continue
        key = (profile.step, profile.benchmark, profile.tree)
        number = numbers[key]
        numbers[key] += 1
        try:
            threads = _threads(_text(root, profile.path), by_thread=counts.by_thread)
        except (OSError, ValueError) as error:
            lost(f"{profile.path}: {error.strerror or error if isinstance(error, OSError) else error}")
            continue
        cost, unit = _per_operation(result, profile, counts.metric)
        tool = profile.tool or tools.get(profile.step, "")
        about = (*key, tool, counts.unit, threads, number, cost, unit)
        profiles.append(StackProfile(*about, is_call_pairs=counts.is_call_pairs))
    return profiles


def has_stacks(result: Result) -> bool:
    """Return whether a result names a profile with stacks."""
    return any(map(_counts, result.profiles))


def _counts(item: ProfileResult) -> StackCounts | None:
    """Return the kind of a profile's stacks; None if it has none."""
    return StackCounts(**item.stacks.model_dump()) if item.stacks else None


def _text(root: Path, name: str) -> str:
    """Return the text of a file of the run. Raises OSError, and ValueError for a path outside the folder."""
    path = (root / name).resolve()
    if not path.is_relative_to(root):
        raise ValueError("it is outside the run's folder")
    return regular_files.read(path, _LARGEST).decode("utf-8", "replace")


def _threads(text: str, *, by_thread: bool) -> dict[str, dict[Stack, int]]:
    """Return the stacks with a count, by thread. Raises ValueError if there are none or a line is not a stack."""
    threads: defaultdict[str, Counter[Stack]] = defaultdict(Counter)
    for stack, count in read_folded(text).items():
        if count:
            thread, own = (stack[0], stack[1:]) if by_thread else ("", stack)
            threads[thread][own or _NO_FRAME] += count
    if not threads:
        raise ValueError("it contains no stacks")
    return dict(threads)


def _per_operation(result: Result, item: ProfileResult, metric: str) -> tuple[float | None, str]:
    """Return the cost of an operation, None if no row has the metric, and its unit. Times are in ns."""
    dimension = METRICS[metric].dimension if metric in METRICS else Dimension.TIME
    unit = {Dimension.TIME: "ns", Dimension.BYTES: "bytes"}.get(dimension) or _OF_COUNTS.get(metric, metric)
    rows = [row for row in result.benchmarks if (row.name, row.metric) == (item.benchmark, metric)]
    samples = [row.candidate if item.tree == "candidate" else row.baseline for row in rows]
    value = next((sample.value for sample in samples if sample and sample.value), None)
    return value if value is None or unit != "ns" else value * _NANO, unit
