"""A proposer for the optimize stage: reads a brief on stdin, edits the tree in the current folder, says why.

It knows one change: where time goes into a decoder whose frames own a copy of their payload, the frames can borrow it
from the stream instead. Exit 0: edited, the reason on stdout. 1: no idea, and nothing was changed. 2: no such brief.
"""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

# What makes frames borrow: the field, the type where it is named, and the copy itself.
_EDITS = (
    (r"pub struct Frame \{", "pub struct Frame<'a> {"),
    (r"payload: Vec<u8>,", "payload: &'a [u8],"),
    (r"impl Frame \{", "impl Frame<'_> {"),
    (r"Result<Frame, DecodeError>", "Result<Frame<'a>, DecodeError>"),
    (r"&self\.payload\b", "self.payload"),
    (r"(let payload = .*)\.to_vec\(\);", r"\1;"),
    (r"adler32\(&payload\)", "adler32(payload)"),
)


def main() -> int:
    """Read the brief, make the change that its hotspots ask for, and return the exit status."""
    try:
        hotspots = _hotspots(json.load(sys.stdin))
    except ValueError as error:
        sys.stderr.write(f"propose.py: not a brief: {error}\n")
        return 2
    for hotspot in hotspots:
        for path in _decoders(hotspot):
            if (edited := _borrowing(path.read_text(encoding="utf-8"))) is not None:
                path.write_text(edited, encoding="utf-8")
                sys.stdout.write(f"{_named(hotspot)}: frames borrow their payload from the stream, no copy is made\n")
                return 0
    sys.stderr.write("propose.py: no idea: no hotspot is in a decoder that copies payloads\n")
    return 1


def _hotspots(brief: Any) -> list[Mapping[str, Any]]:
    """Return the brief's hotspots, hottest first; ValueError where it is not one."""
    hotspots = brief.get("hotspots") if isinstance(brief, Mapping) else None
    if not isinstance(hotspots, list) or not all(isinstance(one, Mapping) for one in hotspots):
        raise ValueError("`hotspots` is not a list of objects")
    return sorted(hotspots, key=lambda one: -float(one.get("share") or 0))


def _decoders(hotspot: Mapping[str, Any]) -> Iterator[Path]:
    """Yield the Rust files of the tree that the hotspot may lie in, if it lies in a decoder at all.

    A profiler names the file by an absolute path of the place where it was built, by a relative one, or not at all.
    """
    words = " ".join(str(hotspot.get(key) or "") for key in ("location", "file", "source"))
    if not re.search("decode|codec", words, re.IGNORECASE):
        return
    name = Path(str(hotspot.get("file") or "")).name
    for path in sorted(Path().rglob("src/**/*.rs")):
        if "target" not in path.parts and (not name or path.name == name or "codec" in path.stem):
            yield path


def _borrowing(text: str) -> str | None:
    """Return the decoder's text with frames that borrow; None where it is not one that copies."""
    for pattern, replacement in _EDITS:
        text, count = re.subn(pattern, replacement, text)
        if not count:
            return None
    return text


def _named(hotspot: Mapping[str, Any]) -> str:
    share = hotspot.get("share")
    where = str(hotspot.get("location") or hotspot.get("file"))
    return f"{where} ({share:.0%} of it all)" if isinstance(share, float) else where


if __name__ == "__main__":
    raise SystemExit(main())
