"""Record what a Python program executes and reads: code objects, files, look-ups and listings of a tree.

A driver of a suite imports this module, and creates one ``Recorder`` before any code of the tree is loaded. A recorder
follows the process until it ends, and its forked children, each of which keeps a record of its own. It sees code by
``sys.monitoring``, before Python 3.12 by a profile function; files, listings, processes and connections by audit
events; and look-ups by functions around those of ``os``. What it cannot see is named in the record.

The body of a module or class is code as well. Its statements that only give a value to a name, such as a function, a
constant or an import, are definitions of their own, so that those which nothing names can be left out.

SETTINGS is a JSON object: ``own`` are folders of the tree, ``shared`` are folders inside them that do not belong to it.

The measured interpreter runs this file, so it uses only the standard library, and nothing newer than Python 3.8.
"""

# ruff: noqa: PTH100, PTH110, PTH116, PTH117, PTH118, PTH120, PTH123, PTH208

from __future__ import annotations

import bisect
import dis
import gc
import hashlib
import os
import re
import stat
import sys
import sysconfig
import threading
import time
from typing import Any, Callable, Iterator  # noqa: UP035

ABSENT = ""
GENERATED = "<generated>"
# Numbers of calls in the first and the second part of a traced benchmark, and the seconds of CPU time for the second
# part. A busy machine must not shorten it, so its elapsed time may be SLOWER times as long.
FEW, MORE, LONGEST, SLOWER = 2, 18, 0.5, 20
# What timeit compiles around a statement, anew for each timer.
_OF_TIMEIT = "<timeit-src>"
# They compile functions from their bytecode, so a call of the compiled code is not a call that Python reports.
COMPILERS = ("numba", "torch._dynamo", "cppyy", "pyximport", "pythran")
# These read a module's source to execute it. Anyone else who opens a source file reads it as data.
_LOADERS = ("<frozen importlib", "<frozen zipimport", "<frozen runpy", "importlib", "_pytest/assertion/rewrite.py")
_READERS = ("pathlib", "io.py", "codecs.py", "tokenize.py", "_io")
# Values that follow from the positions of statements and from the bodies of functions; they are set in class bodies.
_OF_POSITIONS = {"__doc__", "__firstlineno__", "__static_attributes__"}
# In the body of a module or class, instructions that only make a value.
_PURE = {
    *("LOAD_CONST", "LOAD_SMALL_INT", "LOAD_NAME", "LOAD_ATTR", "BUILD_TUPLE", "BUILD_LIST", "BUILD_SET", "BUILD_MAP"),
    *("BUILD_CONST_KEY_MAP", "BUILD_STRING", "LIST_EXTEND", "SET_UPDATE", "BINARY_SUBSCR", "MAKE_FUNCTION"),
    *("SET_FUNCTION_ATTRIBUTE", "IMPORT_FROM"),
}
_SILENT = {"CACHE", "EXTENDED_ARG", "NOP", "RESUME", "SETUP_ANNOTATIONS"}
_CALLS = {"PRECALL", "CALL", "CALL_FUNCTION"}
# Decorators that do not call the function.
_PLAIN_DECORATORS = {"property", "staticmethod", "classmethod"}
# Names with double underscores that Python itself does not look up.
_PLAIN_DUNDERS = {"__all__", "__version__", "__author__", "__license__"}
# Methods that built-in functions call, so that no code names them.
_CALLED_FROM_C = {
    *("keys", "items", "read", "readline", "readinto", "write", "flush", "close", "fileno", "seek", "tell", "mode"),
    *(
        "send",
        "throw",
        "mro",
        "find_spec",
        "exec_module",
        "create_module",
        "default",
        "persistent_id",
        "dispatch_table",
    ),
}
TYPE_CHECKING = "TYPE_CHECKING"
_STORES = {"STORE_NAME", "IMPORT_NAME"}
# Texts that may be put together with others to a name.
_BEGINNING = re.compile("[A-Za-z][A-Za-z0-9_]+_")
_END = re.compile("_[A-Za-z0-9_]+")
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
        self._definitions: dict[str, dict[str, Any]] = {}
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

    def repeat(self, run: Callable[[int], None]) -> None:
        """Call a benchmark a few times and then more often, which must not reach other functions.

        ``run`` calls it as many times as it is told.
        """
        began, computed = time.monotonic(), time.process_time()
        run(FEW)
        gc.collect()
        before = self.names()
        each = max(time.process_time() - computed, (time.monotonic() - began) / SLOWER) / FEW
        run(max(FEW, min(MORE, int(LONGEST / max(each, 1e-9)))))
        gc.collect()
        new = sorted(self.names() - before)
        if new:
            self.unseen["later iterations run further functions: " + ", ".join(new[:3])] = None

    def fork(self) -> int:
        """Fork the process, without a note that it started one."""
        self._paused = True
        try:
            return os.fork()
        finally:
            self._paused = False

    def record(self) -> dict[str, Any]:
        """Return the record as plain data, and record no more.

        ``definitions`` are those of the bodies that ran. ``named`` are the names that the other code contains: that of
        the ``tree``, the ``texts`` of libraries, and the other names of ``libraries``. A part of a name has ``*``. A
        later record leaves out names of which no definition is known.
        """
        self._paused = True
        with_docs = any(self._reads_docs(code) for code in list(self.codes.values()) if self.place(code.co_filename))
        functions: dict[str, set[str]] = {}
        loaded: dict[str, str] = {}
        lines: dict[str, set[int]] = {}
        named: dict[str, set[str]] = {"tree": set(), "texts": set(), "libraries": set()}
        definitions: dict[str, dict[str, Any]] = {}
        is_first = not self._definitions
        for code in list(self.codes.values()):
            place = self.place(code.co_filename)
            if place in ("", GENERATED) or code.co_flags & _OPTIMIZED:
                named["tree" if place else "libraries"].update(code.co_names)
                named["tree" if place else "texts"].update(_texts(code.co_consts))
                # What runs may have been called by built-in functions, which name nothing.
                named["tree"].update([code.co_name] if place else ())
                found = digest(code, with_docs) if place else ""
            else:
                body = Body(code, with_docs)
                named["tree"] |= body.names
                scope = place + ":" + ("" if code.co_name == "<module>" else _name(code) + ".")
                definitions.update((scope + name, about) for name, about in body.definitions.items())
                found = body.digest
            if place:
                functions.setdefault(place + ":" + _name(code), set()).add(found)
                if place == GENERATED:
                    continue
                lines.setdefault(place, set()).update(line for _, line in dis.findlinestarts(code) if line)
                if place not in loaded:
                    loaded[place] = content(code.co_filename)
        self._definitions.update(definitions)
        known = {name for key, about in self._definitions.items() for name in (_last(key), *about["uses"])}
        kept = {
            of: sorted(each for each in found if is_first or each in known or "*" in each)
            for of, found in named.items()
        }
        for name in COMPILERS:
            if name in sys.modules:
                self.unseen[name + " compiles functions"] = None
        return {
            "loaded": loaded,
            "inputs": dict(self.inputs),
            "functions": {name: sorted(found) for name, found in sorted(functions.items())},
            "lines": {place: sorted(found) for place, found in lines.items()},
            "definitions": definitions,
            "named": kept,
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


class Body:
    """The code of the body of a module or class: its definitions, and what it does besides."""

    def __init__(self, code: Any, with_docs: bool) -> None:
        """``with_docs``: whether docstrings count."""
        self.definitions: dict[str, dict[str, Any]] = {}
        """By name, the ``digest`` of a definition, the names that it ``uses``, and its kind (``of``)."""
        self.names: set[str] = set()
        """The names that all the rest uses."""
        self._items = [item for item in dis.get_instructions(code) if item.opname not in _SILENT]
        self._is_module = code.co_name == "<module>"
        self._skipped = set() if with_docs else _OF_POSITIONS
        # Without this function, Python keeps handlers in blocks, which are jumps.
        handlers = [tuple(each)[:3] for each in getattr(dis, "_parse_exception_table", lambda _: ())(code)]
        idle = list(_for_type_checkers(self._items))
        self._items = [item for item in self._items if not _is_in(item.offset, idle)]
        handlers = [each for each in handlers if not _is_in(each[0], idle)]
        self._ranges = [(start, max(end, target)) for start, end, target in handlers]
        jumps = {*dis.hasjrel, *dis.hasjabs}
        self._ranges += [_between(item.offset, item.argval) for item in self._items if item.opcode in jumps]
        left: set[int] = set()
        statements = [each for each in self._statements() if not self._is_conditional(each[0])]
        for items, _ in statements:
            left.update(item.offset for item in items)
        kept = [item for item in self._items if item.offset not in left]
        self._kept = [item.offset for item in kept]
        for items, values in statements:
            for name, value in values:
                self._define(name, self._place(items[0].offset), value)
        for item in kept:
            # Names are rarely put together in a body, but slots often begin like the end of another name.
            self.names.update(name for name in _used(item) if "*" not in name)
        doc = next((item for item in code.co_consts[:1] if isinstance(item, str)), "") if with_docs else ""
        head = (code.co_flags & ~_DOCUMENTED, code.co_freevars, code.co_cellvars, doc)
        table = [[self._place(offset) for offset in each] for each in handlers]
        self.digest = _hashed(repr((head, table, [self._plain(item) for item in kept])))

    def _define(self, name: str, place: int, items: list[Any]) -> None:
        """Add a definition. ``place``: number of the instructions before it that are not definitions."""
        of = "class"
        if self._is_module:
            imports = any(item.opname == "IMPORT_NAME" for item in items)
            # Python's own code reads the list of public names only if code of the tree imports all of them.
            of = "import" if imports or name == "__all__" else "module"
        about = self.definitions.setdefault(name, {"digest": "", "uses": [], "of": of})
        # One that has several values counts as that which more code can name.
        about["of"] = min(of, about["of"], key=("class", "module", "import").index)
        about["digest"] = _hashed(repr((about["digest"], place, [self._plain(item) for item in items])))
        about["uses"] = sorted({*about["uses"], *(used for item in items for used in _used(item))})

    def _statements(self) -> Iterator[tuple[list[Any], list[tuple[str, list[Any]]]]]:
        """Yield the instructions of each definition, and its names with the instructions of their values."""
        items, begin, depth = self._items, 0, 0
        values: list[tuple[str, list[Any]]] = []
        for number, item in enumerate(items):
            if item.is_jump_target:
                begin, depth, values = number, 0, []
            end = 0
            if item.opname == "STORE_NAME" and depth == 2 and items[number - 1].opname == "IMPORT_FROM":
                values.append((item.argval, [items[begin], items[begin + 2], items[number - 1]]))
                depth = 1
            elif item.opname == "STORE_NAME" and depth == 1 and not values:
                end = self._with_annotation(number) + 1
                values = [(item.argval, items[begin:end])]
            elif item.opname == "POP_TOP" and depth == 1 and values:
                end = number + 1
            else:
                depth = self._depth(begin, number, depth)
                end = number + 1 if depth < 0 else 0
            if end:
                if depth > 0 and all(self._is_definition(name, value) for name, value in values):
                    yield items[begin:end], [each for each in values if each[0] not in self._skipped]
                begin, depth, values = end, 0, []

    def _depth(self, begin: int, number: int, depth: int) -> int:
        """Return the depth of the stack after an instruction; -1 if it can have an effect, or needs what was before.

        begin: number of the first instruction of the statement.
        """
        item = self._items[number]
        if item.opname in _PURE:
            return int(depth + dis.stack_effect(item.opcode, item.arg))
        if item.opname == "IMPORT_NAME" and depth == 2 and number == begin + 2 and self._is_harmless(begin):
            return 1
        if item.opname in _CALLS and self._is_decorated(begin, number):
            return 2 if item.opname == "PRECALL" else 1
        return -1

    def _is_definition(self, name: str, value: list[Any]) -> bool:
        if name in self._skipped:
            return True
        if name in _CALLED_FROM_C or (name[:2] == name[-2:] == "__" and name not in _PLAIN_DUNDERS):
            return False
        # A value in a class can be a field, or a member of an enumeration.
        return self._is_module or any(item.opname == "MAKE_FUNCTION" for item in value)

    def _is_harmless(self, begin: int) -> bool:
        """Return whether an import is of the tree, whose code is recorded, or of the standard library."""
        level, module = self._items[begin].argval, self._items[begin + 2].argval
        return level != 0 or module.partition(".")[0] in getattr(sys, "stdlib_module_names", ())

    def _is_decorated(self, begin: int, number: int) -> bool:
        first, before = self._items[begin], self._items[number - 1].opname
        named = first.opname == "LOAD_NAME" and first.argval in _PLAIN_DECORATORS
        return named and before in ("MAKE_FUNCTION", "SET_FUNCTION_ATTRIBUTE", "PRECALL")

    def _with_annotation(self, number: int) -> int:
        """Return the last instruction of an assignment in a module, which may have an annotation."""
        for last in range(number + 1, len(self._items) if self._is_module else 0):
            op = self._items[last].opname
            if op == "STORE_SUBSCR":
                return last if self._items[last - 2].argval == "__annotations__" else number
            if op not in _PURE:
                break
        return number

    def _is_conditional(self, items: list[Any]) -> bool:
        return any(low < items[0].offset < high or low < items[-1].offset < high for low, high in self._ranges)

    def _place(self, offset: int) -> int:
        """Return how many of the kept instructions come before an offset."""
        return bisect.bisect_left(self._kept, offset)

    def _plain(self, item: Any) -> tuple[str, Any]:
        """Return an instruction without numbers that depend on other instructions."""
        if item.opcode in _CONSTANTS:
            return (item.opname, _constant(item.argval))
        if item.opcode in dis.hasjrel or item.opcode in dis.hasjabs:
            return (item.opname, self._place(item.argval))
        symbolic = item.opcode in dis.hasname or item.opcode in dis.haslocal or item.opcode in dis.hasfree
        return (item.opname, item.argrepr if symbolic else item.arg)


def _for_type_checkers(items: list[Any]) -> Iterator[tuple[int, int]]:
    """Yield the offsets from which, and up to which, code is skipped because typing.TYPE_CHECKING is false."""
    if getattr(sys.modules.get("typing"), "TYPE_CHECKING", True):
        return
    for number, item in enumerate(items):
        before = items[number - 1]
        is_false = before.opname == "IMPORT_FROM" or (before.opname == "LOAD_CONST" and before.argval is False)
        if item.opname == "STORE_NAME" and item.argval == TYPE_CHECKING and not is_false:
            return
    for number, item in enumerate(items):
        first, jump = number - (item.opname == "LOAD_ATTR"), number + 1
        if item.opname not in ("LOAD_NAME", "LOAD_ATTR") or item.argval != TYPE_CHECKING:
            continue
        if items[jump].opname == "TO_BOOL":
            jump += 1
        if (
            items[first].opname == "LOAD_NAME"
            and items[jump].opname.startswith("POP_JUMP")
            and (items[jump].opname.endswith("IF_FALSE"))
        ):
            yield items[first].offset, items[jump].argval


def _is_in(offset: int, ranges: list[tuple[int, int]]) -> bool:
    return any(begin <= offset < end for begin, end in ranges)


def _between(one: int, other: int) -> tuple[int, int]:
    """Return the range between a jump and its target. That of a loop begins before the target."""
    return (one, other) if one < other else (other - 1, one)


def _used(item: Any) -> Iterator[str]:
    """Yield the names that an instruction of a body uses."""
    if item.opcode in dis.hasname:
        if item.opname not in _STORES:
            yield item.argval
    elif item.opcode in _CONSTANTS:
        yield from _texts([item.argval])
    elif item.opname == "IMPORT_STAR" or (item.opname == "CALL_INTRINSIC_1" and item.arg == _IMPORT_STAR):
        yield "__all__"


def _texts(values: Any, parts: bool = True) -> Iterator[str]:
    """Yield the texts among constants that can be a name, and those that can be a part of one with ``*``.

    ``parts``: False in a tuple, since lists of names, such as slots, have whole ones.
    """
    for value in values:
        if isinstance(value, (tuple, frozenset)):
            yield from _texts(value, parts=False)
        elif isinstance(value, str):
            if value.isidentifier():
                yield value
            if not parts:
                continue
            if _BEGINNING.fullmatch(value):
                yield value + "*"
            if _END.fullmatch(value):
                yield "*" + value


def _last(key: str) -> str:
    return key.rpartition(":")[2].rpartition(".")[2]


def _instructions(code: Any, with_docs: bool) -> list[tuple[int, Any]]:
    """Return the instructions of a code object, with constants by value."""
    found: list[tuple[int, Any]] = []
    extended, cache = 0, dis.opmap.get("CACHE", -1)
    raw = code.co_code
    for place in range(0, len(raw), 2):
        op, arg = raw[place], raw[place + 1] | extended
        extended = arg << 8 if op == dis.EXTENDED_ARG else 0
        if op in (dis.EXTENDED_ARG, cache):
            continue
        found.append((op, _constant(code.co_consts[arg]) if op in _CONSTANTS else arg))
    return found


_CONSTANTS = frozenset(dis.hasconst)
# The number of the intrinsic function since 3.12.
_IMPORT_STAR = 2


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
