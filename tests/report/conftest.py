from __future__ import annotations

import shutil
from collections.abc import Iterator

import pytest

from tests.report.browser import Browser, browser


@pytest.fixture(scope="module")
def shown(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Browser]:
    """Yield one browser for all tests of a file, none of whose pages may complain."""
    if not shutil.which("chromium"):
        pytest.skip("chromium is not on PATH")
    with browser(tmp_path_factory.mktemp("profile")) as found:
        yield found
        assert found.complaints == []
