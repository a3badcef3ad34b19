"""The product of two matrices, row after row in memory: it computes more than it moves."""

from kernels.numbers import Input, LANES, Output

comptime _ROWS = 6
comptime _REGISTERS = 2
comptime _COLUMNS = _REGISTERS * LANES
comptime _DEPTH = 128
"""Rows of b that are read as often as c has rows before the next ones: of _COLUMNS columns they stay in the first cache."""


@no_inline
def matmul_scalar(c: Output, a: Input, b: Input, rows: Int, columns: Int, depth: Int):
    """Set c (rows x columns) to a (rows x depth) times b (depth x columns)."""
    for i in range(rows):
        for j in range(columns):
            var total = Float32(0)
            for k in range(depth):
                total += a[unsafe_offset=i * depth + k] * b[unsafe_offset=k * columns + j]
            c[unsafe_offset=i * columns + j] = total


@no_inline
def matmul_simd(c: Output, a: Input, b: Input, rows: Int, columns: Int, depth: Int):
    """Do what `matmul_scalar` does, for a tile of b at a time, with sums of several rows and columns in registers."""
    for i in range(rows * columns):
        c[unsafe_offset=i] = 0
    for first in range(0, depth, _DEPTH):
        var last = min(first + _DEPTH, depth)
        var j = 0
        while j + _COLUMNS <= columns:
            var i = 0
            while i + _ROWS <= rows:
                _block[_ROWS](c, a, b, i, j, first, last, columns, depth)
                i += _ROWS
            while i < rows:
                _block[1](c, a, b, i, j, first, last, columns, depth)
                i += 1
            j += _COLUMNS
        for i in range(rows):
            for rest in range(j, columns):
                var total = c[unsafe_offset=i * columns + rest]
                for k in range(first, last):
                    total += a[unsafe_offset=i * depth + k] * b[unsafe_offset=k * columns + rest]
                c[unsafe_offset=i * columns + rest] = total


@always_inline
def _block[height: Int](c: Output, a: Input, b: Input, i: Int, j: Int, first: Int, last: Int, columns: Int, depth: Int):
    """Add what the depths from first to last give to height x _COLUMNS numbers of c."""
    var sums = Array[SIMD[DType.float32, LANES], height * _REGISTERS](fill=0)
    for k in range(first, last):
        comptime for row in range(height):
            var factor = SIMD[DType.float32, LANES](a[unsafe_offset=(i + row) * depth + k])
            comptime for register in range(_REGISTERS):
                comptime at = row * _REGISTERS + register
                var values = b.unsafe_load[width=LANES](k * columns + j + register * LANES)
                sums[at] = factor.fma(values, sums[at])
    comptime for row in range(height):
        comptime for register in range(_REGISTERS):
            var at = (i + row) * columns + j + register * LANES
            c.unsafe_store(at, c.unsafe_load[width=LANES](at) + sums[row * _REGISTERS + register])
