"""Link an executable again with any number of different code layouts."""

from __future__ import annotations

import filecmp
import mmap
import time
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory

from perfflow.execute.layouts import driver_arguments, padding
from perfflow.execute.layouts.fixed_layouts import require_fit
from perfflow.execute.layouts.link_command import LinkCommand, LinkFailedError, prepared
from perfflow.execute.layouts.linkers import Linker, candidates
from perfflow.execute.layouts.recorded_link import Input, find
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
        if changed := [path for path, found in self._inputs.items() if not found.is_at(path)]:
            raise LayoutsRefusedError(f"{changed[0]} has changed since it was linked: build it again")
        try:
            with TemporaryDirectory(prefix=".perfflow-", dir=output.parent) as folder:
                self.linker.link(seed, self._padding, Path(folder)).replace(output)
        except (LinkFailedError, OSError) as error:
            raise LayoutsRefusedError(f"{output.name} could not be linked again: {error}") from None


def relinker(executable: Path, recordings: Path, work: Path) -> Relinker:
    """Return the relinker of an executable, based on the link that was recorded when it was built.

    work: a folder for the relinker's files, which must exist as long as the relinker is used.
    Raises LayoutsRefusedError if no link was recorded, its author chose the layout, a repeated link does not give the
    same bytes, or no linker can change the order.
    """
    executable, recordings, work = executable.absolute(), recordings.absolute(), work.absolute()
    work.mkdir(parents=True, exist_ok=True)
    link = find(executable, recordings)
    require_fit(link, recordings)
    arguments, watched = link.secured(work)
    command = prepared(link, arguments, work)
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
    source.write_text(padding.source())
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
