// Benchmarks with odd names, and test cases that fail, for Catch2 2 and 3. Compiled with -DMAIN: the program's main.
#if __has_include(<catch2/catch_all.hpp>)
#include <catch2/catch_all.hpp>
#else
#ifdef MAIN
#define CATCH_CONFIG_MAIN
#endif
#define CATCH_CONFIG_ENABLE_BENCHMARKING
#include <catch2/catch.hpp>
#endif

#ifndef MAIN
#include <cstdio>
#include <stdexcept>

static int sum(int to) {
    volatile int total = 0;
    for (int number = 0; number < to; ++number) total = total + number;
    return total;
}

TEST_CASE("one, [two] \"three\" > four") {
    std::printf("</Catch>\n");
    BENCHMARK("a & <b>") { return sum(100); };
    BENCHMARK("second") { return sum(200); };
}

TEST_CASE("sections") {
    SECTION("small") {
        BENCHMARK("sum") { return sum(100); };
    }
    SECTION("large") {
        SECTION("very") {
            BENCHMARK("sum") { return sum(1000); };
        }
    }
}

TEST_CASE("no benchmark") { REQUIRE(sum(2) == 1); }

TEST_CASE("asserts", "[.failing]") {
    BENCHMARK("sum") { return sum(100); };
    CHECK(sum(3) == 4);
}

TEST_CASE("throws", "[.failing]") {
    BENCHMARK("sum") { return sum(100); };
    BENCHMARK("never") -> int { throw std::runtime_error("no data"); };
}

TEST_CASE("passes", "[.failing]") {
    BENCHMARK("sum") { return sum(100); };
}

TEST_CASE("repeated", "[.twice]") {
    BENCHMARK("sum") { return sum(100); };
    SECTION("first") {}
    SECTION("second") {}
}
#endif
