"""Run a Python program as ``python`` itself would, and record the exit status it asked for.

    python [flags] python_run.py [--silent] STATUS_FILE script|module|code TARGET [ARGUMENT ...]
    python [flags] python_run.py --under=DRIVER [WORD ...] script|module|code TARGET [ARGUMENT ...]

A profiler that starts the program (py-spy) may exit 0 although the program failed; the status file holds the truth:
``{"status": 3}``. It is written by the process that started here alone, never by a forked child, and not at all if the
program leaves by ``os._exit``, ``exec`` or a signal. With ``--silent`` the program's standard output is discarded,
which keeps it apart from what the profiler says on the same. DRIVER is a file beside this one, whose ``main`` is given
this module and the words, and runs the program by ``prepare``, ``perfflow_program`` and ``watch``.

Run by the measured interpreter, so: standard library only, and nothing newer than Python 3.8.
"""

# Little is imported, so that the program's own imports stay visible: no pathlib, json, typing or zipfile.
# ruff: noqa: PTH100, PTH109, PTH113, PTH118, PTH120, PTH123, S102

from __future__ import annotations

import builtins
import importlib.machinery
import os
import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    import types
    from collections.abc import Callable
    from typing import Any

UNDER = "--under="
FOLDER = os.path.dirname(os.path.abspath(__file__))


def main() -> None:
    """Run the program that the command line names; what it raises ends this process as it would have ended."""
    words = sys.argv[1:]
    if words[0].startswith(UNDER):
        beside(words[0][len(UNDER) :]).main(sys.modules[__name__], words[1:])
        return
    if words[0] == "--silent":
        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
        del words[0]
    status_file = os.path.abspath(words[0])
    watch(lambda: perfflow_program(*prepare(*words[1:])), lambda status: write_status(status_file, status))


def beside(name: str) -> Any:
    """Return a module beside this file, without leaving it where the program could import it."""
    path = os.path.join(FOLDER, name if name.endswith(".py") else f"{name}.py")
    loader = importlib.machinery.SourceFileLoader(f"perfflow_{name}", path)
    module = type(sys)(loader.name)
    module.__dict__.update(__file__=path)
    exec(loader.source_to_code(loader.get_data(path), path), module.__dict__)
    return module


def write_status(path: str, status: int) -> None:
    """Write down how the program ended."""
    with open(path, "w", encoding="utf-8") as stream:
        stream.write(f'{{"status": {status}}}\n')


def write(path: str, **content: object) -> None:
    """Write down what was seen of the program."""
    import json

    with open(path, "w", encoding="utf-8") as stream:
        json.dump(content, stream)


def perfflow_program(code: types.CodeType, namespace: dict[str, Any]) -> None:
    """Run the program. The name marks in a profile where the driver ends and the program begins."""
    exec(code, namespace)


def watch(run: Callable[[], None], record: Callable[[int], None]) -> None:
    """Call ``run``, then ``record`` with the exit status the program asked for; exceptions pass on."""
    owner = os.getpid()
    status = 1
    try:
        run()
        status = 0
    except SystemExit as error:
        status = exit_status(error.code)
        raise
    except KeyboardInterrupt:
        status = 130
        raise
    finally:
        if os.getpid() == owner:
            record(status)


def exit_status(code: object) -> int:
    """Return the process's exit status for the argument of ``sys.exit``."""
    if code is None:
        return 0
    return code & 0xFF if isinstance(code, int) else 1


def prepare(form: str, target: str, *words: str) -> tuple[types.CodeType, dict[str, Any]]:
    """Make ``sys`` and ``__main__`` what a direct run has; return the program's code and its namespace."""
    _restore_words(form, target, list(words))
    # A profiler that starts the driver may have put folders of its own before it.
    for index, place in enumerate(sys.path):
        if os.path.abspath(place) == FOLDER:
            del sys.path[index]
            break
    module = type(sys)("__main__")
    sys.modules["__main__"] = module
    namespace = module.__dict__
    namespace["__builtins__"] = builtins
    if sys.version_info < (3, 14):
        namespace["__annotations__"] = {}
    load = {"script": _load_script, "module": _load_module, "code": _load_code}[form]
    return load(target, namespace), namespace


def _restore_words(form: str, target: str, arguments: list[str]) -> None:
    """Set ``sys.argv`` and ``sys.orig_argv`` (Python 3.10 and newer) as if the driver were not there."""
    flag = {"script": target, "module": "-m", "code": "-c"}[form]
    own = len(sys.argv)
    sys.argv = [flag, *arguments]
    if hasattr(sys, "orig_argv"):
        program = sys.argv if form == "script" else [flag, target, *arguments]
        sys.orig_argv[:] = [*sys.orig_argv[:-own], *program]


def _safe_path() -> bool:
    """Tell whether the interpreter was told (-P, -I) not to look for modules beside the program."""
    return bool(getattr(sys.flags, "safe_path", False) or sys.flags.isolated)


def _load_script(path: str, namespace: dict[str, Any]) -> types.CodeType:
    shown = os.path.join(os.getcwd(), path) if sys.version_info >= (3, 9) else path
    if _holds_modules(path):
        sys.path.insert(0, shown)
        spec = importlib.machinery.PathFinder.find_spec("__main__", [shown])
        if spec is None:
            sys.exit(f"{sys.executable}: can't find '__main__' module in {path!r}")
        return _load_spec(spec, namespace)
    if not os.path.isfile(path):
        # What the interpreter says and returns itself, so that the status is 2 here, too.
        sys.stderr.write(f"{sys.executable}: can't open file {path!r}\n")
        sys.exit(2)
    if not _safe_path():
        sys.path.insert(0, os.path.dirname(os.path.realpath(path)))
    loader = importlib.machinery.SourceFileLoader("__main__", shown)
    namespace.update(__file__=shown, __cached__=None, __loader__=loader)
    return loader.source_to_code(loader.get_data(path), shown)


def _holds_modules(path: str) -> bool:
    """Tell whether modules can be imported from the path: a folder or an archive, which then has a ``__main__``."""
    for hook in sys.path_hooks:
        try:
            hook(path)
        except ImportError:
            continue
        return True
    return False


def _load_module(name: str, namespace: dict[str, Any]) -> types.CodeType:
    if not _safe_path():
        sys.path.insert(0, os.getcwd())
    spec = _find(name)
    if spec is not None and spec.submodule_search_locations is not None:
        spec = _find(name + ".__main__")
    if spec is None:
        sys.exit(f"{sys.executable}: No module named {name}")
    code = _load_spec(spec, namespace)
    sys.argv[0] = namespace["__file__"] or name
    return code


def _find(name: str) -> importlib.machinery.ModuleSpec | None:
    import importlib.util

    try:
        return importlib.util.find_spec(name)
    except ModuleNotFoundError:
        return None


def _load_spec(spec: importlib.machinery.ModuleSpec, namespace: dict[str, Any]) -> types.CodeType:
    loader: Any = spec.loader
    code: types.CodeType | None = loader.get_code(spec.name) if hasattr(loader, "get_code") else None
    if code is None:
        sys.exit(f"{sys.executable}: No code object available for {spec.name}")
    namespace.update(
        __file__=spec.origin, __cached__=spec.cached, __loader__=loader, __package__=spec.parent, __spec__=spec
    )
    return code


def _load_code(text: str, namespace: dict[str, Any]) -> types.CodeType:
    if not _safe_path():
        sys.path.insert(0, "")
    namespace["__loader__"] = importlib.machinery.BuiltinImporter
    return compile(text, "<string>", "exec", dont_inherit=True)


if __name__ == "__main__":
    main()
