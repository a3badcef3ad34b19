"""The functions that one sample passes: ``python -m tests.hops`` prints those of ``perfflow compare -- true true``.

It records the call stacks at four points: where the adapter parses a sample, where its event is appended, where its row
is compared for the verdict, and where the row is printed. Their union is printed in the order of the first call, with
the number of functions in each package.
"""

from __future__ import annotations

import sys
from collections import Counter
from contextlib import redirect_stdout
from io import StringIO
from pathlib import Path
from types import CodeType, FrameType
from typing import Any

import perfflow
from perfflow.cli.console import say
from perfflow.cli.main import main
from perfflow.store.run_folder import RunFolder
from perfflow.tools.shell.command import parse
from perfflow.verdict.comparison import compare

ROOT = Path(perfflow.__file__).parent
COMMAND = ("compare", "--budget", "4s", "--", "true", "true")


def recorded(arguments: tuple[str, ...]) -> dict[CodeType, None]:
    """The functions of perfflow on the stacks at the four points, in the order in which they were called first."""
    found: dict[CodeType, None] = {}
    points = {item.__code__ for item in (parse, RunFolder.append, compare, say)}

    def look(frame: FrameType, kind: str, _: Any) -> None:
        if kind != "call" or frame.f_code not in points:
            return
        if frame.f_code is RunFolder.append.__code__ and frame.f_locals["event"]["event"] != "sample":
            return
        stack: list[CodeType] = []
        caller: FrameType | None = frame
        while caller is not None:
            # Comprehensions are no functions of their own from Python 3.12 on.
            named = not caller.f_code.co_name.startswith("<")
            if named and Path(caller.f_code.co_filename).is_relative_to(ROOT):
                stack.append(caller.f_code)
            caller = caller.f_back
        found.update(dict.fromkeys(reversed(stack)))

    sys.setprofile(look)
    try:
        with redirect_stdout(StringIO()):
            main(arguments)
    except SystemExit:
        pass
    finally:
        sys.setprofile(None)
    return found


def lines(found: dict[CodeType, None]) -> list[str]:
    """One line a function, then one a package."""
    places = [Path(code.co_filename).relative_to(ROOT) for code in found]
    named = [f"{place}: {code.co_qualname}" for place, code in zip(places, found, strict=True)]
    packages = Counter(place.parts[0] for place in places)
    counted = ", ".join(f"{name} {count}" for name, count in packages.items())
    return [*named, f"{len(named)} functions in {len(packages)} packages: {counted}"]


if __name__ == "__main__":
    sys.stdout.write("\n".join(lines(recorded(COMMAND))) + "\n")
