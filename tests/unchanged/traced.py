"""Programs that are built and traced in the folder of one side."""

from __future__ import annotations

import subprocess
from pathlib import Path

from perfflow.unchanged.model import BenchmarkTrace
from perfflow.unchanged.recorded import RecordedProgram, trace_of

HERE = Path(__file__).parent


class Tree:
    """A side: a folder in which programs are built and traced."""

    def __init__(self, tracer: Path, path: Path) -> None:
        self.tracer, self.path = tracer, path
        path.mkdir(parents=True)

    def build(self, source: str, *flags: str, compiler: str = "cc", suffix: str = ".c", name: str = "bench") -> None:
        (self.path / f"{name}{suffix}").write_text(source)
        argv = [compiler, "-O2", *flags, "-o", name, f"{name}{suffix}"]
        subprocess.run(argv, cwd=self.path, check=True)

    def trace(self, *argv: str, status: int = 0) -> BenchmarkTrace:
        records = self.path.parent / f"{self.path.name}-records"
        words: list[str | Path] = [self.tracer, records, self.path, "--", *(argv or ("./bench",))]
        done = subprocess.run(words, cwd=self.path, capture_output=True, text=True, check=False, timeout=60)
        assert done.returncode == status, done.stderr
        return trace_of(RecordedProgram.read(records.read_bytes()), {self.path.resolve(): ""})
