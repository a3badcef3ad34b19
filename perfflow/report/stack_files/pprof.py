"""Profiles for ``go tool pprof``: the message ``Profile`` of profile.proto, compressed with gzip.

This writes only the messages that stacks need, in the Protocol Buffers encoding: a field is its number and kind,
followed by a varint, or by a length and that many bytes. A library would need code generated from profile.proto.
Format: https://github.com/google/pprof/blob/main/proto/profile.proto and https://protobuf.dev/programming-guides/encoding.
"""

from __future__ import annotations

import gzip
import io
from collections.abc import Iterable

from perfflow.model.stacks import StackProfile
from perfflow.report.stack_files import named

_TYPES = {
    "ns": ("time", "nanoseconds"),
    "samples": ("samples", "count"),
    "bytes": ("space", "bytes"),
    "allocations": ("objects", "count"),
}
"""pprof's names of known units; any other unit is a count under its own name."""
# Fields of Profile, and of the messages in it.
_SAMPLE_TYPE, _SAMPLE, _LOCATION, _FUNCTION, _STRINGS, _COMMENT = 1, 2, 4, 5, 6, 13
_LENGTH, _VARINT = 2, 0


def to_bytes(profile: StackProfile) -> bytes:
    """Return the content of the file; equal profiles give equal bytes."""
    out = io.BytesIO()
    # No file name and no time, so that equal profiles give equal bytes.
    with gzip.GzipFile(filename="", mode="wb", fileobj=out, mtime=0) as packed:
        packed.write(_message(profile))
    return out.getvalue()


def _message(profile: StackProfile) -> bytes:
    strings = {"": 0}

    def text(value: str) -> int:
        return strings.setdefault(value, len(strings))

    kind, unit = _TYPES.get(profile.unit, (profile.unit, "count"))
    parts = [_block(_SAMPLE_TYPE, _number(1, text(kind)), _number(2, text(unit)))]
    places: dict[str, int] = {}
    for thread, stacks in named.stacks(profile):
        label = [_block(3, _number(1, text("thread")), _number(2, text(thread)))] if thread else []
        for stack, count in stacks.items():
            # pprof wants the running function first.
            ids = (places.setdefault(name, len(places) + 1) for name in reversed(stack))
            parts.append(_block(_SAMPLE, _packed(1, ids), _packed(2, [count]), *label))
    for name, number in places.items():
        line = _block(4, _number(1, number))
        parts.append(_block(_LOCATION, _number(1, number), line))
        parts.append(_block(_FUNCTION, _number(1, number), _number(2, text(name)), _number(3, text(name))))
    comment = _number(_COMMENT, text(named.title(profile)))
    return b"".join([*parts, *(_field(_STRINGS, value.encode("utf-8", "replace")) for value in strings), comment])


def _block(field: int, *parts: bytes) -> bytes:
    """Return a field that holds a message."""
    return _field(field, b"".join(parts))


def _field(field: int, content: bytes) -> bytes:
    return _varint(field << 3 | _LENGTH) + _varint(len(content)) + content


def _number(field: int, value: int) -> bytes:
    return _varint(field << 3 | _VARINT) + _varint(value)


def _packed(field: int, values: Iterable[int]) -> bytes:
    """Return a field that holds several numbers."""
    return _field(field, b"".join(map(_varint, values)))


def _varint(value: int) -> bytes:
    """Return a number >= 0 in groups of seven bits, the lowest first; all but the last have the high bit set."""
    found = bytearray()
    while value > 0x7F:
        found.append(value & 0x7F | 0x80)
        value >>= 7
    found.append(value)
    return bytes(found)
