"""Facts that identify a machine."""

from __future__ import annotations

import json
import os

import psutil

from perfflow.machine.facts import IDENTITY, facts


def test_facts_are_json_and_their_identity_does_not_jitter() -> None:
    first, second = facts(), facts()
    json.dumps(first, allow_nan=False)
    assert first["identity"] == second["identity"]
    assert set(IDENTITY) <= set(first)
    assert first["cores"] == os.cpu_count()
    assert first["usable_cores"] == len(os.sched_getaffinity(0))
    assert first["memory_gib"] == round(psutil.virtual_memory().total / 2**30) > 0
    assert "load" not in IDENTITY
