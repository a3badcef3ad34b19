#include <benchmark/benchmark.h>
#include "words.hpp"

static void Count(benchmark::State &state) {
    const std::string text = words(state.range(0));
    for (auto _ : state) benchmark::DoNotOptimize(count(text));
}
BENCHMARK(Count)->Arg(10)->Arg(100);
