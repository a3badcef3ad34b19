"""The joined table of real profilers for one small program, whose method each profiler names differently."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from perfflow.report.same_function import joined_of
from perfflow.store.result_file import read

PROGRAM = """\
class Other:
    def keep(self, value):
        return value


class Store:
    def __init__(self):
        self.found = []

    def keep(self, value):
        self.found.append([value] * 200)


store, other = Store(), Other()
for number in range(20_000):
    store.keep(other.keep(number))
"""
FLOW = """\
perfflow: 1
name: joined
stages:
  profile:
    - {id: calls, uses: cprofile, benchmark: b, with: {command: PYTHON prog.py}}
    - {id: lines, uses: line-profiler, benchmark: b, with: {command: PYTHON prog.py}}
    - {id: heap, uses: memray, benchmark: b, with: {command: PYTHON prog.py}}
"""


def test_one_method_is_one_row_whoever_names_it(tmp_path: Path) -> None:
    (tmp_path / "prog.py").write_text(PROGRAM)
    (tmp_path / "flow.yaml").write_text(FLOW.replace("PYTHON", sys.executable))
    argv = [sys.executable, "-m", "perfflow", "run", "flow.yaml", "--out", "out", "--progress", "off"]
    ended = subprocess.run(argv, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert ended.returncode == 0, ended.stdout + ended.stderr
    result = read(tmp_path / "out" / "result.json")
    assert len({spot.location for spot in result.hotspots if spot.function == "Store.keep"}) > 1
    (table,) = joined_of(result)
    assert [column.split(":")[0] for column in table.columns] == ["cprofile", "line-profiler", "memray"]
    (row,) = [row for row in table.rows if row.function == "Store.keep"]
    assert row.place == "prog.py:10"
    assert "–" not in row.cells
    assert "### Hotspots by Function" in (tmp_path / "out" / "report.md").read_text()
