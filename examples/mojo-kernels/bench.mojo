"""Time every kernel in both versions: bench [-o FILE.csv] [-r REPETITIONS] [--no-progress], as `std.benchmark` reads them.

The arrays of `add` and `saxpy` stay in the second cache, so that it is the kernel that is timed and not the memory; for
that there is memory.mojo.
"""

from std.benchmark import keep

from kernels.elementwise import add_scalar, add_simd, saxpy_scalar, saxpy_simd
from kernels.matmul import matmul_scalar, matmul_simd
from kernels.numbers import FACTOR, Numbers
from kernels.suite import Suite, Work

comptime LENGTH = 16 * 1024
"""Numbers in an array: 64 KiB."""
comptime SIDE = 384
"""Rows and columns of a matrix: 576 KiB."""
comptime BATCH = 2000


def main() raises:
    var suite = Suite()
    time_add(suite)
    time_saxpy(suite)
    time_matmul(suite)
    suite.report()


def time_add(mut suite: Suite) raises:
    var a = Numbers(LENGTH, seed=1)
    var b = Numbers(LENGTH, seed=2)
    var c = Numbers(LENGTH, fill=0)
    # No bytes: what comes from a cache says nothing of the memory's bandwidth.
    var work = Work(elements=LENGTH, flops=LENGTH, bytes=0)

    def scalar() {mut c, imm}:
        add_scalar(c.output(), a.input(), b.input(), LENGTH)
        keep(c.output())

    def simd() {mut c, imm}:
        add_simd(c.output(), a.input(), b.input(), LENGTH)
        keep(c.output())

    suite.time("add/scalar", scalar, work, batch=BATCH)
    suite.time("add/simd", simd, work, batch=BATCH)


def time_saxpy(mut suite: Suite) raises:
    var x = Numbers(LENGTH, seed=1)
    var y = Numbers(LENGTH, seed=2)
    var work = Work(elements=LENGTH, flops=2 * LENGTH, bytes=0)

    def scalar() {mut y, imm}:
        saxpy_scalar(y.output(), FACTOR, x.input(), LENGTH)
        keep(y.output())

    def simd() {mut y, imm}:
        saxpy_simd(y.output(), FACTOR, x.input(), LENGTH)
        keep(y.output())

    suite.time("saxpy/scalar", scalar, work, batch=BATCH)
    suite.time("saxpy/simd", simd, work, batch=BATCH)


def time_matmul(mut suite: Suite) raises:
    var a = Numbers(SIDE * SIDE, seed=1)
    var b = Numbers(SIDE * SIDE, seed=2)
    var c = Numbers(SIDE * SIDE, fill=0)
    # The least that can be moved: each matrix once.
    var work = Work(elements=SIDE * SIDE, flops=2 * SIDE * SIDE * SIDE, bytes=3 * 4 * SIDE * SIDE)

    def scalar() {mut c, imm}:
        matmul_scalar(c.output(), a.input(), b.input(), SIDE, SIDE, SIDE)
        keep(c.output())

    def simd() {mut c, imm}:
        matmul_simd(c.output(), a.input(), b.input(), SIDE, SIDE, SIDE)
        keep(c.output())

    suite.time("matmul/scalar", scalar, work, batch=1)
    suite.time("matmul/simd", simd, work, batch=5)
