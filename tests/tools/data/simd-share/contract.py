from pathlib import Path

import pytest

from perfflow.testing import AdapterContract
from tests.tools.harness import tool
from tests.tools.lies import HOT


class TestSimdShare(AdapterContract):
    adapter = tool("simd-share")
    samples = "6.1.192/scalar"
    captured = "."
    command = HOT

    @pytest.mark.long  # tests/tools/test_simd_share.py runs it in CI
    def test_a_real_run_yields_what_the_adapter_names(self, tmp_path: Path) -> None:
        super().test_a_real_run_yields_what_the_adapter_names(tmp_path)
