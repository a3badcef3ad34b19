"""``env`` in expressions: access to single variables only, because the environment may contain secrets."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NoReturn

WHOLE = "`env` as a whole cannot be used, because it may contain secrets"
NAME_ONE = "use a single variable, such as ${{ env.HOME }}"


class WholeEnvironmentError(ValueError):
    """An expression uses the whole environment."""

    def __init__(self) -> None:
        super().__init__(WHOLE)


class Variables:
    """Variables by name. Operations on all of them, or on their names, raise WholeEnvironmentError."""

    __slots__ = ("_values",)

    def __init__(self, values: Mapping[str, str]) -> None:
        self._values = values

    def __getitem__(self, name: str) -> str:
        if not isinstance(name, str):
            raise WholeEnvironmentError
        return self._values[name]

    def __contains__(self, name: object) -> bool:
        return name in self._values

    def get(self, name: str, default: Any = None) -> Any:
        """Return the value of a variable, or ``default`` if it is not set."""
        return self._values.get(name, default)

    def _refuse(self, *_others: object) -> NoReturn:
        raise WholeEnvironmentError

    __iter__ = __len__ = __bool__ = __str__ = __repr__ = __format__ = __eq__ = __add__ = __radd__ = _refuse
    items = keys = values = _refuse


def guarded(context: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return the context of an expression with ``env`` replaced by Variables."""
    env = context.get("env")
    return {**context, "env": Variables(env)} if isinstance(env, Mapping) else context


def require_no_environment(value: Any) -> None:
    """Raise WholeEnvironmentError if a value is or contains the whole of ``env``."""
    if isinstance(value, Variables):
        raise WholeEnvironmentError
    for item in value.values() if isinstance(value, dict) else value if isinstance(value, list | tuple) else ():
        require_no_environment(item)
