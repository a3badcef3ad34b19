"""Edits of real programs that change no instruction of their hot code, drawn by seed; and edits that give it more work.

Source is taken apart at blank lines: an item that has a function's first line is that function.
"""

from __future__ import annotations

import random
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

HERE = Path(__file__).parent
KINDS = ("pad", "unused", "reorder", "cold", "other")
"""Padding, an unused function, other order of functions, a longer cold function, and a function in another file."""
_HEAD = {
    "c": re.compile(r"^(?P<line>\w[\w ]*?[ *](?P<name>\w+)\(.*\)) \{$", re.MULTILINE),
    "rust": re.compile(r"^(?P<line>pub fn (?P<name>\w+)\(.*) \{$", re.MULTILINE),
}
_ROUNDS = re.compile(r"(ROUNDS(?:: usize)? = )(\d+)")
_MARK = "    // added\n"
_COLD_C = re.compile(r"^    printf\(.*\(unsigned long long\)(?P<value>\w+)\);\n", re.MULTILINE)

Files = Mapping[str, str]
"""Path relative to the project -> text."""


@dataclass(frozen=True, slots=True)
class Program:
    """One program: the folder with its project, its hot functions, the file they are in, and one of other code."""

    name: str
    language: str
    hot: tuple[str, ...]

    @property
    def file(self) -> str:
        """The file with the hot code, relative to the project."""
        return f"{self.name}.c" if self.language == "c" else f"{self.name}/src/lib.rs"

    @property
    def extra(self) -> str:
        """The file with code that does not run hot."""
        return "extra.c" if self.language == "c" else "extra/src/lib.rs"

    def files(self) -> dict[str, str]:
        """All files of the project as it is before any edit."""
        root = HERE / self.language
        found = {str(path.relative_to(root)): path for path in sorted(root.rglob("*")) if path.is_file()}
        if self.language == "c":
            found = {name: found[name] for name in ("Makefile", self.extra, self.file)}
        return {name: path.read_text() for name, path in found.items() if "target" not in Path(name).parts}


PROGRAMS = (
    Program("hashing", "c", ("look_up", "main")),
    Program("sorting", "c", ("sort", "main")),
    Program("searching", "c", ("search", "main")),
    Program("stencil", "c", ("smooth", "main")),
    Program("steps", "c", ("steps", "all_steps", "main")),
    Program("parsing", "c", ("read_number", "read_string", "read_all", "main")),
    Program("packing", "c", ("match_length", "pack", "main")),
    Program("packing", "rust", ("packing::unpack", "packing::work")),
    Program("sorting", "rust", ("sorting::sort", "sorting::work")),
    Program("words", "rust", ("words::count", "words::work")),
)


@dataclass(frozen=True, slots=True)
class Edit:
    """One edit: an accident of layout of some kind and draw, and ``percent`` more rounds of the hot code."""

    program: Program
    kind: str
    draw: int
    percent: int = 0

    @property
    def name(self) -> str:
        """What the log calls it."""
        more = f"+{self.percent}%" if self.percent else ""
        return f"{self.program.language}/{self.program.name}/{self.kind}/{self.draw}{more}"

    def files(self) -> dict[str, str]:
        """The files that differ after it, with their text."""
        before = self.program.files()
        after = dict(before)
        rng = random.Random(f"{self.program.language} {self.program.name} {self.kind} {self.draw}")
        _EDITS[self.kind](after, self.program, rng)
        after[self.program.file] = more_rounds(after[self.program.file], self.percent)
        return {name: text for name, text in after.items() if text != before[name]}

    def factor(self) -> float:
        """How much more often the hot code runs."""
        text = self.program.files()[self.program.file]
        (before,), (after,) = (_ROUNDS.findall(found) for found in (text, more_rounds(text, self.percent)))
        return int(after[1]) / int(before[1])


def more_rounds(text: str, percent: int) -> str:
    """Multiply the rounds of the hot code."""
    return _ROUNDS.sub(lambda found: f"{found[1]}{round(int(found[2]) * (1 + percent / 100))}", text)


def functions(text: str, language: str) -> dict[str, str]:
    """Name -> text of each function, in the order of the file."""
    heads = ((_HEAD[language].search(item), item) for item in text.split("\n\n"))
    return {head["name"]: item for head, item in heads if head}


def _insert(files: dict[str, str], name: str, program: Program, body: Sequence[str], number: int) -> None:
    """Put a function before the first hot one of a file, or its first; of Rust, also call it where nothing is hot."""
    text, added = files[name], f"added_{number}"
    lines = "".join(f"    {line};\n" for line in body)
    known = functions(text, program.language)
    at = next((known[hot.split("::")[-1]] for hot in program.hot if hot.split("::")[-1] in known), "")
    at = at or next(iter(known.values()))
    if program.language == "c":
        function = f"uint64_t {added}(uint64_t value) {{\n{lines}    return value;\n}}"
    else:
        function = f"#[inline(never)]\npub fn {added}(mut value: u64) -> u64 {{\n{lines}    value\n}}"
    text = text.replace(at, f"{function}\n\n{at}")
    files[name] = text.replace(_MARK, f"    let total = {added}(total);\n{_MARK}")


def _pad(files: dict[str, str], program: Program, rng: random.Random) -> None:
    size = rng.randrange(4, 64, 4)
    asm = (
        '__asm__ volatile(".skip {}, 0x90")'
        if program.language == "c"
        else ('value += 1;\n    unsafe {{ std::arch::asm!(".skip {}, 0x90") }}')
    )
    _insert(files, program.file, program, [asm.format(size)], size)


def _arithmetic(program: Program, rng: random.Random) -> list[str]:
    """Some lines that compute a number out of ``value``."""
    times = "value *= {}u" if program.language == "c" else "value = value.wrapping_mul({})"
    forms = ("value ^= value >> {}", "value ^= value << {}", times)
    return [rng.choice(forms).format(rng.randrange(1, 60)) for _ in range(rng.randrange(1, 12))]


def _unused(files: dict[str, str], program: Program, rng: random.Random) -> None:
    _insert(files, program.file, program, _arithmetic(program, rng), rng.randrange(1000))


def _other(files: dict[str, str], program: Program, rng: random.Random) -> None:
    _insert(files, program.extra, program, _arithmetic(program, rng), rng.randrange(1000))


def _cold(files: dict[str, str], program: Program, rng: random.Random) -> None:
    """Lengthen the function that prints the result, or that describes the program at its start."""
    text, numbers = files[program.file], [rng.randrange(10**9, 2 * 10**9) for _ in range(rng.randrange(1, 8))]
    if program.language == "c":
        lines = [f'    if (\\g<value> == {number}u) puts("it is {number}");\n' for number in numbers]
        files[program.file] = _COLD_C.sub("".join(lines) + r"\g<0>", text)
    else:
        lines = [f'    if total == {number} {{\n        println!("it is {number}");\n    }}\n' for number in numbers]
        files[program.file] = text.replace(_MARK, "".join(lines) + _MARK)


def _reorder(files: dict[str, str], program: Program, rng: random.Random) -> None:
    """Put the functions of the hot file in another order; in C they are declared first."""
    text = files[program.file]
    order = [(name, item) for name, item in functions(text, program.language).items() if name != "main"]
    start, end = text.index(order[0][1]), text.index(order[-1][1]) + len(order[-1][1])
    shuffled = list(order)
    while shuffled == order:
        rng.shuffle(shuffled)
    declared = ""
    if program.language == "c":
        heads = (_HEAD["c"].search(item) for _, item in order)
        declared = "".join(f"{head['line']};\n" for head in heads if head) + "\n"
    files[program.file] = text[:start] + declared + "\n\n".join(item for _, item in shuffled) + text[end:]


_EDITS = {"pad": _pad, "unused": _unused, "reorder": _reorder, "cold": _cold, "other": _other}
