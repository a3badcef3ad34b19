import time
import pytest
@pytest.mark.parametrize("size", [100, 1000])
def test_sorted(benchmark, size):
    data = list(range(size, 0, -1))
    benchmark(sorted, data)

def test_join(benchmark):
    benchmark.extra_info["parts"] = 50
    benchmark.pedantic(",".join, args=(["x"] * 50,), rounds=8, iterations=100)
