"""A recorded link as a command that can be repeated with other output files and additional arguments."""

from __future__ import annotations

import subprocess
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
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
                done = subprocess.run(
                    [self.driver, *arguments],
                    cwd=self.folder,
                    # Maps and versions are parsed, so they must not be translated.
                    env={**self.environment, "LC_ALL": "C"},
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


def prepared(link: RecordedLink, arguments: Sequence[str], work: Path) -> LinkCommand:
    """Return the link with these arguments as a command. Sources among them are compiled to objects first.

    Raises LayoutsRefusedError if the folder of the link is gone or a source no longer compiles.
    """
    if not link.folder.is_dir():
        raise LayoutsRefusedError(f"{link.folder}, where {link.output.name} was linked, is gone: build it again")
    command = LinkCommand(link.driver, (), link.folder, link.environment, link.output.name)
    options = _compile_options(arguments)
    found: list[str] = []
    language = ""
    for index, option, value in driver_arguments.words(_without_reports(arguments)):
        if option == "-x":
            language = value
        elif not option and driver_arguments.is_source(value, language):
            found.append(_compiled(command, options, value, language, work / f"{index}.o"))
        elif option in _DEPENDENCIES | _DEPENDENCY_FILES or _is_output(option, value):
            pass
        else:
            found += [word for word in (option, value) if word]
    return replace(command, arguments=tuple(found))


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
    found: list[str] = []
    words = iter(arguments)
    for word in words:
        if word == "-Xlinker":
            value = next(words, "")
            if value in _REPORTS:
                next(words, ""), next(words, "")
            elif not value.startswith(_JOINED_REPORTS):
                found += [word, value]
        elif word.startswith("-Wl,"):
            parts = _parts_without_reports(word.split(",")[1:])
            found += [f"-Wl,{','.join(parts)}"] if parts else []
        else:
            found.append(word)
    return found


def _parts_without_reports(parts: Sequence[str]) -> list[str]:
    found: list[str] = []
    rest = iter(parts)
    for part in rest:
        if part in _REPORTS:
            next(rest, "")
        elif not part.startswith(_JOINED_REPORTS):
            found.append(part)
    return found
