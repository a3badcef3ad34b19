"""Tables as data frames of pandas and polars, and the error if neither is installed."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

import perfflow
from perfflow.api.run import Library, columns_of
from perfflow.model.errors import UserError
from tests.api.stored import KINDS

BOTH = ["pandas", "polars"]


@pytest.mark.parametrize("library", BOTH)
@pytest.mark.parametrize("name", KINDS)
def test_a_frame_holds_what_the_rows_hold(name: str, library: Library, kinds: dict[str, Path]) -> None:
    run = perfflow.load(kinds[name])
    frame = run.to_frame(library=library)
    rows = run.to_rows()
    assert type(frame).__module__.startswith(library)
    assert list(frame.columns) == list(rows[0])
    assert frame["value"].to_list() == [row["value"] for row in rows]
    assert plain(frame["pair"]) == [row["pair"] for row in rows]
    decisions = run.to_frame("decisions", library)
    assert plain(decisions["decision"]) == [row["decision"] for row in run.decisions()]


def plain(column: object) -> list[object]:
    """Return the values of a column, missing ones as None."""
    values: list[object] = column.to_list()  # type: ignore[attr-defined]
    return [None if type(value).__name__ in ("NAType", "NoneType") else value for value in values]


@pytest.mark.parametrize("library", BOTH)
def test_a_frame_without_rows_has_its_columns(library: Library, here: Path, tmp_path: Path) -> None:
    import json

    data = json.loads((here / ".perfflow/runs/latest/result.json").read_text())
    (tmp_path / "result.json").write_text(json.dumps({**data, "benchmarks": []}))
    frame = perfflow.load(tmp_path).to_frame(library=library)
    assert (len(frame), list(frame.columns)) == (0, list(columns_of(perfflow.SampleRow)))


def test_pandas_comes_first_and_words_are_checked(here: Path) -> None:
    run = perfflow.load()
    assert type(run.to_frame()).__module__.startswith("pandas")
    with pytest.raises(UserError, match="write one of: samples, decisions"):
        run.to_frame("rows")  # type: ignore[arg-type]
    with pytest.raises(UserError, match="write one of: pandas, polars"):
        run.to_frame(library="numpy")  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("missing", "call", "said"),
    [
        (["pandas", "polars"], "to_frame()", "neither pandas nor polars is installed"),
        (["pandas", "polars"], "to_frame()", "hint: install one with `python -m pip install pandas`"),
        (["polars"], "to_frame(library='polars')", "polars is not installed"),
        (["polars"], "to_frame(library='polars')", "python -m pip install polars"),
        (["pandas"], "to_frame()", "polars.dataframe"),
    ],
)
def test_what_is_not_installed_is_told_with_a_remedy(missing: list[str], call: str, said: str, here: Path) -> None:
    # None in sys.modules marks a module that cannot be imported.
    absent = f"import sys; sys.modules |= dict.fromkeys({missing})"
    code = f"{absent}; import perfflow; print(type(perfflow.load().{call}))"
    done = subprocess.run([sys.executable, "-c", code], cwd=here, capture_output=True, text=True, check=False)
    assert said in done.stdout + done.stderr
