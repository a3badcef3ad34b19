"""A terminal that supports only the sequences that progress uses. Other sequences are an error."""

from __future__ import annotations

import re
from pathlib import Path

from perfflow.report.sanitize import cells

_PARTS = re.compile(r"\x1b\[(?P<number>[\d;]*)(?P<action>[A-Za-z])|(?P<end>\r?\n)|(?P<back>\r)|(?P<text>[^\x1b\r\n]+)")


class Terminal:
    """The content of a terminal of some width. ``lines``: the lines above and below the cursor."""

    def __init__(self, width: int) -> None:
        self.width = width
        self.rows = [""]
        self.row = self.column = 0
        self.widest = 0

    def write(self, text: str) -> None:
        position = 0
        while position < len(text):
            match = _PARTS.match(text, position)
            assert match, f"not understood: {text[position : position + 20]!r}"
            position = match.end()
            self._act(match)

    def _act(self, match: re.Match[str]) -> None:
        if match["end"]:
            self.row, self.column = self.row + 1, 0
            if self.row == len(self.rows):
                self.rows.append("")
        elif match["text"]:
            text, row = match["text"], self.rows[self.row].ljust(self.column)
            self.rows[self.row] = row[: self.column] + text + row[self.column + len(text) :]
            self.column += len(text)
            self.widest = max(self.widest, cells(self.rows[self.row]))
        elif match["action"] == "A":
            self.row = max(0, self.row - int(match["number"]))
        elif match["action"] == "J":
            assert self.column == 0
            self.rows[self.row :] = [""]
        elif match["action"] == "K":
            self.rows[self.row] = self.rows[self.row][: self.column]
        elif match["back"]:
            self.column = 0
        else:
            assert match["action"] == "m"

    @property
    def lines(self) -> list[str]:
        return [row for row in self.rows if row]


def is_golden(name: str, text: str) -> None:
    """Compare with a golden file. To accept a change, check the .got file, then move it over the golden file."""
    golden = Path(__file__).parent / "golden" / f"{name}.txt"
    got = golden.with_suffix(".txt.got")
    if golden.exists() and golden.read_text(encoding="utf-8") == text:
        got.unlink(missing_ok=True)
        return
    got.write_text(text, encoding="utf-8")
    raise AssertionError(f"differs from {golden}: see {got}")
