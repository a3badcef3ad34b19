"""Convert dataclasses, and pydantic models in them, from and to the plain data of JSON, by the types of their fields.

Keys that a class lacks, and unknown values in tuples of an enum, are ignored. Missing keys get their defaults.
"""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import MISSING, Field, fields, is_dataclass
from enum import Enum, EnumType
from functools import cache, partial
from sys import modules
from types import SimpleNamespace
from typing import Any, TypeVar, cast, get_args, get_origin, get_type_hints

_Kind = TypeVar("_Kind")
_Read = Callable[[Any], Any]

FLAT = {"flat": True}
"""Metadata of a field whose fields are stored among those of its object; left out if it has the default value."""
_AS_IT_IS = ("str", "int", "float", "bool", "str | None", "int | None", "float | None", "bool | None")
_PLAIN = frozenset({str, int, float, bool, type(None)})
SPARSE = {"sparse": True}
"""Metadata of a field that is left out if it has the default value."""


def from_json(kind: type[_Kind], data: Any) -> _Kind:
    """Return a dataclass from a JSON object. Raises TypeError, ValueError or AttributeError if it is damaged."""
    if not isinstance(data, Mapping):
        raise TypeError(f"{kind.__name__}: {type(data).__name__} in place of an object")
    as_it_is, others = _readers(cast("Any", kind))
    found = {name: data[name] for name in as_it_is & data.keys()}
    for name, within, read in others:
        if name in data if within is None else not within.isdisjoint(data):
            found[name] = read(data[name] if within is None else data)
    return kind(**found)


def to_json(value: Any) -> dict[str, Any]:
    """Return the plain data of a dataclass, which ``from_json`` turns back into an equal one."""
    data: dict[str, Any] = {}
    for name, left_out, is_flat in _writers(cast("Any", type(value))):
        content = getattr(value, name)
        if left_out is not MISSING and content == left_out:
            continue
        if is_flat:
            data |= to_json(content)
        else:
            data[name] = content if type(content) in _PLAIN else _plain(content)
    return data


@cache
def _writers(kind: Any) -> tuple[tuple[str, Any, bool], ...]:
    """Return (name, value that is left out, whether it is flat) of each field of a dataclass."""
    return tuple(
        (about.name, about.default if about.metadata else MISSING, "flat" in about.metadata) for about in fields(kind)
    )


def _plain(value: Any) -> Any:
    if is_dataclass(value):
        return to_json(value)
    if dump := getattr(value, "model_dump", None):
        return dump(exclude_defaults=True)
    if isinstance(value, Mapping):
        return {str(key): _plain(item) for key, item in value.items()}
    if isinstance(value, Enum):
        return value.value
    return [_plain(item) for item in value] if isinstance(value, list | tuple) else value


@cache
def _readers(kind: Any) -> tuple[frozenset[str], tuple[tuple[str, frozenset[str] | None, _Read], ...]]:
    """Return the names of the fields of a dataclass that are used as they are, and (name, keys, reader) of the others.

    ``keys`` are the keys of a flat field; None for a field that is stored under its own name.
    """
    # Resolving a type hint compiles it, so skip fields whose values are used as they are.
    typed = {about.name: about.type for about in fields(kind) if about.type not in _AS_IT_IS}
    hints = get_type_hints(SimpleNamespace(__annotations__=typed), vars(modules[kind.__module__]))
    others = [(about, hints.get(about.name)) for about in fields(kind)]
    read = [(about.name, _keys(about, hint), _reader(hint)) for about, hint in others]
    as_it_is = frozenset(name for name, keys, reader in read if reader is None and keys is None)
    return as_it_is, tuple((name, keys, reader) for name, keys, reader in read if reader)


def _keys(about: Field[Any], hint: Any) -> frozenset[str] | None:
    if "flat" not in about.metadata:
        return None
    return frozenset(item.name for part in (hint, *get_args(hint)) if is_dataclass(part) for item in fields(part))


@cache
def _reader(hint: Any) -> _Read | None:
    origin, parts = get_origin(hint), [part for part in get_args(hint) if part is not type(None)]
    # Looked up in the class dictionary, because is_dataclass would build a late dataclass even if it is not needed.
    if "__dataclass_fields__" in getattr(hint, "__dict__", ()):
        return partial(from_json, hint)
    if validate := getattr(hint, "model_validate", None):
        return cast("_Read", validate)
    if isinstance(hint, EnumType):
        return hint
    if origin is tuple:
        return partial(_tuple, parts[0])
    if origin in (dict, Mapping):
        return partial(_mapping, _reader(parts[0]), _reader(parts[1]))
    read = next(filter(None, map(_reader, parts)), None)
    return (lambda value: None if value is None else read(value)) if read else None


def _tuple(part: Any, values: Iterable[Any]) -> tuple[Any, ...]:
    if values == []:
        return ()
    if isinstance(part, EnumType):
        known = {item.value: item for item in list[Any](part)}
        return tuple(known[value] for value in values if value in known)
    read = _reader(part)
    return tuple(map(read, values)) if read else tuple(values)


def _mapping(key: _Read | None, value: _Read | None, data: Mapping[Any, Any]) -> Mapping[Any, Any]:
    if key is None and value is None:
        return data
    return {(key(name) if key else name): (value(item) if value else item) for name, item in data.items()}
