"""Read thresholds for a stored run: ``concern=3%,action=5%``, ``core/**:action=5%``, or a file's ``thresholds:``."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from perfflow.library.pinned import Library
from perfflow.model.criteria import THRESHOLD_KEYS, Criteria, Thresholds, order_problem, read_threshold
from perfflow.model.errors import Place, Problem, Severity, UserError
from perfflow.model.lazy import dataclass
from perfflow.model.targets import matches
from perfflow.model.units import UnitError
from perfflow.store.history.suggestions import nearest
from perfflow.trees import project
from perfflow.workflow.extends import read_with_parents
from perfflow.workflow.yaml_hints import for_unknown_key

FORM = "write concern=3%,action=5%,floor=1%, 'GLOB:action=5%', or a file with `thresholds:`"


@dataclass(frozen=True)
class GivenThreshold:
    """One threshold as given; ``glob`` is '' for all benchmarks. ``source`` is the prefix of messages about it."""

    glob: str
    key: str
    text: str
    source: str = ""
    place: Place | None = None


def with_thresholds(
    criteria: Criteria, specs: Sequence[str], benchmarks: Collection[str]
) -> tuple[Criteria, list[str]]:
    """Return the criteria with the thresholds in ``specs`` replaced one by one, and notes.

    All other thresholds stay as the run had them, including those of its globs. A glob that matches none of the
    ``benchmarks`` is an error on the command line, and a note in a file, which may serve many workflows.
    Raises UserError.
    """
    given = [item for spec in specs for item in _read(spec)]
    plain, globs = criteria.thresholds, {glob: dict(own) for glob, own in criteria.per_glob.items()}
    problems = []
    for item in given:
        share = _share(item)
        if isinstance(share, Problem):
            problems.append(share)
        elif item.glob:
            globs.setdefault(item.glob, {})[item.key] = share
        else:
            plain = replace(plain, **{item.key: share})
    problems = problems or list(_order(plain, globs, given))
    idle = {item.glob: item for item in given if item.glob and not any(matches(item.glob, name) for name in benchmarks)}
    problems += [
        Problem(f"{item.source}no benchmark matches {glob!r}", nearest(glob, sorted(benchmarks), "benchmarks"))
        for glob, item in idle.items()
        if item.place is None
    ]
    if problems:
        raise UserError(tuple(problems))
    notes = [f"{item.place}: no benchmark of this run matches {glob!r}" for glob, item in idle.items()]
    return replace(criteria, thresholds=plain, per_glob=globs), notes


def _read(spec: str) -> Iterator[GivenThreshold]:
    """Yield the thresholds of one option. It is a file if it exists or ends in .yaml or .yml; otherwise it is text."""
    path = Path(spec)
    if path.is_file() or path.suffix in (".yaml", ".yml"):
        yield from _of_file(path)
        return
    glob, _, shares = spec.rpartition(":")
    for part in shares.split(","):
        key, equals, text = part.partition("=")
        if not equals or not key.strip():
            raise UserError.of(f"--thresholds {spec}: {part.strip()!r} is not a threshold", FORM)
        yield GivenThreshold(glob, key.strip(), text.strip(), f"--thresholds {spec}: ")


def _of_file(path: Path) -> Iterator[GivenThreshold]:
    library = Library(project.root_of(path.parent) or Path.cwd())
    document = read_with_parents(path, library.resolve, library.readable(path))
    if wrong := tuple(item for item in document.problems if item.severity is Severity.ERROR):
        raise UserError(wrong)
    data = document.data()
    mapping = data.get("thresholds") if isinstance(data, dict) else None
    if not isinstance(mapping, dict) or not mapping:
        raise UserError.of(f"--thresholds {path}: the file has no `thresholds:` mapping", FORM)
    for name, value in mapping.items():
        shares = value if isinstance(value, dict) else {name: value}
        for key, text in shares.items():
            loc = ("thresholds", name, key) if isinstance(value, dict) else ("thresholds", name)
            yield GivenThreshold(name if isinstance(value, dict) else "", key, str(text), place=document.place(loc))


def _share(item: GivenThreshold) -> float | Problem:
    if item.key not in THRESHOLD_KEYS:
        hint = for_unknown_key(item.key, THRESHOLD_KEYS)
        return Problem(f"{item.source}unknown threshold `{item.key}`", hint, item.place)
    try:
        return read_threshold(item.key, item.text)
    except UnitError as error:
        return Problem(f"{item.source}{error}", error.hint, item.place)


def _order(
    plain: Thresholds, globs: Mapping[str, Mapping[str, float]], given: Sequence[GivenThreshold]
) -> Iterator[Problem]:
    """Yield an error for each glob whose concern is above its action. Missing ones are those of all benchmarks."""
    for glob in dict.fromkeys(item.glob for item in given):
        own = [item for item in given if item.glob == glob]
        found = order_problem(replace(plain, **globs.get(glob, {})), {item.key for item in own})
        if found:
            last = next(item for item in reversed(own) if item.key == found.key)
            yield Problem(f"{last.source}{found.message}", found.hint, last.place)
