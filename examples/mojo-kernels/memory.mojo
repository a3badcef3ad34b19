"""Time the SIMD kernels on arrays far beyond the last cache, where they wait for memory: what part of its peak they reach.

Bytes are what is read and written, as STREAM counts them: not the lines of the output that a store reads first.
"""

from std.benchmark import keep

from kernels.elementwise import add_simd, saxpy_simd
from kernels.numbers import FACTOR, Numbers
from kernels.suite import Suite, Work

comptime LENGTH = 16 * 1024 * 1024
"""Numbers in an array: 64 MiB."""


def main() raises:
    var suite = Suite()
    var a = Numbers(LENGTH, seed=1)
    var b = Numbers(LENGTH, seed=2)
    var c = Numbers(LENGTH, fill=0)

    def add() {mut c, imm}:
        add_simd(c.output(), a.input(), b.input(), LENGTH)
        keep(c.output())

    def saxpy() {mut c, imm}:
        saxpy_simd(c.output(), FACTOR, a.input(), LENGTH)
        keep(c.output())

    suite.time("memory/add", add, Work(elements=LENGTH, flops=LENGTH, bytes=12 * LENGTH), batch=1)
    suite.time("memory/saxpy", saxpy, Work(elements=LENGTH, flops=2 * LENGTH, bytes=12 * LENGTH), batch=1)
    suite.report()
