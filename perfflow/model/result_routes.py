"""Parts of result.json about the route of a run, and the brief for its recipient."""

from pydantic import BaseModel

from perfflow.model.result_base import PART


class Brief(BaseModel):
    """Information that the recipient of a routed run needs to start: one line each, with exact names."""

    model_config = PART

    regressed: list[str] = []
    undecided: list[str] = []
    """Rows in which a regression above the action threshold is not excluded, and rows that head does not measure."""
    thresholds: list[str] = []
    hotspots: list[str] = []
    commands: list[str] = []


class RouteTaken(BaseModel):
    """The first rule that matched, and its destination."""

    model_config = PART

    rule: str
    to: str
    why: str
    next: str = ""
    """What to do next, as a sentence."""
    command: str = ""
    """The command to type for it, '' if there is none."""
    brief: Brief = Brief()
