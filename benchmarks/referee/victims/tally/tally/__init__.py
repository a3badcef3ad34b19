"""Counts the words of a text."""

from tally.core import frequent, ranking, report

__all__ = ["frequent", "ranking", "report"]
