"""Remove compilers' additions from function names that tools find in a program.

``plain_rust`` converts names of Rust functions to the form in source code: without legacy mangling's hash, with decoded
escapes. Source: rustc's ``compiler/rustc_symbol_mangling/src/legacy.rs``. Names of the v0 scheme (``_R``) are demangled
by the tools; only the hashes of crates, which some tools leave in brackets, are removed here.

``plain`` is for names of any language. Mojo's names contain all parameters and arguments. In a program of `mojo build`
1.2.0: ``kernels::add[LITMutOrigin, ::Origin[True, $0]](::Pointer[True, $0, ::SIMD[DType.float32, 1], $1,
AddressSpace.GENERIC],::SIMD[DType.int, 1])``. The values of parameters follow after a comma.
"""

from __future__ import annotations

import re
from pathlib import PurePosixPath

_MANGLED = re.compile(r"_ZN(?P<parts>(?:\d{1,4}[^\d\s]\S*?)+17h[0-9a-f]{16})E(?:\.llvm\.\d+)?\Z")
_HASH = re.compile(r"::h[0-9a-f]{16}\b(?:\.llvm\.\d+)?")
_CRATE_HASH = re.compile(r"(?<=\w)\[[0-9a-f]{8,16}\](?=::|>|$)")
_ESCAPE = re.compile(r"\$(?:(?P<word>SP|BP|RF|LT|GT|LP|RP|C)|u(?P<code>[0-9a-f]{1,6}))\$")
_WORDS = {"SP": "@", "BP": "*", "RF": "&", "LT": "<", "GT": ">", "LP": "(", "RP": ")", "C": ","}
# Names of files and folders that are not the name of a module.
_NO_MODULE = frozenset({"lib", "main", "src", ""})
_LAST_CODE = 0x10FFFF


def plain_rust(name: str) -> str:
    """Return a function's name without the compiler's additions. A name that is not Rust stays unchanged."""
    if match := _MANGLED.match(name):
        name = _joined(match["parts"]) or name
    hashed = _HASH.sub("", name)
    if hashed != name or "$" in name:
        name = _decoded(hashed)
    return _CRATE_HASH.sub("", name)


def in_module(name: str, file: str) -> str:
    """Prefix a bare name with the module of its source file: ``submit`` in conductor.rs is ``conductor::submit``.

    Debug information has only the bare name of an inlined function.
    """
    path = PurePosixPath(file)
    if path.suffix != ".rs" or name[:1] in {"", "<"} or "::" in name.partition("<")[0]:
        return name
    module = path.parent.name if path.stem == "mod" else path.stem
    return name if module in _NO_MODULE or not module.isidentifier() else f"{module}::{name}"


def _joined(text: str) -> str:
    """Join the parts of a mangled path, each preceded by its length; '' if the lengths do not match."""
    parts = []
    while text:
        digits = re.match(r"\d{1,4}", text)
        end = digits.end() + int(digits[0]) if digits else 0
        if not digits or end > len(text):
            return ""
        parts.append(text[digits.end() : end])
        text = text[end:]
    return "::".join(parts)


def _decoded(name: str) -> str:
    """Decode ``$LT$`` and ``$u7b$``, and ``..``, which stands for ``::``."""
    if not _ESCAPE.search(name):
        return name
    # An escape at the start of a part follows an underscore, since names cannot start with `$`.
    text = re.sub(r"(^|::)_(?=\$)", r"\1", name)
    return _ESCAPE.sub(_letter, text.replace("..", "::"))


def _letter(match: re.Match[str]) -> str:
    if match["word"]:
        return _WORDS[match["word"]]
    code = int(match["code"], 16)
    return chr(code) if code <= _LAST_CODE and chr(code).isprintable() else match[0]


# A type with its full path, or an origin: no other language has them in brackets.
_MOJO = re.compile(r"[\[(,] ?(?:::[A-Z]|LIT(?:Mut|Imm)Origin)")


def plain(name: str) -> str:
    """Return a function's name as in source code, for any language."""
    name = plain_rust(name)
    return _without_brackets(name) if _MOJO.search(name) else name


def _without_brackets(name: str) -> str:
    depth = 0
    kept = []
    for letter in name:
        depth += letter in "[("
        if not depth:
            kept.append(letter)
        depth -= letter in "])" and depth > 0
    return "".join(kept).partition(",")[0] or name
