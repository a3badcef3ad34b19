"""Tests of what is most used."""

from tally import ranking, report


def test_ranking():
    assert ranking("b a b c a b".split()) == [("b", 3), ("a", 2), ("c", 1)]


def test_ties_are_sorted():
    assert [word for word, _ in ranking(["z", "y", "x"])] == ["x", "y", "z"]


def test_nothing():
    assert ranking([]) == []


def test_report():
    assert report("A a b").splitlines()[:2] == ["2 a", "1 b"]
