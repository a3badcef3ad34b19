"""Tell source files of the measured project from those of libraries, toolchains and the system.

Debug information has only the names of files, so their folder decides. Rust's standard library is compiled below
``/rustc/HASH``, crates below cargo's registry, and Mojo's standard library below ``Mojo/stdlib``. Distributions remove
their build folders, which leaves names such as ``./malloc/malloc.c``. For Python and Node.js, foreign code is what is
installed or comes with the interpreter.
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
    """Return the index of the first frame, leaf first, of the project's own code; None if there is none."""
    return next((index for index, frame in enumerate(frames) if is_own(frame.file)), None)
