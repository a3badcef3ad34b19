"""Stand-ins for nvidia-smi and nvcc, to run GPU workflows on a machine without a GPU.

They do not emulate a GPU: nvidia-smi prints its documented output with made-up figures, and nvcc passes the source to
the C++ compiler. The measured program is the real CPU program of the example.
"""

from __future__ import annotations

import os
import shutil
from dataclasses import dataclass
from pathlib import Path

from tests.cli.shell import ROOT

_SMI = """#!/bin/sh
# A stand-in for nvidia-smi: there is no GPU. It notes how it is called.
echo "$*" >> '{asked}'
case "$*" in
  -L) echo 'GPU 0: NVIDIA H200 (UUID: GPU-00000000-0000-0000-0000-000000000000)' ;;
  --version) echo 'NVIDIA-SMI version  : 580.95.05' ;;
  *-lgc*) echo 'GPU clocks set to "(gpuClkMin 1410, gpuClkMax 1410)" for GPU 00000000:01:00.0'; echo 'All done.' ;;
  *-rgc*) echo 'All GPU clocks reset to default for GPU 00000000:01:00.0'; echo 'All done.' ;;
  *--query-gpu=index*)
    echo 'index, utilization.gpu [%], utilization.memory [%], memory.used [MiB], clocks.current.sm [MHz],' \\
      'clocks.current.memory [MHz], power.draw [W], clocks_event_reasons.active'
    while :; do echo '0, 97, 61, 4096, 1410, 2619, 512.30, 0x0000000000000004'; sleep 0.1; done ;;
  *) echo 'name, driver_version'; echo 'NVIDIA H200, 580.95.05' ;;
esac
"""
_NVCC = """#!/bin/sh
# A stand-in for nvcc: it builds for the CPU.
case "$*" in *--version*) echo 'Cuda compilation tools, release 13.0, V13.0.48'; exit ;; esac
words=-O3
while [ $# -gt 0 ]; do
  case "$1" in
    -O3 | -lineinfo | -v | -arch=*) ;;
    -Xptxas) ;;
    *) words="$words $1" ;;
  esac
  shift
done
exec c++ $words
"""


@dataclass(frozen=True)
class StandIns:
    """``path``: PATH with the stand-ins first. ``asked``: file in which nvidia-smi logs its calls."""

    path: str
    asked: Path

    def calls(self, word: str) -> list[str]:
        """Return the calls of nvidia-smi that contain a word."""
        return [line for line in self.asked.read_text().splitlines() if word in line] if self.asked.exists() else []


def stand_ins(folder: Path) -> StandIns:
    """Write both into a folder."""
    folder.mkdir()
    asked = folder / "asked"
    for name, text in (("nvidia-smi", _SMI.format(asked=asked)), ("nvcc", _NVCC)):
        (folder / name).write_text(text)
        (folder / name).chmod(0o755)
    return StandIns(f"{folder}:{os.environ['PATH']}", asked)


def copy_program(folder: Path) -> None:
    """The CPU program of the example, which accepts the flags of the CUDA program."""
    for name in ("kernels_cpu.cpp", "suite.hpp"):
        shutil.copy(ROOT / "examples/gpu-kernels" / name, folder)
