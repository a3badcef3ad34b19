"""Time the draft, which the candidates of workflows/mojo-kernel.yaml make faster; "draft once SIDE" runs it once instead."""

from std.benchmark import keep
from std.sys import argv

from kernels.draft import matmul_draft
from kernels.numbers import Numbers
from kernels.suite import Suite, Work

comptime SIDE = 256
"""Rows and columns of a matrix: a column of b is spread over as many lines as no first cache can hold at once."""


def main() raises:
    var words = argv()
    if len(words) == 3 and words[1] == "once":
        once(Int(words[2]))
        return
    var a = Numbers(SIDE * SIDE, seed=1)
    var b = Numbers(SIDE * SIDE, seed=2)
    var c = Numbers(SIDE * SIDE, fill=0)

    def draft() {mut c, imm}:
        matmul_draft(c.output(), a.input(), b.input(), SIDE, SIDE, SIDE)
        keep(c.output())

    var suite = Suite()
    # The least that can be moved: each matrix once.
    var work = Work(elements=SIDE * SIDE, flops=2 * SIDE * SIDE * SIDE, bytes=3 * 4 * SIDE * SIDE)
    suite.time("draft", draft, work, batch=1)
    suite.report()


def once(side: Int):
    """For programs that count what is done, such as cachegrind."""
    var a = Numbers(side * side, seed=1)
    var b = Numbers(side * side, seed=2)
    var c = Numbers(side * side, fill=0)
    matmul_draft(c.output(), a.input(), b.input(), side, side, side)
    keep(c.output())
