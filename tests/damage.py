"""Accidents that happen to files, for hypothesis."""

from __future__ import annotations

from hypothesis import strategies as st

from perfflow.testing.mutations import damage


def damaged(content: bytes) -> st.SearchStrategy[bytes]:
    """Yield the content after one to three accidents."""
    return st.randoms(use_true_random=False).map(lambda random: damage(content, random))
