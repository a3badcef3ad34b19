"""Benchmarks of pyperf, of every kind that perfflow tells apart."""

import pyperf  # type: ignore[import-untyped]

RUNNER = pyperf.Runner()


def fibonacci(number: int) -> int:
    return number if number < 2 else fibonacci(number - 1) + fibonacci(number - 2)


RUNNER.bench_func("fibonacci", fibonacci, 10)
print("between two benchmarks")  # noqa: T201
RUNNER.timeit("join/50 a::b[c]", "','.join(words)", setup="words = ['x'] * 50")
RUNNER.bench_time_func("own timer", lambda loops: loops * 1e-3)
