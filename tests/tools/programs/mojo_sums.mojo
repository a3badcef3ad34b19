"""Sums of a list with one accumulator and with SIMD; `--list` prints their names, `--only NAME` runs one alone."""

from std.benchmark import Bench, BenchConfig, Bencher, BenchId, BenchMetric, ThroughputMeasure, keep
from std.sys import argv

comptime N = 4096
comptime WIDTH = 8


def main() raises:
    var args = argv()
    var only = String("")
    for i in range(1, len(args)):
        if args[i] == "--list":
            print("sum/scalar\nsum/simd")
            return
        if args[i] == "--only":
            only = String(args[i + 1])

    var x = List[Float32](length=N, fill=0.5)
    var bench = Bench(BenchConfig(max_iters=300, num_warmup_iters=3))
    var measures: List[ThroughputMeasure] = [
        ThroughputMeasure(BenchMetric.elements, N),
        ThroughputMeasure(BenchMetric.bytes, 4 * N),
        ThroughputMeasure(BenchMetric.flops, N),
    ]

    def scalar() {mut}:
        var total = Float32(0)
        for i in range(N):
            total += x[i]
        keep(total)

    def simd() {mut}:
        var total = SIMD[DType.float32, WIDTH](0)
        for i in range(0, N, WIDTH):
            total += x.unsafe_ptr().unsafe_load[width=WIDTH](i)
        keep(total.reduce_add())

    if only != "sum/simd":
        bench.bench_function(scalar, BenchId("sum/scalar"), measures)
    if only != "sum/scalar":
        bench.bench_function(simd, BenchId("sum/simd"), measures)
    bench.dump_report()
