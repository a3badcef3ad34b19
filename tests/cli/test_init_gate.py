"""``perfflow init && perfflow run && perfflow gate`` in fresh projects: each ends with a verdict."""

from __future__ import annotations

import json
import subprocess
import sys
import sysconfig
from collections.abc import Mapping
from pathlib import Path

import pytest

from tests.cli.shell import perfflow
from tests.repositories import git

TOTAL = "def total(n):\n    return sum(i * i for i in range(n))\n"
IGNORED = ".venv/\n__pycache__/\n.perfflow/\n/pack\n/bench\nbuild/\n"
PACK = r"""
#include <stdio.h>
int main(void) { unsigned t = 7; for (int i = 0; i < 5000000; i++) t = t * 31 + i; printf("%u\n", t); return 0; }
"""
MAKE_PACK = "all: pack\npack: pack.c\n\t$(CC) -O1 -g -o $@ $<\n"
MAKE_BENCH = "bench: bench.cpp\n\t$(CXX) -O2 -o $@ $< -lbenchmark -lpthread\n"
BENCH = """
#include <benchmark/benchmark.h>
static void BM_Mix(benchmark::State &state) {
  for (auto _ : state) { unsigned t = 7; for (int i = 0; i < 3000; i++) benchmark::DoNotOptimize(t = t * 31 + i); }
}
BENCHMARK(BM_Mix);
BENCHMARK_MAIN();
"""
SCRIPT = "import pyperf\nfrom shop import total\n\nrunner = pyperf.Runner()\nrunner.bench_func('total', total, 5000)\n"
SUITE = "from shop import total\n\n\nclass Suite:\n    def time_total(self):\n        total(5000)\n"

PROJECTS: Mapping[str, tuple[Mapping[str, str], str, str]] = {
    "python": ({"shop.py": f"{TOTAL}\nprint(total(50000))\n"}, "shop.py", ".venv/bin/python shop.py"),
    "command": ({"Makefile": MAKE_PACK, "pack.c": PACK}, "pack.c", "./pack"),
    "pyperf": ({"shop.py": TOTAL, "perf/speed.py": SCRIPT}, "shop.py", ""),
    "asv": ({"shop.py": TOTAL, "asv.conf.json": "{}", "benchmarks/speed.py": SUITE}, "shop.py", ""),
    "make": ({"Makefile": MAKE_BENCH, "bench.cpp": BENCH}, "bench.cpp", ""),
}
"""Files of the project, the file that a commit changes, and the value of --command."""
ALIKE = ("command", "pyperf", "asv", "make")
"""Cases for the long tests: built programs, and two more Python suites."""


def environment(folder: Path) -> None:
    """A virtual environment with the packages of the environment of these tests."""
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", folder / ".venv"], check=True)
    (site,) = (folder / ".venv").glob("lib/python*/site-packages")
    entries = [sysconfig.get_path("purelib"), *(path for path in sys.path if path.endswith("site-packages"))]
    (site / "tests.pth").write_text("".join(f"{entry}\n" for entry in dict.fromkeys(entries)))


@pytest.mark.parametrize(
    "kind", [pytest.param(name, marks=pytest.mark.long) if name in ALIKE else name for name in PROJECTS]
)
def test_a_fresh_project_gets_a_verdict(kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    files, changed, command = PROJECTS[kind]
    folder = tmp_path / "fresh"
    for name, text in {**files, ".gitignore": IGNORED, "benchmarks/__init__.py": ""}.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text)
    if kind == "make" and not Path("/usr/include/benchmark/benchmark.h").is_file():
        pytest.skip("needs Google Benchmark")
    if changed.endswith(".py"):
        environment(folder)
    git(folder, "init", "-q", "-b", "main")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setenv("PERFFLOW_LOCK_FILE", str(tmp_path / "lock"))
    words = ("--command", command) if command else ()
    assert perfflow("init", *words, "--name", "first", cwd=folder).returncode == 0
    text = (folder / "workflows" / "first.yaml").read_text()
    assert ('share: [".venv"]' in text) == changed.endswith(".py")
    git(folder, "add", "-A")
    git(folder, "commit", "-qm", "one")
    validated = perfflow("validate", cwd=folder)
    assert (validated.returncode, validated.stderr) == (0, "")
    quick = ("--budget", "60s", "--progress", "off", "--json", "--unproven=pass")
    ran = perfflow("run", "first", *quick, cwd=folder, measured=True)
    assert ran.returncode == 0, ran.stdout + ran.stderr
    assert json.loads(ran.stdout)["verdict"] == "pass"
    (folder / changed).write_text((folder / changed).read_text() + "\n")
    git(folder, "commit", "-qam", "two")
    gated = perfflow("gate", "first", "--base", "HEAD~1", *quick, cwd=folder, measured=True)
    result = json.loads(gated.stdout)
    # The same code twice: noise may give any verdict in two seconds, but no error, and no step may fail.
    assert result["verdict"] in ("pass", "unproven", "fail"), gated.stderr
    assert [step["id"] for step in result["steps"] if step["status"] in ("failed", "timeout")] == []
    assert any(row["decision"] for row in result["benchmarks"])
