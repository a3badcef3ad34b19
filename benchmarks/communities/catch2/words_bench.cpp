#define CATCH_CONFIG_MAIN
#define CATCH_CONFIG_ENABLE_BENCHMARKING
#include <catch2/catch.hpp>
#include "words.hpp"

TEST_CASE("count of 10", "[!benchmark]") {
    const std::string text = words(10);
    BENCHMARK("n=10") { return count(text); };
}

TEST_CASE("count of 100", "[!benchmark]") {
    const std::string text = words(100);
    BENCHMARK("n=100") { return count(text); };
}
