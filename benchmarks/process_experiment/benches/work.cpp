// One benchmark that burns UNITS of work a call, and FACTOR times as much in every EVERY-th call.
#include <benchmark/benchmark.h>
#include <cstdint>
#include <cstdlib>

static double number(const char *name) {
    const char *text = std::getenv(name);
    return text ? std::atof(text) : 1.0;
}

static void work(benchmark::State &state) {
    static uint64_t calls = 0;
    const double units = number("UNITS"), factor = number("FACTOR");
    const uint64_t every = static_cast<uint64_t>(number("EVERY"));
    for (auto _ : state) {
        uint64_t left = static_cast<uint64_t>(++calls % every == 0 ? units * factor : units), value = 1;
        while (left--) {
            value = value * 6364136223846793005u + 1;
            benchmark::DoNotOptimize(value);
        }
    }
}
BENCHMARK(work);
BENCHMARK_MAIN();
