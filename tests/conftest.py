"""What holds for all tests."""

from __future__ import annotations

import os


def pytest_configure() -> None:
    """Let programs under test not know that the tests are spread over processes: pytest-benchmark, for one, asks."""
    for name in [name for name in os.environ if name.startswith("PYTEST_XDIST_")]:
        del os.environ[name]
