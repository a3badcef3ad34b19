#define ANKERL_NANOBENCH_IMPLEMENT
#include "../third_party/nanobench.h"

#include "../words.hpp"

using ankerl::nanobench::doNotOptimizeAway;

int main() {
    const std::string text = text_of(2000);
    ankerl::nanobench::Bench bench;
    bench.title("words");
    bench.run("count", [&] { doNotOptimizeAway(count(text)); });
    bench.run("table", [&] { doNotOptimizeAway(table(text)); });
}
