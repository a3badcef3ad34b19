"""One profile with stacks, the input of flame graphs and exported profiles."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from perfflow.model.stacks import Stack


@dataclass(frozen=True)
class StackProfile:
    """Stacks of one profile, root first, each with its own count.

    ``unit`` of counts is ``samples``, ``ns``, ``instructions``, ``bytes`` or ``allocations``. ``threads`` maps
    the name of a thread to its stacks, '' if threads are unknown. ``per_operation`` is the cost of one operation
    in ``cost_unit`` (``ns``, ``instructions``, ``bytes``, ``allocations``), None if it was not measured; a count is
    worth ``per_operation / sum of all counts``. Several profiles of one step, benchmark and side differ in ``number``.
    ``is_call_pairs`` marks a profile that contains only direct callers, such as cProfile's.
    """

    step: str
    benchmark: str
    side: str
    tool: str
    unit: str
    threads: Mapping[str, Mapping[Stack, int]]
    number: int = 0
    per_operation: float | None = None
    cost_unit: str = "ns"
    is_call_pairs: bool = False
