"""Parse the command line of a compiler driver (gcc, clang): its inputs, its output and the kind of output.

Imported by a bare interpreter before every link of a build, so it uses only built-in modules.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence

SECTIONS = "-ffunction-sections"
_NO_LINK = {"-c", "-S", "-E", "-M", "-MM", "-r", "-shared", "-fsyntax-only", "-###", "-Wl,-r", "-Wl,-shared"}
_NO_LINK |= {"--relocatable", "-Wl,--relocatable", "--shared", "--preprocess", "--compile", "--assemble"}
_VALUED = {"-o", "-I", "-L", "-B", "-D", "-U", "-x", "-T", "-l", "-u", "-z", "-e", "-h", "-G", "-A", "--param"}
_VALUED |= {"-include", "-imacros", "-isystem", "-iquote", "-idirafter", "-iprefix", "-isysroot", "-iwithprefix"}
_VALUED |= {"-MF", "-MT", "-MQ", "-Xlinker", "-Xclang", "-Xassembler", "-Xpreprocessor", "-mllvm", "-target"}
_VALUED |= {"-aux-info", "-dumpbase", "-dumpdir", "-dumpbase-ext", "-wrapper", "-arch", "-gcc-toolchain", "--sysroot"}
_SOURCES = (".c", ".cc", ".cp", ".cpp", ".cxx", ".c++", ".C", ".CPP", ".i", ".ii", ".m", ".mm", ".f", ".F", ".f90")
_ASSEMBLY = (".s", ".S", ".sx", ".asm")
_HEADERS = (".h", ".hh", ".hpp", ".hxx", ".H")
_DEEPEST = 20


def words(arguments: Sequence[str]) -> Iterator[tuple[int, str, str]]:
    """Yield (index, option, value) of each word: ("", file) for an input, (option, "") or (option, value) otherwise.

    An option whose value is the next word is yielded once, with the index of the option.
    """
    index = 0
    while index < len(arguments):
        word = arguments[index]
        if not word.startswith("-") or word == "-":
            yield index, "", word
        elif word in _VALUED and index + 1 < len(arguments):
            yield index, word, arguments[index + 1]
            index += 1
        else:
            yield index, word, ""
        index += 1


def inputs(arguments: Sequence[str]) -> list[str]:
    """Return the files that the command reads by name, in order."""
    return [value for _, option, value in words(arguments) if not option]


def output(arguments: Sequence[str]) -> str:
    """Return the output file of the command, as written; ``a.out`` if none is named."""
    named = "a.out"
    for _, option, value in words(arguments):
        if option == "-o":
            named = value
        elif option.startswith("-o") and not value:
            named = option[2:]
    return named


def joined(arguments: Sequence[str], option: str) -> list[str]:
    """Return the values of a one-letter option, separate (``-L x``) or joined (``-Lx``)."""
    found = []
    for _, name, value in words(arguments):
        if name == option:
            found.append(value)
        elif name.startswith(option) and not value:
            found.append(name[len(option) :])
    return found


def paths(word: str) -> list[str]:
    """Return the possible paths in a word: the word, the parts of ``-Wl,a,b=c``, and the text after ``=``."""
    parts = word.split(",")[1:] if word.startswith("-Wl,") else [word]
    return [path for part in parts for path in (part, part.partition("=")[2]) if path]


def replaced(word: str, path: str, other: str) -> str:
    """Return the word with one of its ``paths`` replaced."""
    if word.startswith("-Wl,"):
        return ",".join(replaced(part, path, other) for part in word.split(","))
    if word == path:
        return other
    head, sign, tail = word.partition("=")
    return head + sign + other if sign and tail == path else word


def is_source(file: str, language: str = "") -> bool:
    """Return whether the driver compiles this file. ``language`` is the value of ``-x`` in force."""
    return file.endswith((*_SOURCES, *_ASSEMBLY)) if language in ("", "none") else True


def has_compiled_source(arguments: Sequence[str]) -> bool:
    """Return whether a compiler runs. Without one, clang warns about ``-ffunction-sections``."""
    files = inputs(arguments)
    if any(option == "-x" and value not in ("none", "assembler") for _, option, value in words(arguments)):
        return True
    return any(file.endswith((*_SOURCES, *_HEADERS)) for file in files)


def links_executable(arguments: Sequence[str]) -> bool:
    """Return whether the command links an executable from files (standard input cannot be read again)."""
    files = inputs(arguments)
    if not files or "-" in files or any(file.endswith(_HEADERS) for file in files):
        return False
    options = {option for _, option, _ in words(arguments)}
    return not options & _NO_LINK and not any(word.startswith(("-print", "--print", "-dump")) for word in options)


def with_sections(arguments: Sequence[str]) -> list[str]:
    """Return the arguments with a section for each function; a later option in them overrides this."""
    plain = all(file.endswith(_ASSEMBLY) for file in inputs(arguments)) and not has_compiled_source(arguments)
    return list(arguments) if plain else [SECTIONS, *arguments]


def expanded(arguments: Sequence[str], folder: str, depth: int = 0) -> list[str]:
    """Return the arguments with each response file (``@file``) replaced by its words; a missing file stays a word."""
    found: list[str] = []
    for word in arguments:
        path = os.path.join(folder, word[1:])
        if word.startswith("@") and depth < _DEEPEST and os.path.isfile(path):
            with open(path, encoding="utf-8", errors="surrogateescape", newline="") as file:
                found += expanded(split(file.read()), folder, depth + 1)
        else:
            found.append(word)
    return found


def split(text: str) -> list[str]:
    """Split the text of a response file by the rules of GNU's ``buildargv``: quotes, and backslash before anything."""
    finished: list[str] = []
    word: list[str] | None = None
    quote = ""
    letters = iter(text)
    for letter in letters:
        if letter == "\\":
            word = [*(word or []), next(letters, "")]
        elif quote:
            if letter == quote:
                quote = ""
            elif word is not None:
                word.append(letter)
        elif letter in "'\"":
            quote, word = letter, word or []
        elif letter.isspace():
            finished += ["".join(word)] if word is not None else []
            word = None
        else:
            word = word if word is not None else []
            word.append(letter)
    return [*finished, "".join(word)] if word is not None else finished


def quoted(arguments: Sequence[str]) -> str:
    """Return the text of a response file that ``split`` and the drivers read as these arguments."""
    return "".join('"' + word.replace("\\", "\\\\").replace('"', '\\"') + '"\n' for word in arguments)
