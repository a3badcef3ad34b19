"""Files that a step lists under `artifacts` are copied to the run's folder, and the receipt has their hashes."""

from __future__ import annotations

import json

import pytest

from perfflow.model.errors import UserError
from tests.session.project import Project, step


def test_what_globs_match_is_kept_with_the_run_and_in_its_receipt(project: Project) -> None:
    finished = project.finish("""
params: {name: b}
stages:
  build:
    - id: make
      run: mkdir -p out/deep .git && echo one > out/a.txt && echo two > out/deep/b.txt && echo > .git/c.txt
      artifacts: [out/a.txt, "**/${{ params.name }}.txt", ".git/*", none.txt]
    - {id: later, run: echo changed > out/a.txt}
""")
    kept = finished.folder / "steps" / "make" / "artifacts"
    files = {str(path.relative_to(kept)): path.read_text() for path in kept.rglob("*") if path.is_file()}
    assert files == {"out/a.txt": "one\n", "out/deep/b.txt": "two\n"}
    warnings = [f"artifacts: `{glob}` matches no file" for glob in (".git/*", "none.txt")]
    assert step(finished.result, "make").warnings == warnings
    receipt = json.loads((finished.folder / "receipt.json").read_text())
    assert "steps/make/artifacts/out/deep/b.txt" in json.dumps(receipt)


def test_a_step_that_fails_keeps_its_files_and_its_reason(project: Project) -> None:
    finished = project.finish("""
stages:
  build:
    - {id: make, run: "echo why > log; exit 3", artifacts: [log]}
""")
    assert step(finished.result, "make").exit_code == 3
    assert (finished.folder / "steps" / "make" / "artifacts" / "log").read_text() == "why\n"


@pytest.mark.parametrize("glob", ["../other", "/etc/hostname", "a/../../b"])
def test_nothing_outside_the_tree_is_kept(project: Project, glob: str) -> None:
    flow = """
params: {{glob: {glob}}}
stages:
  build:
    - {{id: make, run: "true", artifacts: ["{written}"]}}
"""
    with pytest.raises(UserError, match="not below the root of the tree"):
        project.open(flow.format(glob=glob, written=glob))
    result = project.run(flow.format(glob=glob, written="${{ params.glob }}"))
    assert step(result, "make").status == "failed"
    assert "not below the root of the tree" in step(result, "make").reason
