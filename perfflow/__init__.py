"""The Python API of perfflow: read stored runs and compare two commands. See docs/reference/python-api.md.

Each name is imported when it is first used, so that the command starts fast.

>>> import perfflow
>>> perfflow.load("latest").verdict
'fail'
"""

# Defined here instead of importing typing, to start fast. Type checkers know the name.
TYPE_CHECKING = False
if TYPE_CHECKING:
    from perfflow.api.comparing import Comparison, compare
    from perfflow.api.run import DecisionRow, Run, SampleRow, load
    from perfflow.model.errors import UserError
    from perfflow.model.result import Benchmark, Bounds, Sample, TargetResult

    __version__: str

__all__ = [
    "Benchmark",
    "Bounds",
    "Comparison",
    "DecisionRow",
    "Run",
    "Sample",
    "SampleRow",
    "TargetResult",
    "UserError",
    "__version__",
    "compare",
    "load",
]

_PLACES = {
    "Benchmark": "perfflow.model.result",
    "Bounds": "perfflow.model.result",
    "Comparison": "perfflow.api.comparing",
    "DecisionRow": "perfflow.api.run",
    "Run": "perfflow.api.run",
    "Sample": "perfflow.model.result",
    "SampleRow": "perfflow.api.run",
    "TargetResult": "perfflow.model.result",
    "UserError": "perfflow.model.errors",
    "__version__": "perfflow.model.version",
    "compare": "perfflow.api.comparing",
    "load": "perfflow.api.run",
}


def __getattr__(name: str) -> object:
    if name not in _PLACES:
        raise AttributeError(f"module 'perfflow' has no attribute {name!r}")
    from importlib import import_module

    found = getattr(import_module(_PLACES[name]), "VERSION" if name == "__version__" else name)
    globals()[name] = found
    return found


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
