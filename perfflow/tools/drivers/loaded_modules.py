"""Record which code a Python program runs from a project's trees: put first on PYTHONPATH as ``sitecustomize``.

The file ``trees`` in the same folder contains NUL-terminated words in pairs: a kind (``own``, ``shared``, ``other``,
``source``) and a folder, or for ``source`` the URL of a folder from which copies may have been installed. The file
``loaded`` in the same folder receives NUL-terminated words in triples:

- ``python``, version, interpreter: once per process;
- ``own``, module, file: code of the tree itself;
- ``other``, module, file: code of another tree;
- ``copy``, module, file: an installed copy of another tree's code.

Audit events report code before it runs, so children that end by ``os._exit`` or a signal are recorded as well. The
program's own ``sitecustomize`` still runs. Interpreters without audit events (before 3.8) write nothing, and ``-I``,
``-E`` and ``-S`` prevent the recording.

The measured interpreter runs this file, so it uses only the standard library, and only modules that the program has
loaded at that time.
"""

# ruff: noqa: PTH100, PTH118, PTH120, PTH123, PTH208

from __future__ import annotations

import os
import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

FOLDER = os.path.dirname(os.path.abspath(__file__))


class Watch:
    """An audit hook that records each file of a tree once, before its code runs."""

    def __init__(self) -> None:
        self.seen: set[str] = set()
        self.folders: dict[str, list[str]] = {"own": [], "shared": [], "other": [], "source": []}
        with open(os.path.join(FOLDER, "trees"), encoding="utf-8", errors="surrogateescape") as stream:
            words = stream.read().split("\0")
        for kind, folder in zip(words[::2], words[1::2]):  # noqa: B905 (no `strict` before Python 3.10)
            self.folders[kind].append(folder)
        packages = [os.path.realpath(path) for path in sys.path if path.endswith(("site-packages", "dist-packages"))]
        self.installed = {folder: _copied(folder, self.folders["source"]) for folder in packages}
        self.python = [os.path.dirname(os.path.realpath(os.__file__))]
        if sys.executable:
            self.python.append(os.path.realpath(os.path.dirname(sys.executable)))

    def __call__(self, event: str, args: Any) -> None:
        """Handle an event; only events for code about to run and for extension modules have file names."""
        if event == "exec":
            self.note(getattr(args[0], "co_filename", None), "")
        elif event == "import":
            self.note(args[1], args[0])

    def note(self, file: object, name: str) -> None:
        """Record a file. Errors never reach the program."""
        if type(file) is not str or file in self.seen or file[:1] == "<":
            return
        self.seen.add(file)
        try:
            path = os.path.realpath(file)
            kind = self.kind_of(path)
            if kind:
                _write(kind, name or _name_of(file), path)
        except Exception as error:  # noqa: BLE001 (an exception would be raised in the program)
            _write("broken", type(error).__name__, str(error))

    def kind_of(self, path: str) -> str:
        """Return ``own``, ``other``, ``copy``, or '' for files of the interpreter, installed or shared ones."""
        for folder, copied in self.installed.items():
            if _is_below(path, [folder]):
                return "copy" if path[len(folder) + 1 :].partition(os.sep)[0] in copied else ""
        if _is_below(path, self.python):
            return ""
        kind = next((kind for kind in ("own", "shared", "other") if _is_below(path, self.folders[kind])), "")
        return "" if kind == "shared" else kind


def watch() -> None:
    """Install the audit hook, and record the modules that were loaded before it."""
    hook = Watch()
    _write("python", sys.version.split()[0], sys.executable)
    for name, module in list(sys.modules.items()):
        file = _attribute(module, "__file__")
        if type(file) is str and os.path.dirname(os.path.abspath(file)) != FOLDER:
            hook.note(file, name)
    sys.addaudithook(hook)


def _copied(folder: str, sources: list[str]) -> set[str]:
    """Return top-level names in site-packages installed from one of the folders, except editable installs (PEP 610)."""
    found: set[str] = set()
    try:
        names = [name for name in os.listdir(folder) if name.endswith(".dist-info")]
    except OSError:
        return found
    for name in names:
        try:
            with open(os.path.join(folder, name, "direct_url.json"), encoding="utf-8") as stream:
                text = stream.read().replace(" ", "")
            if '"editable":true' in text or not any(f'"{url}"' in text or f'"{url}/' in text for url in sources):
                continue
            with open(os.path.join(folder, name, "RECORD"), encoding="utf-8") as stream:
                tops = {line.split(",")[0].split("/")[0] for line in stream}
        except (OSError, ValueError):
            continue
        found.update(top for top in tops if top not in {"..", "__pycache__"} and not top.endswith(".dist-info"))
    return found


def _is_below(path: str, folders: list[str]) -> bool:
    return any(path == folder or path.startswith(folder + os.sep) for folder in folders)


def _name_of(file: str) -> str:
    """Return the name of the module that is being loaded from the file; for a program the name of the file."""
    for name, module in list(sys.modules.items()):
        if _attribute(_attribute(module, "__spec__"), "origin") == file:
            return name
    return os.path.basename(file)  # noqa: PTH119


def _attribute(thing: object, name: str) -> object:
    """Return an attribute without triggering lazy imports."""
    try:
        return object.__getattribute__(thing, name)
    except Exception:  # noqa: BLE001 (sys.modules may contain any object)
        return None


def _write(*words: str) -> None:
    text = "".join(word + "\0" for word in words)
    flags = os.O_WRONLY | os.O_APPEND | os.O_CREAT | getattr(os, "O_CLOEXEC", 0)
    try:
        number = os.open(os.path.join(FOLDER, "loaded"), flags, 0o600)
    except OSError:
        return  # the measurement is over, or the process cannot open files
    try:
        os.write(number, text.encode("utf-8", "surrogateescape"))
    finally:
        os.close(number)


def give_way() -> None:
    """Restore the module path and load the next ``sitecustomize`` on it.

    Raises ImportError if there is none, as the interpreter expects.
    """
    sys.path[:] = [entry for entry in sys.path if os.path.abspath(entry) != FOLDER]
    sys.path_importer_cache.pop(FOLDER, None)
    from importlib.machinery import PathFinder

    spec = PathFinder.find_spec("sitecustomize", sys.path)
    if spec is None or spec.loader is None:
        raise ImportError("No module named 'sitecustomize'", name="sitecustomize")
    module = type(sys)("sitecustomize")
    module.__spec__, module.__file__, module.__loader__, module.__package__ = spec, spec.origin, spec.loader, ""
    sys.modules["sitecustomize"] = module
    spec.loader.exec_module(module)


if __name__ == "sitecustomize":
    # Interpreters without audit hooks run unchanged.
    if hasattr(sys, "addaudithook"):
        try:
            watch()
        except Exception as error:  # noqa: BLE001 (errors here must not affect the program)
            _write("broken", type(error).__name__, str(error))
    give_way()
