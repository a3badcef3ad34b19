"""`saxpy [ROUNDS [scalar]]`: y = a x + y over 4096 floats, by vectors or one by one."""

from std.sys import argv, simd_width_of

comptime LANES = simd_width_of[DType.float32]()
comptime NUMBERS = 4096


@no_inline
def saxpy_simd(y: MutPointer[Float32, _], a: Float32, x: ImmPointer[Float32, _], n: Int):
    """Take as many numbers at once as a register holds."""
    var factor = SIMD[DType.float32, LANES](a)
    var i = 0
    while i + LANES <= n:
        y.unsafe_store(i, factor.fma(x.unsafe_load[width=LANES](i), y.unsafe_load[width=LANES](i)))
        i += LANES


@no_inline
def saxpy_scalar(y: MutPointer[Float32, _], a: Float32, x: ImmPointer[Float32, _], n: Int):
    """Take one number after the other."""
    for i in range(n):
        y[unsafe_offset=i] = a * x[unsafe_offset=i] + y[unsafe_offset=i]


def main() raises:
    var words = argv()
    var rounds = Int(words[1]) if len(words) > 1 else 100000
    var x = List[Float32](length=NUMBERS, fill=1.0)
    var y = List[Float32](length=NUMBERS, fill=0.0)
    for _ in range(rounds):
        if len(words) > 2:
            saxpy_scalar(y.unsafe_ptr(), 1e-6, x.unsafe_ptr(), NUMBERS)
        else:
            saxpy_simd(y.unsafe_ptr(), 1e-6, x.unsafe_ptr(), NUMBERS)
    print(y[17])
