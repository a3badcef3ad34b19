"""Profile files for other viewers: formats and file names."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass

from perfflow.model.stacks import StackProfile, write_folded
from perfflow.report.stack_files import named, pprof, speedscope
from perfflow.store.run_folder import file_name


@dataclass(frozen=True)
class StackFormat:
    """A file format: the ending of its file names, and the function that writes a profile."""

    ending: str
    to_bytes: Callable[[StackProfile], bytes]


def _folded(profile: StackProfile) -> bytes:
    """Return the stacks as folded text. If threads are known, the first frame is the thread's name."""
    rows = {
        ((thread, *stack) if thread else stack): count
        for thread, stacks in named.stacks(profile)
        for stack, count in stacks.items()
    }
    return write_folded(rows).encode("utf-8", "replace")


FORMATS: Mapping[str, StackFormat] = {
    "folded": StackFormat(".folded", _folded),
    "speedscope": StackFormat(".speedscope.json", speedscope.to_bytes),
    "pprof": StackFormat(".pb.gz", pprof.to_bytes),
}


def files_of(profiles: Iterable[StackProfile], formats: Iterable[str]) -> Iterator[tuple[str, bytes]]:
    """Yield the unique name and the content of a file for each profile and format."""
    used: set[str] = set()
    for profile in profiles:
        name = _name(profile)
        while name in used:
            name += "_"
        used.add(name)
        for chosen in formats:
            form = FORMATS[chosen]
            yield name + form.ending, form.to_bytes(profile)


def _name(profile: StackProfile) -> str:
    """Return the safe file name ``STEP-SIDE``, with the benchmark between if its name differs from the step's."""
    benchmark = profile.benchmark if profile.benchmark != profile.step else ""
    number = str(profile.number + 1) if profile.number else ""
    return file_name("-".join(filter(None, [profile.step, benchmark, profile.side, number])))
