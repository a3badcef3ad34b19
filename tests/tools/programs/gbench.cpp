// gbench: benchmarks with bytes, items, odd names, repetitions and aggregates; with -DBROKEN also one that gives up.
#include <benchmark/benchmark.h>

#include <string>
#include <vector>

static void add(benchmark::State &state) {
    std::vector<int> values(state.range(0), 3);
    for (auto _ : state) {
        long sum = 0;
        for (int value : values) sum += value;
        benchmark::DoNotOptimize(sum);
    }
    state.SetBytesProcessed(state.iterations() * state.range(0) * 4);
    state.SetItemsProcessed(state.iterations() * state.range(0));
}
BENCHMARK(add)->Arg(64)->Arg(4096);

template <class T>
static void make(benchmark::State &state) {
    for (auto _ : state) {
        T made;
        benchmark::DoNotOptimize(made);
    }
}
BENCHMARK_TEMPLATE(make, std::string)->Unit(benchmark::kMicrosecond);
BENCHMARK_TEMPLATE(make, int)->Name("a.b+c (d|e)/[f]^{g}$*\\")->Unit(benchmark::kMillisecond);
BENCHMARK_TEMPLATE(make, long)->Name("repeated")->Repetitions(3)->MinTime(0.001)->Unit(benchmark::kSecond);
BENCHMARK_TEMPLATE(make, char)->Name("summed")->Repetitions(3)->MinTime(0.001)->ReportAggregatesOnly(true);

#ifdef BROKEN
static void broken(benchmark::State &state) {
    if (state.range(0)) state.SkipWithError("the input \"x\" is missing");
    for (auto _ : state) {
    }
}
BENCHMARK(broken)->Arg(0)->Arg(1);
#endif

BENCHMARK_MAIN();
