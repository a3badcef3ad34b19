"""Two jobs that wait for a builder that died: only one of them takes its place."""

from __future__ import annotations

import os
from pathlib import Path

from perfflow.jobs.cluster.agent import Builds, JobWork


def test_a_claim_that_another_waiter_made_meanwhile_stays(tmp_path: Path) -> None:
    builds = Builds(JobWork("/root", "w.yaml", "d", str(tmp_path / "source"), {"head": "1"}), tmp_path)
    claim = tmp_path / "builder"
    claim.touch()
    os.utime(claim, (1000, 1000))
    dead = claim.stat().st_mtime
    assert builds._taken_over(claim, dead)
    assert not claim.exists()
    # The other waiter has removed the dead one's claim, too late for this one to see it, and made its own.
    claim.touch()
    assert builds._taken_over(claim, dead)
    assert claim.exists()
    assert [path.name for path in tmp_path.iterdir()] == ["builder"]
    claim.unlink()
    assert builds._taken_over(claim, dead)
