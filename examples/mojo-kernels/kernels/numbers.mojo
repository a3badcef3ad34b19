"""Arrays of single-precision numbers: where they lie, and what is in them."""

from std.sys import simd_width_of

comptime LANES = simd_width_of[DType.float32]()
"""Numbers in a vector register of the machine that is compiled for."""
comptime Input = ImmPointer[Float32, _]
"""Numbers that a kernel reads."""
comptime Output = MutPointer[Float32, _]
"""Numbers that a kernel writes."""
comptime FACTOR = Float32(1e-6)
"""A factor of saxpy. Small, since its products are added to the same numbers over and over."""
comptime _LINE = 16
"""Numbers in a cache line, and in the widest vector there is."""


struct Numbers(Movable):
    """An array that begins at a cache line."""

    var lines: List[SIMD[DType.float32, _LINE]]
    var length: Int

    def __init__(out self, length: Int, *, fill: Float32):
        self.lines = List[SIMD[DType.float32, _LINE]](length=length // _LINE + 1, fill=fill)
        self.length = length

    def __init__(out self, length: Int, *, seed: UInt32):
        """Take numbers of [-0.5, 0.5) from a linear congruential generator, the same ones for the same seed.

        Its constants are Numerical Recipes' (7.1, "An Even Quicker Generator").
        """
        self = Self(length, fill=0)
        var state = seed
        for i in range(length):
            state = state * 1664525 + 1013904223
            self.output()[unsafe_offset=i] = Float32(state >> 8) / Float32(1 << 24) - 0.5

    def input(self) -> ImmPointer[Float32, origin_of(self.lines)]:
        return self.lines.unsafe_ptr().unsafe_bitcast[Float32]()

    def output(mut self) -> MutPointer[Float32, origin_of(self.lines)]:
        return self.lines.unsafe_ptr().unsafe_bitcast[Float32]()
