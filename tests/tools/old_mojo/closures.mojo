from std.benchmark import Bench, Bencher, BenchId


def main() raises:
    var bench = Bench()

    @parameter
    def measured(mut b: Bencher):
        @parameter
        def once():
            pass

        b.iter[once]()

    bench.bench_function[measured](BenchId("once"))
    bench.dump_report()
