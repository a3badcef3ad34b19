"""Print for each kernel how far its optimized version is from its reference at most: "add max_abs_diff 0.0".

The numbers are of [-0.5, 0.5), the sizes such that every loop over what is left over runs, alone too. Exit 1 where a
kernel writes beyond its output.
"""

from std.math import isnan

from kernels.draft import matmul_draft
from kernels.elementwise import add_scalar, add_simd, saxpy_scalar, saxpy_simd
from kernels.matmul import matmul_scalar, matmul_simd
from kernels.numbers import LANES, Numbers

comptime GUARD = 64
"""Numbers behind each output that must stay what they are."""
comptime UNTOUCHED = Float32(12345)
comptime A = Float32(0.7)


def main() raises:
    var add = Float32(0)
    var saxpy = Float32(0)
    for n in [0, 1, LANES - 1, LANES, LANES + 1, 4 * LANES - 1, 4 * LANES, 4 * LANES + 1, 9 * LANES, 1000, 4099]:
        add = max(add, difference_of_add(n))
        saxpy = max(saxpy, difference_of_saxpy(n))
    print("add max_abs_diff", add)
    print("saxpy max_abs_diff", saxpy)
    var matmul = Float32(0)
    var draft = Float32(0)
    for sizes in [
        (1, 1, 1),
        (3, 5, 7),
        (17, 19, 23),
        (64, 64, 64),
        (65, 67, 69),
        (5, 130, 257),
        (130, 257, 5),
        (256, 256, 256),
    ]:
        var product = Product(sizes[0], sizes[1], sizes[2])
        matmul = max(matmul, product.difference_of_matmul())
        draft = max(draft, product.difference_of_draft())
    print("matmul max_abs_diff", matmul)
    print("draft max_abs_diff", draft)


def difference_of_add(n: Int) raises -> Float32:
    var a = Numbers(n, seed=1)
    var b = Numbers(n, seed=2)
    var expected = output(n)
    var found = output(n)
    add_scalar(expected.output(), a.input(), b.input(), n)
    add_simd(found.output(), a.input(), b.input(), n)
    return largest_difference(found, expected, n)


def difference_of_saxpy(n: Int) raises -> Float32:
    var x = Numbers(n, seed=1)
    var expected = Numbers(n + GUARD, seed=2)
    var found = Numbers(n + GUARD, seed=2)
    saxpy_scalar(expected.output(), A, x.input(), n)
    saxpy_simd(found.output(), A, x.input(), n)
    return largest_difference(found, expected, n)


struct Product:
    """Two matrices, and the reference's product of them."""

    var rows: Int
    var columns: Int
    var depth: Int
    var a: Numbers
    var b: Numbers
    var expected: Numbers

    def __init__(out self, rows: Int, columns: Int, depth: Int):
        self.rows = rows
        self.columns = columns
        self.depth = depth
        self.a = Numbers(rows * depth, seed=1)
        self.b = Numbers(depth * columns, seed=2)
        self.expected = output(rows * columns)
        matmul_scalar(self.expected.output(), self.a.input(), self.b.input(), rows, columns, depth)

    def difference_of_matmul(self) raises -> Float32:
        var found = output(self.rows * self.columns)
        matmul_simd(found.output(), self.a.input(), self.b.input(), self.rows, self.columns, self.depth)
        return largest_difference(found, self.expected, self.rows * self.columns)

    def difference_of_draft(self) raises -> Float32:
        var found = output(self.rows * self.columns)
        matmul_draft(found.output(), self.a.input(), self.b.input(), self.rows, self.columns, self.depth)
        return largest_difference(found, self.expected, self.rows * self.columns)


def output(n: Int) -> Numbers:
    return Numbers(n + GUARD, fill=UNTOUCHED)


def largest_difference(found: Numbers, expected: Numbers, n: Int) raises -> Float32:
    """Of the first n numbers; infinite where one is none. Raises Error where what lies behind them has changed."""
    var largest = Float32(0)
    for i in range(n):
        var difference = abs(found.input()[unsafe_offset=i] - expected.input()[unsafe_offset=i])
        largest = Float32.MAX if isnan(difference) else max(largest, difference)
    for i in range(n, n + GUARD):
        if found.input()[unsafe_offset=i] != expected.input()[unsafe_offset=i]:
            raise Error("a kernel wrote to place ", i, " of an output of ", n)
    return largest
