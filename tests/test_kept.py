"""What several processes of the tests need is built by the first that asks for it."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.kept import built_once


def test_a_second_one_that_asks_does_not_build_and_a_failed_build_is_tried_again(
    tmp_path_factory: pytest.TempPathFactory,
) -> None:
    def build(folder: Path) -> None:
        (folder / "program").write_text("made")

    def fail(folder: Path) -> None:
        raise OSError(folder)

    with pytest.raises(OSError, match="kept"):
        built_once(tmp_path_factory, "kept", fail)
    folder = built_once(tmp_path_factory, "kept", build)
    assert built_once(tmp_path_factory, "kept", fail) == folder
    assert (folder / "program").read_text() == "made"
