"""The suite."""

import pytest
from make import words

from tally import ranking


@pytest.fixture(scope="module")
def drawn():
    return words(3, 1_500).split()


def test_ranking(benchmark, drawn):
    benchmark(ranking, drawn)
