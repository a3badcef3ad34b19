#if __has_include(<catch2/catch_all.hpp>)
#include <catch2/catch_all.hpp>
#else
// Catch2 2, whose main is in catch2_main.cpp.
#define CATCH_CONFIG_ENABLE_BENCHMARKING
#include <catch2/catch.hpp>
#endif

#include "../words.hpp"

// A test case is what can be selected and profiled, so each benchmark has one of its own.
TEST_CASE("count", "[!benchmark]") {
    const std::string text = text_of(2000);
    REQUIRE(count(text) == 2000);
    BENCHMARK("words=2000") { return count(text); };
}

TEST_CASE("table", "[!benchmark]") {
    const std::string text = text_of(500);
    BENCHMARK("words=500") { return table(text); };
}
