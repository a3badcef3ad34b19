from __future__ import annotations

from pathlib import Path

from perfflow.testing import AdapterContract
from tests.mutate import probe_readers
from tests.tools.harness import tool

HERE = Path(__file__).parent


class TestNvidiaSmi(AdapterContract):
    adapter = tool("nvidia-smi")
    samples = HERE / "595-synthetic" / "query"
    captured = HERE
    command = ["/bin/sleep", "2"]
    ends = False
    readers = (probe_readers.nvidia_smi,)
    stand_in = "/usr/bin/nvidia-smi"
