from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.report.browser import Browser, browser


@pytest.fixture(scope="module")
def shown(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Browser]:
    """Yield one browser for all tests of a file."""
    with browser(tmp_path_factory.mktemp("profile")) as found:
        yield found
