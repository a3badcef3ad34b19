from __future__ import annotations

from collections.abc import Iterator

import pytest

from perfflow.execute.child import Spawner


@pytest.fixture(scope="module")
def keeper() -> Iterator[Spawner]:
    with Spawner() as found:
        yield found


@pytest.fixture
def fresh() -> Iterator[Spawner]:
    """Yield a spawner that a test may stop, close or kill."""
    with Spawner() as found:
        yield found
