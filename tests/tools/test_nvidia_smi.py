"""``nvidia-smi``: truncated tables and impossible figures."""

from __future__ import annotations

from pathlib import Path

import pytest

from perfflow.model.errors import ToolOutputError
from perfflow.model.readings import Parsed, Usage
from perfflow.testing.contract import check_sane
from tests.tools.harness import DATA, call_of, tool

SMI = DATA / "nvidia-smi" / "595-synthetic"


def _parsed(folder: Path, text: str, seconds: float = 1.0, **keys: object) -> Parsed:
    (folder / "nvidia-smi.txt").write_text(text)
    parsed = tool("nvidia-smi").parse(call_of("nvidia-smi", folder, "/bin/true", **keys), Usage(wall=seconds))
    check_sane(parsed)
    return parsed


def test_a_table_that_ends_within_a_sample_is_told(tmp_path: Path) -> None:
    lines = (SMI / "two-gpus" / "nvidia-smi.txt").read_text().splitlines(keepends=True)
    assert not any("cut" in warning for warning in _parsed(tmp_path, "".join(lines)).warnings)
    warnings = _parsed(tmp_path, "".join(lines[:-1])).warnings
    assert any("GPU 1 has fewer samples than others" in warning for warning in warnings)


def test_a_table_that_ends_long_before_the_command_is_told(tmp_path: Path) -> None:
    text = (SMI / "dmon" / "nvidia-smi.txt").read_text()
    # Three samples, one per second; nvidia-smi can take some seconds to start.
    for seconds, is_told in ((3.0, False), (8.0, False), (20.0, True)):
        warnings = _parsed(tmp_path, text, seconds, mode="dmon").warnings
        assert any("do not cover the" in warning for warning in warnings) == is_told


def test_a_figure_that_is_too_large_once_scaled_is_none(tmp_path: Path) -> None:
    text = (SMI / "two-gpus" / "nvidia-smi.txt").read_text().replace("9000", "9000000000000000000")
    with pytest.raises(ToolOutputError, match="which is not valid"):
        _parsed(tmp_path, text)
