"""Run a Python program as ``python`` itself would, with memray recording every allocation, keeping its exit status.

    python [flags] memray_run.py STATUS_FILE RECORDING FLAGS script|module|code TARGET [ARGUMENT ...]

``memray run`` says nothing of a program that leaves by ``os._exit``, and counts its own reading of the script. FLAGS
are keywords of ``memray.Tracker``, joined by commas. STATUS_FILE is JSON: ``status``. The program's own modules are
compiled in each run, so that one without ``__pycache__`` allocates no more than one with it.

Run by the measured interpreter, so: standard library and memray only, and nothing newer than Python 3.8.
"""

# Little is imported, so that the program's own imports stay visible: no pathlib or, before the end, json.
# ruff: noqa: PTH100, PTH118, PTH120, PTH123, S102

from __future__ import annotations

import importlib.machinery
import os
import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

FOLDER = os.path.dirname(os.path.abspath(__file__))


def main() -> None:
    """Run the program that the command line names; what it raises ends this process as it would have ended."""
    status_file, recording = (os.path.abspath(path) for path in sys.argv[1:3])
    runner, modules = _beside("python_run"), _beside("own_modules")
    flags = modules.names_in(sys.argv[3])
    form, target, arguments = sys.argv[4], sys.argv[5], sys.argv[6:]
    try:
        import memray
    except ImportError:
        modules.stop_without("memray", status_file)
    own = modules.OwnModules(form, target, [])

    def watched() -> None:
        own.always_compile()
        code, namespace = runner.prepare(form, target, arguments)
        tracker: Any = memray.Tracker
        with tracker(recording, **dict.fromkeys(flags, True)):
            runner.perfflow_program(code, namespace)

    def record(status: int) -> None:
        with open(status_file, "w", encoding="utf-8") as stream:
            stream.write(f'{{"status": {status}}}\n')

    runner.watch(watched, record)


def _beside(name: str) -> Any:
    """Return a module beside this file, without leaving it where the program could import it."""
    path = os.path.join(FOLDER, f"{name}.py")
    loader = importlib.machinery.SourceFileLoader(f"perfflow_{name}", path)
    module = type(sys)(loader.name)
    module.__dict__.update(__file__=path)
    exec(loader.source_to_code(loader.get_data(path), path), module.__dict__)
    return module


if __name__ == "__main__":
    main()
