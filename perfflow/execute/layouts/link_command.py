"""A recorded link as a command that can be repeated with other output files, arguments or linkers.

First the command itself. Then the linkers that can order functions: those that suit a build, and their arguments.
"""

from __future__ import annotations

import random
import re
import subprocess
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import Enum
from pathlib import Path
from tempfile import TemporaryDirectory

from perfflow.execute.layouts import driver_arguments
from perfflow.execute.layouts.recorded_link import RecordedLink
from perfflow.execute.layouts.refusal import LayoutsRefusedError

_LONGEST = 100_000
"""Longer arguments (in characters) are passed in a response file, because the kernel limits their length."""
_SELECTION = ("-fuse-ld=", "--ld-path=")
_DEPENDENCIES = {"-MD", "-MMD", "-MP", "-MG"}
_DEPENDENCY_FILES = {"-MF", "-MT", "-MQ"}
_REPORTS = ("-Map", "--Map", "--dependency-file")
_JOINED_REPORTS = tuple(f"{name}=" for name in _REPORTS)
_LINK_ONLY = {"-l", "-L", "-Xlinker", "-o"}


KeepIn = Callable[[Sequence[str], Path], list[str]]
"""Returns the command that runs a command in a sandbox, where it can read one more folder."""


class LinkFailedError(Exception):
    """The driver failed. The text is the line of its output that states the error."""


@dataclass(frozen=True)
class LinkCommand:
    """A driver with all its arguments except ``-o``. It runs in ``folder``.

    ``name`` is the name of the build's output file. If symbols have versions, the name is part of the content.
    """

    driver: str
    arguments: tuple[str, ...]
    folder: Path
    environment: Mapping[str, str]
    name: str
    keep_in: KeepIn | None = None
    """Puts a command into a sandbox: the driver and its arguments may come from the code of strangers."""

    def run(self, place: Path, *further: str) -> Path:
        """Link into the folder ``place``, which is created, and return the file. Raises LinkFailedError."""
        place.mkdir(parents=True, exist_ok=True)
        self.start([*self.arguments, *further, "-o", str(place / self.name)])
        return place / self.name

    def start(self, arguments: Sequence[str]) -> str:
        """Run the driver with only these arguments and return its standard output. Raises LinkFailedError."""
        with TemporaryDirectory(prefix="perfflow-") as folder:
            if sum(map(len, arguments)) > _LONGEST:
                arguments = [f"@{_response_file(Path(folder), arguments)}"]
            try:
                argv = [self.driver, *arguments]
                # Maps and versions are parsed, so they must not be translated.
                variables = {**self.environment, "LC_ALL": "C"}
                env: Mapping[str, str] | None = variables
                if self.keep_in:
                    # Only inside may variables of strangers take effect, such as those of the dynamic linker.
                    words = (f"{name}={value}" for name, value in variables.items())
                    argv, env = self.keep_in(("env", "-i", *words, *argv), Path(folder)), None
                done = subprocess.run(
                    argv,
                    cwd=self.folder,
                    env=env,
                    stdin=subprocess.DEVNULL,
                    capture_output=True,
                    text=True,
                    errors="replace",
                    check=False,
                )
            except OSError as error:
                raise LinkFailedError(f"{error.filename}: {error.strerror}") from None
        if done.returncode:
            lines = [line for line in done.stderr.splitlines() if line.strip()]
            raise LinkFailedError(_error_in(lines) if lines else f"{self.driver} failed with status {done.returncode}")
        return done.stdout

    def selection(self) -> list[str]:
        """Return the arguments that select the linker."""
        joined = [word for word in self.arguments if word.startswith((*_SELECTION, "-B"))]
        apart = [
            word
            for _, option, value in driver_arguments.words(self.arguments)
            if option == "-B" and value
            for word in (option, value)
        ]
        return [word for word in joined if word != "-B"] + apart

    def with_linker(self, selection: Sequence[str]) -> LinkCommand:
        """Return the command with another linker selected."""
        kept = [word for word in self.arguments if not word.startswith(_SELECTION)]
        return replace(self, arguments=(*kept, *selection))


def _response_file(folder: Path, arguments: Sequence[str]) -> Path:
    place = folder / "arguments"
    text = driver_arguments.quoted(arguments)
    place.write_text(text, encoding="utf-8", errors="surrogateescape", newline="")
    return place


def _error_in(lines: Sequence[str]) -> str:
    """Return the first error line, which precedes the driver's own message that its linker failed."""
    found = [line for line in lines if "error" in line or "undefined" in line or "unrecognized" in line]
    return (found or lines)[0].strip()


def prepared(link: RecordedLink, arguments: Sequence[str], work: Path, keep_in: KeepIn | None = None) -> LinkCommand:
    """Return the link with these arguments as a command. Sources among them are compiled to objects first.

    Raises LayoutsRefusedError if the folder of the link is gone or a source no longer compiles.
    """
    if not link.folder.is_dir():
        raise LayoutsRefusedError(f"{link.folder}, where {link.output.name} was linked, is gone: build it again")
    command = LinkCommand(link.driver, (), link.folder, link.environment, link.output.name, keep_in)
    options = _compile_options(arguments)
    words: list[str] = []
    language = ""
    for index, option, value in driver_arguments.words(_without_reports(arguments)):
        if option == "-x":
            language = value
        elif not option and driver_arguments.is_source(value, language):
            words.append(_compiled(command, options, value, language, work / f"{index}.o"))
        elif option in _DEPENDENCIES | _DEPENDENCY_FILES or _is_output(option, value):
            pass
        else:
            words += [word for word in (option, value) if word]
    return replace(command, arguments=tuple(words))


def _is_output(option: str, value: str) -> bool:
    return option == "-o" or (option.startswith("-o") and not value)


def _compiled(command: LinkCommand, options: Sequence[str], source: str, language: str, output: Path) -> str:
    """Compile one source as the build did, and return the path of the object."""
    of_language = ["-x", language] if language else []
    try:
        command.start([*options, "-Wno-unused-command-line-argument", "-c", *of_language, source, "-o", str(output)])
    except LinkFailedError as error:
        raise LayoutsRefusedError(f"{source} no longer compiles: {error}") from None
    return str(output)


def _compile_options(arguments: Sequence[str]) -> list[str]:
    """Return the options that affect compilation."""
    return [
        word
        for _, option, value in driver_arguments.words(arguments)
        if option and option not in _LINK_ONLY | _DEPENDENCIES | _DEPENDENCY_FILES | {"-x"}
        if not option.startswith(("-Wl,", "-l", "-L", "-fuse-ld=", "--ld-path="))
        if not _is_output(option, value)
        for word in (option, value)
        if word
    ]


def _without_reports(arguments: Sequence[str]) -> list[str]:
    """Return the arguments without options that write maps and dependency files."""
    kept: list[str] = []
    words = iter(arguments)
    for word in words:
        if word == "-Xlinker":
            value = next(words, "")
            if value in _REPORTS:
                next(words, ""), next(words, "")
            elif not value.startswith(_JOINED_REPORTS):
                kept += [word, value]
        elif word.startswith("-Wl,"):
            parts = _parts_without_reports(word.split(",")[1:])
            kept += [f"-Wl,{','.join(parts)}"] if parts else []
        else:
            kept.append(word)
    return kept


def _parts_without_reports(parts: Sequence[str]) -> list[str]:
    found: list[str] = []
    rest = iter(parts)
    for part in rest:
        if part in _REPORTS:
            next(rest, "")
        elif not part.startswith(_JOINED_REPORTS):
            found.append(part)
    return found


_MOLD_FOLDERS = ("/usr/libexec/mold", "/usr/lib/mold", "/usr/local/libexec/mold")


class LinkerKind(Enum):
    """A family of linkers. The value matches its ``--version`` output."""

    LLD = re.compile(r"LLD (?P<version>[\d.]+)")
    MOLD = re.compile(r"mold (?P<version>[\d.]+)")
    GOLD = re.compile(r"GNU gold .*?(?P<version>[\d.]+)$", re.MULTILINE)
    BFD = re.compile(r"GNU ld .*?(?P<version>[\d.]+)$", re.MULTILINE)


_NAMES = {LinkerKind.LLD: "lld", LinkerKind.MOLD: "mold", LinkerKind.GOLD: "gold", LinkerKind.BFD: "GNU ld"}
SHUFFLING = (LinkerKind.LLD, LinkerKind.MOLD)
"""Linkers that take a seed. The others need the order itself."""


@dataclass(frozen=True)
class Linker:
    """A linker for one link: its kind, its name and version for messages, and the link command that starts it.

    ``sections`` are the names of the program's code sections, for linkers that need an explicit order.
    """

    kind: LinkerKind
    name: str
    command: LinkCommand
    sections: tuple[str, ...] = ()

    def link(self, seed: int, padding: str, place: Path) -> Path:
        """Link with the order of ``seed`` (1 or more) into the folder ``place``. Raises LinkFailedError."""
        place.mkdir(parents=True, exist_ok=True)
        return self.command.run(place, padding, *self._order(seed, place / "order.txt"))

    def _order(self, seed: int, order: Path) -> list[str]:
        if self.kind is LinkerKind.LLD:
            return [f"-Wl,--shuffle-sections=.text*={seed}"]
        if self.kind is LinkerKind.MOLD:
            return [f"-Wl,--shuffle-sections={seed}"]
        names = list(self.sections)
        random.Random(seed).shuffle(names)  # noqa: S311 (an order, no secret)
        if self.kind is LinkerKind.GOLD:
            order.write_text("".join(f"{name}\n" for name in names))
            return ["-Xlinker", f"--section-ordering-file={order}"]
        placed = " ".join(f"*({name})" for name in names)
        order.write_text(f"SECTIONS {{ .text.shuffled : {{ {placed} }} }} INSERT BEFORE .text;\n")
        return ["-Xlinker", "-T", "-Xlinker", str(order)]

    def with_sections(self, padding: str, work: Path) -> Linker:
        """Return the linker with the code sections of a plain link, if it needs them. Raises LinkFailedError."""
        if self.kind in SHUFFLING:
            return self
        place = work / "map.txt"
        self.command.run(work, padding, "-Xlinker", f"-Map={place}")
        heading = "\nMemory map\n" if self.kind is LinkerKind.GOLD else "\nLinker script and memory map\n"
        _, _, placed = place.read_text(errors="replace").partition(heading)
        names = re.findall(r"^ (\.text\.[\w.$]+)(?=\s)", placed, re.MULTILINE)
        return replace(self, sections=tuple(sorted(set(names))))


def candidates(command: LinkCommand, *, only_own: bool) -> Iterator[Linker]:
    """Yield the linkers that may be able to link this in another order, the best first. Each may still fail.

    Linkers that shuffle by a seed come before those that need an order, and the build's own linker comes before others
    of its kind. ``only_own`` excludes all but the build's own linker.
    """
    default = _linker(command)
    if default and default.kind in SHUFFLING:
        yield default
    if not only_own:
        for selection in (["-fuse-ld=lld"], ["-fuse-ld=mold"], *([f"-B{folder}"] for folder in _MOLD_FOLDERS)):
            other = _linker(command.with_linker(selection))
            if other and other.kind in SHUFFLING and not (default and other.name == default.name):
                yield other
    if default and default.kind not in SHUFFLING:
        yield default


def _linker(command: LinkCommand) -> Linker | None:
    """Return the linker that the driver starts; None if there is none, or its kind is unknown."""
    selection = command.selection()
    try:
        text = command.start([*selection, "-Wl,--version"])
    except LinkFailedError:
        return None
    for kind in LinkerKind:
        if match := kind.value.search(text):
            name = f"{_NAMES[kind]} {match['version']}"
            of_rust = kind is LinkerKind.LLD and any("rustlib" in word for word in selection)
            return Linker(kind, "rust-lld" if of_rust else name, command)
    return None
