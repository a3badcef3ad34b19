"""Link an executable again with any number of different code layouts.

- ``Relinker`` repeats the recorded link of an executable.
- ``require_fit`` rejects links whose layout was chosen by their author.
- ``padding_source`` makes padding sections, with which a small program's functions start at each slot of a cache line
  equally often.
- ``recording`` prepares the environment of a build whose links are recorded; ``forget`` makes a build link again.
"""

from __future__ import annotations

import filecmp
import mmap
import os
import re
import sys
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from secrets import token_hex
from tempfile import TemporaryDirectory

from platformdirs import user_cache_path

from perfflow.execute.layouts import driver_arguments
from perfflow.execute.layouts.link_command import KeepIn, LinkCommand, Linker, LinkFailedError, candidates, prepared
from perfflow.execute.layouts.recorded_link import Input, RecordedLink, find
from perfflow.execute.layouts.refusal import LayoutsRefusedError

_MACHINE = ("-m32", "-m64", "-mx32", "-mabi=", "--target=", "-march=", "--sysroot=")
_BITCODE = b"BC\xc0\xde"
_GCC_BITCODE = b".gnu.lto_"


@dataclass(frozen=True)
class Relinker:
    """Links one executable with any number of layouts.

    ``seconds`` is the duration of one link. The functions are those of the build, in another order, with 32 padding
    sections between them.
    """

    seconds: float
    linker: Linker
    _inputs: Mapping[Path, Input]
    _padding: str

    def link(self, seed: int, output: Path) -> None:
        """Write the executable with the layout of ``seed`` (1 or more). The same seed gives the same bytes.

        Raises LayoutsRefusedError if an input has changed or the linker fails.
        """
        if seed < 1:
            raise ValueError(f"seed {seed} is below 1")  # 0 and -1 mean something else to lld.
        if changed := [path for path, recorded in self._inputs.items() if not recorded.is_at(path)]:
            raise LayoutsRefusedError(f"{changed[0]} has changed since it was linked: build it again")
        try:
            with TemporaryDirectory(prefix=".perfflow-", dir=output.parent) as folder:
                self.linker.link(seed, self._padding, Path(folder)).replace(output)
        except (LinkFailedError, OSError) as error:
            raise LayoutsRefusedError(f"{output.name} could not be linked again: {error}") from None


def relinker(executable: Path, recordings: Path, work: Path, keep_in: KeepIn | None = None) -> Relinker:
    """Return the relinker of an executable, based on the link that was recorded when it was built.

    work: a folder for the relinker's files, which must exist as long as the relinker is used.
    keep_in: puts the command of a link into a sandbox.
    Raises LayoutsRefusedError if no link was recorded, its author chose the layout, a repeated link does not give the
    same bytes, or no linker can change the order.
    """
    executable, recordings, work = executable.absolute(), recordings.absolute(), work.absolute()
    work.mkdir(parents=True, exist_ok=True)
    link = find(executable, recordings)
    require_fit(link, recordings)
    arguments, watched = link.secured(work)
    command = prepared(link, arguments, work, keep_in)
    pad = _padding(command, work)
    with TemporaryDirectory(prefix="trial-", dir=work) as folder:
        trial = Path(folder)
        _require_identical(command, executable, trial / "again")
        reasons = []
        for linker in candidates(command, only_own=_is_optimized_at_link(command)):
            try:
                return _checked(linker, watched, pad, trial / linker.kind.name)
            except LinkFailedError as error:
                reasons.append(f"{linker.name}: {error}")
    raise LayoutsRefusedError(
        f"no linker could place the functions of {executable.name} in another order"
        f" ({'; '.join(reasons) or 'no known linker found'}): install lld (apt-get install lld)"
    )


def _require_identical(command: LinkCommand, executable: Path, place: Path) -> None:
    """Raise LayoutsRefusedError unless an unchanged link reproduces the executable byte for byte."""
    try:
        again = command.run(place)
    except LinkFailedError as error:
        raise LayoutsRefusedError(f"{executable.name} could not be linked again: {error}") from None
    if not filecmp.cmp(again, executable, shallow=False):
        raise LayoutsRefusedError(
            f"linking {executable.name} again gives different bytes than its build did: make the build reproducible"
            " (no time, random value or path of an object in the program)"
        )


def _padding(command: LinkCommand, work: Path) -> str:
    source, built = work / "padding.s", work / "padding.o"
    source.write_text(padding_source())
    machine = [word for word in command.arguments if word.startswith(_MACHINE)]
    try:
        command.start([*machine, "-c", str(source), "-o", str(built)])
    except LinkFailedError as error:
        raise LayoutsRefusedError(f"the padding between functions could not be assembled: {error}") from None
    return str(built)


def _checked(linker: Linker, watched: Mapping[Path, Input], pad: str, place: Path) -> Relinker:
    """Return the relinker after checking that the seed determines the bytes. Raises LinkFailedError."""
    linker = linker.with_sections(pad, place)
    started = time.perf_counter()
    first = linker.link(1, pad, place / "1")
    seconds = time.perf_counter() - started
    if not filecmp.cmp(first, linker.link(1, pad, place / "1-again"), shallow=False):
        raise LinkFailedError("the same seed gave different bytes")
    if filecmp.cmp(first, linker.link(2, pad, place / "2"), shallow=False):
        raise LinkFailedError("different seeds gave the same bytes")
    return Relinker(seconds, linker, watched, pad)


def _is_optimized_at_link(command: LinkCommand) -> bool:
    """Return whether the link compiles (LTO). Another linker would generate other code, so it cannot be used."""
    if any(word.startswith("-flto") for word in command.arguments):
        return True
    return any(_holds_bitcode(command.folder / path) for path in driver_arguments.inputs(command.arguments))


def _holds_bitcode(path: Path) -> bool:
    with (
        suppress(OSError, ValueError),
        path.open("rb") as file,
        mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as content,
    ):
        return content[:4] == _BITCODE or content.find(_GCC_BITCODE) >= 0
    return False


_PROFILES = re.compile(
    r"-f(profile-use|branch-probabilities|auto-profile|profile-instr-use|profile-sample-use)(=|$)|\.profdata\b"
)
_ORDERS = re.compile(r"-{1,2}(section-ordering-file|symbol-ordering-file|call-graph-ordering-file|shuffle-sections)\b")
_SCRIPTS = re.compile(r"(-T(?!text|data|bss|rodata|ldata).*|-{1,2}(script|default-script|dT)(=.*)?)$")
_BARE = "-nostdlib"


def require_fit(link: RecordedLink, recordings: Path) -> None:
    """Raise LayoutsRefusedError if shuffled functions would not represent the program that is shipped."""
    name = link.output.name
    words = _linker_words(link.arguments)
    profile = link.profile or next((word for word in words if _PROFILES.search(word)), "")
    if not profile and (recordings / "profile-guided").exists():
        profile = "-fprofile-use"
    if profile:
        raise LayoutsRefusedError(
            f"{name} is built with a profile ({profile}), which orders its functions: measure a build without a profile"
        )
    if order := next((word for word in words if _ORDERS.match(word)), ""):
        raise LayoutsRefusedError(f"{name} is linked with its own function order ({order}): build it without this")
    if script := next((word for word in words if _is_script(word)), ""):
        raise LayoutsRefusedError(f"{name} is linked with its own linker script ({script}): build it without it")
    if _BARE in words:
        raise LayoutsRefusedError(
            f"{name} is linked with {_BARE}, without the system's start-up code: build it without this option"
        )


def _linker_words(arguments: Sequence[str]) -> list[str]:
    """Return the arguments, with each linker argument of ``-Wl,`` as a separate word."""
    return [part for word in arguments for part in (word.split(",")[1:] if word.startswith("-Wl,") else [word])]


def _is_script(word: str) -> bool:
    return bool(_SCRIPTS.match(word)) or word.endswith((".ld", ".lds"))


_SECTIONS, _STEP, _SIZES = 32, 16, 4


def padding_source() -> str:
    """Return assembly with 32 sections of 16 to 64 bytes. The flag "R" keeps them although nothing refers to them.

    16 bytes is the alignment that compilers use for functions.
    """
    sections = [
        f'.section .text.perfflow_padding_{number},"axR",%progbits\n.p2align 4\n.zero {_STEP * (1 + number % _SIZES)}\n'
        for number in range(_SECTIONS)
    ]
    return "".join(sections) + '.section .note.GNU-stack,"",%progbits\n'


_DRIVER = re.compile(r"([\w.]+-)*(cc|gcc|g\+\+|c\+\+|clang|clang\+\+)(-\d+(\.\d+)*)?")
_RECORDER = "perfflow-recorder"
"""Name of the script in the folder of recorders. The script recognizes such folders by this name."""


def recording(env: Mapping[str, str], recordings: Path) -> dict[str, str]:
    """Return the environment for a build step that records the links of executables into ``recordings``.

    A folder of wrappers for the compiler drivers comes first on PATH. It stays in the user's cache, because CMake and
    similar tools store the path of the compiler they found. Raises OSError if a folder cannot be created.
    """
    recordings = recordings.absolute()
    recordings.mkdir(parents=True, exist_ok=True)
    search = env.get("PATH", os.defpath)
    return {
        **env,
        "PATH": os.pathsep.join([str(_recorders(search)), search]),
        "PERFFLOW_LINK_RECORDINGS": str(recordings),
        "PERFFLOW_LINK_PYTHON": sys.executable,
        "PERFFLOW_LINK_RECORDER": str(Path(__file__).with_name("link_recorder.py")),
    }


def forget(executable: Path) -> None:
    """Remove a built executable and its second name in cargo's ``deps``, so that the next build links it again.

    cargo then compiles and links only the final crate; make and ninja only link.
    """
    for path in [*_twins(executable), executable]:
        path.unlink(missing_ok=True)


def _twins(executable: Path) -> list[Path]:
    """Return the files in ``deps`` beside the executable that are the same file or have the same content."""
    name = executable.name.replace("-", "_")
    if not executable.is_file():
        return []
    return [path for path in executable.parent.glob("deps/*") if _is_twin(path, name, executable)]


def _is_twin(path: Path, name: str, executable: Path) -> bool:
    with suppress(OSError):
        if path.samefile(executable):
            return True
        return path.name.startswith(f"{name}-") and not path.suffix and filecmp.cmp(path, executable, shallow=False)
    return False


def _recorders(search: str) -> Path:
    """Return the folder of recorders, with a link for each compiler driver on the search path."""
    folder = user_cache_path("perfflow").absolute() / "compilers"
    folder.mkdir(parents=True, exist_ok=True)
    _install(Path(__file__).with_name("recorder.sh").read_bytes(), folder / _RECORDER)
    for name in _drivers(search):
        with suppress(FileExistsError):
            (folder / name).symlink_to(_RECORDER)
    return folder


def _install(script: bytes, place: Path) -> None:
    """Write the script and rename it into place, because another build may be starting it."""
    with suppress(FileNotFoundError):
        if place.read_bytes() == script and os.access(place, os.X_OK):
            return
    fresh = place.with_name(f"{_RECORDER}.{token_hex(4)}")
    fresh.write_bytes(script)
    fresh.chmod(0o755)
    fresh.replace(place)


def _drivers(search: str) -> set[str]:
    found: set[str] = set()
    for folder in search.split(os.pathsep):
        with suppress(OSError):
            found.update(path.name for path in Path(folder).iterdir() if _DRIVER.fullmatch(path.name))
    return found
