"""Where a run's findings go: the first rule that matches, with a brief for whoever is next."""

from __future__ import annotations

from collections.abc import Iterator

from perfflow.model.criteria import Route
from perfflow.model.result_routes import RouteTaken
from perfflow.verdict.findings import Findings
from perfflow.verdict.gating import two_trees

OWN = "routes: "
"""Before the condition of a workflow's own rule, in place of the name that a built-in one has."""


def routes_taken(found: Findings) -> Iterator[RouteTaken]:
    """The route of the first rule that matches, if any does: the workflow's own come before the built-in ones.

    A run that neither compared two trees nor has routes of its own goes nowhere. What was measured is never lost to a
    rule that cannot be evaluated: it does not match, and the route that is taken says so.
    """
    own = found.criteria.routes
    if not own and not two_trees(found.record):
        return
    from perfflow.verdict.brief import brief_of
    from perfflow.verdict.facts import facts_of
    from perfflow.workflow.expression_text import ExpressionError
    from perfflow.workflow.route_checks import holds

    facts, notes = facts_of(found), []
    for name, route in (*((f"{OWN}{route.condition}", route) for route in own), *built_in()):
        try:
            matched = holds(route.condition, facts)
        except ExpressionError as error:
            notes.append(f"{name} could not be evaluated ({error})")
            continue
        if matched:
            why = "; ".join(filter(None, (route.why, *notes)))
            yield RouteTaken(rule=name, to=route.to, why=why, brief=brief_of(found))
            return


def built_in() -> Iterator[tuple[str, Route]]:
    """The rules that ship with perfflow, each with its name, in their order."""
    from perfflow.verdict.rule_files import read

    for item in read("routes"):
        yield item["id"], Route(item["if"], item["to"], item["why"])
