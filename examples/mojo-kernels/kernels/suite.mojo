"""How kernels are timed by `std.benchmark`, whose programs can neither list their benchmarks nor run one of them alone."""

from std.benchmark import Bench, BenchConfig, BenchId, BenchMetric, ThroughputMeasure
from std.sys import argv


@fieldwise_init
struct Work(ImplicitlyCopyable):
    """What one call of a kernel does. Where `bytes` is 0 they are not reported."""

    var elements: Int
    var flops: Int
    var bytes: Int

    def measures(self) -> List[ThroughputMeasure]:
        var found: List[ThroughputMeasure] = [
            ThroughputMeasure(BenchMetric.elements, self.elements),
            ThroughputMeasure(BenchMetric.flops, self.flops),
        ]
        if self.bytes:
            found.append(ThroughputMeasure(BenchMetric.bytes, self.bytes))
        return found^


struct Suite:
    """Benchmarks that last a moment each, since perfflow starts the program many times over.

    The program's words: --list prints the names, --only NAME times one of them, and those of `Bench` (-o FILE.csv,
    -r REPETITIONS, --no-progress).
    """

    var bench: Bench
    var only: String
    var lists: Bool

    def __init__(out self) raises:
        """Read the program's words. Raises Error where one lacks its value."""
        self.bench = Bench(BenchConfig(max_runtime_secs=0.05, max_iters=1_000_000, num_warmup_iters=1))
        self.only = ""
        self.lists = False
        var words = argv()
        for i in range(1, len(words)):
            if words[i] == "--list":
                self.lists = True
            elif words[i] == "--only":
                if i + 1 == len(words):
                    raise Error("--only needs the name of a benchmark")
                self.only = String(words[i + 1])

    def time[Call: def() -> None](mut self, name: String, call: Call, work: Work, *, batch: Int) raises:
        """Time a call, in batches of so many."""
        if self.lists:
            print(name)
        elif self.only == "" or self.only == name:
            self.bench.config.max_batch_size = batch
            self.bench.bench_function(call, BenchId(name), work.measures())

    def report(mut self) raises:
        """Print what was found. Raises Error if nothing was timed."""
        if self.lists:
            return
        if not self.bench.info_vec:
            raise Error("no benchmark is called " + self.only)
        self.bench.dump_report()
