"""A subject."""

def changed(n):
    return n + 1

def same(n):
    """Return it."""
    return n
