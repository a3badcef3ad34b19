from __future__ import annotations

from pathlib import Path

from perfflow.testing import AdapterContract
from tests.mutate import cuda_readers
from tests.tools.harness import tool

HERE = Path(__file__).parent


class TestNvcc(AdapterContract):
    adapter = tool("nvcc")
    samples = HERE / "13.5" / "plain"
    captured = HERE
    options = {"file": "crowded.cu"}
    failing_options = {"file": "none.cu"}
    captured_with = {"": {"file": "crowded.cu"}}
    readers = (cuda_readers.nvcc,)
    stand_in = "/opt/cuda/bin/nvcc"
