"""Whose code a source file is: the measured project's own, or a library's, a toolchain's or the system's.

Debug information names files only; what a project can change is told by where they lie. Files of Rust's standard
library are compiled below ``/rustc/HASH``, those of crates below cargo's registry, and what a distribution builds has
names such as ``./malloc/malloc.c``, since it takes its build folders away. Mojo's is below ``Mojo/stdlib``. Of Python
and Node.js, whose code perf names where they tell it, it is what is installed or comes with the interpreter.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from perfflow.model.stacks import Frame

_FOREIGN = re.compile(
    r"""(?:
      (?:[^/]+/)?\./ | /rustc/ | /rust/deps/ | library/(?:alloc|core|std|panic_unwind|proc_macro|test)/src/
      | .*/library/(?:alloc|core|std|panic_unwind|test)/src/
      | .*/\.?cargo/(?:registry|git)/ | .*/\.rustup/toolchains/
      | /usr/(?:include|lib|lib64|libexec|share)/ | /usr/local/(?:include|lib|go)/ | /usr/src/debug/
      | .*/include/c\+\+/ | .*/c\+\+/v1/ | .*/(?:sysdeps|bits)/
      | /build/(?:glibc|gcc|llvm|python) | .*/python-build\.[^/]*/ | Mojo/stdlib/
      | .*/lib/python3\.\d+/ | .*/(?:site-packages|dist-packages|node_modules)/ | node:
    )""",
    re.VERBOSE,
)


def is_own(file: str) -> bool:
    """Whether a source file, as debug information names it, may be the project's own."""
    return file not in {"", "???"} and not file.startswith("<") and not _FOREIGN.match(file)


def innermost(frames: Sequence[Frame]) -> int | None:
    """Return the index of the first frame, leaf first, that is the project's own; None where there is none."""
    return next((index for index, frame in enumerate(frames) if is_own(frame.file)), None)
