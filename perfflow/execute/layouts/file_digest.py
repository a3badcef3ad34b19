"""File digest that identifies a moved or hard-linked executable. Imported by the bare interpreter of the recorder."""

from __future__ import annotations

import hashlib


def digest(path: str) -> str:
    """Return the digest of a file's content. Raises OSError."""
    with open(path, "rb") as file:
        return hashlib.file_digest(file, lambda: hashlib.blake2b(digest_size=16)).hexdigest()
