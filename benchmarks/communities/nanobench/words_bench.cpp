#define ANKERL_NANOBENCH_IMPLEMENT
#include "nanobench.h"
#include "words.hpp"

int main() {
    ankerl::nanobench::Bench bench;
    for (int n : {10, 100}) {
        const std::string text = words(n);
        bench.run("count n=" + std::to_string(n), [&] { ankerl::nanobench::doNotOptimizeAway(count(text)); });
    }
}
