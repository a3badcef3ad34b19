"""Write profile files for other viewers: formats, file names and contents.

- ``named_title`` and ``named_stacks``: names of profiles, threads and frames.
- ``to_pprof``: profiles for ``go tool pprof``, the message ``Profile`` of profile.proto, compressed with gzip. This
  writes only the messages that stacks need, in the Protocol Buffers encoding: a field is its number and kind, followed
  by a varint, or by a length and that many bytes. A library would need code generated from profile.proto. Format:
  https://github.com/google/pprof/blob/main/proto/profile.proto and https://protobuf.dev/programming-guides/encoding.
- ``to_speedscope``: profiles for https://www.speedscope.app, the sampled form of its file format, one profile per
  thread. Format: https://www.speedscope.app/file-format-schema.json.
- ``files_of``: the files of all profiles and formats.
"""

from __future__ import annotations

import gzip
import io
import json
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass

from perfflow.model.stacks import Stack, StackProfile, write_folded
from perfflow.model.version import VERSION
from perfflow.report.sanitize import visible
from perfflow.store.run_folder import file_name

CALL_PAIRS = "callers are known one level up only"
"""Note on a profile whose longer stacks are an estimate."""


def named_title(profile: StackProfile) -> str:
    """Return step, benchmark, side, tool and unit of a profile on one line."""
    about = [profile.step, profile.benchmark if profile.benchmark != profile.step else "", profile.side, profile.tool]
    notes = [CALL_PAIRS] if profile.is_call_pairs else []
    return visible(", ".join(filter(None, [*about, profile.unit, *notes])))


def named_stacks(profile: StackProfile) -> Iterator[tuple[str, dict[Stack, int]]]:
    """Yield each thread's name and its stacks, sorted by name; control characters in names are spelled out."""
    for thread, own in sorted(profile.threads.items()):
        found: dict[Stack, int] = {}
        for stack, count in own.items():
            shown = tuple(map(visible, stack))
            found[shown] = found.get(shown, 0) + count
        yield visible(thread), dict(sorted(found.items()))


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


def to_pprof(profile: StackProfile) -> bytes:
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
    for thread, stacks in named_stacks(profile):
        label = [_block(3, _number(1, text("thread")), _number(2, text(thread)))] if thread else []
        for stack, count in stacks.items():
            # pprof wants the running function first.
            ids = (places.setdefault(name, len(places) + 1) for name in reversed(stack))
            parts.append(_block(_SAMPLE, _packed(1, ids), _packed(2, [count]), *label))
    for name, number in places.items():
        line = _block(4, _number(1, number))
        parts.append(_block(_LOCATION, _number(1, number), line))
        parts.append(_block(_FUNCTION, _number(1, number), _number(2, text(name)), _number(3, text(name))))
    comment = _number(_COMMENT, text(named_title(profile)))
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


_SCHEMA = "https://www.speedscope.app/file-format-schema.json"
_UNITS = {"ns": "nanoseconds", "bytes": "bytes"}
"""Names of the units that speedscope knows; it shows all others as counts."""


def to_speedscope(profile: StackProfile) -> bytes:
    """Return the content of the file; equal profiles give equal bytes."""
    places: dict[str, int] = {}
    threads: list[dict[str, object]] = []
    sums: list[int] = []
    for thread, stacks in named_stacks(profile):
        samples = [[places.setdefault(name, len(places)) for name in stack] for stack in stacks]
        sums.append(sum(stacks.values()))
        threads.append(
            {
                "type": "sampled",
                "name": thread or profile.unit,
                "unit": _UNITS.get(profile.unit, "none"),
                "startValue": 0,
                "endValue": sums[-1],
                "samples": samples,
                "weights": list(stacks.values()),
            }
        )
    content = {
        "$schema": _SCHEMA,
        "exporter": f"perfflow {VERSION}",
        "name": named_title(profile),
        "activeProfileIndex": sums.index(max(sums)),
        "shared": {"frames": [{"name": name} for name in places]},
        "profiles": threads,
    }
    return (json.dumps(content, ensure_ascii=False, separators=(",", ":")) + "\n").encode("utf-8", "replace")


@dataclass(frozen=True)
class StackFormat:
    """A file format: the ending of its file names, and the function that writes a profile."""

    ending: str
    to_bytes: Callable[[StackProfile], bytes]


def _folded(profile: StackProfile) -> bytes:
    """Return the stacks as folded text. If threads are known, the first frame is the thread's name."""
    rows = {
        ((thread, *stack) if thread else stack): count
        for thread, stacks in named_stacks(profile)
        for stack, count in stacks.items()
    }
    return write_folded(rows).encode("utf-8", "replace")


FORMATS: Mapping[str, StackFormat] = {
    "folded": StackFormat(".folded", _folded),
    "speedscope": StackFormat(".speedscope.json", to_speedscope),
    "pprof": StackFormat(".pb.gz", to_pprof),
}


def files_of(profiles: Iterable[StackProfile], formats: Iterable[str]) -> Iterator[tuple[str, bytes]]:
    """Yield the unique name and the content of a file for each profile and format."""
    used: set[str] = set()
    for profile in profiles:
        name = _name(profile)
        while name in used:
            name += "_"
        used.add(name)
        for chosen in formats:
            form = FORMATS[chosen]
            yield name + form.ending, form.to_bytes(profile)


def _name(profile: StackProfile) -> str:
    """Return the safe file name ``STEP-SIDE``, with the benchmark between if its name differs from the step's."""
    benchmark = profile.benchmark if profile.benchmark != profile.step else ""
    number = str(profile.number + 1) if profile.number else ""
    return file_name("-".join(filter(None, [profile.step, benchmark, profile.side, number])))
