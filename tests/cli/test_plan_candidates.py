"""``perfflow plan`` of an optimize stage shows what each candidate would change, and runs nothing."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.cli.shell import perfflow, write

STAGES = """
params: {opt: -O1}
stages:
  baseline:
    - {id: a, uses: command, with: {command: ./a}, allow: {optimize-without-profile: no profiler here}}
  optimize:
    - {id: slab, technique: memory, hotspot: "*alloc*", patch: slab.patch}
    - {id: plain, technique: io, patch: plain.patch}
    - {id: other, technique: concurrency, ref: threads}
    - {id: edit, technique: algorithm, run: touch was-run}
    - {id: agent, technique: caching, propose: ./agent --fast}
    - {id: level, technique: configuration, matrix: {n: [1, 2]}, params: {opt: "-O${{ matrix.n }}"}, env: {A: b c}}
  verify:
    - {id: tests, run: make test}
    - {id: after, compare: baseline}
"""
SLAB = """\
diff --git a/src/a.c b/src/a.c
--- a/src/a.c
+++ b/src/a.c
@@ -1,2 +1,3 @@
 same
--- looks like the head of a file
+++ so does this
+new
diff --git a/b.c b/b.c
--- a/b.c
+++ b/b.c
@@ -1 +0,0 @@
-gone
"""
PLAIN = "--- a/x.py\n+++ b/x.py\n@@ -1 +1 @@\n-a\n+b\n"


@pytest.fixture
def project(tmp_path: Path) -> Path:
    (tmp_path / "slab.patch").write_text(SLAB)
    (tmp_path / "plain.patch").write_text(PLAIN)
    write(tmp_path, STAGES)
    return tmp_path


@pytest.mark.parametrize("arguments", [["plan"], ["run", "--dry-run"]], ids=" ".join)
def test_each_candidate_says_what_it_would_change(project: Path, arguments: list[str]) -> None:
    done = perfflow(*arguments, "flow.yaml", cwd=project)
    assert done.returncode == 0, done.stderr
    *shown, time = done.stdout[done.stdout.index("optimize:") :].splitlines()
    unknown = "slab, plain, other, edit, agent, level[n=1] and 3 more"
    assert time == f"total time: at most 20 s, for a; unknown until the first run: {unknown}"
    assert shown == [
        "optimize:",
        "    2. slab  (memory)  [alone]",
        "       patch slab.patch: 4 lines in src/a.c, b.c",
        "       works on: *alloc*",
        "    3. plain  (io)  [alone]",
        "       patch plain.patch: 2 lines in x.py",
        "    4. other  (concurrency)  [alone]",
        "       ref threads: its changes since its merge base with HEAD",
        "    5. edit  (algorithm)  [alone]",
        "       bash --noprofile --norc -eo pipefail -c 'touch was-run'",
        "    6. agent  (caching)  [alone]",
        "       propose: ./agent --fast (3 attempts at most)",
        "    7. level[n=1]  (configuration)  [alone]",
        "       env: A=b c",
        "       params: opt=-O1",
        "    8. level[n=2]  (configuration)  [alone]",
        "       env: A=b c",
        "       params: opt=-O2",
        "verify:",
        "    9. tests  (run)",
        "       bash --noprofile --norc -eo pipefail -c 'make test'",
        "   10. after  (kept changes against the baseline)  [alone]",
    ]
    assert not (project / "was-run").exists()


def test_programs_read_it_as_json(project: Path) -> None:
    steps = json.loads(perfflow("plan", "flow.yaml", "--format", "json", cwd=project).stdout)["steps"]
    slab = next(step for step in steps if step["id"] == "slab")
    assert slab["technique"] == "memory"
    assert slab["changes"] == ["patch slab.patch: 4 lines in src/a.c, b.c"]
    assert slab["argv"] == {}
    assert "changes" not in steps[0]
