// Benchmarks with odd names, units and columns. An argument chooses what goes wrong.
#include "../../../examples/cpp-words/third_party/nanobench.h"

#include <chrono>
#include <cstdlib>
#include <string>

using ankerl::nanobench::Bench;
using ankerl::nanobench::doNotOptimizeAway;

static int sum(int to) {
    volatile int total = 0;
    for (int number = 0; number < to; ++number) total = total + number;
    return total;
}

int main(int argc, char **argv) {
    const std::string wrong = argc > 1 ? argv[1] : "";
    if (wrong == "silent") {
        Bench().output(nullptr).run("sum", [] { doNotOptimizeAway(sum(100)); });
        return 0;
    }
    Bench().run("sum", [] { doNotOptimizeAway(sum(100)); });
    if (wrong == "twice") Bench().run("sum", [] { doNotOptimizeAway(sum(100)); });
    if (wrong == "exits 3") std::exit(3);
    if (wrong == "empty") Bench().run("nothing", [] {});
    Bench relative;
    relative.title("a title").relative(true);
    relative.run("odd `name` | (x)", [] { doNotOptimizeAway(sum(200)); });
    relative.unit("byte").batch(1000).run("by the byte", [] { doNotOptimizeAway(sum(1000)); });
    Bench slow;
    slow.title("slow").timeUnit(std::chrono::milliseconds(1), "ms").epochs(3).minEpochIterations(1);
    slow.run("in ms", [] { doNotOptimizeAway(sum(300000)); });
}
