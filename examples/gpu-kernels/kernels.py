"""The kernels of kernels.cu in Triton: transpose, sum and saxpy of f32, each in a plain and a better form.

    python kernels.py --check && python kernels.py --bench
    TRITON_INTERPRET=1 python kernels.py --check --n 128      # without a GPU: Triton's interpreter on the CPU

The flags are those of kernels.cu, but for the times: ``--rep`` ms of launches by triton.testing.do_bench, which empties
the L2 cache before each.
"""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Callable
from dataclasses import dataclass

import torch
import triton
import triton.language as tl
import triton.testing

INTERPRETED = os.environ.get("TRITON_INTERPRET") == "1"
TILE = 32
BLOCK = 1024


@triton.jit
def transpose_naive(out, inp, n, BLOCK: tl.constexpr):
    """One row a program: it is read along the row and written down a column."""
    row = tl.program_id(0)
    for start in range(0, n, BLOCK):
        columns = start + tl.arange(0, BLOCK)
        values = tl.load(inp + row * n + columns, mask=columns < n)
        tl.store(out + columns * n + row, values, mask=columns < n)


@triton.jit
def transpose_tiled(out, inp, n, TILE: tl.constexpr):
    """One tile a program, turned by the compiler in shared memory: both ways along rows."""
    y = tl.program_id(0) * TILE + tl.arange(0, TILE)
    x = tl.program_id(1) * TILE + tl.arange(0, TILE)
    tile = tl.load(inp + y[:, None] * n + x[None, :])
    tl.store(out + x[:, None] * n + y[None, :], tl.trans(tile))


@triton.jit
def sum_small(out, inp, count, BLOCK: tl.constexpr):
    """Few values a program: most of the work is starting programs and writing their sums."""
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(out + tl.program_id(0), tl.sum(tl.load(inp + at, mask=at < count, other=0.0)))


@triton.jit
def sum_blocks(out, inp, count, PER_PROGRAM: tl.constexpr, BLOCK: tl.constexpr):
    """A stretch of many blocks a program, added lane by lane and once across at the end."""
    lanes = tl.zeros((BLOCK,), dtype=tl.float32)
    first = tl.program_id(0) * PER_PROGRAM
    for start in range(0, PER_PROGRAM, BLOCK):
        at = first + start + tl.arange(0, BLOCK)
        lanes += tl.load(inp + at, mask=at < count, other=0.0)
    tl.store(out + tl.program_id(0), tl.sum(lanes))


@triton.jit
def saxpy(out, a, x, y, count, BLOCK: tl.constexpr):
    """Out = a * x + y."""
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = at < count
    tl.store(out + at, a * tl.load(x + at, mask=mask) + tl.load(y + at, mask=mask), mask=mask)


@dataclass(frozen=True)
class Kernel:
    """A kernel on one size: least bytes and operations of a launch, and its largest difference from plain PyTorch."""

    name: str
    bytes: int
    flops: int
    launch: Callable[[], object]
    difference: Callable[[], float]
    tolerance: float


NAMES = ("transpose/naive", "transpose/tiled", "sum/small", "sum/blocks", "saxpy/plain", "saxpy/wide")


def kernels(n: int, out: torch.Tensor) -> list[Kernel]:
    """Make the input, the same every time, on ``out``'s device, and the kernels that read it."""
    count, a = n * n, 2.5
    made = torch.Generator().manual_seed(1)
    x, y = (torch.rand(count, generator=made).to(out.device) for _ in range(2))
    small, stretch = 128, 16 * BLOCK
    programs = {"sum/small": triton.cdiv(count, small), "sum/blocks": triton.cdiv(count, stretch)}

    def turned() -> float:
        return float((out.view(n, n) - x.view(n, n).T).abs().max())

    def summed(name: str) -> float:
        return abs(float(out[: programs[name]].double().sum() - x.double().sum())) / count

    def scaled() -> float:
        return float((out - (a * x + y)).abs().max())

    def grid(block: int) -> tuple[int]:
        return (triton.cdiv(count, block),)

    tiles = (n // TILE, n // TILE)
    launches: list[tuple[int, int, Callable[[], object], Callable[[], float], float]] = [
        (8, 0, lambda: transpose_naive[(n,)](out, x, n, BLOCK=BLOCK), turned, 0),
        (8, 0, lambda: transpose_tiled[tiles](out, x, n, TILE=TILE), turned, 0),
        (4, 1, lambda: sum_small[grid(small)](out, x, count, BLOCK=small), lambda: summed("sum/small"), 1e-6),
        (
            *(4, 1, lambda: sum_blocks[grid(stretch)](out, x, count, PER_PROGRAM=stretch, BLOCK=BLOCK)),
            *(lambda: summed("sum/blocks"), 1e-6),
        ),
        (12, 2, lambda: saxpy[grid(128)](out, a, x, y, count, BLOCK=128), scaled, 1e-6),
        (12, 2, lambda: saxpy[grid(BLOCK)](out, a, x, y, count, BLOCK=BLOCK), scaled, 1e-6),
    ]
    return [
        Kernel(name, each[0] * count, each[1] * count, *each[2:]) for name, each in zip(NAMES, launches, strict=True)
    ]


def check(chosen: list[Kernel], out: torch.Tensor, plant: str) -> int:
    """Judge every kernel's answer; return how many are wrong."""
    wrong = 0
    for kernel in chosen:
        # What an earlier kernel left there must not pass for this one's answer.
        out.fill_(float("nan"))
        kernel.launch()
        if kernel.name == plant:
            out[0] = 48.0
        apart = kernel.difference()
        good = apart <= kernel.tolerance
        wrong += not good
        judged = "ok" if good else "WRONG"
        print(f"kernel={kernel.name} max_abs_diff={apart:.9g} tolerance={kernel.tolerance:.9g} {judged}")
    return wrong


def bench(chosen: list[Kernel], n: int, rep: int) -> None:
    """Print every launch's time; the first call, which compiles, is left to do_bench's own warm-up."""
    for kernel in chosen:
        for ms in triton.testing.do_bench(kernel.launch, rep=rep, return_mode="all"):
            print(f"kernel={kernel.name} ms={ms:.9g} bytes={kernel.bytes} flops={kernel.flops} n={n} precision=f32")


def main() -> int:
    """Do what the flags say: 0, 1 for a wrong answer, 2 for a flag or device that will not do."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    what = parser.add_mutually_exclusive_group()
    what.add_argument("--bench", action="store_true", help="time each kernel")
    what.add_argument("--check", action="store_true", help="compare with plain PyTorch")
    what.add_argument("--once", choices=NAMES, help="launch one kernel once, for a profiler")
    parser.add_argument("--list", action="store_true", help="only print the kernels' names")
    families = tuple(dict.fromkeys(name.partition("/")[0] for name in NAMES))
    parser.add_argument("--kernel", choices=(*NAMES, *families), help="this kernel alone, or all whose names begin so")
    parser.add_argument("--n", type=int, default=4096, help="side of the square matrix, a multiple of 32")
    parser.add_argument("--rep", type=int, default=100, help="ms of launches to time")
    parser.add_argument("--plant", choices=NAMES, help="with --check: spoil that kernel's answer")
    given = parser.parse_args()
    if given.n < TILE or given.n % TILE or given.n > 32768:
        parser.error(f"--n must be a multiple of {TILE} up to 32768")
    only = given.once or given.kernel
    if given.list:
        print("\n".join(name for name in NAMES if only in (None, name, name.partition("/")[0])))
        return 0
    if not (given.bench or given.check or given.once):
        parser.error("choose one of --bench, --check, --once, --list")
    if not INTERPRETED and not torch.cuda.is_available():
        print("error: no CUDA device; TRITON_INTERPRET=1 runs --check and --once on the CPU", file=sys.stderr)
        return 2
    if INTERPRETED and given.bench:
        print("error: the interpreter's times say nothing about a GPU: drop TRITON_INTERPRET", file=sys.stderr)
        return 2
    out = torch.empty(given.n**2, device="cpu" if INTERPRETED else "cuda")
    chosen = [kernel for kernel in kernels(given.n, out) if only in (None, kernel.name, kernel.name.partition("/")[0])]
    if not INTERPRETED:
        device = torch.cuda.get_device_properties(0)
        print(f'gpu="{device.name}" cc={device.major}.{device.minor} runtime={torch.version.cuda}')
    wrong = 0
    if given.check:
        wrong = check(chosen, out, given.plant or "")
    elif given.bench:
        bench(chosen, given.n, given.rep)
    else:
        chosen[0].launch()
        torch.cuda.synchronize() if not INTERPRETED else None
    print(f"end kernels={len(chosen)}")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
