from words import count, longest
WORDS = [f"word{n % 97}" for n in range(20000)]
def test_count(benchmark):
    assert benchmark(count, WORDS)["word1"] == 207
def test_longest(benchmark):
    assert benchmark(longest, WORDS) == "word10"
