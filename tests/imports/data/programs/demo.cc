#include <benchmark/benchmark.h>
#include <cstring>
#include <numeric>
#include <string>
#include <vector>

static void BM_Copy(benchmark::State& state) {
  std::vector<char> from(state.range(0), 'x'), to(state.range(0));
  for (auto _ : state) {
    std::memcpy(to.data(), from.data(), from.size());
    benchmark::ClobberMemory();
  }
  state.SetBytesProcessed(state.iterations() * state.range(0));
}
BENCHMARK(BM_Copy)->Arg(1024)->Arg(65536);

static void BM_Sum(benchmark::State& state) {
  std::vector<int> data(10000, 3);
  for (auto _ : state) benchmark::DoNotOptimize(std::accumulate(data.begin(), data.end(), 0));
  state.SetItemsProcessed(state.iterations() * 10000);
  state.counters["padding"] = 7;
  state.counters["drift"] = -1.5;
}
BENCHMARK(BM_Sum)->Unit(benchmark::kMicrosecond);

#ifdef BROKEN
static void BM_Broken(benchmark::State& state) {
  state.SkipWithError("no input file");
  for (auto _ : state) {}
}
BENCHMARK(BM_Broken);
#endif
BENCHMARK_MAIN();
