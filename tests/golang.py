"""Whether Go works here, for tests that build Go packages."""

from __future__ import annotations

import shutil

import pytest

needs_go = pytest.mark.skipif(shutil.which("go") is None, reason="go is not on PATH: apt-get install golang-go")
