"""Record what a Python program executes and reads: code objects, files, look-ups and listings of a tree.

A driver of a suite imports this module, and creates one ``Recorder`` before any code of the tree is loaded. A recorder
follows the process until it ends, and its forked children, each of which keeps a record of its own. It sees code by
``sys.monitoring``, before Python 3.12 by a profile function; files, listings, processes and connections by audit
events; and look-ups by functions around those of ``os``. What it cannot see is named in the record.

SETTINGS is a JSON object: ``own`` are folders of the tree, ``shared`` are folders inside them that do not belong to it.

The measured interpreter runs this file, so it uses only the standard library, and nothing newer than Python 3.8.
"""

# ruff: noqa: PTH100, PTH110, PTH116, PTH117, PTH118, PTH120, PTH123, PTH208

from __future__ import annotations

import dis
import hashlib
import os
import stat
import sys
import sysconfig
import threading
from typing import Any, Iterator  # noqa: UP035

ABSENT = ""
GENERATED = "<generated>"
# What timeit compiles around a statement, anew for each timer.
_OF_TIMEIT = "<timeit-src>"
# They compile functions from their bytecode, so a call of the compiled code is not a call that Python reports.
COMPILERS = ("numba", "torch._dynamo", "cppyy", "pyximport", "pythran")
# These read a module's source to execute it. Anyone else who opens a source file reads it as data.
_LOADERS = ("<frozen importlib", "<frozen zipimport", "<frozen runpy", "importlib", "_pytest/assertion/rewrite.py")
_READERS = ("pathlib", "io.py", "codecs.py", "tokenize.py", "_io")
# Values that follow from the positions of statements and from the bodies of functions; they are set in class bodies.
_OF_POSITIONS = {"__doc__", "__firstlineno__", "__static_attributes__"}
_OPTIMIZED = 0x1
_DOCUMENTED = 0x4000000
_WRITES = os.O_WRONLY | os.O_RDWR
_REFUSED = {
    "os.fork": "starts processes",
    "os.forkpty": "starts processes",
    "os.exec": "starts programs",
    "os.posix_spawn": "starts programs",
    "os.spawn": "starts programs",
    "os.system": "starts programs",
    "subprocess.Popen": "starts programs",
    "socket.connect": "talks to other processes",
    "socket.sendto": "talks to other processes",
    "socket.bind": "talks to other processes",
}


class Recorder:
    """The record of this process."""

    def __init__(self, settings: dict[str, Any]) -> None:
        self.own = [_folder(path) for path in settings["own"]]
        self.shared = [_folder(path) for path in settings["shared"]]
        paths = {*sysconfig.get_paths().values(), os.path.dirname(os.__file__), os.path.dirname(__file__)}
        paths |= {path for path in sys.path if path.endswith(("site-packages", "dist-packages"))}
        self.libraries = [_folder(path) for path in paths if path]
        self.codes: dict[int, Any] = {}
        self.inputs: dict[str, str] = {}
        self.written: set[str] = set()
        # Files that the program wrote to, and that may still have content from before.
        self.kept: set[str] = set()
        self.unseen: dict[str, None] = {}
        self.unknown: dict[str, None] = {}
        self._digests: dict[int, tuple[str, str]] = {}
        self._places: dict[str, str] = {}
        self._local = threading.local()
        self._paused = False
        if sys.implementation.name != "cpython":
            self.unseen[sys.implementation.name + " compiles functions"] = None

    def start(self) -> None:
        """Begin to record. It cannot be ended."""
        for name, module in list(sys.modules.items()):
            file = getattr(module, "__file__", None)
            if isinstance(file, str) and self.inside(os.path.realpath(file)) is not None and self.place(file):
                self.unknown[f"module {name} was loaded before it could be recorded"] = None
        if hasattr(sys, "monitoring"):
            self._monitor()
        else:
            threading.setprofile(self._profile)
        self.follow()
        self._watch_lookups()
        sys.addaudithook(self._audit)

    def follow(self) -> None:
        """Record this thread again, after a library has taken the profile function away."""
        if not hasattr(sys, "monitoring"):
            self._paused, before = True, self._paused
            sys.setprofile(self._profile)
            self._paused = before

    def begin_part(self) -> None:
        """Record all functions again, also those that ran before."""
        if hasattr(sys, "monitoring"):
            sys.monitoring.restart_events()
        self.follow()

    def fork(self) -> int:
        """Fork the process, without a note that it started one."""
        self._paused = True
        try:
            return os.fork()
        finally:
            self._paused = False

    def record(self) -> dict[str, Any]:
        """Return the record as plain data, and record no more."""
        self._paused = True
        with_docs = any(self._reads_docs(code) for code in list(self.codes.values()) if self.place(code.co_filename))
        functions: dict[str, set[str]] = {}
        loaded: dict[str, str] = {}
        for code in list(self.codes.values()):
            place = self.place(code.co_filename)
            if place:
                functions.setdefault(place + ":" + _name(code), set()).add(digest(code, with_docs))
                if place != GENERATED and place not in loaded:
                    loaded[place] = content(code.co_filename)
        for name in COMPILERS:
            if name in sys.modules:
                self.unseen[name + " compiles functions"] = None
        return {
            "loaded": loaded,
            "inputs": dict(self.inputs),
            "functions": {name: sorted(found) for name, found in sorted(functions.items())},
            "unseen": list(self.unseen),
            "unknown": list(self.unknown),
        }

    def names(self) -> set[str]:
        """Return the names of the functions of the tree, or generated ones, that ran so far; not those of timeit."""
        found = [code for code in list(self.codes.values()) if code.co_filename != _OF_TIMEIT]
        return {_name(code) for code in found if self.place(code.co_filename)}

    def place(self, file: str) -> str:
        """Return a file's path relative to the tree, GENERATED for code without a file, '' for code of libraries."""
        known = self._places.get(file)
        if known is None:
            known = self._places[file] = self._find(file)
        return known

    def _find(self, file: str) -> str:
        if file.startswith("<frozen "):
            return ""
        if file[:1] == "<" or not os.path.isabs(file):
            return GENERATED
        inside = self.inside(os.path.realpath(file))
        if inside is not None:
            return inside
        return "" if _is_below(os.path.realpath(file), self.libraries) else GENERATED

    def inside(self, path: str) -> str | None:
        """Return a real path relative to the tree; None if it is outside of the tree."""
        if _is_below(path, self.shared):
            return None
        folder = next((folder for folder in self.own if _is_below(path, [folder])), None)
        return None if folder is None else path[len(folder) :] or "."

    def _reads_docs(self, code: Any) -> bool:
        return bool(code.co_flags & _OPTIMIZED) and "__doc__" in code.co_names

    def _monitor(self) -> None:
        monitoring = sys.monitoring  # type: ignore[attr-defined,unused-ignore]
        tool = next(number for number in (4, 3, 0, 1, 2, 5) if monitoring.get_tool(number) is None)
        monitoring.use_tool_id(tool, "perfflow")
        codes, disable = self.codes, monitoring.DISABLE

        def began(code: Any, _offset: int) -> Any:
            codes[id(code)] = code
            return disable

        monitoring.register_callback(tool, monitoring.events.PY_START, began)
        monitoring.set_events(tool, monitoring.events.PY_START)

    def _profile(self, frame: Any, event: str, _value: Any) -> None:
        if event == "call":
            code = frame.f_code
            self.codes[id(code)] = code

    def _watch_lookups(self) -> None:
        for name in ("stat", "lstat", "access", "readlink"):
            setattr(os, name, self._watched(getattr(os, name)))

    def _watched(self, function: Any) -> Any:
        """Return a function of ``os`` that notes the path which it looks up, and stays what it was in all else."""

        def watched(path: Any, *args: Any, **names: Any) -> Any:
            self._look_up(path)
            return function(path, *args, **names)

        watched.__name__, watched.__doc__ = function.__name__, function.__doc__
        for group in (os.supports_dir_fd, os.supports_fd, os.supports_follow_symlinks, os.supports_effective_ids):
            if function in group:
                group.add(watched)
        return watched

    def _audit(self, event: str, args: Any) -> None:
        """Handle an audit event. Errors never reach the program."""
        if self._paused or getattr(self._local, "busy", False):
            return
        self._local.busy = True
        try:
            self._note(event, args)
        except Exception as error:  # noqa: BLE001 (an exception would be raised in the program)
            self.unknown[f"perfflow's recorder failed: {type(error).__name__}: {error}"] = None
        finally:
            self._local.busy = False

    def _note(self, event: str, args: Any) -> None:
        if event == "open":
            self._opened(args[0], args[1], args[2])
        elif event in ("os.listdir", "os.scandir"):
            self._listed(args[0])
        elif event == "import":
            if args[1]:
                self._read(args[1])
        elif event in ("ctypes.dlopen", "sqlite3.connect"):
            if isinstance(args[0], (str, bytes)) and os.sep in os.fsdecode(args[0]):
                self._read(args[0])
        elif event == "sys.setprofile":
            if not hasattr(sys, "monitoring") and next(_frames()).f_code.co_filename != threading.__file__:
                self.unseen["it uses a profile function of its own"] = None
        elif event in _REFUSED and not _is_local(event, args) and self._is_asked():
            self.unknown["it " + _REFUSED[event] + _detail(event, args)] = None

    def _opened(self, path: Any, mode: Any, flags: Any) -> None:
        if not isinstance(path, (str, bytes)):
            return
        real = os.path.realpath(os.fsdecode(path))
        if isinstance(mode, str):
            writes, reads = not {"w", "x"}.isdisjoint(mode), False
        else:
            access = (flags or 0) & os.O_ACCMODE
            writes, reads = bool(access & _WRITES), access == os.O_RDWR and os.path.exists(real)
            # What the program itself made has nothing from before.
            is_kept = not (flags or 0) & os.O_TRUNC and real not in self.written and os.path.exists(real)
            if access == os.O_WRONLY and is_kept:
                self.kept.add(real)
        if writes and not reads:
            self.written.add(real)
        elif not (real.endswith((".py", ".pyc")) and self._is_loading()):
            self._read(real)

    def _read(self, path: Any) -> None:
        """Note the content of a file that is read, unless the program itself wrote it."""
        real = os.path.realpath(os.fsdecode(path))
        name = self._input(real)
        if name and real in self.kept:
            self.unknown["it changes " + name] = None
        if name and name not in self.inputs and real not in self.written:
            self.inputs[name] = content(real)

    def _input(self, real: str) -> str:
        """Return the name of an input, '' for a file that is the same on both sides: of libraries or the system."""
        if os.sep + "__pycache__" + os.sep in real or real.startswith(("/proc/", "/sys/", "/dev/")):
            return ""
        inside = self.inside(real)
        if inside is not None:
            return inside
        return "" if _is_below(real, self.libraries) or not os.path.exists(real) else real

    def _listed(self, path: Any) -> None:
        if isinstance(path, int) or not self._is_asked():
            return
        real = os.path.realpath(os.fsdecode(path or "."))
        inside = self.inside(real)
        if inside is not None and inside + "/" not in self.inputs:
            names = sorted(name for name in os.listdir(real) if name != "__pycache__")
            self.inputs[inside + "/"] = _hashed("\0".join(names))

    def _look_up(self, path: Any) -> None:
        if self._paused or isinstance(path, int) or getattr(self._local, "busy", False):
            return
        self._local.busy = True
        try:
            text = os.path.abspath(os.fsdecode(path))
            if not _is_below(text, self.own) and not _is_below(os.path.realpath(text), self.own):
                return
            name = self.inside(os.path.realpath(text))
            if name is not None and name + "?" not in self.inputs and text not in self.written and self._is_asked():
                self.inputs[name + "?"] = _kind(text)
        except (TypeError, ValueError, OSError):
            return  # the function itself reports it
        finally:
            self._local.busy = False

    def _is_asked(self) -> bool:
        """Return whether code of the tree is at work, not only an import or a test runner that looks for files."""
        frames = list(_frames())
        if not frames or frames[0].f_code.co_filename.startswith("<frozen importlib"):
            return False
        if threading.current_thread() is not threading.main_thread():
            return True
        return any(self.place(frame.f_code.co_filename) for frame in frames)

    @staticmethod
    def _is_loading() -> bool:
        """Return whether a source file is opened to be executed."""
        for frame in _frames():
            file = frame.f_code.co_filename
            if not any(name in file for name in _READERS):
                return any(name in file for name in _LOADERS)
        return False


def _frames() -> Iterator[Any]:
    """Yield the frames of the program, the innermost first."""
    frame: Any = sys._getframe(1)  # noqa: SLF001
    while frame is not None:
        if frame.f_code.co_filename != __file__:
            yield frame
        frame = frame.f_back


def digest(code: Any, with_docs: bool = False) -> str:
    """Return a hash of what a code object does, without positions, docstrings and the bodies of inner functions."""
    exceptions = getattr(code, "co_exceptiontable", b"")
    head = (code.co_argcount, code.co_posonlyargcount, code.co_kwonlyargcount, code.co_flags & ~_DOCUMENTED)
    names = (code.co_names, code.co_varnames, code.co_freevars, code.co_cellvars)
    doc = next((item for item in code.co_consts[:1] if isinstance(item, str)), "") if with_docs else ""
    return _hashed(repr((head, names, exceptions, list(_instructions(code, with_docs)), doc)))


def _instructions(code: Any, with_docs: bool) -> list[tuple[int, Any]]:
    """Return the instructions of a code object, with constants by value."""
    found: list[tuple[int, Any]] = []
    extended, cache, store = 0, dis.opmap.get("CACHE", -1), dis.opmap["STORE_NAME"]
    skipped = set() if with_docs else _OF_POSITIONS
    raw = code.co_code
    for place in range(0, len(raw), 2):
        op, arg = raw[place], raw[place + 1] | extended
        extended = arg << 8 if op == dis.EXTENDED_ARG else 0
        if op in (dis.EXTENDED_ARG, cache):
            continue
        if op == store and found and code.co_names[arg] in skipped:
            found.pop()
            continue
        found.append((op, _constant(code.co_consts[arg]) if op in _CONSTANTS else arg))
    return found


_CONSTANTS = frozenset(dis.hasconst)


def _constant(value: Any) -> Any:
    if hasattr(value, "co_code"):
        return ("code", _name(value))
    if isinstance(value, frozenset):
        return ("frozenset", sorted(map(repr, value)))
    return (type(value).__name__, repr(value))


def _name(code: Any) -> str:
    return str(getattr(code, "co_qualname", code.co_name))


def content(path: str) -> str:
    """Return the hash of a file's content, ABSENT if there is none."""
    try:
        if not stat.S_ISREG(os.stat(path).st_mode):
            return "not a file"
        found = hashlib.sha256()
        with open(path, "rb") as stream:
            for block in iter(lambda: stream.read(1 << 20), b""):
                found.update(block)
    except OSError:
        return ABSENT
    return found.hexdigest()[:32]


def _hashed(text: str) -> str:
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:32]


def _kind(path: str) -> str:
    """Return whether a path is a folder, or a file and its size; ABSENT if it does not exist."""
    try:
        status = os.stat(path)
    except OSError:
        return ABSENT
    if stat.S_ISDIR(status.st_mode):
        return "folder"
    return "file" if path.endswith(".py") else f"file of {status.st_size} bytes"


def _is_local(event: str, args: Any) -> bool:
    """Return whether a socket is only bound to this process, as event loops do."""
    return event == "socket.bind" and args[1] in (("127.0.0.1", 0), ("::1", 0, 0, 0), "")


def _detail(event: str, args: Any) -> str:
    if event in ("subprocess.Popen", "os.exec", "os.posix_spawn"):
        return ": " + os.path.basename(os.fsdecode(args[0] or (args[1] or [b"?"])[0]))  # noqa: PTH119
    return ""


def _folder(path: str) -> str:
    return os.path.join(os.path.realpath(path), "")


def _is_below(path: str, folders: list[str]) -> bool:
    return any(path.startswith(folder) or path + os.sep == folder for folder in folders)
