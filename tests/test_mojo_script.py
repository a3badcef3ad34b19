"""scripts/mojo: where Mojo's compiler is, or one line that says why there is none."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

SCRIPT = Path(__file__).parents[1] / "scripts" / "mojo"
COMPLETE = Path("perfflow", "mojo-1.2.0", "complete")


@pytest.fixture
def cache(tmp_path: Path) -> Path:
    folder = tmp_path / "cache"
    folder.mkdir()
    return folder


def mojo(cache: Path, **environment: str) -> subprocess.CompletedProcess[str]:
    own = {"PATH": "/usr/local/bin:/usr/bin:/bin", "HOME": str(cache.parent), "XDG_CACHE_HOME": str(cache)}
    # Nothing is fetched: an index without packages.
    own |= {"PIP_NO_INDEX": "1", "PIP_CONFIG_FILE": os.devnull}
    return subprocess.run(
        ["sh", SCRIPT], env=own | environment, capture_output=True, text=True, timeout=900, check=False
    )


def program(folder: Path, version: str) -> Path:
    """A compiler that says its version: none is run here."""
    folder.mkdir()
    path = folder / "mojo"
    path.write_text(f"#!/bin/sh\necho 'Mojo {version} (0123abcd)'\n")
    path.chmod(0o755)
    return path


def test_the_compiler_that_is_named_is_taken(cache: Path, tmp_path: Path) -> None:
    own = program(tmp_path / "own", "1.3.0")
    assert mojo(cache, PERFFLOW_MOJO=str(own)).stdout == f"{own}\n"


@pytest.mark.long  # installs
def test_one_on_path_is_taken_if_it_is_of_the_version(cache: Path, tmp_path: Path) -> None:
    right = program(tmp_path / "right", "1.2.0")
    assert mojo(cache, PATH=f"{right.parent}:/usr/bin:/bin").stdout == f"{right}\n"
    other = program(tmp_path / "other", "1.2.01")
    assert mojo(cache, PATH=f"{other.parent}:/usr/local/bin:/usr/bin:/bin").returncode == 1


def test_one_in_the_cache_is_taken_if_it_is_whole(cache: Path) -> None:
    folder = (cache / COMPLETE).parent
    folder.mkdir(parents=True)
    (cache / COMPLETE).touch()
    assert mojo(cache).stdout == f"{folder}/bin/mojo\n"


@pytest.mark.long  # looks for packages until it gives up
def test_without_packages_it_says_why_and_leaves_nothing_half_done(cache: Path) -> None:
    folder = (cache / COMPLETE).parent
    # What an installation that was cut off left.
    (folder / "bin").mkdir(parents=True)
    done = mojo(cache)
    assert (done.returncode, done.stdout) == (1, "")
    lines = [line for line in done.stderr.splitlines() if not line.startswith("installing ")]
    assert lines == ["Mojo 1.2.0 is not installed: pip: ERROR: No matching distribution found for mojo==1.2.0"]
    assert not folder.exists()


def test_a_compiler_or_a_cache_that_cannot_be_used_is_named(cache: Path, tmp_path: Path) -> None:
    (cache / "file").touch()
    for variable, path, why in (
        ("PERFFLOW_MOJO", tmp_path / "none", f"PERFFLOW_MOJO={tmp_path / 'none'} is not a program"),
        ("XDG_CACHE_HOME", cache / "file", f"{cache / 'file'}/perfflow cannot be written"),
    ):
        done = mojo(cache, **{variable: str(path)})
        assert (done.returncode, done.stderr) == (1, f"Mojo 1.2.0 is not installed: {why}\n")
