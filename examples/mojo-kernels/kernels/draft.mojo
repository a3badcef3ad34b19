"""The product of two matrices as one writes it first. It is here to be made faster by patches, one after the other."""

from kernels.numbers import Input, LANES, Output


@no_inline
def matmul_draft(c: Output, a: Input, b: Input, rows: Int, columns: Int, depth: Int):
    """Set c (rows x columns) to a (rows x depth) times b (depth x columns), row after row in memory."""
    for i in range(rows):
        for j in range(columns):
            var total = Float32(0)
            for k in range(depth):
                total += a[unsafe_offset=i * depth + k] * b[unsafe_offset=k * columns + j]
            c[unsafe_offset=i * columns + j] = total
