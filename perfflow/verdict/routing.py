"""The route of a run: the first rule that matches, with a brief for the next step."""

from __future__ import annotations

from collections.abc import Iterator

from perfflow.model.criteria import Route
from perfflow.model.result_routes import RouteTaken
from perfflow.verdict.brief import brief_of
from perfflow.verdict.facts import facts_of
from perfflow.verdict.findings import Findings
from perfflow.verdict.gating import two_trees
from perfflow.verdict.next_step import NextStep, next_step
from perfflow.verdict.rule_files import read
from perfflow.workflow.expression_text import ExpressionError
from perfflow.workflow.route_checks import holds

OWN = "routes: "
"""Prefix of the condition of a workflow's own rule, which has no name as built-in rules do."""


def routes_taken(found: Findings) -> Iterator[RouteTaken]:
    """Yield the route of the first rule that matches, if any. The workflow's own rules come before the built-in ones.

    A run that neither compared two trees nor has its own routes gets no route. A rule that cannot be evaluated does
    not match, and the reason of the route notes it.
    """
    own = found.criteria.routes
    if not own and not two_trees(found.record):
        return

    facts, notes = facts_of(found), []
    for name, route in (*((f"{OWN}{route.condition}", route) for route in own), *built_in()):
        try:
            matched = holds(route.condition, facts)
        except ExpressionError as error:
            notes.append(f"{name} could not be evaluated ({error})")
            continue
        if matched:
            why = "; ".join(filter(None, (route.why, *notes)))
            own_words = f"{route.to}: {route.why}" if route.why else route.to
            text, command = next_step(name, found) or NextStep(own_words)
            yield RouteTaken(rule=name, to=route.to, why=why, next=text, command=command, brief=brief_of(found))
            return


def built_in() -> Iterator[tuple[str, Route]]:
    """Yield the built-in rules in order, each with its name."""
    for item in read("routes"):
        yield item["id"], Route(item["if"], item["to"], item["why"])
