"""Run a Python program as ``python`` itself would, and record its exit status.

    python [flags] python_run.py [--silent] STATUS_FILE script|module|code TARGET [ARGUMENT ...]
    python [flags] python_run.py --under=DRIVER [WORD ...] script|module|code TARGET [ARGUMENT ...]

A profiler that starts the program (py-spy) can exit 0 although the program failed. The status file has the program's
own status: ``{"status": 3}``. Only the process that started here writes it, never a forked child, and it is missing if
the program ends by ``os._exit``, ``exec`` or a signal. ``--silent`` discards the program's standard output, to separate
it from the profiler's messages. DRIVER is a file beside this one. Its ``main`` gets this module and the words, and runs
the program by ``watch`` and ``perfflow_program``.

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
    from collections.abc import Callable, Iterable, Sequence
    from typing import Any

    Change = Callable[[types.CodeType, str], types.CodeType]

UNDER = "--under="
FOLDER = os.path.dirname(os.path.abspath(__file__))
_LIBRARIES = tuple(os.path.join(os.path.dirname(path), "") for path in (os.__file__, os.path.realpath(os.__file__)))


def main() -> None:
    """Run the program of the command line. Its exceptions end this process as they would have ended the program."""
    words = sys.argv[1:]
    if words[0].startswith(UNDER):
        load_driver(words[0][len(UNDER) :]).main(sys.modules[__name__], words[1:])
        return
    if words[0] == "--silent":
        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
        del words[0]
    status_file = os.path.abspath(words[0])
    watch(words[1:], perfflow_program, lambda status: write_status(status_file, status))


def load_driver(name: str) -> Any:
    """Return a module beside this file, without making it importable for the program."""
    path = os.path.join(FOLDER, name)
    loader = importlib.machinery.SourceFileLoader(f"perfflow_{name}", path)
    module = type(sys)(loader.name)
    exec(loader.source_to_code(loader.get_data(path), path), module.__dict__)
    return module


def require(library: str, output: str) -> Any:
    """Import a library. If it is not installed, write that to ``output`` and exit with status 1."""
    try:
        return __import__(library)
    except ImportError:
        with open(output, "w", encoding="utf-8") as stream:
            stream.write(f'{{"missing": "{library}"}}\n')
        sys.exit(f"{sys.executable}: {library} is not installed")


def write_status(path: str, status: int) -> None:
    """Write the exit status of the program as JSON."""
    with open(path, "w", encoding="utf-8") as stream:
        stream.write(f'{{"status": {status}}}\n')


def write(path: str, **content: object) -> None:
    """Write the profile of the program as JSON."""
    import json

    with open(path, "w", encoding="utf-8") as stream:
        json.dump(content, stream)


def records(keys: str, rows: Iterable[Sequence[object]]) -> list[dict[str, Any]]:
    """Return each row as a dictionary with these keys, separated by spaces."""
    return [dict(zip(keys.split(), row)) for row in rows]  # noqa: B905 (Python 3.8)


def perfflow_program(code: types.CodeType, namespace: dict[str, Any]) -> None:
    """Run the program. In a profile, this function's name separates the driver's frames from the program's."""
    exec(code, namespace)


def watch(words: list[str], run: Callable[..., object], record: Callable[[int], None]) -> None:
    """Let ``run`` run the program, then ``record`` its exit status. Exceptions propagate.

    ``words`` are form, target and arguments; ``run`` gets the code and its namespace.
    """
    owner = os.getpid()
    status = 1
    try:
        run(*prepare(*words))
        status = 0
    except SystemExit as error:
        # As the interpreter does with the argument of ``sys.exit``.
        status = error.code & 0xFF if isinstance(error.code, int) else int(error.code is not None)
        raise
    except KeyboardInterrupt:
        status = 130
        raise
    finally:
        if os.getpid() == owner:
            record(status)


def prepare(form: str, target: str, *words: str) -> tuple[types.CodeType, dict[str, Any]]:
    """Make ``sys`` and ``__main__`` those of a direct run. Return the program's code and its namespace."""
    _restore_words(form, target, list(words))
    # A profiler that starts the driver can have put its own folders before the driver's.
    for index, place in enumerate(sys.path):
        if os.path.abspath(place) == FOLDER:
            del sys.path[index]
            break
    sys.modules["__main__"] = type(sys)("__main__")
    namespace = sys.modules["__main__"].__dict__
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
    """Return whether an option (-P, -I) keeps the interpreter from importing modules beside the program."""
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
        # The message and the exit status (2) of the interpreter itself.
        sys.stderr.write(f"{sys.executable}: can't open file {path!r}\n")
        sys.exit(2)
    if not _safe_path():
        sys.path.insert(0, os.path.dirname(os.path.realpath(path)))
    loader = importlib.machinery.SourceFileLoader("__main__", shown)
    namespace.update(__file__=shown, __cached__=None, __loader__=loader)
    return loader.source_to_code(loader.get_data(path), shown)


def _holds_modules(path: str) -> bool:
    """Return whether modules can be imported from the path: a folder or an archive, which then has a ``__main__``."""
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
    import importlib.util

    try:
        spec = importlib.util.find_spec(name)
        if spec is not None and spec.submodule_search_locations is not None:
            spec = importlib.util.find_spec(f"{name}.__main__")
    except ModuleNotFoundError:
        spec = None
    if spec is None:
        sys.exit(f"{sys.executable}: No module named {name}")
    code = _load_spec(spec, namespace)
    sys.argv[0] = namespace["__file__"] or name
    return code


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


class OwnModules:
    """The modules below the working directory, below the script's folder, and on PYTHONPATH.

    Installed packages (site-packages) and the standard library are not own modules. With ``names`` (joined by commas),
    own modules are only those of these names and their submodules, wherever they are; ``__main__`` is the program.
    """

    def __init__(self, form: str, target: str, names: str = "") -> None:
        folders = [os.getcwd(), *filter(None, os.environ.get("PYTHONPATH", "").split(os.pathsep))]
        if form == "script":
            folders.append(os.path.dirname(os.path.abspath(target)))
        self._roots = tuple(os.path.join(os.path.realpath(folder), "") for folder in folders)
        self._names = names.split(",") if names else []
        self._change: Any = None
        self._made: list[types.CodeType] = []
        self.loaded: list[str] = []

    def holds(self, name: str, path: str) -> bool:
        """Return whether a module is an own module, by its full name and its file."""
        if self._names:
            return any(f"{name}.".startswith(f"{own}.") for own in self._names)
        place = os.path.realpath(path)
        return place.startswith(self._roots) and not is_library(place)

    def change(self, change: Change) -> None:
        """Replace the code of every own module that is loaded from source from now on by ``change(code, name)``."""
        self._change = change
        loader: Any = importlib.machinery.SourceFileLoader
        original = loader.get_code

        def get_code(self_: Any, name: str) -> Any:
            code = original(self_, name)
            return code if code is None or not self.holds(name, self_.path) else self._changed(code, name)

        loader.get_code = get_code

    def program(self, code: types.CodeType) -> types.CodeType:
        """Return the changed code of the program itself, unless a loader has already changed it."""
        if any(code is made for made in self._made) or (self._names and not self.holds("__main__", "")):
            return code
        return self._changed(code, "__main__")

    def always_compile(self) -> None:
        """Compile every own module in each run, so that runs with and without ``__pycache__`` allocate the same."""
        loader: Any = importlib.machinery.SourceFileLoader
        original = loader.path_stats

        def path_stats(self_: Any, path: str) -> Any:
            if self.holds(self_.name, path):
                # For a source without a time, the import system neither reads nor writes bytecode.
                raise OSError
            return original(self_, path)

        loader.path_stats = path_stats

    def _changed(self, code: types.CodeType, name: str) -> types.CodeType:
        self._made.append(self._change(code, name))
        self.loaded.append(name)
        return self._made[-1]


def is_library(path: str) -> bool:
    """Return whether a file belongs to the standard library or an installed package."""
    return path.startswith(("<frozen", *_LIBRARIES)) or "/site-packages/" in path or "/dist-packages/" in path


if __name__ == "__main__":
    main()
