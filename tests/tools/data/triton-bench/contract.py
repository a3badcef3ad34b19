from importlib.util import find_spec
from typing import Any

import pytest

from perfflow.execute.invoke import Invoked
from perfflow.testing import AdapterContract
from tests.tools.harness import tool


class TestTritonBench(AdapterContract):
    adapter = tool("triton-bench")
    samples = "3.9.0/cpu"
    captured = "."
    options = {"script": "bench.py"}
    failing_options = {"script": "none.py"}
    captured_with = {"": {"script": "bench.py"}}
    # If Triton is installed, test_real_torch runs it as well.
    stand_in = "/usr/bin/python3"

    def _run(self, *given: Any, **more: Any) -> Invoked:
        if not find_spec("triton"):
            pytest.skip("Triton is not installed: pip install triton torch")
        return super()._run(*given, **more)
