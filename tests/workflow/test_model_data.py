"""``as_data`` returns the same as pydantic's ``model_dump``."""

from __future__ import annotations

from pathlib import Path

import pytest

from perfflow.library import search_path
from perfflow.workflow.load import load
from perfflow.workflow.model import as_data

ROOT = Path(__file__).parents[2]
FILES = sorted(
    [
        *(ROOT / "workflows").glob("*.yaml"),
        *search_path.SHIPPED.glob("*.yaml"),
        *(ROOT / "tests/workflows/good").glob("*.yaml"),
    ]
)


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_plain_data_is_that_of_pydantic(path: Path) -> None:
    workflow = load(path, search_path.resolve, search_path.readable(path)).workflow
    assert as_data(workflow) == workflow.model_dump(mode="json", exclude_unset=True)
    assert as_data(workflow, by_alias=True) == workflow.model_dump(mode="json", by_alias=True, exclude_unset=True)
