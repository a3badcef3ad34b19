"""Kernels that do one thing to each number: they move more bytes than they compute.

`scalar` takes one number after the other, and stays that way: the compiler does not make vectors of such a loop.
`simd` takes as many at once as a vector register holds, in four registers, and what is left over one by one.
"""

from kernels.numbers import Input, LANES, Output

comptime _REGISTERS = 4
comptime _STEP = _REGISTERS * LANES


@no_inline
def add_scalar(c: Output, a: Input, b: Input, n: Int):
    """Set c[i] to a[i] + b[i] for n numbers."""
    for i in range(n):
        c[unsafe_offset=i] = a[unsafe_offset=i] + b[unsafe_offset=i]


@no_inline
def add_simd(c: Output, a: Input, b: Input, n: Int):
    """Do what `add_scalar` does."""
    var i = 0
    while i + _STEP <= n:
        comptime for register in range(_REGISTERS):
            var at = i + register * LANES
            c.unsafe_store(at, a.unsafe_load[width=LANES](at) + b.unsafe_load[width=LANES](at))
        i += _STEP
    while i < n:
        c[unsafe_offset=i] = a[unsafe_offset=i] + b[unsafe_offset=i]
        i += 1


@no_inline
def saxpy_scalar(y: Output, a: Float32, x: Input, n: Int):
    """Add a * x[i] to y[i] for n numbers."""
    for i in range(n):
        y[unsafe_offset=i] = a * x[unsafe_offset=i] + y[unsafe_offset=i]


@no_inline
def saxpy_simd(y: Output, a: Float32, x: Input, n: Int):
    """Do what `saxpy_scalar` does."""
    var factor = SIMD[DType.float32, LANES](a)
    var i = 0
    while i + _STEP <= n:
        comptime for register in range(_REGISTERS):
            var at = i + register * LANES
            y.unsafe_store(at, factor.fma(x.unsafe_load[width=LANES](at), y.unsafe_load[width=LANES](at)))
        i += _STEP
    while i < n:
        y[unsafe_offset=i] = a * x[unsafe_offset=i] + y[unsafe_offset=i]
        i += 1
