"""Why a candidate was rejected."""

from __future__ import annotations

from pathlib import Path

from perfflow.model.judging import Code


class RejectedError(Exception):
    """A candidate was rejected and reverted. The text gives the reason, ``log`` the output of a command that failed."""

    def __init__(self, code: Code, reason: str, log: Path | None = None) -> None:
        super().__init__(reason)
        self.code, self.log = code, log


class NoProposalError(RejectedError):
    """The command of ``propose`` had no further idea."""
