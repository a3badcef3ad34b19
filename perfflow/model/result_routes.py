"""Parts of result.json about where a run is sent, and what whoever gets it needs to begin."""

from pydantic import BaseModel

from perfflow.model.result_base import PART


class Brief(BaseModel):
    """What whoever a run is routed to needs to begin: one line each, names as they are."""

    model_config = PART

    regressed: list[str] = []
    undecided: list[str] = []
    """Rows in which a regression over the action threshold may hide, and those that head does not measure."""
    thresholds: list[str] = []
    hotspots: list[str] = []
    commands: list[str] = []


class RouteTaken(BaseModel):
    """The rule that matched first, and where it sends the run."""

    model_config = PART

    rule: str
    to: str
    why: str
    brief: Brief = Brief()
